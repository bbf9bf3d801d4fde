"""Buffers as values: allocations, views, pointers, vector loads and stores, addresses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.ir.build import const
from gristmill.ir.dtype import HANDLE, DType
from gristmill.ir.expr import AddressOf, Expr, Load, Ramp, Var
from gristmill.ir.memory import Buffer, PointerType, Region, Scope
from gristmill.ir.stmt import Allocate, Bind, MatchBuffer, Store, View
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.conversions import dtype_argument
from gristmill.script.calls.matrices import check_tiles
from gristmill.script.context import Context
from gristmill.script.memory import check_elements, check_rank, whole
from gristmill.script.operands import fit, index, operand
from gristmill.script.shapes import Layout, element_count, layout, make_buffer, scope_of, sizes
from gristmill.script.values import Allocated, Method, Value, describe


def _allocated(context: Context, call: ast.Call, found: Layout) -> Buffer:
    """New memory: of the block when its own statements are read, else from here on."""
    if (
        found.scope is not Scope.GLOBAL
        and element_count(found.shape) is None
        and found.scope is not Scope.SHARED_DYNAMIC
    ):
        raise context.mistake(
            "GM0289",
            call,
            f'memory of scope "{found.scope.value}" needs a constant size',
            label="its size is not constant",
            hint='use constants for its shape, or scope="global"',
        )
    check_tiles(context, call, found)
    buffer = make_buffer(context, context.target or "buffer", found, call)
    block = context.block
    if block is not None:
        block.allocations.append(buffer)
    else:
        context.emit(Allocate(buffer, context.span(call)))
    return buffer


def _alloc_buffer(context: Context, call: ast.Call) -> Value:
    found = layout(context, call)
    if found.data is not None:
        return _view(context, call, found)
    return _allocated(context, call, found)


def _alloc_in(scope: Scope) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        found = layout(context, call)
        found.scope = scope
        return _allocated(context, call, found)

    return handler


def _allocate(context: Context, call: ast.Call) -> Value:
    """Classic ``T.allocate([128], "float32", "shared")``: a pointer, which may be indexed too."""
    args = bind(context, call, ("extents", "dtype"), ("scope", "condition", "annotations"))
    shape = sizes(context, args["extents"])
    dtype = dtype_argument(context, args["dtype"])
    scope = scope_of(context, args["scope"]) if "scope" in args else Scope.GLOBAL
    found = Layout(shape, dtype, (), None, scope, 0, None)
    block, blocks = context.block, context.blocks
    if block is not None:
        context.blocks = []
    try:
        return Allocated(_allocated(context, call, found))
    finally:
        context.blocks = blocks


def _decl_buffer(context: Context, call: ast.Call) -> Value:
    """``T.decl_buffer(shape, dtype, data=p)``: a view; without data new memory."""
    found = layout(context, call)
    return _allocated(context, call, found) if found.data is None else _view(context, call, found)


def _view(context: Context, call: ast.Call, found: Layout) -> Buffer:
    from gristmill.script.expressions import lower

    assert found.data is not None
    value = lower(context, found.data)
    if isinstance(value, (Allocated, Buffer)):
        of = value.buffer if isinstance(value, Allocated) else value
        check_elements(context, found.data, of)
        value = of.data
    if not isinstance(value, Expr) or not value.dtype.is_handle:
        raise context.mistake(
            "GM0267",
            found.data,
            f"the memory of a view is a pointer, and this is {describe(value)}",
            label="not a pointer",
            hint="write `data=A.data`, a parameter of type T.handle, or T.address_of(A[i])",
        )
    span = context.span(call)
    name = context.target or "view"
    if isinstance(value, Var):
        if value.pointer is not None:
            found.scope = value.pointer.scope
        buffer = make_buffer(context, name, found, call, value)
        context.emit(View(buffer, None, span))
        return buffer
    if isinstance(value, AddressOf):
        found.scope = value.buffer.scope
    buffer = make_buffer(context, name, found, call)
    context.emit(View(buffer, value, span))
    return buffer


def _match_buffer(context: Context, call: ast.Call) -> Value:
    """``T.match_buffer(A[0:4, 0:4], shape, ...)`` in a block. Of parameters: see :mod:`gristmill.script.signature`."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("source",), ("shape", "dtype", "data", "strides", "elem_offset", "scope", "align",
                                         "offset_factor", "buffer_type", "axis_separators"))  # fmt: skip
    source = as_region(lower(context, args["source"]))
    block = context.block
    if source is None or block is None:
        raise context.mistake(
            "GM0240",
            call,
            "`T.match_buffer` stands for a parameter of type T.handle, or for a part of a buffer at the start of a block",
            label="neither of these",
            hint="use it at the top of the function with a T.handle parameter, or write "
            "`T.decl_buffer(shape, dtype, data=A.data)` for a view",
        )
    inner = ast.copy_location(ast.Call(call.func, call.args[1:], call.keywords), call)
    check_elements(context, args["source"], source.buffer)
    if "shape" in args:
        found = layout(context, inner, dtype=source.buffer.dtype)
    else:
        extents = tuple(one.extent for one in source.ranges)
        found = Layout(extents, source.buffer.dtype, (), None, source.buffer.scope, 0, None)
    if "scope" not in args:
        found.scope = source.buffer.scope
    if len(found.shape) > len(source.ranges) or found.dtype != source.buffer.dtype:
        raise context.mistake(
            "GM0338",
            call,
            f"a buffer of {len(found.shape)} dimensions of {found.dtype} does not match a part of "
            f"`{source.buffer.name}`, which has {len(source.ranges)} of {source.buffer.dtype}",
            label="does not match",
            hint="give the matched buffer the dimensions and the type of the part",
        )
    buffer = make_buffer(context, context.target or "matched", found, call)
    block.matches.append(MatchBuffer(buffer, source, context.span(call)))
    return buffer


