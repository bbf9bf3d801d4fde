"""The logical device: one queue, and the features and extensions that are used where they are there."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from gristmill_vulkan.api import Api
from gristmill_vulkan.instance import Instance, texts
from gristmill_vulkan.physical import CORE_FEATURES, FEATURES_11, FEATURES_12, PhysicalDevice

PUSH_DESCRIPTORS = "VK_KHR_push_descriptor"
_WANTED = (PUSH_DESCRIPTORS,)
"""Extensions that are used where the driver has them."""


class LogicalDevice:
    """A device and its queue. :meth:`close` waits for the queue and destroys both."""

    def __init__(self, instance: Instance, physical: PhysicalDevice, without: Set[str] = frozenset()) -> None:
        """``without`` names extensions and features to leave switched off. Raises VulkanError."""
        api, ffi = instance.api, instance.api.ffi
        self.physical = physical
        self.extensions = frozenset(_WANTED) & physical.extensions - without
        self.features = physical.features - without
        kept: list[Any] = []
        priority = ffi.new("float[]", [1.0])
        queue = api.new(
            "VkDeviceQueueCreateInfo", queueFamilyIndex=physical.queue_family, queueCount=1, pQueuePriorities=priority
        )
        info = api.new(
            "VkDeviceCreateInfo", queueCreateInfoCount=1, pQueueCreateInfos=queue, pNext=self._chain(api, kept)
        )
        info.enabledExtensionCount, info.ppEnabledExtensionNames = texts(api, sorted(self.extensions), kept)
        made = ffi.new("VkDevice *")
        api.call("vkCreateDevice", physical.handle, info, ffi.NULL, made)
        self.handle = made[0]
        self.api = api.of_device(self.handle)
        found = ffi.new("VkQueue *")
        self.api.run("vkGetDeviceQueue", self.handle, physical.queue_family, 0, found)
        self.queue = found[0]

    def _chain(self, api: Api, kept: list[Any]) -> Any:
        """The structures that switch features on."""
        sixteen = api.new("VkPhysicalDevice16BitStorageFeatures")
        top = api.new("VkPhysicalDeviceFeatures2", pNext=sixteen)
        kept += (sixteen, top)
        _switch_on(top.features, CORE_FEATURES, self.features)
        _switch_on(sixteen, FEATURES_11, self.features)
        if self.physical.api_version >= (1, 2):
            newer = api.new("VkPhysicalDeviceVulkan12Features")
            kept.append(newer)
            _switch_on(newer, FEATURES_12, self.features)
            sixteen.pNext = newer
        return top

    def close(self) -> None:
        """Wait until the queue is idle, and destroy the device; what was made of it must be destroyed before."""
        self.api.run("vkDestroyDevice", self.handle, self.api.ffi.NULL)


def _switch_on(structure: Any, members: dict[str, str], wanted: Set[str]) -> None:
    for feature, member in members.items():
        if feature in wanted:
            setattr(structure, member, 1)
