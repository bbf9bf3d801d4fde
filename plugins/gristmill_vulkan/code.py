"""The kernels of one blob, made on a device."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gristmill.plugin.artifacts import KernelRecord
from gristmill_vulkan.interrupts import without_interrupts
from gristmill_vulkan.kernel_forms import KernelForm, kernel_form
from gristmill_vulkan.kernels import Kernel
from gristmill_vulkan.module_checks import check_module

if TYPE_CHECKING:
    from gristmill_vulkan.device import VulkanDevice


class VulkanCode:
    """The kernels of one blob on the device."""

    def __init__(self, device: VulkanDevice, data: bytes, records: Sequence[KernelRecord]) -> None:
        self._device = device
        self._handles: dict[str, int] = {}
        self._kept: list[Kernel] = []
        try:
            for record in records:
                form = kernel_form(record, len(data))
                code = data[form.start : form.start + form.size]
                check_module(code, record)
                with without_interrupts():
                    self._make(code, record, form)
        except BaseException:
            for kernel in self._kept:
                kernel.destroy()
            raise
        weakref.finalize(self, device._unloaded.extend, self._kept).atexit = False

    def _make(self, code: bytes, record: KernelRecord, form: KernelForm) -> None:
        device = self._device
        kernel = Kernel(device.logical, device.cache, code, record, form)
        self._kept.append(kernel)
        if form.asserts:
            device.reports.watch(kernel)
        with device._lock:
            number = next(device._numbers) if device.native is None else device.native.handle(kernel)
            device._kernels[number] = kernel
        self._handles[record.name] = number

    def handle(self, kernel: str) -> int:
        """What stands for the kernel in a context table; valid as long as this object lives."""
        return self._handles[kernel]

    def function(self, entry: str) -> Any:
        """Kernels are launched by host functions; they are no functions themselves."""
        raise KeyError(entry)
