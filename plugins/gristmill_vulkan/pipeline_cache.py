"""Compiled pipelines kept on disk: what a driver made of a kernel, for the next process.

One file a device and driver, ``vulkan/VENDOR-DEVICE-DRIVER-UUID.bin`` in the cache folder. A driver trusts what it is
given, so a file counts only whole: our own header has a checksum, and the driver's header behind it must name this very
device. Files are replaced whole, and what another process wrote meanwhile is merged. Whatever fails here fails silently:
kernels are then compiled again.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
from contextlib import suppress
from typing import Any

from gristmill import knobs
from gristmill.errors import UserError
from gristmill.files import replace_file
from gristmill_vulkan.debugging import name_object
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.physical import PhysicalDevice
from gristmill_vulkan.results import DEVICE_LOST, VulkanError

LARGEST_FILE = 64 << 20
SWITCHED_OFF = "pipeline_cache"
"""Left out by GRISTMILL_VULKAN_WITHOUT."""
_MAGIC = b"gmvkpc01"
# Length of the driver's data, and its SHA-256.
_HEADER = struct.Struct("<8sQ32s")
# VkPipelineCacheHeaderVersionOne: size, version, vendor, device, UUID.
_DRIVER_HEADER = struct.Struct("<IIII16s")
_HEADER_VERSION_ONE = 1
_SAVE_EVERY = 32
_PIPELINE = 19
"""VkObjectType."""


def cache_path(physical: PhysicalDevice) -> str:
    """The file of a device. Raises UserError (GM0003) for a cache folder that cannot be read from its variable."""
    name = (
        f"{physical.vendor:08x}-{physical.identity:08x}-{physical.driver_version:08x}-{physical.cache_uuid.hex()}.bin"
    )
    return os.path.join(knobs.cache_folder(), "vulkan", name)


def packed(data: bytes) -> bytes:
    """What a file holds for the driver's data."""
    return _HEADER.pack(_MAGIC, len(data), hashlib.sha256(data).digest()) + data


def unpacked(content: bytes, physical: PhysicalDevice) -> bytes:
    """The driver's data in a file, nothing for a file that is damaged or of another device."""
    if len(content) < _HEADER.size + _DRIVER_HEADER.size:
        return b""
    magic, length, digest = _HEADER.unpack_from(content)
    data = content[_HEADER.size :]
    if magic != _MAGIC or length != len(data) or hashlib.sha256(data).digest() != digest:
        return b""
    size, version, vendor, device, uuid = _DRIVER_HEADER.unpack_from(data)
    expected = (_HEADER_VERSION_ONE, physical.vendor, physical.identity, physical.cache_uuid)
    return data if size >= _DRIVER_HEADER.size and (version, vendor, device, uuid) == expected else b""


class PipelineCache:
    """The cache of one device. Safe to use from several threads."""

    def __init__(self, device: LogicalDevice) -> None:
        """Raises VulkanError for a device that is lost; where the driver makes no cache there is none."""
        self.device = device
        self.path = ""
        self._lock = threading.Lock()
        self._unsaved = 0
        self._kept = b""
        """What the file had when it was last read or written."""
        if SWITCHED_OFF not in device.without:
            with suppress(UserError):
                self.path = cache_path(device.physical)
        self._kept = self._read()
        self.handle = device.api.ffi.NULL
        # What a driver does not take, or has no memory for, it may do without.
        for data in (self._kept, b""):
            try:
                self.handle = self._new(data)
                break
            except VulkanError as error:
                if error.result == DEVICE_LOST:
                    raise

    def _read(self) -> bytes:
        if not self.path:
            return b""
        try:
            with open(self.path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError:
            return b""
        return unpacked(content, self.device.physical) if len(content) <= LARGEST_FILE else b""

    def _new(self, data: bytes) -> Any:
        api, ffi = self.device.api, self.device.api.ffi
        made = ffi.new("VkPipelineCache *")
        kept = ffi.from_buffer(data) if data else ffi.NULL
        info = api.new("VkPipelineCacheCreateInfo", initialDataSize=len(data), pInitialData=kept)
        api.call("vkCreatePipelineCache", self.device.handle, info, ffi.NULL, made)
        return made[0]

    def note(self, pipeline: Any, kernel: str) -> None:
        """A pipeline was made: save when there are some, and give it its name where the validation layer runs."""
        if self.device.instance.is_validated:
            # A name is no reason to fail.
            with suppress(VulkanError):
                name_object(self.device.api, self.device.handle, _PIPELINE, pipeline, kernel)
        with self._lock:
            self._unsaved += 1
            if self._unsaved >= _SAVE_EVERY:
                self._save()

    def save(self) -> None:
        """Write the file, if pipelines were made since it was written. Never raises."""
        with self._lock:
            if self._unsaved:
                self._save()

    def _save(self) -> None:
        self._unsaved = 0
        if not self.path or self.handle == self.device.api.ffi.NULL:
            return
        with suppress(OSError, VulkanError):
            newer = self._read()
            data = self._data_with(newer) if newer and newer != self._kept else self._data(self.handle)
            # Drivers without a cache of their own give nothing but its header.
            if data == newer or not _DRIVER_HEADER.size < len(data) <= LARGEST_FILE - _HEADER.size:
                return
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            replace_file(self.path, packed(data), follow_links=False)
            self._kept = data

    def _data_with(self, data: bytes) -> bytes:
        """What the driver makes of the cache and of data that somebody else has saved.

        Other threads compile with the cache meanwhile, which must not be while something is merged into it.
        """
        api, ffi, device = self.device.api, self.device.api.ffi, self.device.handle
        both = self._new(data)
        try:
            api.call("vkMergePipelineCaches", device, both, 1, ffi.new("VkPipelineCache[]", [self.handle]))
            return self._data(both)
        finally:
            api.run("vkDestroyPipelineCache", device, both, ffi.NULL)

    def _data(self, cache: Any) -> bytes:
        api, ffi, device = self.device.api, self.device.api.ffi, self.device.handle
        size = ffi.new("size_t *")
        api.call("vkGetPipelineCacheData", device, cache, size, ffi.NULL)
        if size[0] > LARGEST_FILE:
            return b""
        data = ffi.new("char[]", size[0])
        api.call("vkGetPipelineCacheData", device, cache, size, data)
        return bytes(ffi.buffer(data, size[0]))

    def close(self) -> None:
        """Save, and destroy the cache."""
        self.save()
        self.device.api.run("vkDestroyPipelineCache", self.device.handle, self.handle, self.device.api.ffi.NULL)
