"""Testing passes: before and expected in the surface language, and equal results on the reference executor."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import numpy as np

from gristmill.interp import AssertionFailed, Executor
from gristmill.ir.equal import first_difference, structural_equal
from gristmill.ir.expr import Var
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.printer import print_module
from gristmill.passes.manager import Pass, Pipeline, RunOptions


def outcome_of(module: Module, function: str, args: Sequence[object], sizes: Sequence[int] = ()) -> list[Any]:
    """What a call leaves behind: its result, or the error of a failed assert, and then its array arguments.

    ``args`` are not changed. ``sizes`` are appended to the arguments if the function takes them as parameters, as it
    does once buffers are passed by pointer. Raises ExecutionError for what the language does not allow.
    """
    own = [copy.deepcopy(arg) for arg in args]
    found = module.get(function)
    assert found is not None
    extra = list(sizes) if len(found.params) == len(args) + len(sizes) else []
    try:
        result: Any = Executor(module).call(function, [*own, *extra]).value
    except AssertionFailed as failed:
        result = f"{failed.kind}: {failed.message}"
    return [result, *(arg for arg in own if isinstance(arg, np.ndarray))]


def sizes_of(function: Function, args: Sequence[object]) -> list[int]:
    """The values of the symbolic sizes that stand alone as a dimension of a parameter, in the order of ``sizes``."""
    known: dict[Var, int] = {}
    for param, arg in zip(function.params, args, strict=True):
        if isinstance(param, Buffer) and isinstance(arg, np.ndarray):
            for size, actual in zip(param.shape, arg.shape, strict=True):
                if isinstance(size, Var):
                    known[size] = actual
    return [known[size] for size in function.sizes]


def same_outcome(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two outcomes agree bit for bit; all NaNs count as one value."""
    return len(first) == len(second) and all(_same(a, b) for a, b in zip(first, second, strict=True))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        if a.dtype.kind == "f":
            both_nan = np.isnan(a) & np.isnan(b)
            return bool(np.all(both_nan | ((a == b) & (np.signbit(a) == np.signbit(b)))))
        return bool(np.array_equal(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return _same(np.array(a), np.array(b))
    return bool(a == b)


def kernels(text: str) -> Module:
    """The module of a kernel source (its import line may be left out), or of IR text that starts with ``gristmill ir``."""
    from gristmill.ir.parser import parse_module
    from gristmill.script import parse_source

    text = dedent(text).strip() + "\n"
    if text.startswith("gristmill ir"):
        return parse_module(text)
    return parse_source("from gristmill.script import tir as T\n" + text, "kernel.py").module


def check_pass(work: Pass, before: str, expected: str) -> Module:
    """Run a pass over kernels and compare with what is expected, names of variables aside. Returns the result.

    The result is verified, and running the pass again, or over what is expected, must change nothing more. Raises
    AssertionError with the first difference and both texts.
    """
    result = Pipeline.of([work]).run(kernels(before), RunOptions(verify=True))
    wanted = kernels(expected)
    difference = first_difference(without_signatures(result), without_signatures(wanted))
    if difference is not None:
        raise AssertionError(f"{difference}\n--- found\n{print_module(result)}\n--- expected\n{print_module(wanted)}")
    if not structural_equal(Pipeline.of([work]).run(result), result):
        raise AssertionError(f"{work.name} changes its own result:\n{print_module(result)}")
    return result


def without_signatures(module: Module) -> Module:
    """The module without the texts of signatures and summaries, which say what a function looked like in its source."""
    return module.with_functions(function.with_facts(signature="", summary="") for function in module.functions)
