"""Barriers: what of the work before must be done, and seen, before what comes after.

Nearly all work is launches, so most barriers stop launches only, until launches are done. Where copies by the driver are
among the work before, or are what comes next, one barrier does for both: there are few of those.
"""

from __future__ import annotations

from typing import Any

from gristmill_vulkan.api import Api

# VkPipelineStageFlagBits and VkAccessFlagBits.
LAUNCHES, _COPIES, _HOST = 0x800, 0x1000, 0x4000
_LAUNCH_READS, _LAUNCH_WRITES = 0x20, 0x40
_COPY_READS, _COPY_WRITES = 0x800, 0x1000
_HOST_READS = 0x2000


class Barriers:
    """The barriers of one queue, and what the last of them left open."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.between_launches = api.new(
            "VkMemoryBarrier", srcAccessMask=_LAUNCH_WRITES, dstAccessMask=_LAUNCH_READS | _LAUNCH_WRITES
        )
        writes = _LAUNCH_WRITES | _COPY_WRITES
        self.between_all = api.new(
            "VkMemoryBarrier", srcAccessMask=writes, dstAccessMask=_LAUNCH_READS | _COPY_READS | writes
        )
        self._to_host = api.new("VkMemoryBarrier", srcAccessMask=writes, dstAccessMask=_HOST_READS)
        self.has_copies = False
        """Whether there were copies since the last barrier that waited for copies."""
        self.stopped_launches_only = False
        """Whether copies have to wait for what was before the last barrier, as it stopped none."""

    @property
    def next(self) -> tuple[int, Any]:
        """The stages and the barrier before a launch: those before it wait, and those after it are waited for."""
        return (LAUNCHES | _COPIES, self.between_all) if self.has_copies else (LAUNCHES, self.between_launches)

    def record(self, commands: Any, for_copies: bool) -> None:
        """Make all launches that come after wait for all that came before, and, as one says, all copies too."""
        self.has_copies |= for_copies
        stages, barrier = self.next
        self._record(commands, barrier, stages, stages)
        self.has_copies, self.stopped_launches_only = False, stages == LAUNCHES

    def note_launches(self) -> None:
        """Somebody else has recorded barriers before launches, the first of them :attr:`next`."""
        self.has_copies, self.stopped_launches_only = False, True

    def note_loss(self) -> None:
        """What was recorded has gone, and barriers with it."""
        self.has_copies = True

    def record_to_host(self, commands: Any) -> None:
        """Let the host read what was written, once the submission is done."""
        self._record(commands, self._to_host, LAUNCHES | _COPIES, _HOST)

    def _record(self, commands: Any, barrier: Any, before: int, after: int) -> None:
        null = self._api.ffi.NULL
        self._api.run("vkCmdPipelineBarrier", commands, before, after, 0, 1, barrier, 0, null, 0, null)
