"""The context table: what a host function that launches kernels gets as ``self``.

Such a function knows no device. Whoever loads it makes one table for a device and the kernels of a pack on it, and
functions whose ``self`` points to that table (``TVMFFIFunctionCreate`` in tvm/ffi/c_api.h). In C::

    struct ContextTable {
      uint32_t version;                     // CONTEXT_VERSION
      int32_t device_id;                    // DLPack's number of the device, which its arrays have too
      void* device;                         // first argument of the three functions
      int32_t (*launch)(void* device, void* kernel, const TVMFFIAny* args, int32_t arg_count,
                        const int64_t* extents, int32_t axis_count, int64_t dynamic_shared);
      void* (*allocate)(void* device, int64_t bytes, int32_t alignment);
      void (*release)(void* device, void* data);
      void* kernels[];                      // in the order of the host part's requirement `kernels`
    };

``launch`` returns 0, or -1 with the error of TVM FFI set. The arguments of a kernel are pointers (type index 4), and
integers, floats and bools, each widened without loss to 64 bits (a uint64 by its bits). ``extents`` are those of the
kernel's axes, in the order of its record; ``dynamic_shared`` is in bytes, 0 where the kernel has none. No extent is
zero: the host code leaves such a launch out. ``allocate`` returns null where there is no memory, and sets no error.

A host part is a blob of kind ``elf-shared`` whose target is the device's and that requires :data:`DEVICE_KIND`,
:data:`DEVICE_CODE` and :data:`KERNELS`. A function opened without a table (``self`` is null) raises RuntimeError.
"""

from __future__ import annotations

from typing import Final

CONTEXT_VERSION: Final = 2

VERSION: Final = 0
DEVICE_ID: Final = 4
DEVICE: Final = 8
LAUNCH: Final = 16
ALLOCATE: Final = 24
RELEASE: Final = 32
KERNELS_START: Final = 40
"""Offsets of the fields in bytes, on machines with 64-bit pointers; kernels follow each other by 8 bytes."""

DEVICE_KIND: Final = "device_kind"
"""Requirement of a host part: the kind of target whose kernels it launches."""
KERNELS: Final = "kernels"
"""Requirement of a host part: the names of the kernels, separated by commas, in the order of the table."""

DEVICE_CODE: Final = "device_code"
"""Requirement of a host part: the sha256 of each blob that has its kernels, separated by commas."""
HOST_IR: Final = "host-ir"
"""Kind of the text that packs keep beside kernels: the host functions as IR, for machines that no host part fits."""
HOST_IR_SUFFIX: Final = "host.gmir"
"""How the name of that text ends: ``text/NAME.host.gmir`` belongs to the kernels in ``code/NAME.*``."""

CONTEXT_PARAMETER: Final = "context"
"""The name of the trailing parameter, a handle, by which functions that launch pass the table on."""


def kernel_offset(number: int) -> int:
    """Where the handle of kernel ``number`` stands in a table, in bytes."""
    return KERNELS_START + 8 * number


def table_words(
    device_id: int, device: int, launch: int, allocate: int, release: int, kernels: tuple[int, ...]
) -> list[int]:
    """A table as 64-bit words in the machine's order, little-endian; all but the number are addresses or handles."""
    return [CONTEXT_VERSION | (device_id & 0xFFFFFFFF) << 32, device, launch, allocate, release, *kernels]
