"""floor, ceil, round, trunc, abs, copysign: exact, in float32 and float64.

Adding 2**23 (float64: 2**52) to a smaller magnitude rounds it to a whole number, half to even; from there on every
float is whole. The sign is put back at the end, for zeros too.
"""

from __future__ import annotations

from collections.abc import Callable

from gristmill.ir.build import equal, greater, less, not_equal
from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, DType
from gristmill.ir.expr import Expr, Var
from gristmill.ir.module import Function
from gristmill.mathlib.body import Body


def _whole(body: Body, x: Var, adjust: Callable[[Var], Expr]) -> Function:
    """Round half to even; ``adjust`` moves the result; keep numbers that are whole, infinities and NaNs."""
    magnitude = body.let("magnitude", body.magnitude(x))
    nearest = body.let("nearest", (magnitude + body.whole_from) - body.whole_from)
    adjusted = body.let("adjusted", adjust(body.let("signed", body.with_sign(nearest, body.sign_bit(x)))))
    found = body.with_sign(body.magnitude(adjusted), body.sign_bit(x))
    return body.result(body.select(less(magnitude, body.whole_from), found, x))


def _body(name: str, dtype: DType, arity: int = 1, returns: DType | None = None) -> Body | None:
    return Body(name, dtype, arity, returns) if dtype.element in (FLOAT32, FLOAT64) else None


def round_(dtype: DType) -> Function | None:
    body = _body("round", dtype)
    return None if body is None else _whole(body, body.params[0], lambda nearest: nearest)


def floor(dtype: DType) -> Function | None:
    body = _body("floor", dtype)
    if body is None:
        return None
    x = body.params[0]
    return _whole(body, x, lambda nearest: body.select(greater(nearest, x), nearest - 1.0, nearest))


def ceil(dtype: DType) -> Function | None:
    body = _body("ceil", dtype)
    if body is None:
        return None
    x = body.params[0]
    return _whole(body, x, lambda nearest: body.select(less(nearest, x), nearest + 1.0, nearest))


def trunc(dtype: DType) -> Function | None:
    body = _body("trunc", dtype)
    if body is None:
        return None
    x = body.params[0]
    magnitude = body.let("magnitude", body.magnitude(x))
    nearest = body.let("nearest", (magnitude + body.whole_from) - body.whole_from)
    whole = body.select(greater(nearest, magnitude), nearest - 1.0, nearest)
    found = body.with_sign(whole, body.sign_bit(x))
    return body.result(body.select(less(magnitude, body.whole_from), found, x))


def abs_(dtype: DType) -> Function | None:
    body = _body("abs", dtype)
    return None if body is None else body.result(body.magnitude(body.params[0]))


def copysign(dtype: DType) -> Function | None:
    body = _body("copysign", dtype, 2)
    if body is None:
        return None
    x, y = body.params
    return body.result(body.with_sign(body.magnitude(x), body.sign_bit(y)))


def isnan(dtype: DType) -> Function | None:
    body = _body("isnan", dtype, 1, BOOL.with_lanes(dtype.lanes))
    return None if body is None else body.result(not_equal(body.params[0], body.params[0]))


def isinf(dtype: DType) -> Function | None:
    body = _body("isinf", dtype, 1, BOOL.with_lanes(dtype.lanes))
    return None if body is None else body.result(equal(body.magnitude(body.params[0]), float("inf")))


def isfinite(dtype: DType) -> Function | None:
    body = _body("isfinite", dtype, 1, BOOL.with_lanes(dtype.lanes))
    return None if body is None else body.result(less(body.magnitude(body.params[0]), float("inf")))
