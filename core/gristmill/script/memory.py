"""Elements and parts of buffers, and what a buffer knows of itself."""

from __future__ import annotations

import ast

from gristmill.errors import suggestion
from gristmill.ir.build import cast, const, constant_value
from gristmill.ir.expr import Expr, IntImm, Load, Mul, Ramp, Sub
from gristmill.ir.memory import MATRIX_SCOPES, Buffer, Range, Region
from gristmill.ir.readable import size_text
from gristmill.script.context import Context
from gristmill.script.linear import difference
from gristmill.script.operands import index, operand
from gristmill.script.source import Positioned
from gristmill.script.values import BufferShape, Method, Value

METHODS = ("vload", "vstore", "access_ptr")
MEMBERS = (*METHODS, "data", "shape", "strides", "elem_offset", "dtype", "scope", "name", "ndim")


def buffer_member(context: Context, node: ast.Attribute, buffer: Buffer) -> Value:
    """``A.data``, ``A.shape`` and the like."""
    name = node.attr
    if name in (*METHODS, "data"):
        check_elements(context, node, buffer)
    if name in METHODS:
        return Method(name, buffer)
    if name == "data":
        return buffer.data
    if name == "shape":
        return BufferShape(buffer)
    if name == "strides":
        return buffer.strides or _compact_strides(context, node, buffer)
    if name == "elem_offset":
        return buffer.offset if buffer.offset is not None else 0
    if name == "dtype":
        return buffer.dtype
    if name == "name":
        return buffer.name
    if name == "ndim":
        return buffer.rank
    if name == "scope":
        return Method("scope", buffer)
    raise context.mistake(
        "GM0284",
        node,
        f"buffers have no `{name}`",
        label="not known",
        hint=suggestion(name, MEMBERS, f"buffers have {', '.join(MEMBERS)}"),
    )


def _compact_strides(context: Context, node: ast.Attribute, buffer: Buffer) -> tuple[Value, ...]:
    """The strides of a row-major buffer without gaps, in elements."""
    span, dtype = context.span(node), context.index_type
    found: list[Value] = []
    step: Expr = const(1, dtype, span)
    for size in reversed(buffer.shape):
        found.insert(0, step)
        known, so_far = constant_value(size), constant_value(step)
        if known is not None and so_far is not None:
            step = const(known * so_far, dtype, span)
        else:
            wide = cast(size, dtype, span)
            step = wide if so_far == 1 else Mul(wide, step, span)
    return tuple(found)


