"""fmod, exactly, in whole numbers.

With a = A 2**i and b = B 2**j, fmod is (A 2**(i - j) mod B) 2**j. The power is multiplied in steps that 64 bits hold,
each followed by a remainder. In float32 the difference of exponents is at most 276 and a step 40 bits: seven steps, most
of them by 2**0. In float64 it is up to 2098 and a step 11 bits, so the steps are a loop, which numbers of similar size
leave at once; vectors are handled lane by lane, as machines divide integers.
"""

from __future__ import annotations

from gristmill.ir.build import const, equal, greater, less, not_equal
from gristmill.ir.dtype import FLOAT32, FLOAT64, HANDLE, INT64, UINT64, DType
from gristmill.ir.expr import Cast, Expr, Load, Max, Min, Mod, Ramp, Select, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import Function
from gristmill.ir.stmt import Allocate, Bind, For, LoopKind, Return, Seq, Store, While
from gristmill.mathlib.body import Body
from gristmill.mathlib.exponential import scale

_STEP = {FLOAT32: 40, FLOAT64: 11}
"""A remainder has 24 (53) bits, so that many more fit into 64."""
_STEPS = 7
"""In float32; 276 bits at most."""


def _parts(body: Body, name: str, magnitude: Var) -> tuple[Var, Var]:
    """The whole significand (uint64) and the exponent field, of numbers below the least normal one 1."""
    bits = body.let(f"{name}_bits", body.signed_bits(magnitude))
    field = body.let(f"{name}_field", bits >> body.fraction_bits)
    one = 1 << body.fraction_bits
    fraction = bits & (one - 1)
    whole = Select(equal(field, 0), fraction, fraction | one)
    exponent = body.let(f"{name}_exponent", Max(field, const(1, body.signed)))
    return body.let(f"{name}_whole", Cast(UINT64.with_lanes(body.dtype.lanes), whole)), exponent


def fmod(dtype: DType) -> Function | None:
    if dtype.element not in _STEP:
        return None
    body = Body("fmod", dtype, 2)
    x, y = body.params
    if dtype.element == FLOAT64 and dtype.lanes > 1:
        return _lane_by_lane(body, x, y)
    return body.result(_fmod(body, x, y))


def _fmod(body: Body, x: Var, y: Var) -> Expr:
    a = body.let("a", body.magnitude(x))
    b = body.let("b", body.magnitude(y))
    a_whole, a_exponent = _parts(body, "a", a)
    b_whole, b_exponent = _parts(body, "b", b)
    left = body.let("left_0", Max(a_exponent - b_exponent, const(0, body.signed)))
    rest = body.let("rest_0", Mod(a_whole, b_whole))
    rest = (_steps if body.dtype.element == FLOAT32 else _loop)(body, rest, left, b_whole)
    # The remainder is below 2**24 (2**53), so exact as a float, and so is its product with the power of two.
    power = body.let("power", b_exponent - (body.bias + body.fraction_bits))
    found = scale(body, Cast(body.dtype, Cast(body.signed, rest)), power)
    # fmod(a, b) = a where a < b, of any exponents; NaN for an infinite a, a zero b, a NaN.
    found = body.let("found", body.select(less(a, b), a, found))
    is_defined = less(a, float("inf")) & greater(b, 0.0)
    return body.select(is_defined, body.with_sign(found, body.sign_bit(x)), float("nan"))


def _steps(body: Body, rest: Var, left: Var, divisor: Var) -> Var:
    """``rest * 2**left`` modulo the divisor, in straight-line code."""
    for step in range(1, _STEPS + 1):
        count = body.let(f"count_{step}", Min(left, const(_STEP[FLOAT32], body.signed)))
        rest = body.let(f"rest_{step}", Mod(rest << Cast(rest.dtype, count), divisor))
        left = body.let(f"left_{step}", left - count)
    return rest


def _loop(body: Body, rest: Var, left: Var, divisor: Var) -> Var:
    """``rest * 2**left`` modulo the divisor, of scalars; no more steps once nothing is left to multiply."""
    rest_now, left_now = _local("rest", UINT64), _local("left", INT64)
    count = Var("count", INT64)
    step = Seq(
        (
            Bind(count, Min(Load(left_now, ()), const(_STEP[FLOAT64], INT64))),
            Store(rest_now, (), Mod(Load(rest_now, ()) << Cast(UINT64, count), divisor)),
            Store(left_now, (), Load(left_now, ()) - count),
        )
    )
    goes_on = greater(Load(left_now, ()), 0) & not_equal(Load(rest_now, ()), 0)
    body.statements += [Allocate(rest_now), Store(rest_now, (), rest), Allocate(left_now), Store(left_now, (), left)]
    body.statements.append(While(goes_on, step))
    return body.let("rest_last", Load(rest_now, ()))


def _lane_by_lane(body: Body, x: Var, y: Var) -> Function:
    """The vectors go through memory, where a loop reaches their lanes."""
    lanes = body.dtype.lanes
    a, b = (_local(f"{param.name}_lanes", FLOAT64, lanes) for param in (x, y))
    every = (Ramp(const(0, INT64), const(1, INT64), lanes),)
    lane = Var("lane", INT64)
    scalar = Body("fmod", FLOAT64, 2)
    operands = [scalar.let(f"{buffer.name}_lane", Load(buffer, (lane,))) for buffer in (a, b)]
    scalar.statements.append(Store(a, (lane,), _fmod(scalar, *operands)))
    loop = For(lane, const(0, INT64), const(lanes, INT64), LoopKind.SERIAL, Seq(tuple(scalar.statements)))
    start = (Allocate(a), Store(a, every, x), Allocate(b), Store(b, every, y))
    return Function(body.name, body.params, (), body.returns, Seq((*start, loop, Return(Load(a, every)))))


def _local(name: str, dtype: DType, size: int | None = None) -> Buffer:
    """Memory of one number, or of ``size``."""
    shape = () if size is None else (const(size, INT64),)
    return Buffer(name, dtype, shape, Var(f"{name}_data", HANDLE, PointerType(dtype, Scope.LOCAL)), scope=Scope.LOCAL)
