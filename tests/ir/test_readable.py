"""Sizes as text for people."""

from __future__ import annotations

import pytest

from gristmill.ir.build import cast, const
from gristmill.ir.dtype import INT32, INT64
from gristmill.ir.expr import Add, Expr, FloorDiv, Max, Min, Mul, Negate, Sub, Var
from gristmill.ir.readable import size_text

N, M = Var("n", INT64), Var("m", INT64)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (N, "n"),
        (const(4, INT64), "4"),
        (N + 1, "n + 1"),
        (Mul(N + 1, M), "(n + 1) * m"),
        (Add(N, Mul(M, const(2, INT64))), "n + m * 2"),
        (Sub(N, Sub(M, N)), "n - (m - n)"),
        (FloorDiv(Mul(N, M), const(2, INT64)), "n * m // 2"),
        (Mul(N, const(-2, INT64)), "n * (-2)"),
        (cast(Var("s", INT32), INT64), "s"),
        (Negate(N + 1), "-(n + 1)"),
        (Min(N, Max(M, const(1, INT64))), "min(n, max(m, 1))"),
    ],
)
def test_sizes_are_written_without_types(expr: Expr, expected: str) -> None:
    assert size_text(expr) == expected
