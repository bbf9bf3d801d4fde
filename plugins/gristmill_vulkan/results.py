"""What Vulkan's calls give back: names of results, and the errors that they are raised as."""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.errors import MissingError

# VkResult (Vulkan specification, "Return Codes").
NAMES: Mapping[int, str] = {
    0: "VK_SUCCESS",
    1: "VK_NOT_READY",
    2: "VK_TIMEOUT",
    3: "VK_EVENT_SET",
    4: "VK_EVENT_RESET",
    5: "VK_INCOMPLETE",
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -4: "VK_ERROR_DEVICE_LOST",
    -5: "VK_ERROR_MEMORY_MAP_FAILED",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    -8: "VK_ERROR_FEATURE_NOT_PRESENT",
    -9: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -11: "VK_ERROR_FORMAT_NOT_SUPPORTED",
    -12: "VK_ERROR_FRAGMENTED_POOL",
    -13: "VK_ERROR_UNKNOWN",
    -1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY",
    -1000072003: "VK_ERROR_INVALID_EXTERNAL_HANDLE",
    -1000161000: "VK_ERROR_FRAGMENTATION",
    -1000257000: "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS",
    -1000011001: "VK_ERROR_VALIDATION_FAILED_EXT",
    -1000012000: "VK_ERROR_INVALID_SHADER_NV",
    -1000174001: "VK_ERROR_NOT_PERMITTED_KHR",
    1000297000: "VK_PIPELINE_COMPILE_REQUIRED",
}
SUCCESS = 0
NOT_READY = 1
TIMEOUT = 2
INCOMPLETE = 5
OUT_OF_POOL = frozenset((-12, -1000069000))
"""A descriptor pool is full, or too fragmented."""
_OF_THE_LOADER = frozenset(("vkCreateInstance", "vkEnumerateInstanceLayerProperties"))
"""What Vulkan's loader does with files that it finds; where they are broken it gives whatever result."""
OUT_OF_MEMORY = frozenset((-1, -2))
DEVICE_LOST = -4


def result_name(result: int) -> str:
    """What the specification calls a result."""
    return NAMES.get(result, f"VkResult {result}")


class VulkanError(MissingError):
    """GM0930: a call of Vulkan failed. ``result`` is the VkResult."""

    def __init__(self, call: str, result: int, detail: str = "", hint: str = "") -> None:
        self.call = call
        self.result = result
        what = f"{call} gave {result_name(result)}"
        super().__init__("GM0930", f"{detail}: {what}" if detail else what, hint or _hint(call, result))


class DeviceGoneError(MissingError):
    """GM0934: the device was closed or lost, and is used no more."""

    def __init__(self, device: str, what: str) -> None:
        hint = "open it again with gristmill.device(), load packs onto it again, and make its arrays again"
        super().__init__("GM0934", f"{device} {what}", hint)


class VulkanValidationWarning(UserWarning):
    """A message of Vulkan's validation layer, which runs with GRISTMILL_VULKAN_VALIDATION=1."""


class DeviceMemoryError(MemoryError):
    """No memory on the device."""

    code = "GM0931"

    def __init__(self, device: str, size: int, call: str, result: int) -> None:
        self.result = result
        super().__init__(
            f"[{self.code}] {device} has no memory for {size_text(size)} more: {call} gave {result_name(result)}; "
            "let arrays go that are no longer used, or use a device with more memory"
        )


def size_text(size: int) -> str:
    """A number of bytes for people."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{size} bytes"


def _hint(call: str, result: int) -> str:
    if call in _OF_THE_LOADER:
        return (
            "no Vulkan driver works here: install the GPU's (mesa-vulkan-drivers on Debian), and see what VK_DRIVER_FILES "
            "and VK_LAYER_PATH name, if they are set; VK_LOADER_DEBUG=error shows what the loader finds wrong"
        )
    if result == DEVICE_LOST:
        return "a kernel ran too long or read out of bounds; run it on reference:0, which checks every access"
    if result in OUT_OF_MEMORY:
        return "let arrays go that are no longer used"
    return "see `gristmill doctor`, and the driver's own messages with GRISTMILL_VULKAN_VALIDATION=1"
