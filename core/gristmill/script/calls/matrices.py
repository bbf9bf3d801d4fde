"""Operations on tiles of matrices, which the threads of a warp hold and multiply together.

Each is a statement, to which all threads of a group come together: so it may not stand in a block, whose code may be moved,
nor in a loop of one thread whose iterations have no order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.ir.build import call as build_call
from gristmill.ir.build import cast, const, false, true
from gristmill.ir.dtype import INT32
from gristmill.ir.expr import AddressOf, Expr, IntImm, Load
from gristmill.ir.memory import MATRIX_SCOPES, Buffer, Scope
from gristmill.ir.stmt import Evaluate, LoopKind
from gristmill.ir.verify_atomics import ATOMIC_SCOPES
from gristmill.ir.verify_matrices import PRODUCTS, tile_shape, types_of
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.warps import width_of
from gristmill.script.context import Context
from gristmill.script.memory import index_nodes
from gristmill.script.operands import constant_text, fit, index, number, operand
from gristmill.script.shapes import Layout
from gristmill.script.source import Positioned
from gristmill.script.values import Value, describe

_LAYOUTS = ("row", "column")


def check_tiles(context: Context, call: ast.Call, found: Layout) -> None:
    """Refuse (GM0349) an allocation of tiles that there are no such tiles for."""
    if found.scope not in MATRIX_SCOPES:
        return
    wrong = ""
    if len(found.shape) < 2:
        wrong = "a tile has rows and columns, as `(16, 16)`; dimensions before those count tiles"
    elif found.strides or found.offset is not None:
        wrong = "tiles have neither strides nor an offset"
    elif any(isinstance(size, IntImm) and size.value < 1 for size in found.shape):
        wrong = "a tile has one element or more"
    elif found.dtype not in types_of(found.scope):
        wrong = f"tiles of this scope hold {', '.join(map(str, types_of(found.scope)))}, and not {found.dtype}"
    if wrong:
        raise context.mistake(
            "GM0349",
            call,
            f'memory of scope "{found.scope.value}" holds tiles of matrices: {wrong}',
            label="no tiles",
            hint='write for instance `T.alloc_buffer((16, 16), "float16", scope="matrix.a")`',
        )


def _fill(context: Context, call: ast.Call) -> Value:
    """``T.matrix_fill(tile, 0)``."""
    args = bind(context, call, ("tile", "value"), ("width",))
    tile = _tile(context, args["tile"])
    node = args["value"]
    value = fit(context, node, operand(context, node), tile.buffer.dtype, f"`{tile.buffer.name}`", "")
    return _done(context, call, args, "matrix_fill", tile, value)


def _load(context: Context, call: ast.Call) -> Value:
    """``T.matrix_load(tile, A[i, k], stride)``."""
    args = bind(context, call, ("tile", "source", "stride"), ("layout", "width"))
    tile = _tile(context, args["tile"])
    source = _element(context, args["source"], tile.buffer)
    return _done(context, call, args, "matrix_load", tile, source, *_lines(context, args))


def _store(context: Context, call: ast.Call) -> Value:
    """``T.matrix_store(C[i, j], tile, stride)``."""
    args = bind(context, call, ("target", "tile", "stride"), ("layout", "width"))
    tile = _tile(context, args["tile"])
    target = _element(context, args["target"], tile.buffer)
    return _done(context, call, args, "matrix_store", target, tile, *_lines(context, args))


def _multiply(context: Context, call: ast.Call) -> Value:
    """``T.matrix_multiply(d, a, b, c)``: d = a @ b + c."""
    args = bind(context, call, ("d", "a", "b", "c"), ("width",))
    scopes = {"d": Scope.MATRIX_ACCUMULATOR, "a": Scope.MATRIX_A, "b": Scope.MATRIX_B, "c": Scope.MATRIX_ACCUMULATOR}
    d, a, b, c = (_tile(context, args[name], scope) for name, scope in scopes.items())
    shapes = {tile: tile_shape(tile.buffer) for tile in (d, a, b, c)}
    wanted = (shapes[a][0], shapes[b][1])
    if shapes[a][1] != shapes[b][0] or shapes[d] != wanted or shapes[c] != wanted:
        given = ", ".join(f"`{tile.buffer.name}` of {rows} x {columns}" for tile, (rows, columns) in shapes.items())
        hint = "d and c have the rows of a and the columns of b; a has as many columns as b has rows"
        raise _no_product(context, call, f"tiles of these sizes do not multiply: {given}", hint)
    dtype, sums = a.buffer.dtype, PRODUCTS[a.buffer.dtype]
    if b.buffer.dtype != dtype or d.buffer.dtype != c.buffer.dtype or d.buffer.dtype not in sums:
        given = ", ".join(f"`{tile.buffer.name}` of {tile.buffer.dtype}" for tile in shapes)
        hint = f"b has the type of a; products of {dtype} are summed as {' or '.join(map(str, sums))}, in d and in c"
        raise _no_product(context, call, f"tiles of these types do not multiply: {given}", hint)
    return _done(context, call, args, "matrix_multiply", d, a, b, c)


def _no_product(context: Context, call: ast.Call, message: str, hint: str) -> Exception:
    return context.mistake("GM0349", call, message, label="do not fit", hint=hint)


def _done(context: Context, call: ast.Call, args: Mapping[str, ast.expr], name: str, *operands: Expr) -> Value:
    """The operation as a statement."""
    title = context.segment(call.func)
    unordered = (LoopKind.PARALLEL, LoopKind.VECTORIZED)
    where, hint = "", "write plain loops here"
    if context.whole is not call or context.callee is None or not context.is_dropped:
        where, hint = "a larger statement", "it has no result: write it as a statement of its own"
    elif context.blocks:
        where = "a block, whose code may be moved"
    elif any(loop.kind in unordered for loop in context.enclosing):
        where, hint = "a parallel or vectorized loop of one thread", "make the loop serial"
    if where:
        message = f"`{title}` stands in {where}, and all threads of a group must come to it together"
        raise context.mistake("GM0343", call, message, label="not here", hint=hint)
    span = context.span(call)
    width = const(width_of(context, args.get("width")), INT32, span)
    context.emit(Evaluate(build_call(name, *operands, width, span=span), span))
    return None


def _tile(context: Context, node: ast.expr, wanted: Scope | None = None) -> AddressOf:
    """A tile by the name of its buffer, with indices where there are several."""
    from gristmill.script.expressions import lower

    places = index_nodes(node) if isinstance(node, ast.Subscript) else []
    found = lower(context, node.value if isinstance(node, ast.Subscript) else node)
    scopes = MATRIX_SCOPES if wanted is None else {wanted}
    if not isinstance(found, Buffer) or found.scope not in scopes:
        kind = "a tile" if wanted is None else f'a tile of scope "{wanted.value}"'
        what = f'memory of scope "{found.scope.value}"' if isinstance(found, Buffer) else describe(found)
        raise context.mistake(
            "GM0349",
            node,
            f"{kind} is expected here, and this is {what}",
            label="no such tile",
            hint=f"tiles are buffers of scope {' or '.join(repr(scope.value) for scope in Scope if scope in scopes)}",
        )
    *counts, rows, columns = found.shape
    if len(places) != len(counts):
        plural = "index" if len(counts) == 1 else "indices"
        raise context.mistake(
            "GM0349",
            node,
            f"`{found.name}` has {found.rank - 2} dimensions of tiles, and {len(places)} indices are given",
            label=f"{len(counts)} {plural} wanted",
            hint="the last two dimensions are the rows and columns of a tile, and take no indices",
        )
    zeros = const(0, rows.dtype, context.span(node)), const(0, columns.dtype, context.span(node))
    return AddressOf(found, (*(index(context, place) for place in places), *zeros), context.span(node))


def _element(context: Context, node: ast.expr, tile: Buffer) -> AddressOf:
    """Where in memory a tile begins."""
    from gristmill.script.expressions import lower

    found = lower(context, node)
    if isinstance(found, Load) and not found.dtype.is_vector:
        found = AddressOf(found.buffer, found.indices, context.span(node))
    if not isinstance(found, AddressOf):
        raise _no_element(context, node, f"an element of memory is expected here, and this is {describe(found)}")
    if found.buffer.scope not in ATOMIC_SCOPES:
        raise _no_element(context, node, f"`{found.buffer.name}` belongs to one thread, and a warp cannot reach it")
    if found.buffer.dtype != tile.dtype:
        held = f"`{found.buffer.name}` holds {found.buffer.dtype}, and the tile `{tile.name}` {tile.dtype}"
        raise _no_element(context, node, held)
    return found


def _no_element(context: Context, node: Positioned, message: str) -> Exception:
    hint = "write an element of global or shared memory that has the type of the tile: `A[i, j]`"
    return context.mistake("GM0349", node, message, label="no place for a tile", hint=hint)


def _lines(context: Context, args: Mapping[str, ast.expr]) -> tuple[Expr, Expr]:
    """The stride from line to line, and whether lines are columns."""
    node = args["stride"]
    found = operand(context, node)
    if not isinstance(found, Expr):
        stride: Expr = number(context, node, found, INT32)
    elif found.dtype.is_integer and not found.dtype.is_vector:
        stride = cast(found, INT32, context.span(node))
    else:
        raise context.mistake(
            "GM0266", node, f"a stride is an integer, not {found.dtype}", label=str(found.dtype),
            hint="give the number of elements from the start of a line to that of the next",
        )  # fmt: skip
    layout = constant_text(context, args["layout"], "the layout") if "layout" in args else "row"
    if layout not in _LAYOUTS:
        raise context.mistake(
            "GM0349", args["layout"], f"{layout!r} is no layout of a tile", label="not known",
            hint='write "row", where a row lies in one piece, or "column"',
        )  # fmt: skip
    return stride, true() if layout == "column" else false()


TABLE: Mapping[str, Callable[..., Value]] = {
    "matrix_fill": _fill,
    "matrix_load": _load,
    "matrix_multiply": _multiply,
    "matrix_store": _store,
}
