"""The machine code that records launches, with functions of Vulkan that write down how they are called."""

from __future__ import annotations

import ctypes
import json
import random
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gristmill.ir.host_interface import TypeIndex
from gristmill.runtime.native_support import SupportCode, find_support
from gristmill_llvm.native.layout import LAYOUT_SYMBOL

TYPES = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "ptr": ctypes.c_uint64}
FORMS = {"address": 0, "offset": 1, "i32": 2, "i64": 3, "f32": 4, "f64": 5}
POINTER, INT, BOOL, FLOAT = TypeIndex.POINTER, TypeIndex.INT, TypeIndex.BOOL, TypeIndex.FLOAT
P, I32, U32, I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64
DEFAULT_DEADLINE = 1 << 62


@pytest.fixture(scope="module")
def code() -> SupportCode:
    found = find_support("vulkan_launch", Path("/nonexistent"))
    assert isinstance(found, SupportCode)
    return found


def structure(code: SupportCode, name: str) -> type[Any]:
    fields = json.loads(code.text(LAYOUT_SYMBOL))["structures"][name]
    found = type(name, (ctypes.Structure,), {"_fields_": [(field, TYPES[type_]) for field, type_, _ in fields]})
    assert [getattr(found, field).offset for field, _, _ in fields] == [offset for _, _, offset in fields]
    return found


