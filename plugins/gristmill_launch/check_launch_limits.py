"""Refuse launches that no device of the target can make, as far as the program itself says how large they are.

Before::

    launch @fill(x_data) over threadIdx.x = 4096

After: error GM0683, at the loop over ``threadIdx.x``, for a target whose blocks have at most 1024 threads. A module whose
launches are within the limits comes back as it is. So do extents and sizes of dynamic shared memory that are known only when
the program runs; the launch is checked then. A launch of no threads is none.

Requires: launches, each of a kernel of the module (``lower_launches``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gristmill.codegen.kernel_records import kernel_record
from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import constant_value
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Allocate, For, Launch, ThreadAxis
from gristmill.ir.target import Target
from gristmill.passes.manager import Pass
from gristmill.plugin.artifacts import Capabilities

_BLOCKS = (ThreadAxis.BLOCK_X, ThreadAxis.BLOCK_Y, ThreadAxis.BLOCK_Z)
_THREADS = (ThreadAxis.THREAD_X, ThreadAxis.THREAD_Y, ThreadAxis.THREAD_Z)


@dataclass(frozen=True)
class CheckLaunchLimits(Pass):
    """Refuse constant extents and shared memory over the limits of the target."""

    target: Target | None = None
    """The device; None in a build for a host, which launches nothing."""
    threads: int = 0
    """The most threads of a block, as for all limits: 0 is none."""
    block_x: int = 0
    block_y: int = 0
    block_z: int = 0
    grid_x: int = 0
    grid_y: int = 0
    grid_z: int = 0
    shared_memory: int = 0
    """The most shared memory of a block, in bytes."""

    @classmethod
    def of(cls, target: Target | None, found: Capabilities) -> CheckLaunchLimits:
        """The pass for a target with these capabilities."""
        sizes = (*found.max_block_size, *found.max_grid_size)
        return cls(target, found.max_threads_per_block, *sizes, found.max_shared_memory)

    def run(self, module: Module) -> Module:
        """The same module. Raises UserError (GM0683) for a launch over the limits."""
        if self.target is None:
            return module
        kernels = {function.name: function for function in module.functions}
        for function in module.functions:
            for node in walk(function.body):
                if isinstance(node, Launch) and node.kernel in kernels:
                    _Check(kernels[node.kernel], node, module, self.target, self).run()
        return module


class _Check:
    """Compares one launch with the limits."""

    def __init__(
        self, kernel: Function, launch: Launch, module: Module, target: Target, limits: CheckLaunchLimits
    ) -> None:
        self.kernel = kernel
        self.launch = launch
        self.module = module
        self.target = target
        self.limits = limits
        known = {axis: constant_value(extent) for axis, extent in zip(launch.axes, launch.extents, strict=True)}
        self.extents = {axis: int(extent) for axis, extent in known.items() if extent is not None}

    def run(self) -> None:
        if any(extent <= 0 for extent in self.extents.values()):
            return
        limits = self.limits
        for axes, most, unit, key in (
            (_BLOCKS, (limits.grid_x, limits.grid_y, limits.grid_z), "blocks", "max_grid_size"),
            (_THREADS, (limits.block_x, limits.block_y, limits.block_z), "threads of a block", "max_block_size"),
        ):
            for axis, limit in zip(axes, most, strict=True):
                extent = self.extents.get(axis, 1)
                if limit and extent > limit:
                    what = f"`{axis.value}` in the kernel `{self.kernel.name}` takes {extent} {unit}"
                    raise self.refusal(what, limit, axis, _split(axis), f"{key}_{axis.value[-1]}")
        self.check_block()
        self.check_shared()

    def check_block(self) -> None:
        axes = [axis for axis in _THREADS if self.extents.get(axis, 1) != 1]
        count, limit = math.prod(self.extents[axis] for axis in axes), self.limits.threads
        if not limit or count <= limit:
            return
        what, hint = f"the kernel `{self.kernel.name}` takes {count} threads of a block", _split(axes[0])
        if len(axes) > 1:
            sizes = " x ".join(str(self.extents[axis]) for axis in axes)
            along = " and ".join(f"`{axis.value}`" for axis in axes)
            what += f" ({sizes} along {along})"
            hint = f'let fewer iterations run along {along}, more along those of blocks: `T.thread_binding(n, "blockIdx.x")`'
        raise self.refusal(what, limit, axes[-1], hint, "max_threads_per_block")

    def check_shared(self) -> None:
        limit = self.limits.shared_memory
        if not limit:
            return
        static = kernel_record(self.kernel, self.module).shared_bytes
        dynamic = 0 if self.launch.dynamic_shared is None else constant_value(self.launch.dynamic_shared)
        # A size that the launch alone knows is asked there; what the code has must fit in any case.
        total = static + int(dynamic or 0)
        if total <= limit:
            return
        arrays = sorted(_shared_arrays(self.kernel), key=_bytes, reverse=True)
        parts = [f"`{buffer.name}` has {_bytes(buffer)}" for buffer in arrays[1:] if _bytes(buffer)]
        also = f" ({', '.join(parts)} of them)" if parts and len(parts) < 5 else ""
        raise UserError(
            Diagnostic(
                "GM0683",
                f"the shared memory of the kernel `{self.kernel.name}` takes {total} bytes, "
                f"and target `{self.target}` has {limit}",
                place_of(arrays[0].span) or place_of(self.launch.span),
                label=f"{_bytes(arrays[0])} bytes",
                hint=f"make the shared arrays smaller{also}, or keep part of the data in global memory{_or('max_shared_memory')}",
            )
        )

    def refusal(self, what: str, limit: int, axis: ThreadAxis, hint: str, key: str) -> UserError:
        loop = self.loop_over(axis)
        span = None if loop is None else loop.extent.span or loop.span
        return UserError(
            Diagnostic(
                "GM0683",
                f"{what}, and target `{self.target}` has {limit}",
                place_of(span or self.launch.span),
                label=f"{self.extents[axis]} here",
                hint=f"{hint}{_or(key)}",
            )
        )

    def loop_over(self, axis: ThreadAxis) -> For | None:
        return next((node for node in walk(self.kernel.body) if isinstance(node, For) and node.thread is axis), None)


def _or(key: str) -> str:
    return f"; or, if your devices have more, set `{key}` of the target in kernels.toml"


def _split(axis: ThreadAxis) -> str:
    if axis.is_block:
        return (
            f"split this loop: part of it to another axis of blocks, or to several launches, each within `{axis.value}`"
        )
    blocks = axis.value.replace("thread", "block")
    return (
        f'split this loop: `for b in T.thread_binding(T.ceildiv(n, 256), "{blocks}")` around '
        f'`for t in T.thread_binding(256, "{axis.value}")`, with the index `b * 256 + t`'
    )


def _shared_arrays(kernel: Function) -> Iterator[Buffer]:
    for node in walk(kernel.body):
        if isinstance(node, Allocate) and node.buffer.scope in (Scope.SHARED, Scope.SHARED_DYNAMIC):
            yield node.buffer


def _bytes(buffer: Buffer) -> int:
    """The bytes of an array of constant size; 0 for one whose size is not constant."""
    return buffer.dtype.bytes * math.prod(int(constant_value(size) or 0) for size in buffer.shape)
