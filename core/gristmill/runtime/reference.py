"""The runtime ``reference``: kernels on the reference executor, which reports all that the language does not allow.

It runs anywhere, and is slow: for tests of kernels without a GPU, and for finding what is wrong with one. Its arrays
are memory of the host, known to the device by their addresses: a kernel gets an address, and the device finds the
allocation that it lies in, so views and byte offsets work. What of an allocation was written is known from one launch
to the next, so reading what nobody has written is reported across launches too.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from gristmill.errors import Diagnostic, MissingError, UserError
from gristmill.plugin.artifacts import KernelRecord, Scalar
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import DeviceDescription, NativeLaunch, Probe, Runtime

if TYPE_CHECKING:
    import numpy as np

    from gristmill.interp import Executor
    from gristmill.interp.memory import Memory
    from gristmill.ir.dtype import DType
    from gristmill.runtime.arrays import Array

NAME = "reference"
_TITLE = "kernels on the reference executor: slow, every access checked"
_ALIGNMENT = 64
_LARGEST_CODE = 64 << 20


class ReferenceRuntime:
    """One device, always there, for blobs of kind ``gmir``."""

    name: ClassVar[str] = NAME
    blob_kinds: ClassVar[tuple[str, ...]] = ("gmir",)

    def probe(self) -> Probe:
        """The device needs nothing."""
        return Probe((DeviceDescription(0, _TITLE, _properties()),))

    def open(self, index: int) -> ReferenceDevice:
        """The device. Raises MissingError (GM0905) for another number."""
        if index != 0:
            raise MissingError("GM0905", f"there is no device {NAME}:{index}", f"there is {NAME}:0")
        return ReferenceDevice()

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """It runs all kernels that are IR."""
        return "" if kind in self.blob_kinds else f"the {NAME} runtime does not take code of kind {kind}"

    def preference(self, target: str) -> int:
        """There is one kind of code, and all of it is equally good."""
        return 0


class ReferenceDevice:
    """Memory and kernels. Safe to use from several threads; launches run one after another."""

    name = f"{NAME}:0"

    def __init__(self) -> None:
        from gristmill.plugin.target_data import device_limits, target_table

        self.device_type: int = target_table(NAME)["device_type"]
        self._limits = device_limits(NAME)
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._memories: list[Memory] = []
        # Arrays die wherever the last reference to them goes, within this class too: what is dead is removed later.
        self._dead: deque[int] = deque()
        self._numbers = itertools.count(1)
        self._kernels: weakref.WeakValueDictionary[int, _Kernel] = weakref.WeakValueDictionary()
        self._native: NativeLaunch | None = None

    def __repr__(self) -> str:
        return f"<gristmill device {self.name}>"

    # Arrays

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """A new array; a kernel that reads an element before one is written is reported."""
        from gristmill.runtime.arrays import checked_dtype, checked_shape

        element = checked_dtype(dtype)
        return self._array(checked_shape(shape, element), element)[0]

    def array(self, values: np.ndarray) -> Array:
        """A new array with a copy of the values."""
        from gristmill.runtime.arrays import host_values

        found, dtype = host_values(values)
        made, memory = self._array(found.shape, dtype)
        _bytes_of(memory)[:] = found.reshape(-1).view("uint8")
        memory.mark_written()
        return made

    def _array(self, shape: tuple[int, ...], dtype: DType) -> tuple[Array, Memory]:
        import math

        from gristmill.runtime.arrays import Array, numpy_dtype
        from gristmill.runtime.dlpack import tensor_over

        elements = numpy_dtype(dtype)
        owner = _Owned(self, math.prod(shape) * dtype.bytes)
        tensor = tensor_over(owner.memory.address, shape, dtype, (self.device_type, 0), owner)

        def read() -> np.ndarray:
            with self._lock:
                return _bytes_of(owner.memory).view(elements).reshape(shape).copy()

        return Array(self, tensor, shape, dtype, read), owner.memory

    # Memory by address

    def allocate(self, size: int, alignment: int) -> int:
        """The address of new memory of ``size`` bytes. Raises MemoryError where there is none."""
        return self._allocate(size, alignment).address

    def _allocate(self, size: int, alignment: int) -> Memory:
        import numpy as np

        from gristmill.interp.memory import Memory

        step = max(alignment, _ALIGNMENT)
        # One byte more: memory of no bytes has an address of its own too.
        whole = np.empty(size + step + 1, np.uint8)
        start = -whole.ctypes.data % step
        content = whole[start : start + size]
        address = whole.ctypes.data + start
        memory = Memory("memory", content.data, memoryview(bytearray(size)), whole, address)
        with self._lock:
            self._bury()
            place = bisect_right(self._starts, address)
            self._starts.insert(place, address)
            self._memories.insert(place, memory)
        return memory

    def release(self, address: int) -> None:
        """Give memory back that :meth:`allocate` gave."""
        self._dead.append(address)

    def _bury(self) -> None:
        while self._dead:
            address = self._dead.popleft()
            place = bisect_right(self._starts, address) - 1
            if place >= 0 and self._starts[place] == address:
                del self._starts[place], self._memories[place]

    def _memory_at(self, address: int) -> tuple[Memory, int] | None:
        """The allocation that an address lies in (or just behind), and where in it."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address - self._starts[place] > self._memories[place].size:
            return None
        return self._memories[place], address - self._starts[place]

    # Kernels

    def load(
        self,
        data: memoryview,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> ReferenceCode:
        """Read and verify the module of a blob. Raises UserError (GM0912) for bytes that are none, or lack a kernel."""
        return ReferenceCode(self, data, kernels)

    def launch(self, kernel: int, args: Sequence[Any], extents: Sequence[int], dynamic_shared: int) -> None:
        """Run a kernel, and return when it is done.

        ``kernel`` is a handle of :meth:`ReferenceCode.handle`, ``args`` are addresses and numbers, ``extents`` those of
        the kernel's axes in order. Raises UserError: as :func:`~gristmill.runtime.launch_checks.check_launch`; GM0923
        for an address that is no memory of this device; the executor's reports (GM05xx).
        """
        from gristmill.interp.memory import Pointer
        from gristmill.ir.stmt import ThreadAxis
        from gristmill.runtime.launch_checks import check_launch

        found = self._kernels[kernel]
        record = found.record
        if any(extent <= 0 for extent in extents):
            return
        check_launch(self.name, self._limits, record, len(args), extents, dynamic_shared)
        with self._lock:
            self._bury()
            values: list[Any] = []
            for argument, value in zip(record.arguments, args, strict=True):
                if argument.kind != "buffer":
                    values.append(value % (1 << 64) if argument.dtype == "uint64" else value)
                    continue
                place = self._memory_at(value) if value else None
                if value and place is None:
                    raise _foreign(record, argument.name)
                values.append(None if place is None else Pointer(*place))
            for value, argument in reversed(list(zip(values, record.arguments, strict=True))):
                if isinstance(value, Pointer):
                    value.memory.name = argument.name
                    # Launches follow each other, so none races with an earlier one.
                    value.memory.tracker = None
            axes = {ThreadAxis(axis): extent for axis, extent in zip(record.axes, extents, strict=True)}
            dynamic = dynamic_shared if record.dynamic_shared else None
            found.executor.launch(found.function, values, axes, dynamic)

    def native_launch(self) -> NativeLaunch:
        """The functions for the context tables of host code."""
        from gristmill.runtime.native_callbacks import callbacks_of

        with self._lock:
            if self._native is None:
                self._native = callbacks_of(self)
            return self._native

    def synchronize(self) -> None:
        """Nothing is ever queued."""

    def properties(self) -> Mapping[str, Scalar]:
        return _properties()


def _properties() -> dict[str, Scalar]:
    from gristmill.plugin.device_limits import as_properties
    from gristmill.plugin.target_data import device_limits

    return {"memory": "host", **as_properties(device_limits(NAME))}


class _Owned:
    """The memory of an array; given back with the last reference to it."""

    def __init__(self, device: ReferenceDevice, size: int) -> None:
        self.memory = device._allocate(size, _ALIGNMENT)
        weakref.finalize(self, device.release, self.memory.address).atexit = False


class _Kernel:
    """A kernel, ready to run."""

    def __init__(self, executor: Executor, function: str, record: KernelRecord) -> None:
        self.executor = executor
        self.function = function
        self.record = record


class ReferenceCode:
    """The kernels of one blob on the device."""

    def __init__(self, device: ReferenceDevice, data: memoryview, records: Sequence[KernelRecord]) -> None:
        from gristmill.interp import Executor
        from gristmill.ir.module import CallingConvention
        from gristmill.runtime.packed_modules import module_of_pack

        if len(data) > _LARGEST_CODE:
            raise _damaged(f"it has {len(data)} bytes")
        try:
            text = bytes(data).decode()
        except UnicodeDecodeError:
            raise _damaged("it is no text") from None
        module = module_of_pack(text, "kernels.gmir")
        kernels = {
            function.facts.symbol or function.name: function
            for function in module.functions
            if function.facts.convention is CallingConvention.DEVICE_KERNEL
        }
        executor = Executor(module)
        self._handles: dict[str, int] = {}
        self._kept = []
        for record in records:
            function = kernels.get(record.entry)
            launch = function.facts.launch if function is not None else None
            axes = tuple(axis.value for axis in launch.axes) if launch is not None else ()
            if function is None or axes != record.axes or len(function.params) != len(record.arguments):
                raise _damaged(f"it lacks the kernel `{record.entry}` as its record describes it")
            kernel = _Kernel(executor, function.name, record)
            self._kept.append(kernel)
            with device._lock:
                handle = next(device._numbers)
                device._kernels[handle] = kernel
            self._handles[record.name] = handle

    def handle(self, kernel: str) -> int:
        """What stands for the kernel in a context table; valid as long as this object lives."""
        return self._handles[kernel]

    def function(self, entry: str) -> Any:
        """Kernels are launched by host functions; they are no functions themselves."""
        raise KeyError(entry)


def _bytes_of(memory: Memory) -> np.ndarray:
    import numpy as np

    return np.frombuffer(memory.content, np.uint8)


def _foreign(record: KernelRecord, argument: str) -> UserError:
    return UserError(
        Diagnostic(
            "GM0923",
            f"the kernel `{record.name}` is given for `{argument}` an address that is no memory of {NAME}:0",
            hint="make the array with the device, and keep it as long as kernels use it",
        )
    )


def _damaged(why: str) -> UserError:
    return UserError(Diagnostic("GM0912", f"the code cannot be loaded on {NAME}:0: {why}", hint="build the pack again"))


# The plugin -----------------------------------------------------------------------------------------------------------

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_runtimes() -> Sequence[type[Runtime]]:
    """The runtime ``reference``."""
    return [ReferenceRuntime]
