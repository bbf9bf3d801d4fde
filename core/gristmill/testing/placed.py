"""Modules from text whose nodes all have places, for tests of what reports point at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.errors import Place
from gristmill.ir import expr as e
from gristmill.ir.functor import Mutator
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Module
from gristmill.ir.node import Node
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_node
from gristmill.ir.span import Span
from gristmill.ir.text_form import HEADER
from gristmill.ir.verify import check


class _Placing(Mutator):
    """Gives every node but variables and buffers a line of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[Place, str] = {}

    def visit_Node(self, node: Node) -> Any:
        found: Any = self.generic(node)
        if isinstance(node, (e.Var, Buffer)):
            return found
        place = Place("kernel.py", len(self.texts) + 1, 1, len(self.texts) + 1, 2)
        self.texts[place] = print_node(node)
        return replace(found, span=Span(place))

    visit_Seq = Mutator.visit_Seq


def placed_module(text: str) -> tuple[Module, dict[Place, str]]:
    """A verified module from text without its header, and the text of the node at each place."""
    module = parse_module(f"{HEADER}\n{text}")
    check(module)
    placing = _Placing()
    placed: Module = placing.visit(module)
    return placed, placing.texts
