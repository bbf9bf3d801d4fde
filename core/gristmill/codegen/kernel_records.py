"""Records of kernels, as every code generator for devices gives them beside its code."""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.expr import Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.pointers import written_parameters
from gristmill.ir.stmt import Allocate, For, ThreadAxis
from gristmill.plugin.artifacts import KernelArgument, KernelRecord

_THREADS = (ThreadAxis.THREAD_X, ThreadAxis.THREAD_Y, ThreadAxis.THREAD_Z)


def kernels_of(module: Module) -> tuple[Function, ...]:
    """The kernels of a device module, in its order."""
    return tuple(
        function for function in module.functions if function.facts.convention is CallingConvention.DEVICE_KERNEL
    )


def kernel_record(function: Function, module: Module) -> KernelRecord:
    """The record of a kernel of the module: its arguments, axes, block size (0: not constant), and static shared memory."""
    launch = function.facts.launch
    axes = launch.axes if launch is not None else ()
    written = written_parameters(function, module)
    return KernelRecord(
        name=function.name,
        entry=function.facts.symbol or function.name,
        arguments=tuple(_argument(param, place in written) for place, param in enumerate(function.params)),
        axes=tuple(axis.value for axis in axes),
        block=_block(function, axes),
        shared_bytes=_shared_bytes(function),
        dynamic_shared=launch is not None and launch.dynamic_shared,
    )


def _argument(param: Var | Buffer, written: bool) -> KernelArgument:
    if isinstance(param, Buffer):
        return KernelArgument(param.name, "buffer", str(param.dtype), written)
    if param.dtype.is_handle:
        element = str(param.pointer.element) if param.pointer is not None else "uint8"
        return KernelArgument(param.name, "buffer", element, written)
    return KernelArgument(param.name, "scalar", str(param.dtype))


def _block(function: Function, axes: tuple[ThreadAxis, ...]) -> tuple[int, int, int]:
    sizes = {axis: 0 if axis in axes else 1 for axis in _THREADS}
    for node in walk(function.body):
        if isinstance(node, For) and node.thread in sizes and node.thread is not None:
            known = constant_value(node.extent)
            if known is not None:
                sizes[node.thread] = int(known)
    return sizes[_THREADS[0]], sizes[_THREADS[1]], sizes[_THREADS[2]]


def _shared_bytes(function: Function) -> int:
    """The sum of the static shared arrays, each from a multiple of its alignment on."""
    total = 0
    for node in walk(function.body):
        if isinstance(node, Allocate) and node.buffer.scope is Scope.SHARED:
            size = node.buffer.dtype.bytes
            for extent in node.buffer.shape:
                size *= int(constant_value(extent) or 0)
            alignment = max(node.buffer.alignment, node.buffer.dtype.bytes)
            total = -(-total // alignment) * alignment + size
    return total
