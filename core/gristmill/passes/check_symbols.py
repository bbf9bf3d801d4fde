"""Refuse two functions that would be exported under one name.

Before::

    function @first() symbol "sum" { ... }
    function @second() symbol "sum" { ... }

After: error GM0604, which names both functions and their places. A module without such functions comes back as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.module import Function, Module
from gristmill.ir.span import place_of
from gristmill.passes.manager import Pass


@dataclass(frozen=True)
class CheckSymbols(Pass):
    """Refuse two functions that would be exported under one name."""

    def run(self, module: Module) -> Module:
        check_symbols(module)
        return module


def check_symbols(module: Module) -> None:
    """Raise UserError (GM0604) if two functions of the module have the same symbol."""
    seen: dict[str, Function] = {}
    for function in module.public:
        symbol = function.facts.symbol or ""
        other = seen.setdefault(symbol, function)
        if other is not function:
            raise UserError(
                Diagnostic(
                    "GM0604",
                    f"the functions `{other.name}` and `{function.name}` would both be exported as `{symbol}`",
                    place_of(function.span),
                    hint="give one of them another symbol, or make it private",
                    notes=(Note(f"`{other.name}` is here", place_of(other.span)),),
                )
            )
