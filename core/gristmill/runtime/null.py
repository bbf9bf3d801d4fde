"""A runtime to copy: the smallest one that is whole. Its device computes nothing.

A plugin for a device of your own begins as a copy of this file, with its own names, an entry point in the group
``gristmill.runtimes`` and the lines at the end. It shows what each part owes its callers:

* the runtime says what is here, and why a code cannot run, without touching the device;
* the device makes arrays that kernels take (a ``tvm_ffi.Tensor`` of the device's own DLPack type), copies, loads code;
* loaded code hands out functions, and lives as long as they do.

Nothing registers it: it is not on anybody's list of devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from gristmill.errors import Diagnostic, MissingError, UserError
from gristmill.plugin.artifacts import KernelRecord, Scalar
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import DeviceDescription, Probe, Runtime
from gristmill.runtime.arrays import Array, checked_dtype, checked_shape, host_values, numpy_dtype
from gristmill.runtime.dlpack import tensor_over

if TYPE_CHECKING:
    import numpy as np

NULL_DEVICE_TYPE = 12
"""``kDLExtDev`` of dlpack.h: a device that DLPack has no number for."""

CODE = b"null code, version 1\n"
"""What a blob of kind ``null`` begins with."""


class NullRuntime:
    """One device, always there, for blobs of kind ``null``."""

    name: ClassVar[str] = "null"
    blob_kinds: ClassVar[tuple[str, ...]] = ("null",)

    def probe(self) -> Probe:
        """A real runtime looks for its driver here, and gives the reason where there is none."""
        return Probe((DeviceDescription(0, "a device that computes nothing", {"memory": "host"}),))

    def open(self, index: int) -> NullDevice:
        """Only called for devices that ``probe`` lists, but asked again: they may be gone."""
        if index != 0:
            raise MissingError("GM0905", f"there is no device null:{index}", "there is null:0")
        return NullDevice()

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """A real runtime compares ``requirements`` with what the device has, and names what is missing."""
        unknown = sorted(requirements)
        return f"it requires {', '.join(unknown)}, which the null device does not have" if unknown else ""

    def preference(self, target: str) -> int:
        """All its codes are equally good."""
        return 0


class NullDevice:
    """Memory of the host, posing as a device's."""

    name = "null:0"
    device_type = NULL_DEVICE_TYPE

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """A new array; its elements are whatever the memory held."""
        import numpy as np

        element = checked_dtype(dtype)
        return self._array(np.empty(checked_shape(shape, element), numpy_dtype(element)))

    def array(self, values: np.ndarray) -> Array:
        """A new array with a copy of the values."""
        return self._array(host_values(values)[0].copy())

    def _array(self, memory: np.ndarray) -> Array:
        dtype = checked_dtype(memory.dtype.name)
        tensor = tensor_over(memory.ctypes.data, memory.shape, dtype, (NULL_DEVICE_TYPE, 0), memory)
        # Read back as a copy: memory of a real device cannot be looked at from the host.
        return Array(self, tensor, memory.shape, dtype, memory.copy)

    def load(
        self,
        data: memoryview,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> NullCode:
        """Check the bytes before anything is done with them: they come from a file."""
        if bytes(data[: len(CODE)]) != CODE:
            raise UserError(
                Diagnostic("GM0912", "the code is not null code: it begins otherwise", hint="build the pack again")
            )
        return NullCode({kernel.entry: len(kernel.arguments) for kernel in kernels if kernel.entry in entry_points})

    def synchronize(self) -> None:
        """Nothing is ever queued."""

    def properties(self) -> Mapping[str, Scalar]:
        return {"memory": "host"}


class NullCode:
    """Loaded code: entry points with the number of their arguments."""

    def __init__(self, arities: Mapping[str, int]) -> None:
        self.arities = dict(arities)

    def function(self, entry: str) -> Any:
        """A callable that checks how many arguments it gets, and does nothing."""
        wanted = self.arities[entry]

        def call(*args: Any) -> None:
            if len(args) != wanted:
                raise TypeError(f"{entry}: {wanted} arguments are expected, not {len(args)}")

        return call


# A plugin module ends like this.

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_runtimes() -> Sequence[type[Runtime]]:
    """The runtime ``null``."""
    return [NullRuntime]
