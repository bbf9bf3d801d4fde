"""Buffers in generated code: the names that stand for one, and the text of loads and stores.

For each buffer in scope there are a view of its elements, a view of their shadow, sizes and strides, and where races
are looked for the functions that record accesses. A local scalar (rank 0, never shared or viewed) is a Python variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.interp.memory import WRITTEN
from gristmill.interp.scalar_operations import ScalarOperations
from gristmill.interp.values import Value, value
from gristmill.ir.dtype import DType, TypeCode
from gristmill.ir.memory import Buffer, Scope


@dataclass(slots=True)
class BufferNames:
    """The names that stand for a buffer. ``origin`` is empty where element 0 is the first of the views.

    ``offset`` is the buffer's own, from its data pointer, in elements; empty for none.
    """

    elements: str
    shadow: str
    sizes: list[Value]
    strides: list[Value]
    lanes: int = 1
    origin: str = ""
    offset: str = ""
    scalar: str = ""
    private: bool = False
    """Whether only the strand that made it can see it."""
    tracked: bool = False
    read: str = ""
    write: str = ""
    repeat: str = ""
    atomic: str = ""


@dataclass(frozen=True, slots=True)
class Element:
    """A place that an access goes to, checked against the shape: its number among scalar elements, and its indices."""

    number: str
    indices: str


def load_text(dtype: DType, elements: str, number: str) -> str:
    """The text that reads one scalar element."""
    found = f"{elements}[{number}]"
    if dtype.bits == 16 and dtype.is_float:
        return f"{'BFLOATS' if dtype.code is TypeCode.BFLOAT else 'HALVES'}[{found}]"
    return f"({found} != 0)" if dtype.is_bool else found


def store_text(dtype: DType, text: str) -> str:
    """The text of a value as it is put into memory."""
    if dtype.bits == 16 and dtype.is_float:
        return f"encode_{dtype}({text})"
    return text


class BufferAccess(ScalarOperations):
    """Writes loads and stores."""

    names_of: dict[Buffer, BufferNames]

    def path_of(self, buffer: Buffer) -> str:
        """The text of the running strand's path for memory of the buffer's scope."""
        return f"{self.strand}.{'everywhere' if buffer.scope is Scope.GLOBAL else 'shared'}"

    def checked(self, names: BufferNames, indices: list[Value], site: int) -> Element:
        """Check scalar indices against the shape, and give the number of the element."""
        tests = [
            f"0 <= {index.text} < {size.text}"
            for index, size in zip(indices, names.sizes, strict=True)
            if not (size.is_constant and index.low >= 0 and index.high < size.low)
        ]
        shown = tuple_text(index.text for index in indices)
        if tests:
            sizes = tuple_text(size.text for size in names.sizes)
            self.writer.emit(
                f"if not ({' and '.join(tests)}): E.out_of_bounds({site}, {shown}, {sizes}, {self.strand})"
            )
        # The origin counts scalar elements; for a buffer of vectors it is added lane by lane.
        return Element(self.numbered(names, indices, names.origin if names.lanes == 1 else ""), shown)

    def numbered(self, names: BufferNames, indices: list[Value], start: str) -> str:
        """The number of an element counted from ``start``, as a name or literal."""
        constant = 0
        terms = [start] if start else []
        for index, stride in zip(indices, names.strides, strict=True):
            if index.is_constant and stride.is_constant:
                constant += index.low * stride.low
            elif stride.is_constant and stride.low == 1:
                terms.append(index.text)
            else:
                terms.append(f"{index.text} * {stride.text}")
        if constant or not terms:
            terms.append(str(constant))
        if len(terms) == 1 and "*" not in terms[0]:
            return terms[0]
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = {' + '.join(terms)}")
        return name

    def load_scalar(self, buffer: Buffer, indices: list[Value], site: int) -> Value:
        """The element at scalar indices (a list of lanes for a buffer of vectors)."""
        names = self.names_of[buffer]
        if names.scalar:
            self.writer.emit(f"if {names.scalar} is None: E.uninitialised({site}, (), {self.strand})")
            name = self.writer.fresh("t")
            self.writer.emit(f"{name} = {names.scalar}")
            return value(name, buffer.dtype)
        at = self.checked(names, indices, site)
        lanes = buffer.dtype.lanes
        found = [self.load_lane(buffer, names, at, lane, site) for lane in range(lanes)]
        if lanes == 1:
            return value(found[0], buffer.dtype)
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = [{', '.join(found)}]")
        return value(name, buffer.dtype)

    def load_lane(self, buffer: Buffer, names: BufferNames, at: Element, lane: int, site: int) -> str:
        """One scalar element, under a name."""
        dtype = buffer.dtype.element
        number = at.number if names.lanes == 1 else self.lane_number(names, at, lane)
        if names.tracked:
            self.writer.emit(f"{names.read}({number}, {self.path_of(buffer)}, {site}, {self.strand})")
        written = WRITTEN[dtype.bits // 8]
        self.writer.emit(
            f"if {names.shadow}[{number}] != {written}: E.uninitialised({site}, {at.indices}, {self.strand})", site
        )
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = {load_text(dtype, names.elements, number)}", site)
        return name

    def lane_number(self, names: BufferNames, at: Element, lane: int) -> str:
        """The number of a scalar element, from the number of the vector that it is a lane of."""
        name = self.writer.fresh("t")
        origin = f" + {names.origin}" if names.origin else ""
        self.writer.emit(f"{name} = {at.number} * {names.lanes} + {lane}{origin}")
        return name

    def store_scalar(self, buffer: Buffer, indices: list[Value], stored: Value, site: int, repeated: bool) -> None:
        """Write the element at scalar indices. ``repeated``: several threads may do the same write."""
        names = self.names_of[buffer]
        if names.scalar:
            self.writer.emit(f"{names.scalar} = {self.rounded(stored).text}")
            return
        if stored.unrounded and (names.tracked or buffer.dtype.bits != 32):
            stored = self.named(stored)
        lanes = buffer.dtype.lanes
        if lanes > 1:
            stored = self.named(stored)
        at = self.checked(names, indices, site)
        for lane in range(lanes):
            number = at.number if lanes == 1 else self.lane_number(names, at, lane)
            text = stored.text if lanes == 1 else f"{stored.text}[{lane}]"
            self.store_lane(buffer, names, number, text, site, repeated)

    def store_lane(self, buffer: Buffer, names: BufferNames, number: str, text: str, site: int, repeated: bool) -> None:
        dtype = buffer.dtype.element
        packed = store_text(dtype, text)
        if names.tracked:
            if packed != text or not text.startswith("_t"):
                name = self.writer.fresh("t")
                self.writer.emit(f"{name} = {packed}")
                packed = name
            path = self.path_of(buffer)
            if repeated:
                self.writer.emit(f"{names.repeat}({number}, {path}, {site}, {self.strand}, {packed})")
            else:
                self.writer.emit(f"{names.write}({number}, {path}, {site}, {self.strand})")
        self.writer.emit(f"{names.elements}[{number}] = {packed}", site)
        self.writer.emit(f"{names.shadow}[{number}] = {WRITTEN[dtype.bits // 8]}", site)

    # Vector indices ---------------------------------------------------------------------------------------------------

    def load_vector(self, buffer: Buffer, indices: list[Value], site: int) -> Value:
        """The elements at a vector of last indices, one after the other."""
        lanes = self.named(indices[-1])
        found = self.writer.fresh("t")
        self.writer.emit(f"{found} = []")
        lane = self.writer.fresh("t")
        with self.writer.block(f"for {lane} in {lanes.text}:", loop=True):
            one = self.load_scalar(buffer, [*indices[:-1], value(lane, lanes.dtype.element)], site)
            method = "append" if buffer.dtype.lanes == 1 else "extend"
            self.writer.emit(f"{found}.{method}({one.text})")
        return value(found, buffer.dtype.with_lanes(buffer.dtype.lanes * lanes.dtype.lanes))

    def store_vector(self, buffer: Buffer, indices: list[Value], stored: Value, site: int) -> None:
        """Write a vector's lanes, in ascending order, to the elements at a vector of last indices."""
        lanes, stored = self.named(indices[-1]), self.named(stored)
        number, lane = self.writer.fresh("t"), self.writer.fresh("t")
        width = buffer.dtype.lanes
        with self.writer.block(f"for {number}, {lane} in enumerate({lanes.text}):", loop=True):
            part = self.writer.fresh("t")
            if width == 1:
                self.writer.emit(f"{part} = {stored.text}[{number}]")
            else:
                self.writer.emit(f"{part} = {stored.text}[{number} * {width} : {number} * {width} + {width}]")
            where = [*indices[:-1], value(lane, lanes.dtype.element)]
            self.store_scalar(buffer, where, value(part, buffer.dtype), site, repeated=False)


def tuple_text(texts: Iterable[str]) -> str:
    """A Python tuple of some texts."""
    found = ", ".join(texts)
    return f"({found},)" if found else "()"
