"""Where elements of a buffer lie: strides, offsets and sizes as int64 expressions, folded as far as constants go.

Element offsets of a well-formed buffer do not wrap: memory of 2**63 elements does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.build import cast, const
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Add, Broadcast, Cast, Expr, IntImm, Mul, Ramp, Sub
from gristmill.ir.memory import Buffer


def as_int64(value: Expr) -> Expr:
    """The index as int64 (lanes kept); constants directly, ramps by their parts."""
    if value.dtype.element == INT64:
        return value
    if isinstance(value, IntImm):
        return IntImm(INT64.wrap(value.value), INT64, value.span)
    if isinstance(value, Broadcast):
        return Broadcast(as_int64(value.value), value.lanes, value.span)
    if isinstance(value, Ramp) and isinstance(value.base, IntImm) and isinstance(value.stride, IntImm):
        last = value.base.value + value.stride.value * (value.lanes - 1)
        if value.base.type.minimum <= last <= value.base.type.maximum:
            return Ramp(as_int64(value.base), as_int64(value.stride), value.lanes, value.span)
    return Cast(INT64.with_lanes(value.dtype.lanes), value, value.span)


def plus(a: Expr, b: Expr) -> Expr:
    """``a + b`` of int64, with zeros dropped and constants folded."""
    if isinstance(a, IntImm):
        if isinstance(b, IntImm):
            return IntImm(INT64.wrap(a.value + b.value), INT64, a.span)
        if a.value == 0:
            return cast(b, a.dtype.with_lanes(b.dtype.lanes))
    if isinstance(b, IntImm) and b.value == 0:
        return a
    a, b = _same_lanes(a, b)
    if isinstance(a, Broadcast) and isinstance(b, Ramp):
        return Ramp(plus(a.value, b.base), b.stride, b.lanes, b.span)
    if isinstance(a, Ramp) and isinstance(b, Broadcast):
        return Ramp(plus(a.base, b.value), a.stride, a.lanes, a.span)
    return Add(a, b, a.span)


def minus(a: Expr, b: Expr) -> Expr:
    """``a - b`` of scalar int64, folded."""
    if isinstance(b, IntImm):
        return plus(a, const(-b.value, INT64))
    return const(0, INT64) if a is b else Sub(a, b, a.span)


def times(a: Expr, b: Expr) -> Expr:
    """``a * b`` of int64, with ones and zeros folded."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(INT64.wrap(a.value * b.value), INT64, a.span)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, IntImm):
            if one.value == 1:
                return other
            if one.value == 0:
                return const(0, other.dtype)
    if isinstance(a, Ramp) and b.dtype.lanes == 1:
        return Ramp(times(a.base, b), times(a.stride, b), a.lanes, a.span)
    a, b = _same_lanes(a, b)
    return Mul(a, b, a.span)


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """The stride of each dimension in elements, as int64: stated, or those of the compact row-major layout."""
    if buffer.strides:
        return tuple(as_int64(stride) for stride in buffer.strides)
    found: list[Expr] = []
    step: Expr = const(1, INT64)
    for size in reversed(buffer.shape):
        found.append(step)
        step = times(as_int64(size), step)
    return tuple(reversed(found))


def offset_of(buffer: Buffer) -> Expr:
    """The offset of the first element in elements, as int64."""
    return const(0, INT64) if buffer.offset is None else as_int64(buffer.offset)


def element_offset(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """How many elements after ``buffer.data`` the element at the indices lies, as int64 (a vector if the last index is)."""
    total = offset_of(buffer)
    for index, stride in zip(indices, strides_of(buffer), strict=True):
        total = plus(total, times(as_int64(index), stride))
    return total


def is_compact(buffer: Buffer) -> bool:
    """Whether the buffer is stated to be row-major without gaps."""
    return not buffer.strides


def flat_size(buffer: Buffer) -> Expr:
    """How many elements, counted from ``buffer.data``, the buffer reaches over, as int64.

    For strided layouts that is one more than the offset of the last element, which is exact where no size is 0 and no
    stride is negative.
    """
    one = const(1, INT64)
    if is_compact(buffer):
        size = one
        for extent in buffer.shape:
            size = times(size, as_int64(extent))
        return plus(offset_of(buffer), size)
    last = offset_of(buffer)
    for extent, stride in zip(buffer.shape, strides_of(buffer), strict=True):
        last = plus(last, times(minus(as_int64(extent), one), stride))
    return plus(last, one)


def _same_lanes(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    lanes = max(a.dtype.lanes, b.dtype.lanes)
    return cast(a, a.dtype.with_lanes(lanes)), cast(b, b.dtype.with_lanes(lanes))
