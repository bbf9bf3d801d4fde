"""The functions of a host part, bound to a device and to the kernels that they launch on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gristmill.codegen.context_table import table_words
from gristmill.codegen.dispatch_table import DISPATCH_SYMBOL, dispatch_words
from gristmill.errors import Diagnostic, UserError
from gristmill.plugin.protocols import HostCode, KernelCode, KernelDevice, NativeFunction, device_number
from gristmill.runtime.native_functions import NativeTable


class HostFunctions:
    """Loaded code: compiled host functions with the context table of a device."""

    def __init__(self, host: HostCode, kernels: KernelCode, device: KernelDevice, names: Sequence[str]) -> None:
        """``names`` are the kernels in the order of the table. Raises KeyError for one that ``kernels`` lacks."""
        self._host = host
        native = device.native_launch()
        handles = tuple(kernels.handle(name) for name in names)
        number = device_number(device.name)
        words = table_words(number, native.device, native.launch, native.allocate, native.release, handles)
        self._table = NativeTable(words, (host, kernels, device, native))

    def native(self, entry: str) -> NativeFunction:
        """The machine code of an entry point, with the context table."""
        found = self._host.native(entry)
        return NativeFunction(found.code, self._table.address, (self._table, found.owner), found.release_gil)

    def function(self, entry: str) -> Any:
        """The ``tvm_ffi.Function`` of an entry point."""
        found = self._host.native(entry)
        return self._table.function(found.code, found.release_gil)

    def dispatcher(self) -> NativeFunction:
        """The function that chooses by the device of the arrays; to be given a dispatch table."""
        return self._host.native(DISPATCH_SYMBOL)


def dispatching(name: str, natives: Mapping[int, NativeFunction], dispatcher: NativeFunction) -> Any:
    """One native function for several devices: ``natives`` maps DLPack device types.

    Called with arrays of another device it raises UserError (GM0909).
    """
    # Without any array every code gives the same result, and the CPU (type 1) has the least way to go.
    plain = natives.get(1) or next(iter(natives.values()))
    unknown, kept = _refusing(name, sorted(natives))
    words = dispatch_words(
        {kind: (found.code, found.context) for kind, found in natives.items()},
        (plain.code, plain.context),
        (unknown, 0),
    )
    table = NativeTable(words, (dict(natives), dispatcher, kept))
    return table.function(dispatcher.code, plain.release_gil)


def no_code_for(name: str, kind: int, known: Sequence[int]) -> UserError:
    """The error for arrays of a device that a function has no code for (GM0909)."""
    return UserError(
        Diagnostic(
            "GM0909",
            f"{name} has no code for arrays of DLPack device type {kind}; it has for {', '.join(map(str, known))}",
            hint="put the arrays on a device that the pack is built for",
        )
    )


def _refusing(name: str, known: Sequence[int]) -> tuple[int, Any]:
    """The address of a function of the packed interface that fails with GM0909, and what keeps it."""
    import ctypes

    from gristmill.runtime.native_callbacks import first_device_type, set_raised

    def refuse(_: int, args: int, count: int, result: int) -> int:
        set_raised(no_code_for(name, first_device_type(args, count), known))
        return -1

    signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
    callback = signature(refuse)
    return ctypes.cast(callback, ctypes.c_void_p).value or 0, callback