def index_nodes(node: ast.Subscript) -> list[ast.expr]:
    """The expressions between the brackets."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def element(context: Context, node: ast.Subscript, buffer: Buffer) -> Value:
    """``A[i, j]`` read: an element, or with a slice of constant length last the vector of those elements.

    Other slices make a region, which only a few places take.
    """
    check_elements(context, node, buffer)
    places = index_nodes(node)
    if any(isinstance(place, ast.Slice) for place in places):
        found = _vector_indices(context, node, buffer, places, complain=False)
        if found is None:
            return region(context, node, buffer)
        return Load(buffer, found, context.span(node))
    return Load(buffer, indices(context, node, buffer, places), context.span(node))


def check_elements(context: Context, node: Positioned, buffer: Buffer) -> None:
    """Refuse (GM0348) what reaches for single elements of tiles of matrices, or hands the tiles on."""
    if buffer.scope in MATRIX_SCOPES:
        raise context.mistake(
            "GM0348",
            node,
            f"`{buffer.name}` holds tiles of matrices, whose elements are spread over the threads of a warp",
            label="not one by one",
            hint="store the tile to shared or global memory first: `T.matrix_store(A[i, j], tile, stride)`",
        )


def check_rank(context: Context, node: Positioned, buffer: Buffer, count: int) -> None:
    if count != buffer.rank:
        wanted = "no index" if buffer.rank == 0 else f"{buffer.rank} ind{'ices' if buffer.rank > 1 else 'ex'}"
        places = ", ".join("ijklmn"[axis % 6] for axis in range(buffer.rank))
        raise context.mistake(
            "GM0280",
            node,
            f"`{buffer.name}` takes {wanted}, and {count} {'is' if count == 1 else 'are'} given",
            label=f"{count} given, {buffer.rank} wanted",
            hint=f"write `{buffer.name}[{places or '()'}]`",
        )


def indices(context: Context, node: ast.Subscript, buffer: Buffer, places: list[ast.expr]) -> tuple[Expr, ...]:
    """The indices of an element, checked for number, type and, where they are constant, bounds."""
    check_rank(context, node, buffer, len(places))
    found = []
    for axis, place in enumerate(places):
        one = index(context, place)
        if one.dtype.lanes > 1 and axis != len(places) - 1:
            raise context.mistake(
                "GM0266",
                place,
                "only the last index may be a vector",
                label=str(one.dtype),
                hint="swap the dimensions, or store element by element",
            )
        _check_bounds(context, place, buffer, axis, one)
        found.append(one)
    return tuple(found)


def _check_bounds(context: Context, place: Positioned, buffer: Buffer, axis: int, found: Expr) -> None:
    if not isinstance(found, IntImm):
        return
    extent = buffer.shape[axis]
    limit = extent.value if isinstance(extent, IntImm) else None
    if found.value < 0 or (limit is not None and found.value >= limit):
        size = limit if limit is not None else size_text(extent)
        raise context.mistake(
            "GM0282",
            place,
            f"the index {found.value} is outside of `{buffer.name}`, whose dimension {axis} has {size} elements",
            label="out of bounds",
            hint="indices count from 0, and negative ones do not count from the end"
            if found.value < 0
            else f"the last element is {limit - 1 if limit else 'none'}",
        )


def target_indices(context: Context, node: ast.Subscript, buffer: Buffer) -> tuple[Expr, ...]:
    """The indices that a store goes to; a slice of constant length may come last."""
    check_elements(context, node, buffer)
    places = index_nodes(node)
    if any(isinstance(place, ast.Slice) for place in places):
        found = _vector_indices(context, node, buffer, places, complain=True)
        assert found is not None
        return found
    return indices(context, node, buffer, places)


def _vector_indices(
    context: Context, node: ast.Subscript, buffer: Buffer, places: list[ast.expr], complain: bool
) -> tuple[Expr, ...] | None:
    """Indices of which the last is a slice: a ramp over it. None if it is not such a slice (or a mistake, to complain)."""
    check_rank(context, node, buffer, len(places))
    *scalars, last = places
    slices = [place for place in scalars if isinstance(place, ast.Slice)]
    if slices or not isinstance(last, ast.Slice):
        if complain:
            raise _no_vector(context, slices[0], "only the last index may be a slice", "loop over the other dimensions")
        return None
    start, length = _slice(context, last, buffer, len(places) - 1)
    stride = 1
    if last.step is not None:
        step = operand(context, last.step)
        if not isinstance(step, int) or step < 1:
            raise _no_vector(
                context, last, "the step of a slice must be a positive constant", "write the step as a number"
            )
        stride = step
        length = None if length is None else -(-length // step)
    if length is None or not 1 <= length <= 1024:
        if complain:
            why = "its length is not constant" if length is None else f"it has {length} elements"
            raise _no_vector(
                context,
                last,
                f"the slice `{context.segment(last)}` is no vector: {why}",
                "loop over the elements, or write `A[i:i + 4]`",
            )
        return None
    head = indices_of_scalars(context, buffer, scalars)
    span = context.span(last)
    if length == 1:
        return (*head, start)
    return (*head, Ramp(start, const(stride, start.dtype, span), length, span))


def indices_of_scalars(context: Context, buffer: Buffer, places: list[ast.expr]) -> list[Expr]:
    found = [index(context, place) for place in places]
    for axis, (place, one) in enumerate(zip(places, found, strict=True)):
        _check_bounds(context, place, buffer, axis, one)
    return found


def _no_vector(context: Context, node: ast.expr, message: str, hint: str) -> Exception:
    return context.mistake("GM0283", node, message, label="not a vector", hint=hint)


def _slice(context: Context, node: ast.Slice, buffer: Buffer, axis: int) -> tuple[Expr, int | None]:
    """Start of a slice and its length if that is constant."""
    start = index(context, node.lower) if node.lower is not None else const(0, context.index_type, context.span(node))
    stop = index(context, node.upper) if node.upper is not None else buffer.shape[axis]
    return start, difference(stop, start)


def region(context: Context, node: ast.Subscript, buffer: Buffer) -> Region:
    """``A[i, 0:4]`` as a box of elements."""
    places = index_nodes(node)
    check_rank(context, node, buffer, len(places))
    ranges = []
    for axis, place in enumerate(places):
        span = context.span(place)
        if not isinstance(place, ast.Slice):
            start = index(context, place)
            ranges.append(Range(start, const(1, start.dtype, span), span))
            continue
        if place.step is not None:
            raise _no_vector(context, place, "a part of a buffer has no step", "give start and stop only")
        start, length = _slice(context, place, buffer, axis)
        if length is not None:
            extent: Expr = const(length, start.dtype, span)
        else:
            stop = index(context, place.upper) if place.upper is not None else buffer.shape[axis]
            if stop.dtype != start.dtype:
                from gristmill.script.operands import meet

                stop, start = meet(context, place, stop, start, place, place)
            extent = stop if isinstance(start, IntImm) and start.value == 0 else Sub(stop, start, span)
        ranges.append(Range(start, extent, span))
    return Region(buffer, tuple(ranges), context.span(node))


def whole(buffer: Buffer) -> Region:
    """All of a buffer."""
    ranges = tuple(Range(const(0, extent.dtype), extent) for extent in buffer.shape)
    return Region(buffer, ranges, buffer.span)