class Machine:
    """A device whose commands are written into :attr:`calls`, with allocations of 1000 bytes at 0x1000, 0x2000, ..."""

    def __init__(self, code: SupportCode, count: int = 4) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.kept: list[Any] = []
        self.types = {name: structure(code, name) for name in ("allocation", "slot", "kernel", "device")}
        self.allocations = [
            self.types["allocation"](0x1000 * (n + 1), 1000, 77, 0x10000 + 0x1000 * n, 0, -1, -1) for n in range(count)
        ]
        self.starts = (ctypes.c_uint64 * count)(*(found.address for found in self.allocations))
        self.states = (ctypes.c_uint64 * count)(*(ctypes.addressof(found) for found in self.allocations))
        self.nothing = self.types["allocation"](0x900000, 256, 78, 0x40, 0, -1, -1)
        self.memory = ctypes.create_string_buffer(1024)
        self.has_barrier = False
        self.flushed, self.fence_answer, self.now = 0, 1, 5
        signature = ctypes.PYFUNCTYPE(I32, P, P, P, I32, P, I32, I64)
        self.launch_code = signature(code.address("gristmill_vulkan_launch"))
        self.acquire = ctypes.PYFUNCTYPE(I32, P)(code.address("gristmill_vulkan_acquire"))
        self.release = ctypes.PYFUNCTYPE(None, P)(code.address("gristmill_vulkan_release"))
        self.device = self.types["device"](
            batch=100,
            stages=0x1800,
            commands=0xC0,
            epoch=5,
            number=9,
            starts=ctypes.addressof(self.starts),
            states=ctypes.addressof(self.states),
            count=count,
            grid_x=100,
            grid_y=50,
            grid_z=20,
            storage_alignment=16,
            largest_range=1 << 20,
            nothing=ctypes.addressof(self.nothing),
            block_alignment=64,
            memory_barrier=0xBA,
            launch_barrier=0xBB,
            deadline=DEFAULT_DEADLINE,
            handle=0xDE,
            last_fence=0xFE,
            slow_device=0x51,
            bind_pipeline=self._function(None, P, U32, I64, call=self._bind),
            push_constants=self._function(None, P, I64, U32, U32, U32, P, call=self._push),
            push_descriptors=self._function(None, P, I64, I64, U32, P, call=self._describe),
            begin_label=self._function(None, P, P, call=lambda *given: self.calls.append(("begin label", *given))),
            end_label=self._function(None, P, call=lambda commands: self.calls.append(("end label", commands))),
            pipeline_barrier=self._function(None, P, U32, U32, U32, U32, P, U32, P, U32, P, call=self._barrier),
            dispatch=self._function(None, P, U32, U32, U32, call=self._dispatch),
            slow_launch=self._function(I32, P, P, P, I32, P, I32, I64, call=self._slow),
            flush=self._function(I32, P, call=self._flush),
            clock=self._function(I32, I32, P, call=self._clock),
            fence_status=self._function(I32, P, I64, call=self._fence),
        )

    def _function(self, result: Any, *parameters: Any, call: Any) -> int:
        made = ctypes.PYFUNCTYPE(result, *parameters)(call)
        self.kept.append(made)
        return ctypes.cast(made, P).value or 0

    def _bind(self, commands: int, point: int, pipeline: int) -> None:
        self.calls.append(("bind", commands, point, pipeline))

    def _push(self, commands: int, layout: int, stage: int, offset: int, size: int, data: int) -> None:
        self.calls.append(("push", commands, layout, stage, offset, ctypes.string_at(data, size)))

    def _describe(self, commands: int, template: int, layout: int, number: int, data: int) -> None:
        words = struct.unpack("9q", ctypes.string_at(data, 72))
        self.calls.append(("describe", commands, template, layout, number, [words[n : n + 3] for n in (0, 3, 6)]))

    def _barrier(self, *given: Any) -> None:
        # The first as the runtime said, and those after it between launches.
        stages, barrier = (0x800, 0xBB) if self.has_barrier else (0x1800, 0xBA)
        self.has_barrier = True
        assert given == (0xC0, stages, stages, 0, 1, barrier, 0, None, 0, None)
        assert (self.device.stages, self.device.memory_barrier) == (stages, barrier)
        self.calls.append(("barrier",))

    def _dispatch(self, commands: int, x: int, y: int, z: int) -> None:
        assert self.device.busy == 1
        self.calls.append(("dispatch", commands, x, y, z))

    def _slow(self, device: int, kernel: int, args: int, count: int, extents: int, axes: int, dynamic: int) -> int:
        self.calls.append(("slow", device, count, axes, dynamic))
        return -1 if dynamic == 666 else 0

    def _flush(self, device: int) -> int:
        assert (device, self.device.busy) == (0x51, 0)
        self.flushed += 1
        return -7 if self.flushed == 13 else 0

    def _clock(self, clock: int, where: int) -> int:
        assert clock == 1
        ctypes.memmove(where, struct.pack("qq", *divmod(self.now, 10**9)), 16)
        return 0

    def _fence(self, device: int, fence: int) -> int:
        assert (device, fence) == (0xDE, 0xFE)
        return self.fence_answer

    def kernel(self, *slots: tuple[int, str, bool], form: int = 1, size: int = 16, axes: Sequence[int] = (0, 3)) -> Any:
        made = (self.types["slot"] * max(len(slots), 1))(
            *(self.types["slot"](offset, FORMS[how], writes, 0) for offset, how, writes in slots)
        )
        places = (ctypes.c_int32 * 6)(*axes)
        self.kept += [made, places]
        return self.types["kernel"](
            form=form,
            argument_count=len(slots),
            axis_count=len(axes),
            block_bytes=size,
            slots=ctypes.addressof(made),
            axes=ctypes.addressof(places),
            layout=0x1A,
            pipeline=0x91,
            block_x=32,
            block_y=1,
            block_z=1,
        )

    def launch(
        self, kernel: Any, *args: tuple[int, int | float], extents: Sequence[int] = (7, 32), dynamic: int = 0
    ) -> int:
        data = b"".join(
            struct.pack("<iId" if kind == FLOAT else "<iIQ", kind, 0, value if kind == FLOAT else value % (1 << 64))
            for kind, value in args
        )
        sizes = (ctypes.c_int64 * max(len(extents), 1))(*extents)
        status: int = self.launch_code(
            ctypes.addressof(self.device), ctypes.addressof(kernel), data, len(args), sizes, len(extents), dynamic
        )
        assert self.device.busy == 0
        return status

    def taken(self) -> list[tuple[Any, ...]]:
        found = list(self.calls)
        self.calls.clear()
        return found


@pytest.fixture
def machine(code: SupportCode) -> Iterator[Machine]:
    return Machine(code)


def test_a_launch(machine: Machine) -> None:
    kernel = machine.kernel((0, "address", False), (8, "address", True), (16, "i32", False), size=20)
    assert machine.launch(kernel, (POINTER, 0x1010), (POINTER, 0x3000), (INT, -2)) == 0
    block = struct.pack("<QQi", 0x1010, 0x3000, -2)
    assert machine.taken() == [
        ("bind", 0xC0, 1, 0x91),
        ("push", 0xC0, 0x1A, 0x20, 0, block),
        ("dispatch", 0xC0, 7, 1, 1),
    ]
    read, _, written, _ = machine.allocations
    assert (read.last_use, read.read_epoch, read.write_epoch) == (9, 5, -1)
    assert (written.last_use, written.read_epoch, written.write_epoch) == (9, -1, 5)
    assert (machine.device.recorded, machine.device.launches) == (1, 1)


