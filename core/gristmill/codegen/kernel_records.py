"""Records of kernels, as every code generator for devices gives them beside its code."""

from __future__ import annotations

from gristmill.ir.build import constant_value
from gristmill.ir.expr import CallExtern, CallFunction, CallPacked, Var
from gristmill.ir.functor import children, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.pointers import pointers_in
from gristmill.ir.stmt import Allocate, For, Store, ThreadAxis, View
from gristmill.plugin.artifacts import KernelArgument, KernelRecord

_THREADS = (ThreadAxis.THREAD_X, ThreadAxis.THREAD_Y, ThreadAxis.THREAD_Z)


def kernels_of(module: Module) -> tuple[Function, ...]:
    """The kernels of a device module, in its order."""
    return tuple(
        function for function in module.functions if function.facts.convention is CallingConvention.DEVICE_KERNEL
    )


def kernel_record(function: Function) -> KernelRecord:
    """The record of a kernel: its arguments, axes, block size where constant (0: not), and static shared memory."""
    launch = function.facts.launch
    axes = launch.axes if launch is not None else ()
    written = _written(function)
    return KernelRecord(
        name=function.name,
        entry=function.facts.symbol or function.name,
        arguments=tuple(_argument(param, written) for param in function.params),
        axes=tuple(axis.value for axis in axes),
        block=_block(function, axes),
        shared_bytes=_shared_bytes(function),
        dynamic_shared=launch is not None and launch.dynamic_shared,
    )


def _argument(param: Var | Buffer, written: set[Var]) -> KernelArgument:
    if isinstance(param, Buffer):
        return KernelArgument(param.name, "buffer", str(param.dtype), param.data in written)
    if param.dtype.is_handle:
        element = str(param.pointer.element) if param.pointer is not None else "uint8"
        return KernelArgument(param.name, "buffer", element, param in written)
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


def _written(function: Function) -> set[Var]:
    """The pointers that the kernel may write through: stored to, themselves or views of them, or given to a call."""
    found: set[Var] = set()
    sources: dict[Var, list[Var]] = {}
    for node in walk(function.body):
        if isinstance(node, Store):
            found.add(node.buffer.data)
        elif isinstance(node, View) and node.source is not None:
            sources[node.buffer.data] = list(pointers_in(node.source))
        elif isinstance(node, (CallFunction, CallExtern, CallPacked)):
            for argument in children(node):
                found.update(pointers_in(argument))
    waiting = list(found)
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found
