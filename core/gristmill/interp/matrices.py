"""Operations on tiles of matrices: what one does, once all threads of a group have come to it.

A tile is an array of NumPy in a wide type, which holds what elements of the tile's own type can be; each thread has its
own list of tiles, and an operation puts the same array into the lists of all threads of the group. Sums of products of
floats are taken in float64 and rounded once at the end, which is within what :data:`gristmill.ir.op.MATRIX` allows.

Loads and stores are recorded as accesses of a strand of their own, so that whatever any thread does to the same memory is a
race unless a barrier stands between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from gristmill.errors import Note
from gristmill.interp.exchanges import Exchange
from gristmill.interp.memory import Pointer
from gristmill.interp.races import Strand
from gristmill.interp.reports import report
from gristmill.interp.state import Execution
from gristmill.ir.dtype import BFLOAT16, DType

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tiles:
    """What is known of a buffer of tiles before it runs: its name, how many tiles along each dimension, what one is."""

    name: str
    counts: tuple[int, ...]
    rows: int
    columns: int
    dtype: DType

    def room(self) -> list[Array | None]:
        """A thread's tiles, none of which has been given elements."""
        count = 1
        for size in self.counts:
            count *= size
        return [None] * count


@dataclass(frozen=True, slots=True)
class Tile:
    """An operand: one of a thread's tiles."""

    tiles: Tiles
    room: list[Array | None]
    indices: tuple[int, ...]

    @property
    def number(self) -> int:
        found = 0
        for index, size in zip(self.indices, self.tiles.counts, strict=True):
            found = found * size + index
        return found

    @property
    def key(self) -> object:
        return self.tiles, self.indices


@dataclass(frozen=True, slots=True)
class Element:
    """An operand: where in memory the elements of a tile begin; the memory is global, or of one block."""

    name: str
    pointer: Pointer
    is_global: bool

    @property
    def key(self) -> object:
        return id(self.pointer.memory), self.pointer.offset


@dataclass(frozen=True, slots=True)
class Group:
    """The threads that do an operation together, and the strand that its accesses are recorded for."""

    execution: Execution
    brought: Sequence[Exchange]
    strand: Strand
    notes: tuple[Note, ...]


def performed(group: Group) -> None:
    """Do the operation that all threads of the group have brought.

    Raises ExecutionError: GM0524 for operands that are not the same for all, GM0501, GM0502, GM0513 and what races give.
    """
    first = group.brought[0]
    keys = [tuple(_key(operand) for operand in brought.value) for brought in group.brought]
    for lane, key in enumerate(keys):
        if key != keys[0]:
            raise report(
                "GM0524",
                f"lanes 0 and {lane} of a group come to this `{first.operation}` with different operands",
                group.execution.sites[first.site],
                label="its operands must be the same for all threads of the group",
                hint="compute them from the number of the group, as `t // 32`, and not from that of the thread",
                notes=group.notes,
            )
    _OPERATIONS[first.operation](group)


def _key(operand: Any) -> object:
    if isinstance(operand, (Tile, Element)):
        return operand.key
    return "NaN" if operand != operand else operand


# Operations -----------------------------------------------------------------------------------------------------------


def _fill(group: Group) -> None:
    tile, value = group.brought[0].value
    array = np.full((tile.tiles.rows, tile.tiles.columns), value, _wide(tile.tiles.dtype))
    _put(group, 0, array)


def _multiply(group: Group) -> None:
    to, *factors = group.brought[0].value
    a, b, c = (_held(group, factor) for factor in factors)
    dtype = to.tiles.dtype
    total = c.copy()
    with np.errstate(all="ignore"):
        # One column times one row after the other: in a stated order, whatever machine this is.
        for number in range(a.shape[1]):
            total += np.multiply.outer(a[:, number], b[number])
        _put(group, 0, _rounded(total, dtype))


def _load(group: Group) -> None:
    tile, element, stride, by_column = group.brought[0].value
    dtype, site = tile.tiles.dtype, group.brought[0].site
    places = _places(group, tile.tiles, element, stride, by_column)
    memory = element.pointer.memory
    for (row, column), place in np.ndenumerate(places):
        if bytes(memory.shadow[place : place + dtype.bytes]) != b"\x01" * dtype.bytes:
            raise report(
                "GM0502",
                f"element [{row}, {column}] of the tile that is loaded from `{element.name}` was not written before",
                group.execution.sites[site],
                hint=f"store a value to `{element.name}` first; if other threads do that, put a barrier between",
                notes=group.notes,
            )
    _record(group, element, places, dtype, writes=False)
    content = np.frombuffer(memory.content, np.uint8)
    raw = content[places[..., np.newaxis] + np.arange(dtype.bytes)].copy()
    _put(group, 0, _from_bytes(raw, dtype))


def _store(group: Group) -> None:
    element, tile, stride, by_column = group.brought[0].value
    dtype, site = tile.tiles.dtype, group.brought[0].site
    found = _held(group, tile)
    line = tile.tiles.rows if by_column else tile.tiles.columns
    lines = tile.tiles.columns if by_column else tile.tiles.rows
    if lines > 1 and stride < line:
        raise report(
            "GM0501",
            f"the stride {stride} is less than the {line} elements of a line of the tile, so that lines lie over each other",
            group.execution.sites[site],
            hint="give the number of elements from the start of a line to that of the next",
            notes=group.notes,
        )
    places = _places(group, tile.tiles, element, stride, by_column)
    memory = element.pointer.memory
    if memory.content.readonly:
        group.execution.read_only(site)
    _record(group, element, places, dtype, writes=True)
    where = places[..., np.newaxis] + np.arange(dtype.bytes)
    np.frombuffer(memory.content, np.uint8)[where] = _to_bytes(found, dtype)
    np.frombuffer(memory.shadow, np.uint8)[where] = 1