def test_scalars(machine: Machine) -> None:
    forms = ("i32", "i32", "i64", "i64", "f32", "f64", "f32", "i32")
    offsets = (0, 4, 8, 16, 24, 32, 40, 44)
    kernel = machine.kernel(*((at, form, False) for at, form in zip(offsets, forms, strict=True)), size=48)
    values = ((INT, -5), (BOOL, 1), (INT, -(1 << 63)), (INT, (1 << 64) - 3), (FLOAT, 0.1), (FLOAT, -1e300))
    assert machine.launch(kernel, *values, (FLOAT, 1e300), (BOOL, 256)) == 0
    expected = struct.pack("<iIqQfxxxxdfI", -5, 1, -(1 << 63), (1 << 64) - 3, 0.1, -1e300, float("inf"), 1)
    (pushed,) = (call[5] for call in machine.taken() if call[0] == "push")
    # Bytes between values are whatever they are.
    assert pushed[:28] + pushed[32:] == expected[:28] + expected[32:]


def test_barriers_only_where_data_flows(machine: Machine) -> None:
    copy = machine.kernel((0, "address", False), (8, "address", True))
    a, b, c, d = ((POINTER, 0x1000 * n) for n in (1, 2, 3, 4))

    def barriers(source: tuple[int, int], target: tuple[int, int]) -> int:
        assert machine.launch(copy, source, target) == 0
        return machine.taken().count(("barrier",))

    assert barriers(a, b) == 0
    assert barriers(a, c) == 0  # two readers
    assert barriers(b, d) == 1  # reads what was written
    assert machine.device.epoch == 6
    assert barriers(c, a) == 0  # all of that was before the barrier
    assert barriers(b, c) == 1  # writes what was read
    assert barriers(d, c) == 1  # writes what was written
    assert barriers(c, c) == 1
    assert machine.device.epoch == 9
    assert (machine.device.stages, machine.device.memory_barrier) == (0x800, 0xBB)


def test_the_pipeline_is_bound_once(machine: Machine) -> None:
    kernel = machine.kernel(size=0)
    other = machine.kernel(size=0)
    other.pipeline = 0x92
    for found in (kernel, kernel, other, kernel):
        assert machine.launch(found) == 0
    names = [call[0] if call[0] != "bind" else call[3] for call in machine.taken()]
    assert names == [0x91, "dispatch", "dispatch", 0x92, "dispatch", 0x91, "dispatch"]


def test_labels(machine: Machine) -> None:
    kernel = machine.kernel(size=0)
    kernel.label = 0x1ABE1
    assert machine.launch(kernel) == 0
    assert machine.taken()[1:] == [("begin label", 0xC0, 0x1ABE1), ("dispatch", 0xC0, 7, 1, 1), ("end label", 0xC0)]


def test_all_axes(machine: Machine) -> None:
    kernel = machine.kernel(size=0, axes=(5, 2, 1, 0, 4, 3))
    kernel.block_x, kernel.block_y, kernel.block_z = 8, 4, 2
    assert machine.launch(kernel, extents=(2, 20, 50, 100, 4, 8)) == 0
    assert machine.taken()[-1] == ("dispatch", 0xC0, 100, 50, 20)
    assert machine.launch(kernel, extents=(2, 21, 50, 100, 4, 8)) == 0
    assert machine.launch(kernel, extents=(2, 20, 50, 100, 8, 4)) == 0
    assert [call[0] for call in machine.taken()] == ["slow", "slow"]


def test_storage_buffers(machine: Machine) -> None:
    kernel = machine.kernel((0, "offset", False), (4, "offset", True), (8, "offset", True), size=12)
    kernel.template = 0x7E
    assert machine.launch(kernel, (POINTER, 0x1000), (POINTER, 0x2000 + 37), (POINTER, 0)) == 0
    calls = machine.taken()
    assert calls[1][5] == struct.pack("<III", 0, 5, 0)
    whole, part, none = (77, 0x10000, 1000), (77, 0x11000 + 32, 968), (78, 0x40, 256)
    assert calls[2] == ("describe", 0xC0, 0x7E, 0x1A, 0, [whole, part, none])
    # What is bound is whole words, which the allocation has room for.
    machine.allocations[0].size = 1001
    machine.allocations[1].size = 0
    assert machine.launch(kernel, (POINTER, 0x1000), (POINTER, 0x2000), (POINTER, 0)) == 0
    described = next(call for call in machine.taken() if call[0] == "describe")
    assert [info[2] for info in described[5]] == [1004, 4, 256]


