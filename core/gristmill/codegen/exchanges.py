"""What every code generator for devices refuses of exchanges between threads, before it writes any code."""

from __future__ import annotations

from gristmill.errors import Diagnostic, Unsupported
from gristmill.ir.effects import is_exchange
from gristmill.ir.expr import Call, IntImm
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.span import place_of
from gristmill.plugin.artifacts import Capabilities


def check_exchanges(module: Module, target: str, capabilities: Capabilities, having: str = "") -> None:
    """Raise Unsupported (GM0668) for an exchange that the target has not: any, or one wider than its warps.

    ``having`` is a target of the same kind that has them, for the hint; empty if there is none.
    """
    widest = capabilities.warp_size if capabilities.warp_shuffles else 0
    for node in walk(module):
        if not is_exchange(node):
            continue
        assert isinstance(node, Call)
        width = node.args[-1]
        if isinstance(width, IntImm) and width.value <= widest:
            continue
        if widest:
            what, remedy = f"`{node.op}` with a width over {widest}", f"exchange in groups of {widest} or fewer threads"
        else:
            what = f"`{node.op}`, an exchange between threads,"
            remedy = 'pass the values through a buffer of scope "shared", with `T.syncthreads()` between'
            if having:
                remedy = f"build for `{having}`, which has them, or {remedy}"
        message, notes = f"{what} is not supported by target `{target}`", node.span.notes() if node.span else ()
        raise Unsupported(Diagnostic("GM0668", message, place_of(node.span), hint=remedy, notes=notes))