def as_region(value: Value) -> Region | None:
    from gristmill.ir.memory import Range

    if isinstance(value, Region):
        return value
    if isinstance(value, (Buffer, Allocated)):
        return whole(value if isinstance(value, Buffer) else value.buffer)
    if isinstance(value, Load):
        ranges = []
        for one in value.indices:
            if isinstance(one, Ramp):
                ranges.append(Range(one.base, const(one.lanes, one.base.dtype, one.span), one.span))
            else:
                ranges.append(Range(one, const(1, one.dtype.element), one.span))
        return Region(value.buffer, tuple(ranges), value.span)
    return None


def address_of(context: Context, call: ast.Call) -> Value:
    from gristmill.script.expressions import lower

    args = bind(context, call, ("element",))
    value = lower(context, args["element"])
    if isinstance(value, Load) and value.dtype.lanes == value.buffer.dtype.lanes:
        return AddressOf(value.buffer, value.indices, context.span(call))
    raise context.mistake(
        "GM0267",
        args["element"],
        f"only an element of a buffer has an address, and this is {describe(value)}",
        label="no address",
        hint="write `T.address_of(A[i])`",
    )


def vector_load(context: Context, call: ast.Call, method: Method) -> Value:
    """``A.vload(indices, "float32x4")``: adjacent elements from there."""
    args = bind(context, call, ("indices",), ("dtype",))
    buffer: Buffer = method.owner
    dtype = dtype_argument(context, args["dtype"]) if "dtype" in args else buffer.dtype
    _same_element(context, call, buffer, dtype)
    return Load(
        buffer, _spread(context, args["indices"], buffer, dtype.lanes // buffer.dtype.lanes), context.span(call)
    )


def vector_store(context: Context, call: ast.Call, method: Method) -> Value:
    """``A.vstore(indices, value)``: the lanes to adjacent elements."""
    args = bind(context, call, ("indices", "value"))
    buffer: Buffer = method.owner
    value = operand(context, args["value"])
    lanes = value.dtype.lanes if isinstance(value, Expr) else 1
    dtype = buffer.dtype.with_lanes(max(lanes, buffer.dtype.lanes))
    stored = fit(context, args["value"], value, dtype, f"`{buffer.name}`", "")
    context.emit(
        Store(
            buffer,
            _spread(context, args["indices"], buffer, dtype.lanes // buffer.dtype.lanes),
            stored,
            context.span(call),
        )
    )
    return None


def _same_element(context: Context, call: ast.Call, buffer: Buffer, dtype: DType) -> None:
    if dtype.element != buffer.dtype.element or dtype.lanes % buffer.dtype.lanes:
        raise context.mistake(
            "GM0287",
            call,
            f"`{buffer.name}` holds {buffer.dtype}, and {dtype} is loaded",
            label=str(dtype),
            hint=f'load "{buffer.dtype.element.with_lanes(dtype.lanes)}", then convert or reinterpret it',
        )


def _spread(context: Context, node: ast.expr, buffer: Buffer, lanes: int) -> tuple[Expr, ...]:
    places = list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]
    check_rank(context, node, buffer, len(places))
    found = [index(context, place) for place in places]
    if lanes > 1:
        last = found[-1]
        if last.dtype.lanes > 1:
            raise context.mistake(
                "GM0266", places[-1], "the index of a vector load is a scalar", label=str(last.dtype),
                hint="give the first index",
            )  # fmt: skip
        found[-1] = Ramp(last, const(1, last.dtype), lanes, context.span(places[-1]))
    return tuple(found)


def access_ptr(context: Context, call: ast.Call, method: Method) -> Value:
    """``A.access_ptr("rw", offset=4)``: a pointer to the element at a linear offset."""
    args = bind(context, call, ("access_mask",), ("ptr_type", "content_lanes", "offset", "extent"))
    buffer: Buffer = method.owner
    return pointer_to(context, call, buffer, args.get("offset"))


def pointer_to(context: Context, call: ast.Call, buffer: Buffer, offset: ast.expr | None) -> Expr:
    """The address of the element at a linear offset from a buffer's first element."""
    if offset is None or (isinstance(offset, ast.Constant) and offset.value == 0):
        zero = tuple(const(0, one.dtype) for one in buffer.shape)
        return AddressOf(buffer, zero, context.span(call))
    at = index(context, offset)
    flat = Buffer(
        f"{buffer.name}_flat", buffer.dtype, (_product(buffer, at.dtype),), buffer.data, (), buffer.offset,
        buffer.scope, buffer.alignment, context.span(call),
    )  # fmt: skip
    context.emit(View(flat, None, context.span(call)))
    return AddressOf(flat, (at,), context.span(call))


def _product(buffer: Buffer, dtype: DType) -> Expr:
    from gristmill.ir.build import cast
    from gristmill.ir.expr import IntImm, Mul

    total: Expr = const(1, dtype)
    for one in buffer.shape:
        if isinstance(total, IntImm) and isinstance(one, IntImm):
            total = const(total.value * one.value, dtype)
        elif isinstance(total, IntImm) and total.value == 1:
            total = cast(one, dtype)
        else:
            total = Mul(total, cast(one, dtype))
    return total


def _tvm_access_ptr(context: Context, call: ast.Call) -> Value:
    """``T.tvm_access_ptr(T.type_annotation(dtype), data, offset, extent, rw)``."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("ptype", "data", "offset", "extent", "rw_mask"))
    dtype = lower(context, args["ptype"])
    data = lower(context, args["data"])
    if not isinstance(dtype, DType) or not isinstance(data, Var) or not data.dtype.is_handle:
        raise context.mistake(
            "GM0267",
            args["data"],
            f"a pointer is expected here, and this is {describe(data)}",
            label="not a pointer",
            hint="write `A.data`",
        )
    offset, extent = index(context, args["offset"]), index(context, args["extent"])
    from gristmill.ir.build import cast
    from gristmill.ir.expr import Add

    scope = data.pointer.scope if data.pointer is not None else Scope.GLOBAL
    size = Add(offset, cast(extent, offset.dtype))
    flat = Buffer(f"{data.name}_flat", dtype, (size,), data, scope=scope, span=context.span(call))
    context.emit(View(flat, None, context.span(call)))
    return AddressOf(flat, (offset,), context.span(call))


def _type_annotation(context: Context, call: ast.Call) -> Value:
    return dtype_argument(context, bind(context, call, ("dtype",))["dtype"])


def _buffer_load(context: Context, call: ast.Call) -> Value:
    """Classic ``T.BufferLoad(A, [i, j])``."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("buffer", "indices"), ("predicate",))
    buffer = lower(context, args["buffer"])
    if not isinstance(buffer, Buffer):
        raise _no_buffer(context, args["buffer"], buffer)
    return Load(buffer, _spread(context, args["indices"], buffer, 1), context.span(call))


def _buffer_store(context: Context, call: ast.Call) -> Value:
    """Classic ``T.buffer_store(A, value, [i, j])``."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("buffer", "value", "indices"), ("predicate",))
    buffer = lower(context, args["buffer"])
    if not isinstance(buffer, Buffer):
        raise _no_buffer(context, args["buffer"], buffer)
    value = fit(context, args["value"], operand(context, args["value"]), buffer.dtype, f"`{buffer.name}`", "")
    context.emit(Store(buffer, _spread(context, args["indices"], buffer, 1), value, context.span(call)))
    return None


def _no_buffer(context: Context, node: ast.expr, value: Value) -> Exception:
    return context.mistake(
        "GM0286",
        node,
        f"a buffer is expected here, and this is {describe(value)}",
        label="not a buffer",
        hint="give the buffer by its name",
    )


def bind_pointer(context: Context, name: str, value: Expr, node: ast.expr) -> Var:
    """A name for a pointer."""
    pointer = None
    if isinstance(value, AddressOf):
        pointer = PointerType(value.buffer.dtype, value.buffer.scope)
    elif isinstance(value, Var):
        pointer = value.pointer
    var = Var(name, HANDLE, pointer, context.span(node))
    context.emit(Bind(var, value, context.span(node)))
    return var


def buffer_scope(context: Context, call: ast.Call, method: Method) -> Value:
    """``A.scope()``."""
    bind(context, call, ())
    buffer: Buffer = method.owner
    return buffer.scope.value


def _allocate_const(context: Context, call: ast.Call) -> Value:
    raise context.mistake(
        "GM0294",
        call,
        f"`{context.segment(call.func)}` is not part of the language",
        label="not here",
        hint="store the values in a local buffer, or index a constant tuple with constants",
    )


TABLE: Mapping[str, Callable[..., Value]] = {
    "alloc_buffer": _alloc_buffer,
    "sblock_alloc_buffer": _alloc_buffer,
    "alloc_shared": _alloc_in(Scope.SHARED),
    "alloc_local": _alloc_in(Scope.LOCAL),
    "allocate": _allocate,
    "allocate_const": _allocate_const,
    "decl_buffer": _decl_buffer,
    "buffer_decl": _decl_buffer,
    "Buffer": _decl_buffer,
    "match_buffer": _match_buffer,
    "address_of": address_of,
    "tvm_access_ptr": _tvm_access_ptr,
    "type_annotation": _type_annotation,
    "BufferLoad": _buffer_load,
    "buffer_store": _buffer_store,
    "BufferStore": _buffer_store,
}
METHODS: Mapping[str, Callable[..., Value]] = {
    "vload": vector_load,
    "vstore": vector_store,
    "access_ptr": access_ptr,
    "scope": buffer_scope,
}
