"""Copies of the functions that kernels call, for :mod:`gristmill.passes.narrow_kernel`."""

from __future__ import annotations

from dataclasses import replace

from gristmill.ir.expr import Var
from gristmill.ir.module import Function, Module
from gristmill.passes.renewal import renewed

_MOST_COPIES = 256
"""Of all functions that the kernels of a module call; calls in calls could make very many."""


class Helpers:
    """The functions that kernels call: each call gets a copy of its own, since how far values reach differs."""

    def __init__(self, module: Module) -> None:
        self.functions = {function.name: function for function in module.functions}
        self.names = set(self.functions)
        self.copies: list[Function] = []

    def copy_of(self, name: str) -> Function | None:
        """A function with new names for all that it defines; None where there is none, or there are too many copies."""
        found = self.functions.get(name)
        if found is None or len(self.copies) >= _MOST_COPIES:
            return None
        params = tuple(replace(param) for param in found.params)
        variables = {old: new for old, new in zip(found.params, params, strict=True) if isinstance(old, Var)}
        body = renewed(found.body, variables)  # type: ignore[arg-type]
        number = 1
        while f"{name}_narrow_{number}" in self.names:
            number += 1
        self.names.add(f"{name}_narrow_{number}")
        return replace(found, name=f"{name}_narrow_{number}", params=params, body=body).with_facts(symbol=None)

    def add(self, copy: Function) -> None:
        self.copies.append(copy)

    def drop(self, kept: int) -> None:
        """Forget the copies after so many: what would have called them is not made."""
        self.names.difference_update(copy.name for copy in self.copies[kept:])
        del self.copies[kept:]
