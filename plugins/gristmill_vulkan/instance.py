"""The instance of Vulkan: made once a process, with the validation layer where a setting asks for it."""

from __future__ import annotations

from collections import deque
from typing import Any

from gristmill.errors import MissingError
from gristmill_vulkan.api import Api

API_VERSION = (1 << 22) | (3 << 12)
"""What is asked of the loader: Vulkan 1.3. Devices of older versions are used with less."""
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
        application = api.new("VkApplicationInfo", apiVersion=API_VERSION)
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
        if validation:
            self._listen()

    def physical_devices(self) -> list[Any]:
        """The handles of all physical devices, as the driver lists them."""
        return self.api.handles("vkEnumeratePhysicalDevices", "VkPhysicalDevice", self.handle)

    def _listen(self) -> None:
        api, ffi = self.api, self.api.ffi

        def report(severity: int, kinds: int, data: Any, user: Any) -> int:
            self.messages.append(api.text(data.pMessage))
            return 0

        # Warnings and errors, of all kinds.
        self._callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", report)
        info = api.new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=0x1100,
            messageType=0x7,
            pfnUserCallback=self._callback,
        )
        api.call("vkCreateDebugUtilsMessengerEXT", self.handle, info, ffi.NULL, ffi.new("VkDebugUtilsMessengerEXT *"))


def texts(api: Api, names: list[str], kept: list[Any]) -> tuple[int, Any]:
    """Names as Vulkan takes them, (count, array); what they live in is added to ``kept``."""
    found = [api.ffi.new("char[]", name.encode()) for name in names]
    array = api.ffi.new("char *[]", found)
    kept += (*found, array)
    return len(names), array


def _layers(api: Api) -> set[str]:
    count = api.ffi.new("uint32_t *")
    api.call("vkEnumerateInstanceLayerProperties", count, api.ffi.NULL)
    array = api.ffi.new("VkLayerProperties[]", max(count[0], 1))
    api.call("vkEnumerateInstanceLayerProperties", count, array)
    return {api.text(array[place].layerName) for place in range(count[0])}
