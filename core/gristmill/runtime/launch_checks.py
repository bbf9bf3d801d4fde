"""What is checked before a launch, the same on every device: the kernel's record and the device's limits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gristmill.errors import Diagnostic, UserError
from gristmill.plugin.artifacts import Capabilities, KernelRecord

_BLOCK_AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
_THREAD_AXES = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


def check_launch(
    device: str,
    limits: Capabilities,
    record: KernelRecord,
    arguments: int,
    extents: Sequence[int],
    dynamic_shared: int,
) -> None:
    """Refuse what the device cannot launch; nothing has run then. A limit of 0 is none.

    ``arguments`` is how many there are; ``extents`` are those of the record's axes, in order, none of them zero;
    ``dynamic_shared`` is in bytes. Raises UserError: GM0920 for an extent over a limit, GM0921 for a block that is too
    large or is not the kernel's, or another number of arguments or axes than the record has, GM0922 for shared memory.
    """
    for given, wanted, what in (
        (arguments, len(record.arguments), "arguments"),
        (len(extents), len(record.axes), "axes of threads and blocks"),
    ):
        if given != wanted:
            raise _refusal(
                "GM0921",
                record,
                f"host code gives it {given} {what}, and its record has {wanted}",
                "build the pack again: host code and kernels are not of one build",
            )
    by_axis = dict(zip(record.axes, extents, strict=True))
    for axes, most in ((_BLOCK_AXES, limits.max_grid_size), (_THREAD_AXES, limits.max_block_size)):
        for axis, limit in zip(axes, most, strict=True):
            if limit and by_axis.get(axis, 1) > limit:
                raise _refusal(
                    "GM0920",
                    record,
                    f"its extent along {axis} is {by_axis[axis]}, and {device} allows at most {limit}",
                    f"split the loop that is bound to {axis}, over another axis or over several launches",
                )
    block = tuple(by_axis.get(axis, 1) for axis in _THREAD_AXES)
    threads = math.prod(block)
    if limits.max_threads_per_block and threads > limits.max_threads_per_block:
        raise _refusal(
            "GM0921",
            record,
            f"its blocks have {threads} threads ({_times(block)}), and {device} allows "
            f"at most {limits.max_threads_per_block}",
            "bind fewer iterations to the axes of threads, and more to those of blocks",
        )
    for axis, size, wanted in zip(_THREAD_AXES, block, record.block, strict=True):
        if wanted and size != wanted:
            raise _refusal(
                "GM0921",
                record,
                f"its extent along {axis} is {size}, and its code is made for {wanted}",
                "build the pack again: host code and kernels are not of one build",
            )
    shared = record.shared_bytes + dynamic_shared
    if limits.max_shared_memory and shared > limits.max_shared_memory:
        parts = f"{record.shared_bytes} in its code and {dynamic_shared} of the launch"
        raise _refusal(
            "GM0922",
            record,
            f"a block takes {shared} bytes of shared memory ({parts}), and {device} has {limits.max_shared_memory}",
            "make the shared arrays smaller",
        )
    if dynamic_shared < 0:
        raise _refusal(
            "GM0922",
            record,
            f"{dynamic_shared} bytes of dynamic shared memory are asked for: a size of an array in `shared.dyn` is negative",
            "give sizes of 0 or more",
        )
    if dynamic_shared and not record.dynamic_shared:
        raise _refusal(
            "GM0922",
            record,
            f"{dynamic_shared} bytes of dynamic shared memory are asked for",
            "a kernel with an array in `shared.dyn` takes 0 bytes or more, any other none",
        )


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(str(size) for size in sizes)


def _refusal(code: str, record: KernelRecord, what: str, hint: str) -> UserError:
    return UserError(Diagnostic(code, f"the kernel `{record.name}` cannot be launched: {what}", hint=hint))
