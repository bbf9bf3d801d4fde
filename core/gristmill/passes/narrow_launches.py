"""Launches of kernels whose indices are of 32 bits, for :mod:`gristmill.passes.narrow_indices`: what the host finds out before.

It computes how far the indices reach, and either launches another kernel where they do not fit, or refuses the launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.build import cast, conjunction, disjunction, less_equal, sequence
from gristmill.ir.expr import Expr, IntImm, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.module import Function
from gristmill.ir.stmt import Assert, Bind, If, Launch, Stmt
from gristmill.passes.index_reach import Reaches


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A kernel in 32 bits, its parameters as they were, and what must hold of them."""

    kernel: Function
    params: tuple[Var, ...]
    reaches: Reaches
    wide: str = ""
    """The kernel to launch where it does not hold; an empty text for none."""

    @property
    def always_fits(self) -> bool:
        return not self.reaches.conditions


def with_choices(function: Function, narrowed: Mapping[str, Narrowed], refusal: str) -> Function:
    """A host function whose launches of narrow kernels, by their names, are made only where indices fit.

    ``refusal`` is what a ValueError says where there is no other kernel; sizes and numbers are added.
    """
    if not any(isinstance(node, Launch) and node.kernel in narrowed for node in walk(function.body)):
        return function
    return function.with_body(_Choosing(function, narrowed, refusal).visit(function.body))


class _Choosing(Mutator):
    def __init__(self, function: Function, narrowed: Mapping[str, Narrowed], refusal: str) -> None:
        super().__init__()
        self.function = function
        self.narrowed = narrowed
        self.refusal = refusal
        own = [param for param in function.params if isinstance(param, Var)]
        self.told = [var for var in (*function.sizes, *own) if var.dtype.is_integer]
        self.values: dict[Var, Expr] = {}

    def visit_Bind(self, node: Bind) -> Any:
        self.values[node.var] = node.value
        return node

    def visit_Launch(self, node: Launch) -> Any:
        found = self.narrowed.get(node.kernel)
        if found is None:
            return node
        before: list[Stmt] = []
        given: dict[Var, Expr] = {}
        args, wide_args = [], []
        for param, new, arg in zip(found.params, found.kernel.params, node.args, strict=True):
            assert isinstance(new, Var)
            if not (param.dtype.is_handle or param.dtype.is_float):
                if not isinstance(arg, (Var, IntImm)):
                    named = Var(param.name, param.dtype)
                    before.append(Bind(named, arg, node.span))
                    arg = named
                given[param] = arg
            wide_args.append(arg)
            args.append(arg if new.dtype == param.dtype else cast(arg, new.dtype))
        for var, value in found.reaches.names:
            given[var] = fresh = Var(var.name, var.dtype)
            before.append(Bind(fresh, substitute(value, given), node.span))
        narrow = replace(node, args=tuple(args))
        if found.always_fits:
            return sequence(*before, narrow)
        fits = conjunction(substitute(condition, given) for condition in found.reaches.conditions)
        if found.wide:
            wide = replace(node, kernel=found.wide, args=tuple(wide_args))
            return sequence(*before, If(fits, narrow, wide, node.span))
        # A launch of nothing needs no room.
        condition = disjunction((*(less_equal(extent, 0) for extent in node.extents), fits))
        before.append(Assert(condition, "ValueError", self.message(node), node.span))
        return sequence(*before, narrow)

    def message(self, node: Launch) -> tuple[str | Expr, ...]:
        """What is told: the sizes and numbers that the launch depends on."""
        parts: list[str | Expr] = [f"{self.function.facts.symbol or self.function.name}: {self.refusal}"]
        for number, var in enumerate(self.behind((*node.args, *node.extents))):
            parts += [f"{', ' if number else '; '}`{var.name}` is ", var]
        return tuple(parts)

    def behind(self, values: Sequence[Expr]) -> list[Var]:
        """The sizes and scalars of the function that values come from, through the names between."""
        seen: set[Var] = set()
        waiting = list(values)
        while waiting:
            for part in walk(waiting.pop()):
                if isinstance(part, Var) and part not in seen:
                    seen.add(part)
                    if part in self.values:
                        waiting.append(self.values[part])
        return [var for var in self.told if var in seen]
