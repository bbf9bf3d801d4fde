"""Random programs for devices: valid, without reports in any order of threads, the same for a seed, with every construct."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from gristmill.interp import ExecutionError, ExecutionOptions, Executor
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.dtype import SCALARS
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module
from gristmill.ir.verify import verify
from gristmill.passes.manager import Pipeline
from gristmill.schedule.bind_loops import BindLoops
from gristmill.testing.device_programs import (
    DEVICE_CONSTRUCTS,
    count_device_constructs,
    random_device_program,
    required_device_constructs,
    with_serial_reductions,
)
from gristmill.testing.programs import Outcome, compare, differential

PROGRAMS = range(1000, 1250)


def test_programs_are_valid_and_run_without_reports_in_any_order() -> None:
    modules = []
    zeros = 0
    for seed in PROGRAMS:
        program = random_device_program(seed)
        assert verify(program.module) == [], f"seed {seed}"
        for number in (0, 1):
            args = program.make_arguments(number)
            again = copy.deepcopy(args)
            zeros += any(isinstance(arg, np.ndarray) and arg.size == 0 for arg in args)
            try:
                value = Executor(program.oracle).call(program.function, args).value
                shuffled = ExecutionOptions(shuffle_seed=seed)
                other = Executor(program.oracle, shuffled).call(program.function, again).value
            except Exception as error:
                raise AssertionError(f"seed {seed}, arguments {number}\n{error}\n{program.text()}") from error
            found = compare(program.entry, Outcome(value, args), Outcome(other, again))
            assert found == [], f"seed {seed}, arguments {number}"
        modules.append(program.module)
    counts = count_device_constructs(modules)
    print("\n".join(f"{count:8} {name}" for name, count in sorted(counts.items())))
    assert [name for name in required_device_constructs() if not counts[name]] == []
    assert zeros > 20


def test_programs_with_exchanges_run_without_reports_in_any_order() -> None:
    modules = []
    for seed in range(2000, 2150):
        program = random_device_program(seed, constructs=DEVICE_CONSTRUCTS)
        assert verify(program.module) == [], f"seed {seed}"
        args = program.make_arguments(1)
        again = copy.deepcopy(args)
        value = Executor(program.oracle).call(program.function, args).value
        other = Executor(program.oracle, ExecutionOptions(shuffle_seed=seed)).call(program.function, again).value
        assert compare(program.entry, Outcome(value, args), Outcome(other, again)) == [], f"seed {seed}"
        modules.append(program.module)
    counts = count_device_constructs(modules)
    assert [name for name in required_device_constructs(exchanges=True) if not counts[name]] == []


def test_a_program_follows_from_its_seed() -> None:
    for seed in range(30):
        one, other = random_device_program(seed), random_device_program(seed)
        assert one.text() == other.text()
        for a, b in zip(one.make_arguments(5), other.make_arguments(5), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert random_device_program(1).text() != random_device_program(2).text()


def test_text_of_a_program_reads_back() -> None:
    for seed in range(30):
        text = print_module(random_device_program(seed).module)
        assert print_module(parse_module(text)) == text, f"seed {seed}"


def test_scalars_of_every_type_are_parameters() -> None:
    found = {
        param.dtype
        for seed in range(120)
        for param in random_device_program(seed, dtypes=SCALARS).entry.params
        if isinstance(param, e.Var)
    }
    assert found == set(SCALARS)


class _Without(Mutator):
    """Leaves out one barrier, by its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def visit_Barrier(self, node: s.Barrier) -> Any:
        self.number -= 1
        return node if self.number != -1 else s.Seq(())


def without_barrier(module: Module, number: int) -> Module:
    leaving = _Without(number)
    return module.with_functions(function.with_body(leaving.visit(function.body)) for function in module.functions)


def test_most_barriers_are_needed() -> None:
    needed = barriers = 0
    for seed in range(60):
        program = random_device_program(seed)
        module = program.oracle
        for number in range(sum(isinstance(node, s.Barrier) for node in walk(module))):
            barriers += 1
            try:
                for arguments in range(3):
                    Executor(without_barrier(module, number)).call(program.function, program.make_arguments(arguments))
            except ExecutionError:
                needed += 1
    print(f"{needed} of {barriers} barriers are needed")
    assert needed > 30
    assert needed < barriers


