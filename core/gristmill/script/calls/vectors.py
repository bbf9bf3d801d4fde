"""Vectors: ramps, broadcasts, chosen lanes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.ir.dtype import LANES_AT_MOST
from gristmill.ir.expr import Broadcast, Expr, Ramp, Shuffle
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import constant_int, expression, meet, operand
from gristmill.script.operators import wrong_types
from gristmill.script.source import Positioned
from gristmill.script.values import Value


def _lanes(context: Context, node: ast.expr) -> int:
    lanes = constant_int(context, node, "the number of lanes", 1)
    if lanes > LANES_AT_MOST:
        raise context.mistake(
            "GM0266",
            node,
            f"a vector has at most {LANES_AT_MOST} lanes, and {lanes} are asked for",
            label="too many",
            hint="loop over shorter vectors",
        )
    return lanes


def _scalar(context: Context, node: ast.expr, value: Expr) -> Expr:
    if value.dtype.lanes > 1:
        raise context.mistake(
            "GM0266", node, f"a scalar is expected here, and this is {value.dtype}", label=str(value.dtype),
            hint="take one lane of it: `T.Shuffle([v], [0])`",
        )  # fmt: skip
    return value


def _ramp(context: Context, call: ast.Call) -> Value:
    """``T.Ramp(base, stride, lanes)``: base, base + stride, ..."""
    args = bind(context, call, ("base", "stride", "lanes"))
    base, stride = meet(
        context, call, operand(context, args["base"]), operand(context, args["stride"]), args["base"], args["stride"]
    )
    if not base.dtype.is_integer:
        raise wrong_types(
            context, call, context.segment(call.func), base.dtype, "ramps count in integers; convert the ramp"
        )
    lanes = _lanes(context, args["lanes"])
    base, stride = _scalar(context, args["base"], base), _scalar(context, args["stride"], stride)
    return base if lanes == 1 else Ramp(base, stride, lanes, context.span(call))


def _broadcast(context: Context, call: ast.Call) -> Value:
    """``T.Broadcast(value, lanes)``: the value in every lane."""
    args = bind(context, call, ("value", "lanes"))
    value = _scalar(context, args["value"], expression(context, args["value"]))
    lanes = _lanes(context, args["lanes"])
    return value if lanes == 1 else Broadcast(value, lanes, context.span(call))


def _shuffle(context: Context, call: ast.Call) -> Value:
    """``T.Shuffle([v, w], [0, 4])``: chosen lanes of the vectors put one after the other."""
    args = bind(context, call, ("vectors", "indices"))
    vectors = [expression(context, node) for node in _list(args["vectors"])]
    total = sum(vector.dtype.lanes for vector in vectors)
    element = vectors[0].dtype.element if vectors else None
    for node, vector in zip(_list(args["vectors"]), vectors, strict=True):
        if vector.dtype.element != element:
            raise context.mistake(
                "GM0261", node, f"{vector.dtype.element} and {element} do not go together in one vector",
                label=str(vector.dtype), hint="convert them to one element type",
            )  # fmt: skip
    chosen = []
    for node in _list(args["indices"]):
        lane = constant_int(context, node, "the number of a lane", 0)
        if lane >= total:
            raise context.mistake(
                "GM0282",
                node,
                f"lane {lane} is asked for, and there are {total}",
                label="no such lane",
                hint=f"lanes are counted from 0 to {total - 1}",
            )
        chosen.append(lane)
    if not vectors or not chosen:
        raise context.mistake(
            "GM0293", call, "a shuffle needs a vector and the number of a lane", label="empty",
            hint="write `T.Shuffle([v], [0])`",
        )  # fmt: skip
    return Shuffle(tuple(vectors), tuple(chosen), context.span(call))


def _list(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _half(first: bool) -> Callable[[Context, ast.Call], Value]:
    """``T.vectorlow(dtype, v)`` and ``T.vectorhigh``: the lower and the upper half of the lanes."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("first",), ("second",))
        node = args.get("second", args["first"])
        vector = expression(context, node)
        lanes = vector.dtype.lanes
        if lanes % 2:
            raise _no_halves(context, node, vector)
        chosen = range(lanes // 2) if first else range(lanes // 2, lanes)
        return Shuffle((vector,), tuple(chosen), context.span(call))

    return handler


def _no_halves(context: Context, node: Positioned, vector: Expr) -> Exception:
    return context.mistake(
        "GM0266",
        node,
        f"{vector.dtype} has no halves",
        label=f"{vector.dtype.lanes} lanes",
        hint="halves are of vectors with an even number of lanes",
    )


def _combine(context: Context, call: ast.Call) -> Value:
    """``T.vectorcombine(dtype, low, high)``: the lanes of both, one after the other."""
    node_list = list(call.args)
    if len(node_list) == 3:
        node_list = node_list[1:]
    if len(node_list) != 2:
        bind(context, call, ("low", "high"))
    low, high = meet(
        context, call, operand(context, node_list[0]), operand(context, node_list[1]), node_list[0], node_list[1]
    )
    return Shuffle((low, high), tuple(range(low.dtype.lanes + high.dtype.lanes)), context.span(call))


TABLE: Mapping[str, Callable[..., Value]] = {
    "Ramp": _ramp,
    "ramp": _ramp,
    "Broadcast": _broadcast,
    "broadcast": _broadcast,
    "Shuffle": _shuffle,
    "shuffle": _shuffle,
    "vectorlow": _half(True),
    "vectorhigh": _half(False),
    "vectorcombine": _combine,
}
