"""Barriers: what of the work before must be done, and seen, before what comes after."""

from __future__ import annotations

from typing import Any

from gristmill_vulkan.api import Api

# VkAccessFlagBits and VkPipelineStageFlagBits.
_READ_WRITE = 0x20 | 0x40 | 0x800 | 0x1000 | 0x8
_WRITES = 0x40 | 0x1000
_HOST_READ = 0x2000
WORK_STAGES, _HOST_STAGE = 0x800 | 0x1000, 0x4000


class Barriers:
    """The barriers of one queue."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.before = api.new("VkMemoryBarrier", srcAccessMask=_WRITES, dstAccessMask=_READ_WRITE)
        self._to_host = api.new("VkMemoryBarrier", srcAccessMask=_WRITES, dstAccessMask=_HOST_READ)

    def record(self, commands: Any) -> None:
        """Make all that comes after wait for all that came before."""
        self._record(commands, self.before, WORK_STAGES)

    def record_to_host(self, commands: Any) -> None:
        """Let the host read what was written, once the submission is done."""
        self._record(commands, self._to_host, _HOST_STAGE)

    def _record(self, commands: Any, barrier: Any, after: int) -> None:
        null = self._api.ffi.NULL
        self._api.run("vkCmdPipelineBarrier", commands, WORK_STAGES, after, 0, 1, barrier, 0, null, 0, null)
