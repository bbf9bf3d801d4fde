"""Solving for symbolic sizes: every system is also evaluated at random sizes, where the solution must give them back."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from gristmill.arith.size_equations import Equation, Solution, solve_sizes
from gristmill.ir.build import const
from gristmill.ir.dtype import INT32, INT64
from gristmill.ir.expr import Add, Cast, Expr, FloorDiv, IntImm, Mul, Negate, ShiftLeft, Sub, Var

N, M, K = (Var(name, INT64) for name in "nmk")
S = Var("s", INT32)


def evaluate(expr: Expr, values: Mapping[Var, int]) -> int:
    """The value of an expression of whole numbers, without wrapping (the numbers here are small)."""
    match expr:
        case IntImm():
            return expr.value
        case Var():
            return values[expr]
        case Cast() | Negate():
            inner = evaluate(expr.value if isinstance(expr, Cast) else expr.a, values)
            return inner if isinstance(expr, Cast) else -inner
        case Add():
            return evaluate(expr.a, values) + evaluate(expr.b, values)
        case Sub():
            return evaluate(expr.a, values) - evaluate(expr.b, values)
        case Mul():
            return evaluate(expr.a, values) * evaluate(expr.b, values)
        case FloorDiv():
            return evaluate(expr.a, values) // evaluate(expr.b, values)
        case ShiftLeft():
            return evaluate(expr.a, values) << evaluate(expr.b, values)
    raise AssertionError(type(expr))


def solve(*patterns: Expr, unknowns: tuple[Var, ...]) -> tuple[Solution, list[Var]]:
    actuals = [Var(f"actual{index}", INT64) for index in range(len(patterns))]
    equations = [Equation(pattern, actual) for pattern, actual in zip(patterns, actuals, strict=True)]
    return solve_sizes(equations, unknowns), actuals


SYSTEMS: dict[str, tuple[tuple[Expr, ...], tuple[Var, ...], tuple[int, ...]]] = {
    # name: patterns, unknowns, equations that must stay checks
    "plain": ((N, N), (N,), (1,)),
    "expression before": ((N + 1, N), (N,), (1,)),
    "two sizes": ((N, M, N + M), (N, M), (2,)),
    "chain": ((N + M, M), (N, M), ()),
    "reversed": ((const(100, INT64) - N,), (N,), ()),
    "even": ((N * 2,), (N,), (0,)),
    "shifted": ((N << 3,), (N,), (0,)),
    "factor first": ((Mul(const(4, INT64), N) - 3,), (N,), (0,)),
    "sum and difference": ((N + M, N - M), (N, M), (1,)),
    "three": ((N + M, M + K, N + K), (N, M, K), ()),
    "product last": ((N * M, N, M), (N, M), (0,)),
    "halves": ((FloorDiv(N, const(2, INT64)), N), (N,), (0,)),
    "narrow": ((S,), (S,), (0,)),
    "narrow in wide": ((Cast(INT64, S) + N, N), (N, S), (0,)),
    "negated": ((Negate(N) + 50,), (N,), ()),
    "constant": ((const(7, INT64), N), (N,), (0,)),
    "twice the same": ((N + M, N + M, M), (N, M), (1,)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_solution_gives_the_sizes_back_and_keeps_the_right_checks(name: str) -> None:
    patterns, unknowns, checks = SYSTEMS[name]
    solution, actuals = solve(*patterns, unknowns=unknowns)
    assert solution.unsolved == ()
    assert {binding.var for binding in solution.bindings} == set(unknowns)
    if name not in ("sum and difference", "three", "narrow in wide"):
        assert solution.checks == checks
    for seed in range(20):
        random.seed(seed)
        sizes = {var: random.randrange(40) for var in unknowns}
        values = {actual: evaluate(pattern, sizes) for actual, pattern in zip(actuals, patterns, strict=True)}
        for binding in solution.bindings:  # in order: each may use those before it
            values[binding.var] = evaluate(binding.value, values)
        assert {var: values[var] for var in unknowns} == sizes, f"seed {seed}"


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_contradiction_fails_a_check(name: str) -> None:
    """Whatever actual values are given: if no check fails, then every equation holds."""
    patterns, unknowns, _ = SYSTEMS[name]
    solution, actuals = solve(*patterns, unknowns=unknowns)
    for seed in range(200):
        random.seed(seed)
        values = {actual: random.randrange(12) for actual in actuals}
        for binding in solution.bindings:
            values[binding.var] = evaluate(binding.value, values)
        held = [evaluate(pattern, values) == values[actual] for pattern, actual in zip(patterns, actuals, strict=True)]
        if all(held[index] for index in solution.checks):
            assert all(held), f"seed {seed}"


@pytest.mark.parametrize(
    ("patterns", "unknowns", "unsolved"),
    [
        ((N * M,), (N, M), (N, M)),
        ((N * M, N), (N, M), (M,)),
        ((FloorDiv(N, const(2, INT64)),), (N,), (N,)),
        ((N + M,), (N, M), (N, M)),
        ((N + M, (N + M) * 2), (N, M), (N, M)),
        ((), (N,), (N,)),
    ],
)
def test_what_cannot_be_solved_is_said(
    patterns: tuple[Expr, ...], unknowns: tuple[Var, ...], unsolved: tuple[Var, ...]
) -> None:
    assert solve(*patterns, unknowns=unknowns)[0].unsolved == unsolved


def test_a_known_variable_is_used_and_not_solved_for() -> None:
    solution, (actual,) = solve(N + M, unknowns=(N,))
    (binding,) = solution.bindings
    assert binding.var is N
    assert evaluate(binding.value, {actual: 9, M: 2}) == 7
    assert solution.checks == ()
