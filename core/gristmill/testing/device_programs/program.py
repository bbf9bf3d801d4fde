"""A random program for devices: how to call it, and what the executor can run of it to say what is right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.expr import Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Module
from gristmill.ir.stmt import AxisKind, Block, For, LoopKind
from gristmill.testing.programs.program import SIZES, RandomProgram


@dataclass(frozen=True)
class RandomDeviceProgram(RandomProgram):
    """A module whose entry is host code with launches. The size ``n`` may be zero, ``m`` may not."""

    @property
    def oracle(self) -> Module:
        """What the executor runs: blocks that reduce over threads do it in one thread, since unlowered they race."""
        return with_serial_reductions(self.module)

    def sizes_for(self, size: Var) -> tuple[int, ...]:
        return SIZES if size.name == "m" else (0, *SIZES)


def with_serial_reductions(module: Module) -> Module:
    """The module with serial loops in the place of those over threads that a reduce axis of a block is bound to."""
    return module.with_functions(
        function.with_body(_Serial().visit(function.body)) if _reduces(function.body) else function
        for function in module.functions
    )


def _reduces(body: Any) -> bool:
    return any(isinstance(node, Block) and any(a.kind is AxisKind.REDUCE for a in node.axes) for node in walk(body))


class _Serial(Mutator):
    def visit_For(self, node: For) -> Any:
        found = self.generic(node)
        if node.kind is not LoopKind.THREAD or node.thread is None or node.thread.is_block:
            return found
        for block in walk(node.body):
            if not isinstance(block, Block):
                continue
            for axis in block.axes:
                if axis.kind is AxisKind.REDUCE and any(part is node.var for part in walk(axis.value)):
                    return replace(found, kind=LoopKind.SERIAL, thread=None)
        return found
