"""Loops over sums in vectors give what the executor gives for the code before any pass, overlapping arrays included."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import ExecutionError, execute
from gristmill.ir.build import call, const
from gristmill.ir.dtype import BOOL, HANDLE, INT64
from gristmill.ir.expr import Ramp, Var
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, FunctionFacts
from gristmill.ir.stmt import Return
from gristmill.ir.target import parse_target
from gristmill.ir.verify import check
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import PassContext
from gristmill.plugin.registry import Registry
from gristmill.script import parse_source
from gristmill.testing.sum_nests import random_sum_nest
from gristmill_llvm.cpu import CPU


@pytest.fixture(scope="module")
def entries():
    return Registry.installed().pass_entries()


@pytest.mark.parametrize("name", ["cpu:x86-64-v2", "cpu:x86-64-v3"])
@pytest.mark.parametrize("case", range(2))
def test_random_loops_over_sums(compile_module, entries, case, name):
    target = CPU.resolve(parse_target(name))
    pipeline = build_pipeline(PassContext(target, CPU.capabilities(target), {}), entries)
    ran = 0
    for seed in range(1000 + case * 60, 1060 + case * 60):
        nest = random_sum_nest(seed)
        module = parse_source(nest.text, "kernel.py").module
        lowered = pipeline.run(module)
        if not any(isinstance(node, Ramp) for node in walk(lowered)):
            continue
        check(lowered)
        compiled = compile_module(lowered.functions, name).packed("f")
        for overlap in (False, True):
            print(f"seed {seed}, overlap {overlap}\n{nest.text}")
            expected, given = nest.arguments(overlap), nest.arguments(overlap)
            try:
                execute(module, "f", expected)
            except ExecutionError as error:
                print(f"not run: {error}")
                continue
            compiled(*given)
            ran += 1
            for wanted, found in zip(expected, given, strict=True):
                np.testing.assert_array_equal(found, wanted)
    assert ran >= 6


def test_disjoint_ranges(compile_module):
    a, b = Var("a", HANDLE), Var("b", HANDLE)
    a_bytes, b_bytes = Var("a_bytes", INT64), Var("b_bytes", INT64)
    answer = Return(call("disjoint", a, a_bytes, b, b_bytes, dtype=BOOL))
    facts = FunctionFacts(symbol="apart")
    apart = compile_module([Function("apart", (a, a_bytes, b, b_bytes), (), BOOL, answer, facts)]).plain("apart")
    start = 1 << 20
    for count in (-1, 0, 1, 4):
        for other_count in (-5, 0, 1, 4):
            for distance in range(-6, 7):
                first = set(range(start, start + count))
                second = set(range(start + distance, start + distance + other_count))
                assert apart(start, count, start + distance, other_count) is not bool(first & second)
    # Addresses in the upper half, as numbers.
    high = (1 << 63) + 16
    assert apart(high, 16, high + 16, 16)
    assert not apart(high, 17, high + 16, 16)
    assert apart(16, 16, high, 16)


def test_addresses_that_are_multiples(compile_module):
    a = Var("a", HANDLE)
    answer = Return(call("aligned", a, const(16, INT64), dtype=BOOL))
    function = Function("even", (a,), (), BOOL, answer, FunctionFacts(symbol="even"))
    even = compile_module([function]).plain("even")
    for address in (0, 1, 8, 15, 16, 24, 1 << 20, (1 << 63) + 16, (1 << 63) + 24):
        assert even(address) is (address % 16 == 0)
