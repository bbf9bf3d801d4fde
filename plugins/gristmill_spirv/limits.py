"""What a target's limits exclude, refused when code is made; of what the launch decides, the launch is asked."""

from __future__ import annotations

import math

from gristmill.ir.build import constant_value
from gristmill.ir.functor import walk
from gristmill.ir.module import Function
from gristmill.ir.stmt import For
from gristmill.plugin.artifacts import KernelRecord
from gristmill_spirv.profile import Profile
from gristmill_spirv.refusals import over_limit


def check_limits(kernel: Function, record: KernelRecord, profile: Profile) -> None:
    """Raise Unsupported (GM0683) for blocks, grids and numbers of arrays that the target says no device has."""
    what, target = f"the kernel `{kernel.name}`", profile.target
    limits = {
        kind: dict(zip("xyz", sizes, strict=True))
        for kind, sizes in (("block", profile.max_grid_size), ("thread", profile.max_block_size))
    }
    for node in walk(kernel.body):
        if not isinstance(node, For) or node.thread is None:
            continue
        extent = constant_value(node.extent)
        kind, _, axis = node.thread.value.partition("Idx.")
        if extent is None or extent <= limits[kind][axis]:
            continue
        unit, key = ("blocks", "max_grid_size") if kind == "block" else ("threads of a block", "max_block_size")
        raise over_limit(
            f"`{node.thread.value}` in {what}",
            int(extent),
            limits[kind][axis],
            f"{key}_{axis}",
            target,
            node.span,
            unit,
        )
    threads = math.prod(record.block)
    if threads > profile.max_threads_per_block:
        key = "max_threads_per_block"
        raise over_limit(what, threads, profile.max_threads_per_block, key, target, kernel.span, "threads of a block")
    arrays = sum(argument.kind == "buffer" for argument in record.arguments)
    if not profile.uses_addresses and arrays > profile.max_storage_buffers:
        key = "max_storage_buffers"
        raise over_limit(what, arrays, profile.max_storage_buffers, key, target, kernel.span, "arrays")