@pytest.mark.parametrize("form", [2, 3])
def test_blocks_in_memory(machine: Machine, form: int) -> None:
    array = "address" if form == 2 else "offset"
    kernel = machine.kernel((0, array, False), (8, "i64", False), form=form, size=600)
    kernel.template = 0x7E if form == 3 else 0
    machine.device.block_memory = ctypes.addressof(machine.memory)
    machine.device.block_address, machine.device.block_buffer, machine.device.block_offset = 0xAA00, 79, 0x300
    machine.device.block_size, machine.device.block_used = 1024, 3
    assert machine.launch(kernel, (POINTER, 0x1000), (INT, 11)) == 0
    calls = machine.taken()
    assert struct.unpack_from("<q", machine.memory.raw, 64 + 8) == (11,)
    assert machine.device.block_used == 664
    if form == 2:
        assert struct.unpack_from("<q", machine.memory.raw, 64) == (0x1000,)
        assert calls[1] == ("push", 0xC0, 0x1A, 0x20, 0, struct.pack("<Q", 0xAA00 + 64))
    else:
        assert calls[1][5][:2] == [(77, 0x10000, 1000), (79, 0x300 + 64, 600)]
    # There is no room for another one.
    assert machine.launch(kernel, (POINTER, 0x1000), (INT, 12)) == 0
    assert [call[0] for call in machine.taken()] == ["slow"]
    assert machine.device.block_used == 664


def test_what_is_unusual_is_left_to_others(machine: Machine) -> None:
    kernel = machine.kernel((0, "address", True), (8, "i32", False))
    good = ((POINTER, 0x1000), (INT, 1))
    state = bytes(machine.allocations[0])

    def refused(*args: tuple[int, int | float], extents: Sequence[int] = (7, 32), dynamic: int = 0) -> None:
        before = bytes(machine.device)
        assert machine.launch(kernel, *(args or good), extents=extents, dynamic=dynamic) == 0
        assert machine.taken() == [("slow", 0x51, len(args or good), len(extents), dynamic)]
        assert bytes(machine.device) == before
        assert bytes(machine.allocations[0]) == state

    for extents in ((101, 32), (0, 32), (-1, 32), (1 << 32, 32), (7, 31), (7,), (7, 32, 1)):
        refused(extents=extents)
    refused(dynamic=4)
    for address in (0xFFF, 0x1000 + 1001, 0x9000, (1 << 64) - 1):
        refused((POINTER, address), (INT, 1))
    refused((INT, 0x1000), (INT, 1))
    refused((POINTER, 0x1000), (FLOAT, 1.0))
    refused((POINTER, 0x1000), (POINTER, 1))
    refused((POINTER, 0x1000))
    for field, value in (("commands", 0), ("count", 0)):
        kept = getattr(machine.device, field)
        setattr(machine.device, field, value)
        refused()
        setattr(machine.device, field, kept)
    for field, value in (("form", 0), ("pipeline", 0), ("block_y", 2), ("dynamic", 16)):
        kept = getattr(kernel, field)
        setattr(kernel, field, value)
        refused()
        setattr(kernel, field, kept)
    assert machine.acquire(ctypes.addressof(machine.device)) == 1
    refused_while_busy(machine, kernel, good)
    assert machine.acquire(ctypes.addressof(machine.device)) == 0
    machine.release(ctypes.addressof(machine.device))
    assert machine.launch(kernel, *good) == 0
    assert machine.taken()[-1][0] == "dispatch"


def refused_while_busy(machine: Machine, kernel: Any, args: Sequence[tuple[int, int]]) -> None:
    data = b"".join(struct.pack("<iIq", kind, 0, value) for kind, value in args)
    sizes = (ctypes.c_int64 * 2)(7, 32)
    addresses = ctypes.addressof(machine.device), ctypes.addressof(kernel)
    assert machine.launch_code(*addresses, data, len(args), sizes, 2, 0) == 0
    assert machine.taken() == [("slow", 0x51, 2, 2, 0)]
    assert machine.device.busy == 1


