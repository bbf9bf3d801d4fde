"""The verifier's part for tiles of matrices (GM0452). Rules: :mod:`gristmill.ir.verify`."""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.ir.build import constant_value, is_constant
from gristmill.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT8, INT32, UINT8, UINT32, DType
from gristmill.ir.expr import AddressOf, Call, Expr, IntImm
from gristmill.ir.memory import MATRIX_SCOPES, Buffer, Scope
from gristmill.ir.module import CallingConvention
from gristmill.ir.node import Node
from gristmill.ir.op import WARP_WIDTH_AT_MOST
from gristmill.ir.verify_atomics import ATOMIC_SCOPES
from gristmill.ir.verify_walk import VerifierWalk, shown

PRODUCTS: Mapping[DType, tuple[DType, ...]] = {
    FLOAT16: (FLOAT16, FLOAT32),
    BFLOAT16: (FLOAT32,),
    INT8: (INT32,),
    UINT8: (UINT32,),
}
"""The types that sums may have, by the type of the elements that are multiplied."""
FACTOR_TYPES = tuple(PRODUCTS)
SUM_TYPES = tuple(dict.fromkeys(dtype for sums in PRODUCTS.values() for dtype in sums))


def types_of(scope: Scope) -> tuple[DType, ...]:
    """The types of elements that tiles of a scope may have."""
    return SUM_TYPES if scope is Scope.MATRIX_ACCUMULATOR else FACTOR_TYPES


def tile_shape(buffer: Buffer) -> tuple[int, int]:
    """The rows and columns of the tiles of a buffer that the verifier has passed."""
    rows, columns = (constant_value(size) for size in buffer.shape[-2:])
    assert rows is not None
    assert columns is not None
    return int(rows), int(columns)


def check_untouched(walk: VerifierWalk, node: Node, buffer: Buffer) -> None:
    """Report a use of tiles that is no operand of an operation on matrices."""
    if buffer.scope in MATRIX_SCOPES:
        message = f"`{buffer.name}` holds tiles of matrices, which only operations on matrices touch: {shown(node)}"
        walk.report("GM0452", message, node, "store the tile to shared or global memory first")


def check_tiles(walk: VerifierWalk, buffer: Buffer) -> None:
    """The allocation of tiles: constant sizes, two dimensions or more, a type that there are products of."""
    if buffer.scope not in MATRIX_SCOPES:
        return
    if buffer.rank < 2 or any(not isinstance(size, IntImm) or size.value < 1 for size in buffer.shape):
        walk.report("GM0452", f"the tiles of `{buffer.name}` need rows and columns of constant sizes", buffer)
    if buffer.dtype not in types_of(buffer.scope):
        wanted = ", ".join(map(str, types_of(buffer.scope)))
        message = f"tiles of scope `{buffer.scope.value}` hold {wanted}, and `{buffer.name}` {buffer.dtype}"
        walk.report("GM0452", message, buffer)
    if buffer.strides or buffer.offset is not None:
        walk.report("GM0452", f"the tiles of `{buffer.name}` have strides or an offset", buffer)


def check_matrix(walk: VerifierWalk, node: Call) -> None:
    """An operation on matrices: its place, then its operands."""
    name, args = node.op.name, node.args
    if node is not walk.bound:
        walk.report("GM0452", f"`{name}` stands where it is not a statement of its own", node)
    if walk.in_unordered_loop:
        walk.report("GM0452", f"`{name}` stands in a parallel or vectorized loop of one thread", node)
    if walk.function.facts.convention is CallingConvention.PACKED_HOST:
        walk.report("GM0444", f"`{name}` cannot stand in a function of the packed host interface", node)
    width = args[-1].value if isinstance(args[-1], IntImm) else 0
    if not 1 <= width <= WARP_WIDTH_AT_MOST or width & (width - 1):
        message = f"the width of `{name}` is a constant power of two up to {WARP_WIDTH_AT_MOST}, not {shown(args[-1])}"
        walk.report("GM0452", message, node)
    if name == "matrix_fill":
        tile = _tile(walk, node, args[0])
        if tile is not None and walk.types[1] != tile.dtype:
            walk.report("GM0452", f"`{tile.name}` holds {tile.dtype}, and is filled with {walk.types[1]}", node)
    elif name == "matrix_multiply":
        _product(walk, node)
    else:
        loads = name == "matrix_load"
        tile = _tile(walk, node, args[0 if loads else 1])
        _memory(walk, node, args[1 if loads else 0], tile)
        if walk.types[2] != INT32:
            walk.report("GM0452", f"the stride of `{name}` is int32, not {walk.types[2]}", node)
        if walk.types[3] != BOOL or constant_value(args[3]) is None:
            walk.report("GM0452", f"whether `{name}` goes by column is a constant bool, not {shown(args[3])}", node)


def _tile(walk: VerifierWalk, node: Call, given: Expr, scopes: frozenset[Scope] = MATRIX_SCOPES) -> Buffer | None:
    """The buffer of a tile; None if this is none of the scopes."""
    if not isinstance(given, AddressOf) or given.buffer.scope not in scopes or given.buffer.rank < 2:
        wanted = " or ".join(f"`{scope.value}`" for scope in Scope if scope in scopes)
        walk.report("GM0452", f"`{node.op}` takes a tile of scope {wanted}, not {shown(given)}", node)
        return None
    if not all(is_constant(index, 0) for index in given.indices[-2:]):
        walk.report("GM0452", f"a tile is given by the address of its first element, not by {shown(given)}", node)
    return given.buffer


def _memory(walk: VerifierWalk, node: Call, given: Expr, tile: Buffer | None) -> None:
    if not isinstance(given, AddressOf) or given.buffer.scope not in ATOMIC_SCOPES:
        message = f"`{node.op}` takes the address of an element of global or shared memory, not {shown(given)}"
        walk.report("GM0452", message, node)
    elif tile is not None and given.buffer.dtype != tile.dtype:
        message = f"`{given.buffer.name}` holds {given.buffer.dtype}, and the tile `{tile.name}` {tile.dtype}"
        walk.report("GM0452", message, node)


def _product(walk: VerifierWalk, node: Call) -> None:
    sums = frozenset((Scope.MATRIX_ACCUMULATOR,))
    d, c = _tile(walk, node, node.args[0], sums), _tile(walk, node, node.args[3], sums)
    a = _tile(walk, node, node.args[1], frozenset((Scope.MATRIX_A,)))
    b = _tile(walk, node, node.args[2], frozenset((Scope.MATRIX_B,)))
    if a is None or b is None or c is None or d is None:
        return
    shapes = [tuple(constant_value(size) for size in tile.shape[-2:]) for tile in (a, b, c, d)]
    (rows, inner), (inner_of_b, columns) = shapes[0], shapes[1]
    if inner != inner_of_b or shapes[2] != (rows, columns) or shapes[3] != (rows, columns):
        named = zip((d, a, b, c), (shapes[3], *shapes[:3]), strict=True)
        given = ", ".join(f"`{tile.name}` of {' x '.join(map(str, shape))}" for tile, shape in named)
        walk.report("GM0452", f"these tiles do not multiply: {given}", node)
    if a.dtype != b.dtype or c.dtype != d.dtype or d.dtype not in PRODUCTS.get(a.dtype, ()):
        message = f"products of {a.dtype} and {b.dtype} are not summed as {c.dtype} and {d.dtype}"
        walk.report("GM0452", message, node)
