"""Random programs: valid, without reports, the same for a seed, with every construct; faults are found and made small."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.interp import ExecutionOptions, Executor, execute
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, SCALARS, UINT8
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module
from gristmill.ir.verify import verify
from gristmill.testing.programs import (
    CONSTRUCTS,
    Outcome,
    RandomProgram,
    compare,
    count_constructs,
    differential,
    random_program,
    required_constructs,
    shrink,
)

PROGRAMS = range(1000, 1300)


def by_executor(module: Module, name: str, args: list[Any]) -> int | float | bool | None:
    return execute(module, name, args).value


def test_programs_are_valid_and_run_without_reports() -> None:
    modules = []
    for seed in PROGRAMS:
        program = random_program(seed)
        assert verify(program.module) == [], f"seed {seed}"
        executor = Executor(program.module)
        for arguments in (0, 1):
            try:
                executor.call(program.function, program.make_arguments(arguments))
            except Exception as error:
                raise AssertionError(f"seed {seed}, arguments {arguments}\n{error}\n{program.text()}") from error
        modules.append(program.module)
    counts = count_constructs(modules)
    print("\n".join(f"{count:8} {name}" for name, count in sorted(counts.items())))
    assert [name for name in required_constructs() if not counts[name]] == []


def test_a_program_follows_from_its_seed() -> None:
    for seed in range(40):
        one, other = random_program(seed), random_program(seed)
        assert one.text() == other.text()
        for a, b in zip(one.make_arguments(5), other.make_arguments(5), strict=True):
            assert np.array_equal(
                a, b, equal_nan=not isinstance(a, (int, np.ndarray)) or np.asarray(a).dtype.kind == "f"
            )
    assert random_program(1).text() != random_program(2).text()


def test_text_of_a_program_reads_back_and_gives_the_same() -> None:
    for seed in range(40):
        program = random_program(seed)
        module = parse_module(print_module(program.module))
        args = program.make_arguments(0)
        again = copy.deepcopy(args)
        one = execute(program.module, program.function, args).value
        other = execute(module, program.function, again).value
        assert compare(program.entry, Outcome(one, args), Outcome(other, again)) == [], f"seed {seed}"


def test_the_order_of_parallel_iterations_does_not_matter() -> None:
    tried = 0
    for seed in range(400):
        program = random_program(seed)
        if not any(isinstance(n, s.For) and n.kind is s.LoopKind.PARALLEL for n in walk(program.module)):
            continue
        tried += 1
        args = program.make_arguments(0)
        again = copy.deepcopy(args)
        executor = Executor(program.module)
        one = executor.call(program.function, args).value
        other = executor.call(program.function, again, ExecutionOptions(shuffle_seed=seed)).value
        assert compare(program.entry, Outcome(one, args), Outcome(other, again)) == [], f"seed {seed}"
    assert tried > 20


@pytest.mark.parametrize("construct", sorted(CONSTRUCTS))
def test_constructs_can_be_left_out(construct: str) -> None:
    counts = count_constructs(random_program(seed, constructs=CONSTRUCTS - {construct}).module for seed in range(60))
    absent = {
        "vector": ("vector store", "Ramp", "vector load"),
        "vectorized": ("vectorized loop",),
        "parallel": ("parallel loop",),
        "block": ("Block",),
        "view": ("View",),
        "assert": ("Assert",),
        "helper": ("CallFunction",),
        "recursion": ("recursion",),
        "mathematics": ("op exp", "op sin", "op pow"),
        "fmod": ("op fmod",),
        "fma": ("op fma",),
        "atomic": ("op atomic_add", "op atomic_load"),
        # These have tests of their own.
        "result": (),
        "denormals": (),
    }
    assert [name for name in absent[construct] if counts[name]] == []


def test_exact_operations_occur_in_every_float_type_of_a_cpu() -> None:
    found = {
        (node.op.name, node.type.element)
        for seed in range(200)
        for node in walk(random_program(seed).module)
        if isinstance(node, e.Call)
    }
    assert found >= {(name, dtype) for name in ("fma", "fmod") for dtype in (FLOAT32, FLOAT64)}


@pytest.mark.parametrize("dtypes", [(UINT8, BOOL), (FLOAT16, BFLOAT16), (INT32,), (FLOAT32,), SCALARS], ids=str)
def test_programs_keep_to_the_types_that_they_are_given(dtypes: tuple[Any, ...]) -> None:
    for seed in range(30):
        program = random_program(seed, dtypes=dtypes, mathematics_in=(FLOAT16, FLOAT32))
        assert verify(program.module) == []
        execute(program.module, program.function, program.make_arguments(0))
        buffers = {param.dtype for param in program.entry.params}
        assert buffers <= set(dtypes)


def test_unknown_constructs_are_refused() -> None:
    with pytest.raises(ValueError, match="there are no constructs"):
        random_program(0, constructs={"goto"})


def test_the_executor_agrees_with_itself() -> None:
    report = differential(range(30), by_executor)
    assert report.failures == []
    assert report.programs == 30
    assert report.constructs["Store"] > 30
    assert "0 failures" in str(report)


# Faults ---------------------------------------------------------------------------------------------------------------


class _Faulty(Mutator):
    """Takes one operation for another."""

    def __init__(self, wrong: Callable[[e.Expr], e.Expr | None]) -> None:
        super().__init__()
        self.wrong = wrong

    def visit(self, node: Any, /) -> Any:
        found = super().visit(node)
        if isinstance(found, e.Expr):
            return self.wrong(found) or found
        return found


def faulty_backend(wrong: Callable[[e.Expr], e.Expr | None]) -> Callable[[Module, str, list[Any]], Any]:
    return lambda module, name, args: execute(_Faulty(wrong).visit(module), name, args).value


def wrong_way_shift(node: e.Expr) -> e.Expr | None:
    return e.ShiftLeft(node.a, node.b) if isinstance(node, e.ShiftRight) and node.a.dtype.is_signed else None


def swapped_choice(node: e.Expr) -> e.Expr | None:
    return e.Select(node.condition, node.b, node.a) if isinstance(node, e.Select) else None


@pytest.mark.parametrize("wrong", [wrong_way_shift, swapped_choice], ids=lambda wrong: wrong.__name__)
def test_a_planted_fault_is_found_and_made_small(wrong: Callable[[e.Expr], e.Expr | None]) -> None:
    report = differential(range(200), faulty_backend(wrong), failures_at_most=1)
    assert len(report.failures) == 1
    failure = report.failures[0]
    print(failure)
    size = sum(1 for _ in walk(failure.program.module))
    whole = sum(1 for _ in walk(random_program(failure.seed).module))
    assert size < 60
    assert size < whole
    assert verify(failure.program.module) == []
    assert f"random_program({failure.seed})" in str(failure)
    statements = [node for node in walk(failure.program.module) if isinstance(node, (s.Store, s.Return, s.If, s.For))]
    assert len(statements) <= 4


def test_a_back_end_that_raises_is_a_failure() -> None:
    def raising(module: Module, name: str, args: list[Any]) -> None:
        if any(isinstance(node, e.Cast) for node in walk(module)):
            raise RuntimeError("no casts here")

    report = differential(range(100), lambda m, n, a: raising(m, n, a) or by_executor(m, n, a), failures_at_most=1)
    assert len(report.failures) == 1
    assert "no casts here" in report.failures[0].differences[0]
    assert sum(isinstance(node, e.Cast) for node in walk(report.failures[0].program.module)) == 1


def test_what_does_not_fail_cannot_be_shrunk() -> None:
    with pytest.raises(ValueError, match="does not fail"):
        shrink(random_program(1), lambda program: False)


# Comparison -----------------------------------------------------------------------------------------------------------

FUNCTION = parse_module("""gristmill ir 1
function @f(a: float32[3], b: int8[2], x: float32) {
}
""").functions[0]


def outcome(a: list[float], b: list[int] | None = None, value: Any = None) -> Outcome:
    return Outcome(value, [np.array(a, np.float32), np.array(b or [1, 2], np.int8), 0.5])


def test_comparison_is_of_bits_with_nan_as_one_value() -> None:
    quiet = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    nans = Outcome(None, [quiet, np.array([1, 2], np.int8), 0.5])
    assert compare(FUNCTION, outcome([math.nan] * 3), nans) == []
    assert compare(FUNCTION, outcome([1, 2, 3]), outcome([1, 2, 3])) == []
    assert "`a`: [0] is 0.0, expected -0.0" in compare(FUNCTION, outcome([-0.0, 2, 3]), outcome([0.0, 2, 3]))[0]
    assert "[1] is 3, expected 2" in compare(FUNCTION, outcome([1, 2, 3]), outcome([1, 2, 3], [1, 3]))[0]
    assert compare(FUNCTION, outcome([1, 2, 3]), outcome([1, 2, math.nan])) != []


def test_comparison_of_bounded_results_counts_ulp() -> None:
    up = [float(np.nextafter(np.float32(value), np.float32(9))) for value in (1, -2, 0.0)]
    assert compare(FUNCTION, outcome([1, -2, 0.0]), outcome(up)) != []
    assert compare(FUNCTION, outcome([1, -2, 0.0]), outcome(up), {"a"}) == []
    assert compare(FUNCTION, outcome([1, -2, 0.0]), outcome(up), {"a"}, ulp=0.5) != []
    assert compare(FUNCTION, outcome([0.0, 1, 1]), outcome([-0.0, 1, 1]), {"a"}) == []
    assert compare(FUNCTION, outcome([math.inf, 1, 1]), outcome([3.4028234663852886e38, 1, 1]), {"a"}) == []
    assert compare(FUNCTION, outcome([math.inf, 1, 1]), outcome([-math.inf, 1, 1]), {"a"}) != []
    assert compare(FUNCTION, outcome([math.nan, 1, 1]), outcome([1, 1, 1]), {"a"}) != []
    assert compare(FUNCTION, outcome([1, 1, 1]), outcome([1 + 1e-5, 1, 1]), {"a"}) != []


def test_comparison_of_results() -> None:
    for wanted, given, same in [
        (1, 1, True), (1, 2, False), (True, 1, True), (1.5, 1.5, True), (0.0, -0.0, False), (math.nan, math.nan, True),
        (None, None, True), (None, 0, False), (1.0, "1", False),
    ]:  # fmt: skip
        found = compare(FUNCTION, outcome([1, 2, 3], value=wanted), outcome([1, 2, 3], value=given))
        assert (found == []) is same, (wanted, given)


def test_programs_without_results() -> None:
    left = CONSTRUCTS - {"result"}
    assert all(random_program(seed, constructs=left).entry.returns.is_void for seed in range(60))


def test_programs_without_denormals() -> None:
    """None in constants and arguments, with all else as it is with them."""

    def floats(program: RandomProgram) -> list[float]:
        found = [float(node.value) for node in walk(program.module) if isinstance(node, e.FloatImm)]
        for arg in program.make_arguments(0):
            if isinstance(arg, np.ndarray) and arg.dtype.kind in "fV":
                found += [float(value) for value in arg.ravel()]
            elif isinstance(arg, float):
                found.append(arg)
        return found

    def are_denormal(values: list[float]) -> bool:
        return any(0 < abs(value) < 2.0**-126 for value in values)

    seeds = range(40)
    assert any(are_denormal(floats(random_program(seed))) for seed in seeds)
    assert not any(are_denormal(floats(random_program(seed, constructs=CONSTRUCTS - {"denormals"}))) for seed in seeds)
