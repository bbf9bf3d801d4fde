"""Descriptor sets of one submission: taken one a launch, and all free again when the submission is done.

So no launch ever sees a set that another launch, which may still be queued, has or will have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.results import OUT_OF_POOL, VulkanError

STORAGE_BUFFER, UNIFORM_BUFFER = 7, 6
"""VkDescriptorType."""
_SETS, _BUFFERS = 64, 512


@dataclass(eq=False, slots=True)
class _Pool:
    handle: Any
    buffers: int
    """How many storage buffers its sets may have together."""
    sets_left: int
    buffers_left: int

    def fits(self, buffers: int) -> bool:
        return self.sets_left > 0 and self.buffers_left >= buffers


class DescriptorPools:
    """Sets with storage buffers, and a uniform buffer if need be. The device holds its lock."""

    def __init__(self, device: LogicalDevice) -> None:
        self.device = device
        self._pools: list[_Pool] = []

    @property
    def count(self) -> int:
        """How many pools there are."""
        return len(self._pools)

    def take(self, layout: Any, buffers: int) -> Any:
        """A set of that layout with so many storage buffers, as an array of one. Raises VulkanError."""
        for pool in self._pools:
            if pool.fits(buffers):
                try:
                    return self._from(pool, layout, buffers)
                except VulkanError as error:
                    if error.result not in OUT_OF_POOL:
                        raise
                    pool.sets_left = 0
        return self._from(self._new(max(_BUFFERS, buffers)), layout, buffers)

    def _from(self, pool: _Pool, layout: Any, buffers: int) -> Any:
        api = self.device.api
        layouts = api.ffi.new("VkDescriptorSetLayout[]", [layout])
        made = api.ffi.new("VkDescriptorSet[1]")
        wanted = api.new(
            "VkDescriptorSetAllocateInfo", descriptorPool=pool.handle, descriptorSetCount=1, pSetLayouts=layouts
        )
        api.call("vkAllocateDescriptorSets", self.device.handle, wanted, made)
        pool.sets_left -= 1
        pool.buffers_left -= buffers
        return made

    def _new(self, buffers: int) -> _Pool:
        api = self.device.api
        sizes = api.ffi.new(
            "VkDescriptorPoolSize[]",
            [
                {"type": STORAGE_BUFFER, "descriptorCount": buffers},
                {"type": UNIFORM_BUFFER, "descriptorCount": _SETS},
            ],
        )
        made = api.ffi.new("VkDescriptorPool *")
        info = api.new("VkDescriptorPoolCreateInfo", maxSets=_SETS, poolSizeCount=2, pPoolSizes=sizes)
        api.call("vkCreateDescriptorPool", self.device.handle, info, api.ffi.NULL, made)
        found = _Pool(made[0], buffers, _SETS, buffers)
        self._pools.append(found)
        return found

    def reset(self) -> None:
        """Make all sets free again; nothing may use them any more. Raises VulkanError."""
        for pool in self._pools:
            if pool.sets_left < _SETS:
                self.device.api.call("vkResetDescriptorPool", self.device.handle, pool.handle, 0)
                pool.sets_left, pool.buffers_left = _SETS, pool.buffers

    def close(self) -> None:
        """Destroy the pools, and the sets with them."""
        for pool in self._pools:
            self.device.api.run("vkDestroyDescriptorPool", self.device.handle, pool.handle, self.device.api.ffi.NULL)
        self._pools.clear()
