"""Host functions on the reference executor, where no compiled host part of a pack fits this machine.

The executor runs the host functions as the pack keeps them, checks of arguments included, and launches their kernels
through the device, as compiled code does: slower, with the same results.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gristmill.codegen.packed_interface import EXPORT_PREFIX
from gristmill.interp import AssertionFailed, ExecutionOptions, Executor
from gristmill.interp.memory import Memory, Pointer, Tensor, compact_strides
from gristmill.ir.dtype import parse_dtype
from gristmill.ir.functor import walk
from gristmill.ir.module import CallingConvention
from gristmill.ir.stmt import Launch
from gristmill.plugin.protocols import KernelCode, KernelDevice, device_number
from gristmill.runtime.extern_calls import extern_functions
from gristmill.runtime.packed_modules import module_of_pack


class InterpretedHost:
    """Loaded code: host functions as IR, bound to a device and its kernels."""

    def __init__(
        self,
        text: str,
        name: str,
        kernels: KernelCode,
        device: KernelDevice,
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """``name`` is what messages call the text; ``externs`` gives addresses of C functions by symbol.

        Raises UserError (GM0912) for a text that is no module, MissingError (GM0911) for a C function that there is not.
        """
        module = module_of_pack(text, name)
        self._executor = Executor(module)
        self._externs = extern_functions(module, externs)
        self._kernels = kernels
        self._device = device
        self.launched = sorted(
            {node.kernel for function in module.functions for node in walk(function.body) if isinstance(node, Launch)}
        )
        """The names of the kernels that the functions launch."""
        # Functions are prepared when they are first called, which two threads must not do at once.
        self._lock = threading.RLock()
        self.entries: Mapping[str, str] = {
            (function.facts.symbol or "").removeprefix(EXPORT_PREFIX): function.name
            for function in module.functions
            if function.facts.convention is CallingConvention.PACKED_HOST
        }

    def function(self, entry: str) -> Callable[..., Any]:
        """A callable for the function of the module with that name."""

        def call(*args: Any) -> Any:
            return self._call(entry, args)

        call.__name__ = call.__qualname__ = entry.removeprefix(EXPORT_PREFIX)
        return call

    def _call(self, entry: str, args: Sequence[Any]) -> Any:
        memories = _DeviceMemories(self._device)
        held = [_argument(arg, memories.space) for arg in args]
        options = ExecutionOptions(
            packed=_RegisteredFunctions(),
            externs=self._externs,
            launcher=lambda *launch: self._launch(memories, *launch),
            device_id=device_number(self._device.name),
        )
        try:
            with self._lock:
                return self._executor.call_packed(entry, [given for given, _ in held], options).value
        except AssertionFailed as failed:
            if memories.failed is not None:
                # A thread's, which the device has reported with the thread's number.
                raise memories.failed from None
            raise _error_class(failed.kind)(failed.message) from None
        finally:
            memories.release()

    def _launch(
        self,
        memories: _DeviceMemories,
        kernel: str,
        args: Sequence[Any],
        extents: Sequence[int],
        dynamic_shared: int,
    ) -> None:
        given = [memories.address(arg) if arg is None or isinstance(arg, Pointer) else arg for arg in args]
        try:
            self._device.launch(self._kernels.handle(kernel), given, list(extents), dynamic_shared)
        except AssertionFailed as failed:
            memories.failed = failed
            raise


class _RegisteredFunctions(Mapping[str, Callable[..., Any]]):
    """The functions that are registered with TVM FFI, looked up at each call."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        import tvm_ffi

        found: Callable[..., Any] | None = tvm_ffi.get_global_func(name, allow_missing=True)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _DeviceMemories:
    """Memory of the device for what the host functions of one call allocate, made when a kernel first gets it."""

    def __init__(self, device: KernelDevice) -> None:
        self._device = device
        # All that the device addresses, as one memory: an offset is an address, so arrays that overlap are seen to. The
        # host has nothing to read there: any access is out of bounds.
        self.space = Memory("memory of the device", memoryview(bytearray()), memoryview(bytearray()))
        self._made: dict[int, tuple[int, Memory]] = {}
        self.failed: AssertionFailed | None = None
        """The assert that failed in a thread of a launch."""

    def address(self, pointer: Pointer | None) -> int:
        """Where on the device a pointer of the host function leads."""
        if pointer is None:
            return 0
        memory = pointer.memory
        if memory is self.space:
            return pointer.offset
        if id(memory) not in self._made:
            self._made[id(memory)] = self._device.allocate(memory.size, 256), memory
        return self._made[id(memory)][0] + pointer.offset

    def release(self) -> None:
        for address, _ in self._made.values():
            self._device.release(address)


def _error_class(name: str) -> type[Exception]:
    """The built-in exception of that name; RuntimeError for any other name, since the name comes from a file."""
    found = getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else RuntimeError


def _argument(arg: Any, space: Memory) -> tuple[Any, Any]:
    """What the executor gets for an argument, and what must live as long as the call; arrays are in ``space``."""
    import tvm_ffi

    if hasattr(arg, "__tvm_ffi_object__"):
        arg = arg.__tvm_ffi_object__()
    elif hasattr(arg, "__dlpack__") and not isinstance(arg, tvm_ffi.Tensor):
        arg = tvm_ffi.from_dlpack(arg)
    if not isinstance(arg, tvm_ffi.Tensor):
        # A NumPy number is the Python number that it stands for.
        return (arg.item() if type(arg).__module__ == "numpy" and hasattr(arg, "item") else arg), arg
    try:
        dtype = parse_dtype(str(arg.dtype))
    except ValueError:
        raise TypeError(f"arrays of {arg.dtype} cannot be arguments of kernels") from None
    kind, index = arg.__dlpack_device__()
    address, shape = int(arg.data_ptr()), tuple(int(size) for size in arg.shape)
    strides = tuple(int(stride) for stride in arg.strides) if shape else ()
    tensor = Tensor(
        Pointer(space, address),
        dtype,
        shape,
        strides or compact_strides(shape),
        int(kind),
        int(index),
        is_null=address == 0,
    )
    return tensor, arg
