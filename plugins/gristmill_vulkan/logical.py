"""The logical device: one queue, and the features and extensions that are used where they are there."""

from __future__ import annotations

from collections.abc import Set

from gristmill_vulkan.features import switched_on
from gristmill_vulkan.instance import Instance, texts
from gristmill_vulkan.physical import PUSH_DESCRIPTORS, PhysicalDevice

__all__ = ["PUSH_DESCRIPTORS", "LogicalDevice"]
_WANTED = (PUSH_DESCRIPTORS,)
"""Extensions that are used where the driver has them."""


class LogicalDevice:
    """A device and its queue."""

    def __init__(
        self, instance: Instance, physical: PhysicalDevice, without: Set[str] = frozenset(), name: str = "vulkan"
    ) -> None:
        """``without`` names extensions and features to leave switched off. Raises VulkanError."""
        api, ffi = instance.api, instance.api.ffi
        self.name = name
        self.instance = instance
        """Lives as long as the device."""
        self.physical = physical
        self.without = without
        self.extensions = frozenset(_WANTED) & physical.extensions - without
        self.features = physical.features - without
        features, kept, needed = switched_on(api, physical.api_version, physical.extensions - without, self.features)
        priority = ffi.new("float[]", [1.0])
        queue = api.new(
            "VkDeviceQueueCreateInfo", queueFamilyIndex=physical.queue_family, queueCount=1, pQueuePriorities=priority
        )
        info = api.new("VkDeviceCreateInfo", queueCreateInfoCount=1, pQueueCreateInfos=queue, pNext=features)
        names = sorted(self.extensions | needed)
        info.enabledExtensionCount, info.ppEnabledExtensionNames = texts(api, names, kept)
        made = ffi.new("VkDevice *")
        api.call("vkCreateDevice", physical.handle, info, ffi.NULL, made)
        self.handle = made[0]
        self.api = api.of_device(self.handle)
        found = ffi.new("VkQueue *")
        self.api.run("vkGetDeviceQueue", self.handle, physical.queue_family, 0, found)
        self.queue = found[0]

    def close(self) -> None:
        """Destroy the device; what was made of it must be destroyed before."""
        self.api.run("vkDestroyDevice", self.handle, self.api.ffi.NULL)
