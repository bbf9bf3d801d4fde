"""What machine code calls of a device: Python functions as C functions, made by cffi.

Unlike those of ctypes, they say that they have failed also where KeyboardInterrupt comes before their first instruction,
when nothing of theirs can catch it: else the launch would be missing, and nobody would know.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gristmill.plugin.protocols import NativeLaunch
from gristmill.runtime.native_callbacks import callbacks_of, set_raised, values_of

if TYPE_CHECKING:
    from gristmill_vulkan.device import VulkanDevice

_LAUNCH = "int32_t(void *, uintptr_t, uintptr_t, int32_t, int64_t *, int32_t, int64_t)"
_FLUSH = "int32_t(void *)"


def callbacks_of_device(device: VulkanDevice) -> NativeLaunch:
    """The functions for context tables; they keep the device alive."""
    others, launch = callbacks_of(device), _launch_callback(device)
    address = int(device.logical.api.ffi.cast("uintptr_t", launch))
    return replace(others, launch=address, owner=(others.owner, launch))


def _launch_callback(device: VulkanDevice) -> Any:
    ffi = device.logical.api.ffi

    def launch(_: Any, kernel: int, args: int, count: int, extents: Any, axes: int, dynamic: int) -> int:
        device.launch(kernel, values_of(args, count), ffi.unpack(extents, axes), dynamic)
        return 0

    return ffi.callback(_LAUNCH, launch, error=-1, onerror=_tell)


def flush_callback(device: VulkanDevice) -> Any:
    """What machine code calls when it is time to submit; it keeps the device alive."""

    def flush(_: Any) -> int:
        device.submit_if_due()
        return 0

    return device.logical.api.ffi.callback(_FLUSH, flush, error=-1, onerror=_tell)


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    set_raised(error)
