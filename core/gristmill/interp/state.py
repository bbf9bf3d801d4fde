"""One execution: its counters, and what generated code asks for at run time (memory, loops, reports).

Generated code holds it under the name ``E``. Sites are given by their number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from gristmill.errors import Diagnostic, Note
from gristmill.interp.memory import Memory, Pointer, Tensor, compact_strides, window
from gristmill.interp.options import ExecutionOptions
from gristmill.interp.races import Conflict, Path, Strand, Tracker
from gristmill.interp.reports import AssertionFailed, Site, report
from gristmill.interp.runtime_reports import RuntimeReports
from gristmill.ir.dtype import UINT8, DType

_FEW = 4096


class Overhang(Exception):
    """An element of a view lies outside the memory that the view is over."""

    def __init__(self, memory: Memory, byte: int) -> None:
        super().__init__(byte)
        self.memory = memory
        self.byte = byte


class Guarded:
    """Stands for a memoryview where a view of the program reaches beyond its memory: every access is checked."""

    __slots__ = ("base", "memory", "size", "view")

    def __init__(self, view: memoryview, memory: Memory, base: int, size: int) -> None:
        self.view = view
        self.memory = memory
        self.base = base
        self.size = size

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self.view):
            raise Overhang(self.memory, self.base + index * self.size)
        return self.view[index]

    def __setitem__(self, index: int, value: Any) -> None:
        if not 0 <= index < len(self.view):
            raise Overhang(self.memory, self.base + index * self.size)
        self.view[index] = value


class Execution(RuntimeReports):
    """The state of one call from outside."""

    def __init__(self, options: ExecutionOptions, sites: Sequence[Site]) -> None:
        super().__init__(sites)
        self.options = options
        self.steps = 0
        self.depth = 0
        self.call_site = -1
        # Storing a double here and reading it back rounds it to float32. Generated code holds it as F32.
        self.cell = memoryview(bytearray(4)).cast("f")
        self.random = None if options.shuffle_seed is None else random.Random(options.shuffle_seed)

    # Loops and calls --------------------------------------------------------------------------------------------------

    def count(self, number: int, site: int) -> None:
        """Take ``number`` more steps. Raises the report of an endless program."""
        self.steps += number
        if self.steps > self.options.step_limit:
            raise report(
                "GM0508",
                f"the program takes more than {self.options.step_limit:,} steps, so it is taken as endless",
                self.sites[site],
                label="still running here",
                hint="check the condition that ends the loop, or raise step_limit",
            )

    def loop(self, start: int, extent: int, dtype: DType, site: int) -> Iterable[int]:
        """The values of a loop variable; all steps are counted at once."""
        if extent <= 0:
            return ()
        self.count(extent, site)
        return self.values(start, extent, dtype)

    def loop_with_exits(self, start: int, extent: int, dtype: DType, site: int) -> Iterable[int]:
        """As :meth:`loop`, for a loop that may end early: steps are counted as they are taken."""
        if extent <= _FEW:
            return self.loop(start, extent, dtype, site)
        return self._counted(start, extent, dtype, site)

    def _counted(self, start: int, extent: int, dtype: DType, site: int) -> Iterable[int]:
        for number, found in enumerate(self.values(start, extent, dtype)):
            if not number % _FEW:
                self.count(min(_FEW, extent - number), site)
            yield found

    def values(self, start: int, extent: int, dtype: DType) -> Iterable[int]:
        """``start``, ``start + 1``, ..., in the type: beyond its greatest value follows its least."""
        if start + extent - 1 <= dtype.maximum:
            return range(start, start + extent)
        return (dtype.wrap(start + number) for number in range(extent))

    def in_any_order(self, items: Iterable[int]) -> Iterable[int]:
        """The items, shuffled if the options ask for it."""
        if self.random is None:
            return items
        found = list(items)
        self.random.shuffle(found)
        return found

    def iterations(
        self, start: int, extent: int, dtype: DType, name: str, site: int, strand: Strand
    ) -> Iterable[tuple[int, Strand]]:
        """The iterations of a parallel loop, each with a strand of its own."""
        if extent <= 0:
            return
        self.count(extent, site)
        instance = self.fork(name)
        for value in self.in_any_order(self.values(start, extent, dtype)):
            step = (instance, value)
            yield value, Strand(strand.shared + step, strand.everywhere + step, strand.block, strand.thread)

    def enter(self, site: int) -> None:
        """Count a call that begins."""
        self.count(1, site)
        self.call_site = site
        self.depth += 1
        if self.depth > self.options.recursion_limit:
            self.too_deep(site)

    def caller(self) -> Site | None:
        """The site of the call that just began; None for a call from outside."""
        return None if self.call_site < 0 else self.sites[self.call_site]

    def too_deep(self, site: int) -> NoReturn:
        raise report(
            "GM0509",
            f"calls are nested more than {self.options.recursion_limit} deep",
            self.sites[site],
            hint="check what ends the recursion, or raise recursion_limit",
        )

    # Memory -----------------------------------------------------------------------------------------------------------

    def new_memory(self, site: int, sizes: tuple[int, ...], dtype: DType) -> Memory:
        """Memory for so many elements."""
        count = 1
        for size in sizes:
            if size < 0:
                raise report(
                    "GM0516",
                    f"`{self.sites[site].what}` is allocated with the sizes {list(sizes)}; a size is 0 or more",
                    self.sites[site],
                )
            count *= size
        size_in_bytes = count * dtype.bytes
        if size_in_bytes > self.options.memory_limit:
            raise report(
                "GM0516",
                f"`{self.sites[site].what}` takes {size_in_bytes:,} bytes, "
                f"and {self.options.memory_limit:,} are the most that the executor gives at once",
                self.sites[site],
                hint="raise memory_limit, or execute it with smaller sizes",
            )
        return Memory.allocate(self.sites[site].what, size_in_bytes)

    def allocate(self, site: int, sizes: tuple[int, ...], dtype: DType) -> Pointer:
        """New memory of which nothing is written."""
        return Pointer(self.new_memory(site, sizes, dtype), 0)

    def shared(
        self, key: tuple[int, int], site: int, sizes: tuple[int, ...], dtype: DType, strand: Strand, dynamic: bool
    ) -> Pointer:
        """The one instance of an allocation in the running block (or warp, or thread: the second part of the key)."""
        block = strand.block
        memory = block.memories.get(key)
        if memory is None:
            if dynamic and block.dynamic_shared is not None:
                memory = self.new_memory(site, (block.dynamic_shared,), UINT8)
            else:
                memory = self.new_memory(site, sizes, dtype)
            block.memories[key] = memory
        return Pointer(memory, 0)

    def own_copy(self, key: tuple[int, int], site: int, strand: Strand, given: Pointer) -> Pointer:
        """A thread's own copy of a scalar of the code around the launch; at first it holds what that code gave it."""
        memories = strand.block.memories
        if key not in memories:
            found = memories[key] = Memory.allocate(self.sites[site].what, given.memory.size)
            found.content[:] = given.memory.content
            found.shadow[:] = given.memory.shadow
        return Pointer(memories[key], 0)

    def view(self, pointer: Any, dtype: DType, sizes: tuple[int, ...], site: int) -> tuple[Any, Any]:
        """Elements and shadow of a buffer that lies row-major and compact from the pointer on."""
        if type(pointer) is not Pointer:
            self.not_memory(pointer, site)
        size = dtype.bits // 8
        found = window(Pointer(pointer.memory, pointer.offset), dtype)
        origin, count = found.origin, dtype.lanes
        for extent in sizes:
            count *= extent
        elements: Any = found.elements[origin:] if origin else found.elements
        shadow: Any = found.shadow[origin:] if origin else found.shadow
        if count > len(elements) or pointer.offset < 0:
            guard = pointer.offset
            if pointer.offset < 0:
                elements = elements[:0]
                shadow = shadow[:0]
            return Guarded(elements, pointer.memory, guard, size), Guarded(shadow, pointer.memory, guard, size)
        return elements, shadow

    def strided_view(
        self, pointer: Any, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, site: int
    ) -> tuple[Any, Any, int]:
        """Elements and shadow of a buffer with strides or an offset, and the number of its element 0 in them."""
        if type(pointer) is not Pointer:
            self.not_memory(pointer, site)
        lanes = dtype.lanes
        found = window(pointer, dtype)
        origin = found.origin + offset * lanes
        low = high = origin
        if 0 not in sizes:
            for extent, stride in zip(sizes, strides, strict=True):
                if stride < 0:
                    low += (extent - 1) * stride * lanes
                else:
                    high += (extent - 1) * stride * lanes
            if low < 0 or high + lanes > found.count:
                size = dtype.bits // 8
                elements = Guarded(found.elements, pointer.memory, found.base, size)
                return elements, Guarded(found.shadow, pointer.memory, found.base, size), origin
        return found.elements, found.shadow, origin

    def tensor(
        self,
        pointer: Any,
        dtype: DType,
        sizes: tuple[int, ...],
        strides: tuple[int, ...] | None,
        offset: int,
        site: int,
    ) -> Tensor:
        """A buffer as an argument of a call."""
        if type(pointer) is not Pointer:
            self.not_memory(pointer, site)
        start = Pointer(pointer.memory, pointer.offset + offset * dtype.bytes) if offset else pointer
        return Tensor(start, dtype, sizes, compact_strides(sizes) if strides is None else strides)

    def address(self, pointer: Any, elements: int, dtype: DType, site: int) -> Pointer:
        """The place so many elements from a pointer on."""
        if type(pointer) is not Pointer:
            self.not_memory(pointer, site)
        return Pointer(pointer.memory, pointer.offset + elements * dtype.bytes)

    # Races ------------------------------------------------------------------------------------------------------------

    def tracking(self, pointer: Pointer, dtype: DType, origin: int | None, elements: Any) -> tuple[Any, Any, Any, Any]:
        """What generated code calls at a tracked read, a write, a write that several threads may repeat, an atomic one."""
        memory = pointer.memory
        tracker = memory.tracker
        if tracker is None:
            tracker = memory.tracker = Tracker()
        size = dtype.bits // 8
        # Where index 0 of the views lies: they begin at the pointer, or (if they have an origin) below it.
        base = pointer.offset % size if origin is not None else pointer.offset
        tracker.fit(base, size)
        return _accesses(self, memory, tracker, base, size, elements)

    # Assertions -------------------------------------------------------------------------------------------------------

    def fail(self, site: int, kind: str, parts: tuple[Any, ...], strand: Strand | None) -> NoReturn:
        """Leave with the error of an assert."""
        text = "".join(part if isinstance(part, str) else str(part) for part in parts)
        where = self.sites[site]
        notes: tuple[Note, ...] = (*self.who(strand), *where.notes)
        shown = f"the kernel's own check failed: {kind}: {text}" if text else f"the kernel's own check failed: {kind}"
        raise AssertionFailed(
            Diagnostic("GM0507", shown, where.place, "this is false", notes=notes), kind=kind, message=text
        )


