"""Calls of functions of the host in code of a device: found, and refused at their place.

C functions and functions registered with TVM FFI are code of the host's processor. A kernel has only what its module
has.
"""

from __future__ import annotations

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.expr import CallExtern, CallPacked
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, Module
from gristmill.ir.span import place_of
from gristmill_launch.sides import is_host


def check_device_calls(module: Module) -> None:
    """Raise UserError (GM0667) where a kernel, or a function that kernels call, calls out of the module."""
    for function in module.functions:
        if function.facts.target is None or is_host(function.facts.target):
            continue
        for node in walk(function.body):
            if isinstance(node, (CallExtern, CallPacked)):
                raise _calls_out(function, node)


def _calls_out(function: Function, call: CallExtern | CallPacked) -> UserError:
    callee = f"C function `{call.symbol}`" if isinstance(call, CallExtern) else f"registered function `{call.name}`"
    return UserError(
        Diagnostic(
            "GM0667",
            f"code of the device calls the {callee}, which the host has, in `{function.name}`",
            place_of(call.span) or place_of(function.span),
            label="a function of the host",
            hint="write it as a function of this module, with `@T.prim_func(private=True)`, or call it outside of the "
            "loops over threads",
        )
    )
