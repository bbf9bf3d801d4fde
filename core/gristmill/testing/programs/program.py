"""A random program: a module, which of its functions to call, and the arguments to call it with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gristmill.interp.shapes import evaluate
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Var
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.printer import print_module
from gristmill.testing.programs.chance import Chance, numpy_type

SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17)
"""Values of symbolic sizes: odd ones, powers of two, and one."""


@dataclass(frozen=True)
class RandomProgram:
    """A module and how to call it. ``bounded``: the names of buffer parameters with results that may differ by some ulp."""

    module: Module
    function: str
    bounded: frozenset[str]
    seed: int
    denormals: bool = True
    """Whether its arguments may be denormals of float32."""

    @property
    def entry(self) -> Function:
        found = self.module.get(self.function)
        assert found is not None
        return found

    @property
    def oracle(self) -> Module:
        """What the executor runs to say what is right: the module itself."""
        return self.module

    def sizes_for(self, size: Var) -> tuple[int, ...]:
        """The values that a symbolic size takes."""
        return SIZES

    def make_arguments(self, seed: int) -> list[Any]:
        """Arrays and numbers for the entry function, the same for the same seed."""
        chance = Chance(f"{self.seed} {seed}")
        chance.denormals = self.denormals
        sizes: dict[Var, int] = {size: chance.pick(self.sizes_for(size)) for size in self.entry.sizes}
        found: list[Any] = []
        for param in self.entry.params:
            if isinstance(param, Buffer):
                shape = tuple(evaluate(size, sizes) for size in param.shape)
                found.append(_array(chance, param.dtype, shape))
            else:
                found.append(chance.value(param.dtype))
        return found

    def text(self) -> str:
        """How to see the program again: its seed, and the module as text."""
        return f"; random program of seed {self.seed}, call @{self.function}\n{print_module(self.module)}"


def _array(chance: Chance, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape, dtype=np.int64))
    array: np.ndarray[Any, Any] = np.array([chance.value(dtype) for _ in range(count)], dtype=numpy_type(dtype))
    return array.reshape(shape)