_OPERATIONS = {
    "matrix_fill": _fill,
    "matrix_load": _load,
    "matrix_multiply": _multiply,
    "matrix_store": _store,
}


# Tiles ----------------------------------------------------------------------------------------------------------------


def _check_indices(group: Group, tile: Tile) -> None:
    for index, size in zip(tile.indices, tile.tiles.counts, strict=True):
        if not 0 <= index < size:
            group.execution.out_of_bounds(group.brought[0].site, tile.indices, tile.tiles.counts, group.strand)


def _held(group: Group, tile: Tile) -> Array:
    """The elements of a tile. Raises the report of one that has none yet."""
    _check_indices(group, tile)
    found = tile.room[tile.number]
    if found is None:
        site = group.execution.sites[group.brought[0].site]
        raise report(
            "GM0502",
            f"the tile `{tile.tiles.name}` is used, and nothing was loaded into it or filled in before",
            site,
            hint=f"write `T.matrix_fill({tile.tiles.name}, 0)` or `T.matrix_load({tile.tiles.name}, ...)` first",
            notes=group.notes,
        )
    return found


def _put(group: Group, operand: int, array: Array) -> None:
    """Give a tile of every thread of the group these elements."""
    for brought in group.brought:
        tile: Tile = brought.value[operand]
        _check_indices(group, tile)
        tile.room[tile.number] = array


def _wide(dtype: DType) -> Any:
    return np.float64 if dtype.is_float else np.int64


def _rounded(total: Array, dtype: DType) -> Array:
    """Sums of products as elements of the type."""
    if dtype.is_float:
        narrow: Array = total.astype(np.float16 if dtype.bits == 16 else np.float32)
        return narrow.astype(np.float64)
    return _from_bytes(_to_bytes(total, dtype), dtype)


# Memory ---------------------------------------------------------------------------------------------------------------


def _places(group: Group, tiles: Tiles, element: Element, stride: int, by_column: bool) -> Array:
    """The byte of the memory at which each element of a tile lies."""
    site, memory = group.brought[0].site, element.pointer.memory
    rows, columns = np.indices((tiles.rows, tiles.columns), dtype=np.int64)
    numbers = rows + columns * stride if by_column else rows * stride + columns
    places: Array = element.pointer.offset + numbers * tiles.dtype.bytes
    outside = places[(places < 0) | (places + tiles.dtype.bytes > memory.size)]
    if outside.size:
        group.execution.outside_memory(site, memory, int(outside[0]))
    return places


def _record(group: Group, element: Element, places: Array, dtype: DType, writes: bool) -> None:
    """Record the accesses, where accesses of that memory are recorded."""
    if element.pointer.memory.tracker is None:
        return
    execution, site = group.execution, group.brought[0].site
    view, _ = execution.view(element.pointer, dtype, (0,), site)
    read, write, _, _ = execution.tracking(element.pointer, dtype, None, view)
    path = group.strand.everywhere if element.is_global else group.strand.shared
    touch = write if writes else read
    for place in np.unique(places):
        touch((int(place) - element.pointer.offset) // dtype.bytes, path, site, group.strand)


def _from_bytes(raw: Array, dtype: DType) -> Array:
    """Elements, from an array whose last dimension is the bytes of one."""
    if dtype == BFLOAT16:
        words = raw.view("<u2")[..., 0].astype(np.uint32) << 16
        return words.view(np.float32).astype(np.float64)
    kind = "f" if dtype.is_float else "i" if dtype.is_signed else "u"
    found: Array = raw.view(f"<{kind}{dtype.bytes}")[..., 0]
    with np.errstate(all="ignore"):
        return found.astype(_wide(dtype))


def _to_bytes(elements: Array, dtype: DType) -> Array:
    """The reverse of :func:`_from_bytes`, of integers modulo what the type holds."""
    if dtype == BFLOAT16:
        words = elements.astype(np.float32).view(np.uint32) >> 16
        return words.astype("<u2")[..., np.newaxis].view(np.uint8)
    if dtype.is_float:
        return elements.astype(f"<f{dtype.bytes}")[..., np.newaxis].view(np.uint8)
    return elements.astype(f"<i{dtype.bytes}")[..., np.newaxis].view(np.uint8)


def alone(execution: Execution, brought: Exchange, strand: Strand) -> None:
    """An operation of a thread that is alone in its group, outside of launches."""
    performed(Group(execution, (brought,), strand, ()))


def incomplete(group: Group, threads: int, ended: int) -> NoReturn:
    """Refuse an operation for which threads of the group are missing."""
    first = group.brought[0]
    why = f"{ended} have ended" if ended else f"the block has only {threads} threads for it"
    raise report(
        "GM0523",
        f"this `{first.operation}` is done by {first.width} threads together, and {why}",
        group.execution.sites[first.site],
        label=f"a group of {first.width} threads is not whole",
        hint="make the threads of a block a multiple of the width, and let none of them return before",
        notes=group.notes,
    )
