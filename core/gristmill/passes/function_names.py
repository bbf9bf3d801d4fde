"""Names for the functions that passes make."""

from __future__ import annotations

from gristmill.ir.module import Function


class FunctionNames:
    """New names that no function of a module has, neither as its own nor as its symbol."""

    def __init__(self, functions: tuple[Function, ...]) -> None:
        self.taken = {function.name for function in functions}
        self.taken |= {function.facts.symbol for function in functions if function.facts.symbol is not None}

    def new(self, stem: str) -> str:
        """``stem``, or if that is taken ``stem_1``, ``stem_2``, ..."""
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name
