"""The arguments of public functions as kernel records and packs list them: names, types, and which arrays are written."""

from __future__ import annotations

from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.pointers import written_parameters
from gristmill.plugin.artifacts import KernelArgument


def arguments_of(function: Function, module: Module) -> tuple[KernelArgument, ...]:
    """The parameters of a function (before passes change them), in order.

    ``written`` holds for an array that the function may write.
    """
    written = written_parameters(function, module)
    return tuple(
        KernelArgument(
            param.name, "buffer" if isinstance(param, Buffer) else "scalar", str(param.dtype), place in written
        )
        for place, param in enumerate(function.params)
    )
