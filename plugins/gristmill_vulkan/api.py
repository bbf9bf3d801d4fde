"""Vulkan's functions, through the package ``vulkan``: its loader and its declarations of C types.

The package's own wrappers cost 2 to 13 microseconds a call and lack functions; its ``lib`` and ``ffi`` lack neither. All
calls go through :meth:`Api.call`, which checks results, so that tests can make any of them fail (:class:`CallHook`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from gristmill.errors import MissingError
from gristmill_vulkan.results import DEVICE_LOST, INCOMPLETE, NOT_READY, SUCCESS, TIMEOUT, VulkanError

PACKAGE = "vulkan"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=\d+(?:KHR|EXT)?$)")


# Results beside success that a function may have, which say something and are no failure.
_ANSWERS = {
    "vkGetFenceStatus": NOT_READY,
    "vkWaitForFences": TIMEOUT,
    "vkEnumeratePhysicalDevices": INCOMPLETE,
    "vkEnumerateInstanceLayerProperties": INCOMPLETE,
    "vkEnumerateDeviceExtensionProperties": INCOMPLETE,
    "vkGetPipelineCacheData": INCOMPLETE,
}


class CallHook:
    """For tests: what is asked before every call; one object for an instance, its devices, and the loader."""

    def __init__(self) -> None:
        self.before: Callable[[str], int] | None = None
        """Given the name of a function that returns a VkResult, the result to give instead of calling it; 0 to call it."""


class Api:
    """The functions of the loader, and those of an instance or a device made through it."""

    def __init__(self, ffi: Any, lib: Any, hook: CallHook | None = None) -> None:
        self.ffi = ffi
        self.lib = lib
        self.hook = hook or CallHook()
        self.is_lost = False
        """Whether a call through this object has said that the device is lost."""
        self._functions: dict[str, Any] = {}
        self._instance: Any = None
        self._device: Any = None

    @classmethod
    def load(cls) -> Api:
        """The API of this machine. Raises MissingError (GM0932) where the package or Vulkan's loader is missing."""
        try:
            import vulkan
        except ImportError:
            raise MissingError("GM0932", "the Python package `vulkan` is not installed", "pip install vulkan") from None
        except OSError as error:
            hint = "install the system's Vulkan loader (libvulkan1 on Debian) and a driver"
            raise MissingError("GM0932", f"Vulkan's loader is not installed ({error})", hint) from None
        return cls(vulkan.ffi, vulkan.lib)

    def of_instance(self, instance: Any) -> Api:
        """The same with the functions of an instance."""
        found = Api(self.ffi, self.lib, self.hook)
        found._instance = instance
        return found

    def of_device(self, device: Any) -> Api:
        """The same with the functions of a device, called without going through the loader."""
        found = Api(self.ffi, self.lib, self.hook)
        found._instance, found._device = self._instance, device
        return found

    # Structures

    def new(self, type_: str, **fields: Any) -> Any:
        """A structure of that name with its ``sType`` set, all else zero."""
        made = self.ffi.new(f"{type_} *", fields)
        made.sType = _structure_type(self.lib, type_)
        return made

    # Calls

    def function(self, name: str) -> Any:
        """A function by name: a pointer that cffi calls. Raises VulkanError for one that the driver does not have."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._find(name)
        return found

    def address(self, name: str) -> int:
        """The address of a function, for machine code."""
        return int(self.ffi.cast("uintptr_t", self.function(name)))

    def _find(self, name: str) -> Any:
        text = self.ffi.new("char[]", name.encode())
        found = self.ffi.NULL
        if self._device is not None:
            found = self.lib.vkGetDeviceProcAddr(self._device, text)
        if found == self.ffi.NULL and self._instance is not None:
            found = self.lib.vkGetInstanceProcAddr(self._instance, text)
        if found == self.ffi.NULL:
            found = self.lib.vkGetInstanceProcAddr(self.ffi.NULL, text)
        if found == self.ffi.NULL:
            raise VulkanError(name, -7, "the driver lacks a function")
        return self.ffi.cast(f"PFN_{name}", found)

    def call(self, name: str, *args: Any) -> int:
        """Call a function that returns a VkResult. Raises VulkanError for what is neither success nor an answer of it."""
        before = self.hook.before
        result = before(name) if before is not None else SUCCESS
        if result == SUCCESS:
            result = int(self.function(name)(*args))
            if result == SUCCESS:
                return result
        if result == DEVICE_LOST:
            self.is_lost = True
        if result != _ANSWERS.get(name):
            raise VulkanError(name, result)
        return result

    def run(self, name: str, *args: Any) -> Any:
        """Call a function that returns something else, or nothing."""
        return self.function(name)(*args)

    def listed(self, name: str, type_: str, *args: Any) -> Iterator[Any]:
        """All that a function of the form (..., count, array) gives, to be looked at one by one."""
        while True:
            count = self.ffi.new("uint32_t *")
            self.call(name, *args, count, self.ffi.NULL)
            array = self.ffi.new(f"{type_}[]", max(count[0], 1))
            # What there is may have become more in between.
            if self.call(name, *args, count, array) == SUCCESS:
                yield from (array[place] for place in range(count[0]))
                return

    def text(self, characters: Any) -> str:
        """A C string as text."""
        return bytes(self.ffi.string(characters)).decode("utf-8", "replace")


def _structure_type(lib: Any, type_: str) -> int:
    found: int = getattr(lib, _SPECIAL.get(type_) or _constant_name(type_))
    return found


# Names in which the rule below splits wrongly.
_SPECIAL = {
    "VkPhysicalDevice8BitStorageFeatures": "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES",
    "VkPhysicalDevice16BitStorageFeatures": "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES",
    "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT": (
        "VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT"
    ),
}


@cache
def _constant_name(type_: str) -> str:
    """``VkBufferCreateInfo`` -> ``VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO``."""
    words = _WORD_START.sub("_", type_.removeprefix("Vk"))
    return "VK_STRUCTURE_TYPE_" + words.upper()