def test_errors_of_others_are_handed_on(machine: Machine) -> None:
    assert machine.launch(machine.kernel(size=0), dynamic=666) == -1


def test_too_large_to_bind(machine: Machine) -> None:
    kernel = machine.kernel((0, "offset", False), size=4)
    kernel.template = 0x7E
    machine.allocations[0].size = (1 << 20) + 1
    assert machine.launch(kernel, (POINTER, 0x1000)) == 0
    assert machine.taken() == [("slow", 0x51, 1, 2, 0)]


def test_when_to_submit(machine: Machine) -> None:
    kernel = machine.kernel(size=0)
    machine.device.batch = 20
    for _ in range(19):
        assert machine.launch(kernel) == 0
    assert machine.flushed == 0
    assert machine.launch(kernel) == 0
    assert machine.flushed == 1
    machine.device.recorded, machine.device.deadline, machine.now = 0, 3 * 10**9, 3 * 10**9 - 1
    assert machine.launch(kernel) == 0
    assert machine.flushed == 1
    machine.now += 1
    assert machine.launch(kernel) == 0
    assert machine.flushed == 2
    # Whether the device is idle is asked now and then, but not at once; without a fence it is.
    machine.device.recorded, machine.device.deadline, machine.fence_answer = 0, DEFAULT_DEADLINE, 0
    machine.device.early = machine.now + 1
    for _ in range(9):
        assert machine.launch(kernel) == 0
    assert machine.flushed == 2
    machine.device.recorded, machine.now = 0, machine.now + 1
    assert machine.launch(kernel) == 0
    assert machine.flushed == 3
    for _ in range(7):
        assert machine.launch(kernel) == 0
    assert machine.flushed == 3
    machine.fence_answer = 1
    assert machine.launch(kernel) == 0
    assert machine.flushed == 3
    machine.device.recorded, machine.device.last_fence = 0, 0
    assert machine.launch(kernel) == 0
    assert machine.flushed == 4
    machine.flushed, machine.device.recorded = 12, 30
    assert machine.launch(kernel) == -7


def test_addresses_are_found_in_a_large_table(code: SupportCode) -> None:
    seed = 4711
    print("seed", seed)
    chosen = random.Random(seed)
    machine = Machine(code, 257)
    kernel = machine.kernel((0, "address", False))
    for number in range(500):
        place, offset = chosen.randrange(257), chosen.choice((0, 1, 999, 1000))
        machine.device.number = 1000 + number
        machine.launch(kernel, (POINTER, machine.allocations[place].address + offset))
        assert machine.allocations[place].last_use == 1000 + number
    assert {call[0] for call in machine.taken()} == {"bind", "push", "dispatch"}


def test_where_an_address_was_found_may_be_no_place_any_more(machine: Machine) -> None:
    kernel = machine.kernel((0, "address", False))
    machine.launch(kernel, (POINTER, 0x4000))
    machine.device.count = 2
    machine.launch(kernel, (POINTER, 0x2000))
    assert [found.last_use for found in machine.allocations] == [0, 9, 0, 9]
    machine.launch(kernel, (POINTER, 0x4000))
    assert machine.taken()[-1][0] == "slow"


def test_allocations_that_touch(machine: Machine) -> None:
    kernel = machine.kernel((0, "address", False))
    machine.allocations[0].size = 0x1000
    machine.launch(kernel, (POINTER, 0x1FFF))
    machine.launch(kernel, (POINTER, 0x2000))
    assert [found.last_use for found in machine.allocations] == [9, 9, 0, 0]


def test_threads(machine: Machine) -> None:
    """The lock is one without the interpreter's: each launch is recorded, or given to others, and none is lost."""
    kernel = machine.kernel((0, "address", True))
    data, sizes = struct.pack("<iIq", POINTER, 0, 0x1000), (ctypes.c_int64 * 2)(7, 32)
    launch = ctypes.CFUNCTYPE(I32, P, P, P, I32, P, I32, I64)(ctypes.cast(machine.launch_code, P).value or 0)
    machine.device.batch = 1 << 30

    def run() -> None:
        for _ in range(200):
            assert launch(ctypes.addressof(machine.device), ctypes.addressof(kernel), data, 1, sizes, 2, 0) == 0

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [call[0] for call in machine.taken()]
    assert names.count("dispatch") + names.count("slow") == 800
    assert machine.device.launches == names.count("dispatch") > 0
    assert machine.device.busy == 0
