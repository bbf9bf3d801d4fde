"""Testing launch lowering: before and expected, nothing shared between functions, equal results on the executor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gristmill.interp import AssertionFailed, Executor
from gristmill.ir.equal import first_difference
from gristmill.ir.expr import Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Module
from gristmill.ir.printer import print_module
from gristmill.ir.verify import check
from gristmill.passes.manager import Pass
from gristmill.testing.pass_equivalence import kernels, outcome_of, same_outcome, without_signatures


@dataclass(frozen=True)
class Case:
    """A kernel, what it is lowered to, and lists of arguments to run both with."""

    name: str
    before: str
    expected: str
    calls: Callable[[], list[list[Any]]]


def ints(count: int) -> np.ndarray:
    """The numbers 0, 1, ... as int32, of shape (count,)."""
    return np.arange(count, dtype=np.int32)


def floats(count: int) -> np.ndarray:
    """The numbers 0, 1, ... as float32, of shape (count,)."""
    return np.arange(count, dtype=np.float32)


def check_launch_lowering(
    lower: Callable[[Module], Module],
    packed: Pass,
    before: str,
    expected: str,
    calls: Iterable[Sequence[Any]],
    function: str = "f",
) -> Module:
    """Lower the module of a source and compare it with the module of an IR text; run both with each list of arguments.

    ``lower`` is what is tested, ``packed`` the pass that makes the packed interface: the result runs by its plain
    function and by the packed one. Raises AssertionError with what differs. Returns the lowered module.
    """
    module, wanted = kernels(before), kernels(expected)
    found = lower(module)
    difference = first_difference(without_signatures(found), wanted)
    if difference is not None:
        raise AssertionError(f"{difference}\n--- found\n{print_module(without_signatures(found))}")
    check_nothing_shared(found)
    assert lower(found) is found, f"a second run changes\n{print_module(found)}"
    started = module.get(function)
    assert started is not None
    assert started.facts.symbol is not None
    symbol = started.facts.symbol
    host = next(other.name for other in found.functions if other.facts.symbol == symbol)
    public = packed.run(found)
    check(public, after=packed.name)
    for args in calls:
        outcome = outcome_of(module, function, args)
        assert same_outcome(outcome, outcome_of(found, host, args)), f"another outcome than {outcome} for {args}"
        through = packed_outcome(public, f"__tvm_ffi_{symbol}", args)
        assert same_outcome(outcome, through), f"{through}, not {outcome}, for {args} through the packed interface"
    return found


def packed_outcome(module: Module, function: str, args: Sequence[Any]) -> list[Any]:
    """What a call through the packed interface leaves behind, as :func:`~gristmill.testing.pass_equivalence.outcome_of`."""
    own = [arg if _is_aligned(arg) else copy.deepcopy(arg) for arg in args]
    kept = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in own]
    try:
        result: Any = Executor(module).call_packed(function, own).value
    except AssertionFailed as failed:
        result = f"{failed.kind}: {failed.message}"
    left = [arg.copy() for arg in own if isinstance(arg, np.ndarray)]
    for arg, was in zip(own, kept, strict=True):
        if isinstance(arg, np.ndarray):
            arg[...] = was
    return [result, *left]


def _is_aligned(arg: Any) -> bool:
    """Whether the caller has put an array where a copy would not be."""
    return isinstance(arg, np.ndarray) and arg.base is not None and arg.ctypes.data % 64 == 0


def aligned(array: np.ndarray) -> np.ndarray:
    """The array in memory that begins at a multiple of 64 bytes."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    found = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def check_nothing_shared(module: Module) -> None:
    """Raise AssertionError if two functions of the module have a variable or buffer in common."""
    owners: dict[object, str] = {}
    for function in module.functions:
        for node in walk(function):
            for item in (node, getattr(node, "buffer", None), getattr(node, "data", None)):
                if isinstance(item, (Var, Buffer)):
                    owner = owners.setdefault(item, function.name)
                    assert owner == function.name, f"`{item.name}` is in `{owner}` and in `{function.name}`"
