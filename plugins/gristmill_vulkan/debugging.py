"""For finding what is wrong: shaders as files, and names of kernels in what debuggers and the validation layer show."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from gristmill import knobs
from gristmill.errors import Diagnostic, UserError
from gristmill.files import replace_file
from gristmill_vulkan.api import Api


def dump(kernel: str, code: bytes) -> None:
    """Write a module as ``NAME-HASH.spv`` into the folder that GRISTMILL_VULKAN_DUMP names.

    Raises UserError (GM0003) where that cannot be written.
    """
    knob = knobs.VULKAN_DUMP
    folder = knob.value()
    if not folder:
        return
    name = "".join(c if (c.isascii() and c.isalnum()) or c in "_." else "_" for c in kernel)[:100]
    path = os.path.join(folder, f"{name}-{hashlib.sha256(code).hexdigest()[:12]}.spv")
    try:
        os.makedirs(folder, exist_ok=True)
        replace_file(path, code, follow_links=False)
    except (OSError, ValueError) as error:
        message = f"the environment variable {knob.name} is `{folder[:80]}`, where nothing can be written: {error}"
        raise UserError(Diagnostic("GM0003", message, hint="name a folder of yours, or unset it")) from None


def name_object(api: Api, device: Any, kind: int, handle: Any, name: str) -> None:
    """Give an object a name for debuggers; the instance must have VK_EXT_debug_utils. ``kind`` is a VkObjectType."""
    text = api.ffi.new("char[]", name.encode())
    number = int(api.ffi.cast("uintptr_t", handle))
    info = api.new("VkDebugUtilsObjectNameInfoEXT", objectType=kind, objectHandle=number, pObjectName=text)
    api.call("vkSetDebugUtilsObjectNameEXT", device, info)


def begin_label(api: Api, commands: Any, name: str) -> None:
    """Begin a range of commands with a name; the instance must have VK_EXT_debug_utils."""
    text = api.ffi.new("char[]", name.encode())
    api.run("vkCmdBeginDebugUtilsLabelEXT", commands, api.new("VkDebugUtilsLabelEXT", pLabelName=text))


def end_label(api: Api, commands: Any) -> None:
    """End the range."""
    api.run("vkCmdEndDebugUtilsLabelEXT", commands)
