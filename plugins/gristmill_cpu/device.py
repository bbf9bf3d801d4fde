"""The device ``cpu:0``: host memory, and shared objects loaded into the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gristmill.ir.dtype import BFLOAT16, DType
from gristmill.ir.host_interface import CPU_DEVICE_TYPE
from gristmill.plugin.artifacts import KernelRecord, Scalar
from gristmill.runtime.arrays import Array, checked_dtype, checked_shape, host_values, numpy_dtype
from gristmill.runtime.dlpack import tensor_over
from gristmill_cpu.processor import ELF_MACHINES, Processor

if TYPE_CHECKING:
    import numpy as np

    from gristmill_cpu.code import CpuCode

ARRAY_ALIGNMENT = 64
"""Bytes to whose multiples arrays are aligned: a cache line, and the widest vector register."""


class CpuDevice:
    """The processor. Kernels run in the calling thread, so there is never anything to wait for."""

    name = "cpu:0"
    device_type = CPU_DEVICE_TYPE

    def __init__(self, processor: Processor) -> None:
        self._processor = processor

    def __repr__(self) -> str:
        return f"<gristmill device {self.name}>"

    def empty(self, shape: Sequence[int], dtype: str) -> Array:
        """A new array in host memory; its elements are not initialised. Raises UserError (GM0906, GM0907)."""
        element = checked_dtype(dtype)
        return self._array(_aligned(checked_shape(shape, element), element), element)

    def array(self, values: np.ndarray) -> Array:
        """A new array with a copy of the values. Raises UserError (GM0906) for element types that kernels lack."""
        found, element = host_values(values)
        memory = _aligned(found.shape, element)
        memory[...] = found
        return self._array(memory, element)

    def _array(self, memory: np.ndarray, dtype: DType) -> Array:
        if dtype == BFLOAT16:
            # NumPy exports no type that is not its own.
            tensor = tensor_over(memory.ctypes.data, memory.shape, dtype, (CPU_DEVICE_TYPE, 0), memory)
        else:
            import tvm_ffi

            tensor = tvm_ffi.from_dlpack(memory)
        return Array(self, tensor, memory.shape, dtype, lambda: memory)

    def load(
        self,
        data: memoryview,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> CpuCode:
        """Check a shared object, load it, and fill in the C functions that it calls.

        Raises UserError: GM0711-GM0715 for a shared object that may not be loaded, GM0913 for one that the system's
        loader refuses or that lacks an entry point; MissingError GM0911 for a library that it calls.
        """
        from gristmill_cpu.code import CpuCode

        return CpuCode(data, ELF_MACHINES[self._processor.machine], entry_points, kernels, externs)

    def synchronize(self) -> None:
        """Nothing is ever queued."""

    def properties(self) -> Mapping[str, Any]:
        found: dict[str, Scalar] = {
            "name": self._processor.name,
            "machine": self._processor.machine,
            "cores": self._processor.cores,
        }
        return found


def _aligned(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Memory for an array whose first element is at a multiple of ``ARRAY_ALIGNMENT``."""
    import math

    import numpy as np

    size = math.prod(shape) * dtype.bytes
    memory = np.empty(size + ARRAY_ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ARRAY_ALIGNMENT
    return memory[start : start + size].view(numpy_dtype(dtype)).reshape(shape)
