"""Exchanges between the threads of a warp: shuffles and votes, by our names and by those of TVM's kernels.

An exchange is bound to a name before the rest of its statement, for the IR has it nowhere else. So it may not stand
where an expression is evaluated only sometimes, nor in a block, whose code may be moved.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.ir.build import call as build_call
from gristmill.ir.build import cast, const, true
from gristmill.ir.dtype import INT32, UINT32, UINT64
from gristmill.ir.expr import Expr, Var
from gristmill.ir.op import WARP_WIDTH_AT_MOST
from gristmill.ir.stmt import Bind, LoopKind
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import as_bool, condition, constant_int, number, operand, typed
from gristmill.script.values import Value

_WIDTH = 32
"""Threads that take part where the kernel does not say: what warps have on most devices, and half of one on others."""
_LANES = {
    "warp_shuffle": "lane",
    "warp_shuffle_xor": "mask",
    "warp_shuffle_up": "distance",
    "warp_shuffle_down": "distance",
}
_VOTES = ("warp_ballot", "warp_any", "warp_all")


def _shuffle(name: str, lane: str) -> Callable[[Context, ast.Call], Value]:
    """``T.warp_shuffle_down(x, 16)``, with ``width=`` if it is not 32."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("value", lane), ("width",))
        width = width_of(context, args.get("width"))
        return _exchanged(context, call, name, _value(context, args["value"]), _lane(context, args[lane], lane), width)

    return handler


def _vote(name: str) -> Callable[[Context, ast.Call], Value]:
    """``T.warp_any(x > 0)``."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("condition",), ("width",))
        node = args["condition"]
        asked = as_bool(context, node, condition(context, node))
        return _exchanged(context, call, name, asked, None, width_of(context, args.get("width")))

    return handler


def _classic(name: str) -> Callable[[Context, ast.Call], Value]:
    """``T.tvm_warp_shuffle_down(mask, x, 16, 32, 32)``. Which threads take part is not asked of the mask."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("mask", "value", "lane", "width", "warp_size"))
        operand(context, args["mask"])
        width, size = (
            width_of(context, args["width"]),
            constant_int(context, args["warp_size"], "the size of a warp", 1),
        )
        if width > size:
            raise _wrongwidth_of(context, args["width"], f"groups of {width} threads do not fit into a warp of {size}")
        return _exchanged(
            context, call, name, _value(context, args["value"]), _lane(context, args["lane"], "lane"), width
        )

    return handler


def _active_mask(context: Context, call: ast.Call) -> Value:
    """``T.tvm_warp_activemask()``: a bit for each thread of 32 that has not ended."""
    bind(context, call, ())
    return cast(_exchanged(context, call, "warp_ballot", true(), None, _WIDTH), UINT32, context.span(call))


def _exchanged(context: Context, call: ast.Call, name: str, value: Expr, lane: Expr | None, width: int) -> Var:
    title = context.segment(call.func)
    where, hint = context.sometimes, f"give its result a name first: `x = {context.segment(call)}`"
    unordered = next(
        (loop for loop in context.enclosing if loop.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED)), None
    )
    if unordered is not None and unordered.kind is not None:
        where, hint = f"a {unordered.kind.value} loop of one thread", "make the loop serial, or give it the result"
    elif context.blocks:
        where, hint = "a block, whose code may be moved", "write plain loops here"
    elif context.callee is None:
        where, hint = "a constant", "constants are known before there are threads"
    if where:
        message = f"`{title}` stands in {where}, and all threads of a group must come to it together"
        raise context.mistake("GM0343", call, message, label="not here", hint=hint)
    span = context.span(call)
    operands = [value, *([] if lane is None else [lane]), const(width, INT32, span)]
    found = build_call(name, *operands, dtype=UINT64 if name == "warp_ballot" else None, span=span)
    var = Var(context.target if context.target.isidentifier() else "exchanged", found.dtype, span=span)
    context.emit(Bind(var, found, span))
    return var


def _value(context: Context, node: ast.expr) -> Expr:
    value = typed(context, node, operand(context, node))
    if value.dtype.is_vector or value.dtype.is_handle:
        raise context.mistake(
            "GM0266",
            node,
            f"threads exchange scalars, not {value.dtype}",
            label=str(value.dtype),
            hint="exchange lane by lane",
        )
    return value


def _lane(context: Context, node: ast.expr, what: str) -> Expr:
    value = operand(context, node)
    if not isinstance(value, Expr):
        return number(context, node, value, INT32)
    if not value.dtype.is_integer or value.dtype.is_vector:
        raise context.mistake(
            "GM0266", node, f"the {what} of an exchange is an integer, not {value.dtype}", label=str(value.dtype),
            hint=f"convert it: `T.int32({context.segment(node)})`",
        )  # fmt: skip
    return cast(value, INT32, context.span(node))


def width_of(context: Context, node: ast.expr | None) -> int:
    """How many threads a group has, from the argument `width`, if it is given."""
    if node is None:
        return _WIDTH
    found = constant_int(context, node, "the width of an exchange", 1)
    if found > WARP_WIDTH_AT_MOST or found & (found - 1):
        raise _wrongwidth_of(context, node, f"threads are exchanged with in groups of 1, 2, 4 ... 64, not {found}")
    return found


def _wrongwidth_of(context: Context, node: ast.expr, message: str) -> Exception:
    return context.mistake("GM0344", node, message, label="not a width", hint="write 32, or less for smaller groups")


TABLE: Mapping[str, Callable[..., Value]] = {
    **{name: _shuffle(name, lane) for name, lane in _LANES.items()},
    **{name: _vote(name) for name in _VOTES},
    **{f"tvm_{name}": _classic(name) for name in _LANES},
    "tvm_warp_activemask": _active_mask,
}
