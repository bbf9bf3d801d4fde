"""The instance of Vulkan: made once a process, with the validation layer where a setting asks for it."""

from __future__ import annotations

import itertools
import os
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from gristmill.errors import MissingError
from gristmill_vulkan.api import Api
from gristmill_vulkan.features import INSTANCE_VERSION
from gristmill_vulkan.results import VulkanValidationWarning

if TYPE_CHECKING:
    from gristmill_vulkan.device import VulkanDevice

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"
_DEBUG = "VK_EXT_debug_utils"
_VALIDATION_FEATURES = "VK_EXT_validation_features"
_LARGEST_NUMBER_OF_MESSAGES = 1000


class Instance:
    """An instance, its physical devices, and what the validation layer said (:attr:`messages`)."""

    def __init__(self, api: Api, validation: bool) -> None:
        """Raises MissingError (GM0932) for a validation layer that is not installed, VulkanError for what Vulkan refuses."""
        self.loader = api
        self.messages: deque[str] = deque(maxlen=_LARGEST_NUMBER_OF_MESSAGES)
        ffi = api.ffi
        kept: list[Any] = []
        application = api.new("VkApplicationInfo", apiVersion=INSTANCE_VERSION[0] << 22 | INSTANCE_VERSION[1] << 12)
        layers, extensions = [], []
        if validation:
            if VALIDATION_LAYER not in _layers(api):
                hint = "install it (vulkan-validationlayers on Debian), or unset GRISTMILL_VULKAN_VALIDATION"
                raise MissingError("GM0932", f"the layer {VALIDATION_LAYER} is not installed", hint)
            layers.append(VALIDATION_LAYER)
            extensions += [_DEBUG, _VALIDATION_FEATURES]
        info = api.new("VkInstanceCreateInfo", pApplicationInfo=application)
        info.enabledLayerCount, info.ppEnabledLayerNames = texts(api, layers, kept)
        info.enabledExtensionCount, info.ppEnabledExtensionNames = texts(api, extensions, kept)
        if validation:
            wanted = ffi.new(
                "VkValidationFeatureEnableEXT[]", [api.lib.VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT]
            )
            features = api.new(
                "VkValidationFeaturesEXT", enabledValidationFeatureCount=1, pEnabledValidationFeatures=wanted
            )
            info.pNext = features
            kept += (wanted, features)
        made = ffi.new("VkInstance *")
        api.call("vkCreateInstance", info, ffi.NULL, made)
        self.handle = made[0]
        self.api = api.of_instance(self.handle)
        self.is_validated = validation
        self.devices: weakref.WeakSet[VulkanDevice] = weakref.WeakSet()
        """The devices that were opened of it, and are still held."""
        self.numbers = itertools.count()
        """For what no two devices may share."""
        self._messenger = ffi.new("VkDebugUtilsMessengerEXT *")
        self._process = os.getpid()
        # Devices refer to their instance, and are made after it: it is the last to go, also at the end of the process.
        self._finalizer = weakref.finalize(self, _destroy, self.api, self.handle, self._messenger, self._process)
        if validation:
            try:
                self._listen()
            except BaseException:
                self._finalizer()
                raise

    def physical_devices(self) -> list[Any]:
        """The handles of all physical devices, as the driver lists them."""
        return list(self.api.listed("vkEnumeratePhysicalDevices", "VkPhysicalDevice", self.handle))

    def report(self) -> None:
        """Give what the validation layer has said since as warnings."""
        while self.messages:
            warnings.warn(self.messages.popleft(), VulkanValidationWarning, stacklevel=3)

    def close(self) -> None:
        """Destroy the instance; its devices must be closed before."""
        self._finalizer()

    def _listen(self) -> None:
        api, ffi, messages = self.api, self.api.ffi, self.messages

        def report(severity: int, kinds: int, data: Any, user: Any) -> int:
            messages.append(api.text(data.pMessage))
            return 0

        # Warnings and errors, of all kinds.
        self._callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", report)
        info = api.new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=0x1100,
            messageType=0x7,
            pfnUserCallback=self._callback,
        )
        api.call("vkCreateDebugUtilsMessengerEXT", self.handle, info, ffi.NULL, self._messenger)


def _destroy(api: Api, handle: Any, messenger: Any, process: int) -> None:
    if process != os.getpid():
        return
    if messenger[0] != api.ffi.NULL:
        api.run("vkDestroyDebugUtilsMessengerEXT", handle, messenger[0], api.ffi.NULL)
    api.run("vkDestroyInstance", handle, api.ffi.NULL)


def texts(api: Api, names: list[str], kept: list[Any]) -> tuple[int, Any]:
    """Names as Vulkan takes them, (count, array); what they live in is added to ``kept``."""
    found = [api.ffi.new("char[]", name.encode()) for name in names]
    array = api.ffi.new("char *[]", found)
    kept += (*found, array)
    return len(names), array


def _layers(api: Api) -> set[str]:
    return {
        api.text(found.layerName) for found in api.listed("vkEnumerateInstanceLayerProperties", "VkLayerProperties")
    }