def _accesses(
    execution: Execution, memory: Memory, tracker: Tracker, base: int, size: int, elements: Any
) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None], Callable[..., None]]:
    def keys(index: int) -> Iterable[int]:
        start = base + index * size
        return range(start, start + size, tracker.unit)

    def read(index: int, path: Path, site: int, strand: Strand) -> None:
        try:
            if tracker.unit == size:
                tracker.read(base + index * size, path, site)
            else:
                for key in keys(index):
                    tracker.read(key, path, site)
        except Conflict as conflict:
            execution.race(conflict, memory, base + index * size)

    def write(index: int, path: Path, site: int, strand: Strand) -> None:
        try:
            if tracker.unit == size:
                tracker.write(base + index * size, path, site)
            else:
                for key in keys(index):
                    tracker.write(key, path, site)
        except Conflict as conflict:
            execution.race(conflict, memory, base + index * size)

    def repeated(index: int, path: Path, site: int, strand: Strand, value: Any) -> None:
        for key in keys(index):
            try:
                tracker.write(key, path, site)
            except Conflict as conflict:
                held = elements[index]
                if not (
                    (held == value or (held != held and value != value))
                    and execution.same_work(conflict.earlier, path, site)
                    and conflict.earlier_writes
                ):
                    execution.race(conflict, memory, base + index * size)
                tracker.agree(key, path)

    def atomic(index: int, path: Path, site: int, strand: Strand) -> None:
        try:
            for key in keys(index):
                tracker.atomic(key, path, site)
        except Conflict as conflict:
            execution.race(conflict, memory, base + index * size)

    return read, write, repeated, atomic
