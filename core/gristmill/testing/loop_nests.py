"""Random nests of plain loops over shared arrays, for testing what decides that iterations are independent.

Indices are sums of loop variables with small factors, products with sizes among them, or digits of those; a guard keeps
them inside of the arrays. Some nests combine many values into one element. Many are in place and carry values from one
iteration to another, so that a wrong decision shows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gristmill.testing.programs.chance import Chance

_SHAPES = (("n",), ("m",), ("n", "m"), ("m", "n"), ("n * m",), ("40",), ("6", "8"))
_SIZES = (0, 1, 2, 5, 7, 12, 33)


class _Nest:
    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.arrays: dict[str, tuple[str, ...]] = {name: chance.pick(_SHAPES) for name in "abc"}
        self.arrays["c"] = ("n", "m")
        self.lines: list[str] = []
        self.variables: list[tuple[str, str]] = []

    def index(self, size: str) -> str:
        """A sum over the loops around: most often one variable, or rows of a flat array."""
        chance = self.chance
        if not self.variables:
            return str(chance.number(0, 2))
        if chance.happens(0.5):
            found = chance.pick(self.variables)[0]
        elif chance.happens(0.4) and len(self.variables) > 1:
            (one, _), (other, width) = chance.pick(self.variables), chance.pick(self.variables)
            found = f"{one} * {width} + {other}"
        else:
            parts = [f"{chance.pick((-1, 1, 2, 3, 4))} * {name}" for name, _ in self.variables if chance.happens(0.6)]
            found = " + ".join(parts) or "0"
        if chance.happens(0.1):
            found = f"({found}) {chance.pick(('//', '%'))} {chance.number(2, 4)}"
        return f"{found} + {chance.number(-2, 2)}" if chance.happens(0.3) else found

    def element(self, name: str) -> tuple[str, list[str]]:
        """An element of the array, and the conditions under which there is one."""
        indices = [self.index(size) for size in self.arrays[name]]
        if len(indices) == 2 and self.chance.happens(0.12):
            width = self.chance.pick((self.arrays[name][1], self.arrays[name][0], "4"))
            indices = [f"({indices[0]}) // {width}", f"({indices[0]}) % {width}"]
            if self.chance.happens(0.2):
                indices.reverse()
        guards = [f"{index} >= 0 and {index} < {size}" for index, size in zip(indices, self.arrays[name], strict=True)]
        return f"{name}[{', '.join(indices)}]", guards

    def store(self, indent: int) -> None:
        if self.chance.happens(0.25):
            self.update(indent)
            return
        target, guards = self.element(self.chance.pick("abc"))
        terms = [target] if self.chance.happens(0.4) else []
        for _ in range(self.chance.number(0, 2)):
            term, more = self.element(self.chance.pick("abc"))
            terms.append(term)
            guards += more
        terms += [name for name, _ in self.variables if self.chance.happens(0.7)]
        space = "    " * indent
        self.lines.append(f"{space}if {' and '.join(guards)}:")
        self.lines.append(f"{space}    {target} = T.cast({' * 3 + '.join(terms or ['7'])}, 'int64')")

    def update(self, indent: int) -> None:
        """Combine a value into an element, most often one that not all of the loops move."""
        chance = self.chance
        around = self.variables
        self.variables = around[: chance.number(0, len(around))]
        target, guards = self.element(chance.pick("abc"))
        self.variables = around
        value, more = self.element(chance.pick("abc"))
        if chance.happens(0.4):
            value, more = f"T.int64({around[-1][0]} * 3)", []
        form = chance.pick(("{0} + {1}", "{0} - {1}", "T.min({0}, {1})", "T.max({1}, {0})", "{0} ^ {1}", "{1} - {0}"))
        space = "    " * indent
        self.lines.append(f"{space}if {' and '.join([*guards, *more])}:")
        self.lines.append(f"{space}    {target} = {form.format(target, value)}")

    def loops(self, indent: int, depth: int) -> None:
        chance = self.chance
        name = f"i{len(self.variables)}_{len(self.lines)}"
        width = chance.pick(("n", "m", "4", "8", "40", "70"))
        extent = f"range({width})"
        if self.variables and chance.happens(0.25):
            outer = chance.pick(self.variables)[0]
            extent = chance.pick((f"range({outer}, {width})", f"range({outer} * 4, T.min({width}, {outer} * 4 + 4))"))
        elif chance.happens(0.15):
            extent = f"range(2, {width})"
        self.lines.append("    " * indent + f"for {name} in {extent}:")
        self.variables.append((name, width))
        if depth > 1 and chance.happens(0.8):
            self.loops(indent + 1, depth - 1)
            if chance.happens(0.15):
                self.store(indent + 1)
        else:
            for _ in range(chance.number(1, 2)):
                self.store(indent + 1)
        self.variables.pop()


def random_loop_nest(seed: int) -> tuple[str, list[Any]]:
    """The source of a kernel ``main`` of a few nests, and arguments for it; the same for the same seed.

    The arrays are int64, and some of them may overlap.
    """
    chance = Chance(f"loop nest {seed}")
    nest = _Nest(chance)
    for _ in range(chance.number(1, 3)):
        nest.loops(1, chance.number(1, 3))
    params = []
    for name, shape in nest.arrays.items():
        sizes = ", ".join(size if size.isdecimal() else f'"{size}"' for size in shape)
        params.append(f'{name}: T.Buffer(({sizes},), "int64")')
    source = "\n".join(["@T.prim_func", f"def main({', '.join(params)}):", *nest.lines])
    sizes_of = {"n": chance.pick(_SIZES), "m": chance.pick(_SIZES)}
    sizes_of["n * m"] = sizes_of["n"] * sizes_of["m"]
    random = np.random.default_rng(seed)
    whole = random.integers(-9, 9, 4096, np.int64)
    arguments = []
    at = 0
    for shape in nest.arrays.values():
        actual = [int(size) if size.isdecimal() else sizes_of[size] for size in shape]
        count = math.prod(actual)
        if chance.happens(0.15):
            at = max(at - chance.number(1, 40), 0)
        arguments.append(whole[at : at + count].reshape(actual))
        at += count
    return source, arguments
