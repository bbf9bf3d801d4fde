"""One submission: a command buffer with all that must live until the device is done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gristmill_vulkan.descriptors import DescriptorPools
from gristmill_vulkan.logical import LogicalDevice
from gristmill_vulkan.memory import Allocation


@dataclass(eq=False, slots=True)
class Submission:
    """A command buffer: being recorded, on the device, or done and to be used again."""

    commands: Any
    fence: Any
    descriptors: DescriptorPools
    number: int = 0
    is_submitted: bool = False
    """Whether the fence will be signalled; not so where submitting failed."""
    is_done: bool = False
    waiting_threads: int = 0
    """How many threads look at the fence without the device's lock; until there is none it stays as it is."""
    parameters: list[Allocation] = field(default_factory=list)
    """Memory for blocks of parameters that do not fit into push constants."""
    parameter_bytes: int = 0
    """How much of the last of them is taken."""
    dead: list[Allocation] = field(default_factory=list)
    """Memory that nothing but this submission uses any more."""
    when_done: list[Callable[[], None]] = field(default_factory=list)


def new_submission(device: LogicalDevice, pool: Any) -> Submission:
    """A command buffer of the pool, and a fence. Raises VulkanError."""
    api, ffi = device.api, device.api.ffi
    commands, fence = ffi.new("VkCommandBuffer *"), ffi.new("VkFence *")
    api.call("vkCreateFence", device.handle, api.new("VkFenceCreateInfo"), ffi.NULL, fence)
    info = api.new("VkCommandBufferAllocateInfo", commandPool=pool, commandBufferCount=1)
    try:
        api.call("vkAllocateCommandBuffers", device.handle, info, commands)
    except BaseException:
        api.run("vkDestroyFence", device.handle, fence[0], ffi.NULL)
        raise
    return Submission(commands[0], fence[0], DescriptorPools(device))


def make_ready(submission: Submission, device: LogicalDevice) -> None:
    """Make a submission that is done ready to be used again. Raises VulkanError."""
    if submission.is_submitted:
        fences = device.api.ffi.new("VkFence[]", [submission.fence])
        device.api.call("vkResetFences", device.handle, 1, fences)
    submission.descriptors.reset()
    submission.is_submitted = submission.is_done = False
    submission.parameter_bytes = 0


def destroy(submission: Submission, device: LogicalDevice, pool: Any) -> None:
    """Destroy all of it; the device must be done with it."""
    api = device.api
    submission.descriptors.close()
    api.run("vkDestroyFence", device.handle, submission.fence, api.ffi.NULL)
    buffers = api.ffi.new("VkCommandBuffer[]", [submission.commands])
    api.run("vkFreeCommandBuffers", device.handle, pool, 1, buffers)
