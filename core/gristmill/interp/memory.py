"""Memory as the executor models it: bytes with a shadow that says which of them were written, and pointers into it.

A :class:`Memory` is one allocation (or one array of the caller). Loads and stores go through memoryviews of it, cast
to the element type of the buffer: a store through one view is seen by every other, as the language wants. The shadow
has one byte a byte of memory; seen through a view of the same element size, an element is initialised when its shadow
is all ones (:data:`WRITTEN`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.interp.formats import memory_form
from gristmill.ir.dtype import DType
from gristmill.ir.host_interface import CPU_DEVICE_TYPE

if TYPE_CHECKING:
    from gristmill.interp.races import Tracker

WRITTEN = {1: 0x01, 2: 0x0101, 4: 0x0101_0101, 8: 0x0101_0101_0101_0101}
"""The shadow of a wholly written element, by its size in bytes."""

_SHADOW_FORM = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(slots=True, eq=False)
class Memory:
    """One allocation. ``name`` is what reports call it; ``tracker`` exists once accesses are recorded for races."""

    name: str
    content: memoryview
    shadow: memoryview
    owner: Any = None
    address: int = 0
    tracker: Tracker | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content)

    @classmethod
    def allocate(cls, name: str, size: int) -> Memory:
        """New memory of which nothing is written."""
        return cls(name, memoryview(bytearray(size)), memoryview(bytearray(size)))

    def mark_written(self, start: int = 0) -> None:
        """Take everything from byte ``start`` on as written (by code that the executor does not see)."""
        self.shadow[start:] = b"\x01" * (self.size - start)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in memory, in bytes from its start."""

    memory: Memory
    offset: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """A pointer value that did not come from memory of the executor: it can be passed on and not followed."""

    value: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer handed to a function: where element 0 lies, type, sizes and strides (both in elements)."""

    pointer: Pointer
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device_type: int = CPU_DEVICE_TYPE
    device_id: int = 0
    states_strides: bool = True
    is_null: bool = False

    @property
    def is_compact(self) -> bool:
        """Whether the elements lie row-major without gaps (strides of dimensions of size 1 do not matter)."""
        if 0 in self.shape:
            return True
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major array without gaps."""
    found: list[int] = []
    step = 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return tuple(reversed(found))


@dataclass(frozen=True, slots=True)
class Window:
    """Views of memory for one buffer: elements, shadow, the index of the buffer's element 0, and how many there are.

    The views count scalar elements (of one lane).
    """

    elements: memoryview
    shadow: memoryview
    origin: int
    count: int
    base: int
    """The byte of the memory at which the views begin."""


def _cast(view: memoryview, form: str) -> memoryview:
    cast: Any = view.cast  # typeshed wants the letter as a literal
    found: memoryview = cast(form)
    return found


def window(pointer: Pointer, dtype: DType) -> Window:
    """Views from the pointer's place on; what lies before it in the memory is reached by negative indices' origin."""
    size = dtype.bits // 8
    memory = pointer.memory
    # Begin as far down as whole elements go, so that negative strides and offsets are within the view.
    base = pointer.offset % size
    end = base + (memory.size - base) // size * size if memory.size > base else base
    count = (end - base) // size
    if count <= 0:
        return Window(_NOTHING, _NOTHING, 0, 0, 0)
    elements = _cast(memory.content[base:end], memory_form(dtype))
    shadow = _cast(memory.shadow[base:end], _SHADOW_FORM[size])
    return Window(elements, shadow, (pointer.offset - base) // size, count, base)


_NOTHING = memoryview(bytearray())


# Arrays of the caller -------------------------------------------------------------------------------------------------


def _span_of(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The addresses of the first byte and after the last byte that an array with elements reaches."""
    low = high = int(array.__array_interface__["data"][0])
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + array.itemsize


def memories_of(arrays: Sequence[np.ndarray[Any, Any]], names: Sequence[str]) -> list[Pointer]:
    """A pointer to element 0 of each array. Arrays that overlap share one memory, so that aliasing is seen as such."""
    spans = [_span_of(array) if array.size else None for array in arrays]
    order = sorted((span, number) for number, span in enumerate(spans) if span is not None)
    groups: list[tuple[int, int, list[int]]] = []
    for (low, high), number in order:
        if groups and low < groups[-1][1]:
            start, end, members = groups[-1]
            groups[-1] = (start, max(end, high), [*members, number])
        else:
            groups.append((low, high, [number]))
    found = [Pointer(Memory.allocate(name, 0), 0) for name in names]
    for low, high, members in groups:
        raw = (ctypes.c_ubyte * (high - low)).from_address(low)
        content = memoryview(raw).cast("B")
        if not all(arrays[member].flags.writeable for member in members):
            content = content.toreadonly()
        shadow = memoryview(bytearray(b"\x01") * (high - low))
        memory = Memory(names[members[0]], content, shadow, owner=[arrays[member] for member in members], address=low)
        for member in members:
            address = int(arrays[member].__array_interface__["data"][0])
            found[member] = Pointer(memory, address - low)
    return found