def test_reductions_over_threads_are_serial_for_the_executor() -> None:
    changed = 0
    for seed in range(60):
        program = random_device_program(seed)
        oracle = program.oracle
        changed += oracle is not program.module
        assert with_serial_reductions(oracle) is oracle
    assert changed > 5


def test_functions_with_barriers_are_called_by_all_threads_or_by_none() -> None:
    calls = 0
    for seed in range(300):
        module = random_device_program(seed).module
        waiting = {
            f.name
            for f in module.functions
            if f.name.startswith("together") and any(isinstance(node, s.Barrier) for node in walk(f.body))
        }
        for node in walk(module):
            calls += isinstance(node, e.CallFunction) and node.function in waiting
            if isinstance(node, (e.And, e.Or)):
                second = [part.function for part in walk(node.b) if isinstance(part, e.CallFunction)]
                assert not waiting & set(second), f"seed {seed}"
    assert calls > 50


@pytest.mark.parametrize("construct", sorted(DEVICE_CONSTRUCTS))
def test_constructs_can_be_left_out(construct: str) -> None:
    left = DEVICE_CONSTRUCTS - {construct}
    counts = count_device_constructs(random_device_program(seed, constructs=left).module for seed in range(40))
    absent = {
        "vector": ("vector store", "Ramp", "vector load"),
        "vectorized": ("vectorized loop",),
        "block": ("block with match",),
        "view": ("View",),
        "helper": ("helper in a thread", "helper on the host"),
        "host helper": ("function with launches",),
        "assert": ("assert outside of launches",),
        "thread assert": ("assert in a thread",),
        "device helper": ("barrier in a function",),
        "warp": ("warp memory", "barrier warp"),
        "early return": ("return of the host", "return of a thread"),
        "reduction": ("reduction over threads",),
        "dynamic": ("shared.dyn memory",),
        "mathematics": ("op exp", "op sin", "op pow"),
        "fmod": ("op fmod",),
        "fma": ("op fma",),
        "exchange": ("warp_shuffle", "warp_shuffle_down", "warp_ballot", "warp_any"),
        "atomic": ("atomic operation on global memory", "atomic operation on shared memory", "op atomic_add"),
        # tests/testing/test_programs.py tells: the values come from there.
        "denormals": (),
    }
    assert [name for name in absent[construct] if counts[name]] == []


def test_unknown_constructs_are_refused() -> None:
    with pytest.raises(ValueError, match="there are no constructs \\['weave'\\]"):
        random_device_program(0, constructs={"weave"})


def test_what_is_bound_needs_no_schedule() -> None:
    for seed in range(60):
        module = random_device_program(seed).module
        assert Pipeline.of([BindLoops(threads=64)]).run(module) is module, f"seed {seed}"


class _Faulty(Mutator):
    """Adds where it should subtract."""

    def visit_Sub(self, node: e.Sub) -> Any:
        node = self.generic(node)
        return e.Add(node.a, node.b, node.span)


def test_a_fault_is_found_and_made_small() -> None:
    def run_backend(module: Module, name: str, args: list[Any]) -> int | float | bool | None:
        wrong = with_serial_reductions(module)
        wrong = wrong.with_functions(f.with_body(_Faulty().visit(f.body)) for f in wrong.functions)
        return Executor(wrong).call(name, args).value

    report = differential(
        range(40), run_backend, make=random_device_program, count=count_device_constructs, failures_at_most=1
    )
    assert len(report.failures) == 1
    failure = report.failures[0]
    assert verify(failure.program.module) == []
    whole = random_device_program(failure.seed)
    sizes = [sum(1 for _ in walk(program.module)) for program in (failure.program, whole)]
    assert sizes[0] < sizes[1] / 2
    assert report.constructs["blockIdx.x loop"] > 0


def test_right_programs_have_no_differences() -> None:
    def run_backend(module: Module, name: str, args: list[Any]) -> int | float | bool | None:
        return Executor(with_serial_reductions(module)).call(name, args).value

    report = differential(range(30), run_backend, make=random_device_program, count=count_device_constructs)
    assert (report.programs, report.failures) == (30, [])
