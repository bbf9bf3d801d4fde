"""Loops as values, threads of devices, barriers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.errors import suggestion
from gristmill.ir.build import const
from gristmill.ir.expr import Expr
from gristmill.ir.stmt import Barrier, BarrierScope, LoopHints, LoopKind, ThreadAxis
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import constant_int, constant_text, index, is_number, operand
from gristmill.script.values import Launch, Loops, Opening, ThreadVariable, Value, describe

_IGNORED_HINTS = ("pragma_unroll_explicit", "pragma_loop_partition_hint", "pragma_import_llvm", "disable_unroll")


def hints(context: Context, node: ast.expr | None) -> LoopHints:
    """``annotations={"unroll": 4}`` of a loop."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return LoopHints()
    if not isinstance(node, ast.Dict):
        raise context.mistake(
            "GM0316",
            node,
            "the annotations of a loop are a dictionary",
            label="not a dictionary",
            hint='write `annotations={"unroll": 4}`',
        )
    unroll, width, vectorize = 0, 0, None
    known = ("unroll", "vector_width", "vectorize", "pragma_auto_unroll_max_step", *_IGNORED_HINTS)
    for key, value in zip(node.keys, node.values, strict=True):
        name = key.value if isinstance(key, ast.Constant) else None
        if name == "unroll" or name == "pragma_auto_unroll_max_step":
            unroll = constant_int(context, value, "the number of repetitions", 0)
        elif name == "vector_width":
            width = constant_int(context, value, "the width of the vectors", 0)
        elif name == "vectorize":
            found = operand(context, value)
            if not isinstance(found, (bool, int)):
                raise context.mistake(
                    "GM0316", value, f"vectorize is True or False, not {describe(found)}", label="not a bool",
                    hint="write True or False",
                )  # fmt: skip
            vectorize = bool(found)
        elif name not in _IGNORED_HINTS:
            raise context.mistake(
                "GM0316",
                key or node,
                f"loops have no annotation {name!r}",
                label="not known",
                hint=suggestion(str(name), known, f"annotations are {', '.join(known[:3])}", form='"{}"'),
            )
    return LoopHints(unroll, width, vectorize)


def _counted(kind: LoopKind) -> Callable[[Context, ast.Call], Value]:
    """``range`` and the loops of ``T`` that take start, stop and step as it does."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, (), ("start", "stop", "step", "annotations"))
        first, second = args.get("start"), args.get("stop")
        if first is None and second is None:
            bind(context, call, ("stop",))
        given = hints(context, args.get("annotations"))
        if second is None:
            first, second = None, first
        assert second is not None
        stop = index(context, second)
        start = index(context, first) if first is not None else const(0, stop.dtype, context.span(call))
        step = _step(context, args["step"]) if "step" in args else 1
        bound = (*_agree(context, call, start, stop, first or call, second), step)
        return Loops(kind, (bound,), (second,), None, given)

    return handler


def _agree(
    context: Context, call: ast.Call, start: Expr, stop: Expr, start_at: ast.expr, stop_at: ast.expr
) -> tuple[Expr, Expr]:
    from gristmill.ir.expr import IntImm
    from gristmill.script.operands import meet

    for one, at in ((start, start_at), (stop, stop_at)):
        if one.dtype.lanes > 1:
            raise context.mistake(
                "GM0266", at, "the bounds of a loop are scalars", label=str(one.dtype), hint="take one lane"
            )
    if isinstance(start, IntImm) and not isinstance(stop, IntImm):
        return const(start.value, stop.dtype, start.span), stop
    if isinstance(stop, IntImm) and not isinstance(start, IntImm):
        return start, const(stop.value, start.dtype, stop.span)
    return meet(context, call, start, stop, start_at, stop_at)


def _step(context: Context, node: ast.expr) -> int:
    value = operand(context, node)
    if isinstance(value, Expr):
        from gristmill.script.operands import plain_number

        plain = plain_number(value)
        value = plain if plain is not None else value
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        return value
    raise context.mistake(
        "GM0311",
        node,
        "the step of a loop is 0"
        if is_number(value) and value == 0
        else "the step of a loop must be a constant integer",
        label="not a step",
        hint="write a number other than 0; for a step that varies write a `while` loop",
    )


def _grid(context: Context, call: ast.Call) -> Value:
    """``T.grid(n, m)``: loops one inside the other; an extent may be a (start, stop) pair."""
    bind(context, call, (), rest="extents")
    if not call.args:
        bind(context, call, ("extent",))
    bounds = []
    for node in call.args:
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            start, stop = index(context, node.elts[0]), index(context, node.elts[1])
            bounds.append((*_agree(context, call, start, stop, *node.elts), 1))
        else:
            stop = index(context, node)
            bounds.append((*_agree(context, call, const(0, stop.dtype, context.span(node)), stop, node, node), 1))
    return Loops(LoopKind.SERIAL, tuple(bounds), tuple(call.args))


def thread_axis(context: Context, node: ast.expr, text: str) -> ThreadAxis:
    """An axis of a launch by its name."""
    try:
        return ThreadAxis(text)
    except ValueError:
        # Without its letter an axis is the first of its kind.
        known = [axis.value for axis in ThreadAxis]
        known = [axis for axis in known if text and axis.startswith(text)][:1] or known
        raise context.mistake(
            "GM0317",
            node,
            f"{text!r} is not an axis of a launch",
            label="not known",
            hint=suggestion(text, known, f"axes are {', '.join(axis.value for axis in ThreadAxis)}", form='"{}"'),
        ) from None


def _thread_binding(context: Context, call: ast.Call) -> Value:
    """``T.thread_binding(64, thread="threadIdx.x")`` or ``(0, 64, "threadIdx.x")``."""
    args = bind(context, call, ("start",), ("stop", "thread", "annotations"))
    first, second = args["start"], args.get("stop")
    axis_node = args.get("thread")
    if axis_node is None and second is not None:
        # (64, "threadIdx.x")
        axis_node, second = second, None
    if axis_node is None:
        bind(context, call, ("start", "stop", "thread"))
        raise AssertionError
    if second is None:
        stop_at = first
        stop = index(context, first)
        start = const(0, stop.dtype, context.span(call))
    else:
        stop_at = second
        start, stop = _agree(context, call, index(context, first), index(context, second), first, second)
    axis = thread_axis(context, axis_node, constant_text(context, axis_node, "the axis"))
    return Loops(LoopKind.THREAD, ((start, stop, 1),), (stop_at,), axis, hints(context, args.get("annotations")))


def _launch_thread(context: Context, call: ast.Call) -> Value:
    """``T.launch_thread("blockIdx.x", n)``, or with the variable of ``T.env_thread``."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("thread", "extent"))
    value = lower(context, args["thread"])
    name = context.target
    if isinstance(value, ThreadVariable):
        axis = value.axis
        if isinstance(args["thread"], ast.Name):
            name = args["thread"].id
    elif isinstance(value, str):
        axis = thread_axis(context, args["thread"], value)
    else:
        raise context.mistake(
            "GM0319",
            args["thread"],
            f"an axis of a launch is expected here, and this is {describe(value)}",
            label="not an axis",
            hint='write "threadIdx.x", or a variable of T.env_thread("threadIdx.x")',
        )
    return Launch(axis, index(context, args["extent"]), name or axis.value.replace(".", "_"), context.span(call))


def _env_thread(context: Context, call: ast.Call) -> Value:
    node = bind(context, call, ("thread",), ("dtype",))["thread"]
    return ThreadVariable(thread_axis(context, node, constant_text(context, node, "the axis")))


def _iter_var(context: Context, call: ast.Call) -> Value:
    """``T.iter_var(v, None, "ThreadIndex", "threadIdx.x")``, as older printed kernels have it."""
    args = bind(context, call, ("var", "dom", "iter_type", "thread_tag"))
    node = args["thread_tag"]
    return ThreadVariable(thread_axis(context, node, constant_text(context, node, "the axis")))


_ATTRIBUTES_IGNORED = (
    "target", "storage_alignment", "realize_scope", "pragma_unroll_explicit", "pragma_auto_unroll_max_step",
    "pragma_import_c", "pragma_import_llvm", "volatile_scope", "device_id", "device_type", "compute_scope",
)  # fmt: skip


def _attribute(context: Context, call: ast.Call) -> Value:
    """``T.attr(node, key, value)``: thread extents; other known keys change nothing here and are read over."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("node", "key", "value"))
    key = constant_text(context, args["key"], "the key of an attribute")
    plain = key.removeprefix("tirx.").removeprefix("tir.")
    if plain == "thread_extent":
        value = lower(context, args["node"])
        if not isinstance(value, ThreadVariable):
            raise context.mistake(
                "GM0319",
                args["node"],
                f"an axis of a launch is expected here, and this is {describe(value)}",
                label="not an axis",
                hint='use a variable of T.env_thread("threadIdx.x")',
            )
        name = args["node"].id if isinstance(args["node"], ast.Name) else value.axis.value.replace(".", "_")
        return Launch(value.axis, index(context, args["value"]), name, context.span(call))
    if plain in _ATTRIBUTES_IGNORED:
        return Opening("nothing")
    raise context.mistake(
        "GM0341",
        args["key"],
        f"the attribute {key!r} is not known",
        label="not known",
        hint=suggestion(
            plain,
            ("thread_extent", *_ATTRIBUTES_IGNORED),
            'of attributes, "thread_extent" has a meaning here',
            form='"{}"',
        ),
    )


_SYNC_SCOPES = {
    "shared": BarrierScope.BLOCK,
    "shared.dyn": BarrierScope.BLOCK,
    "global": BarrierScope.BLOCK_AND_GLOBAL,
    "warp": BarrierScope.WARP,
}


def _storage_sync(context: Context, call: ast.Call) -> Value:
    """``T.tvm_storage_sync("shared")``: a barrier."""
    node = bind(context, call, ("scope",), ("is_load", "num_blocks"))["scope"]
    text = constant_text(context, node, "the scope of a barrier")
    if text not in _SYNC_SCOPES:
        raise context.mistake(
            "GM0340",
            node,
            f"{text!r} is not the scope of a barrier",
            label="not known",
            hint=suggestion(text, [*_SYNC_SCOPES], f"scopes of barriers are {', '.join(_SYNC_SCOPES)}", form='"{}"'),
        )
    context.emit(Barrier(_SYNC_SCOPES[text], context.span(call)))
    return None


def _barrier(scope: BarrierScope) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        bind(context, call, ())
        context.emit(Barrier(scope, context.span(call)))
        return None

    return handler


def _device_only(context: Context, call: ast.Call) -> Value:
    raise context.mistake(
        "GM0295",
        call,
        f"`{context.segment(call.func)}` is an operation on all threads of a warp that no code generator offers",
        label="not offered",
        hint='use `T.warp_shuffle_down(x, 16)` and its like, or a buffer of scope "shared" with `T.syncthreads()`',
    )


def _vendor_only(context: Context, call: ast.Call) -> Value:
    raise context.mistake(
        "GM0295",
        call,
        f"`{context.segment(call.func)}` belongs to the devices of one vendor",
        label="not portable",
        hint='write the loops over threads: `bx = T.launch_thread("blockIdx.x", n)`',
    )


_WARP = (
    "tvm_thread_allreduce", "tvm_load_matrix_sync", "tvm_mma_sync", "tvm_bmma_sync", "tvm_fill_fragment",
    "tvm_store_matrix_sync", "tvm_thread_invariant",
)  # fmt: skip
_VENDOR = (
    "device_entry", "cta_id", "thread_id", "warp_id", "lane_id", "warpgroup_id", "ptx_mma", "ptx_ldmatrix",
    "ptx_cp_async", "ptx_commit_group", "ptx_wait_group", "ptx_cp_async_bulk", "mma_store", "mma_fill", "create_barriers",
)  # fmt: skip

TABLE: Mapping[str, Callable[..., Value]] = {
    "serial": _counted(LoopKind.SERIAL),
    "parallel": _counted(LoopKind.PARALLEL),
    "vectorized": _counted(LoopKind.VECTORIZED),
    "unroll": _counted(LoopKind.UNROLLED),
    "unrolled": _counted(LoopKind.UNROLLED),
    "grid": _grid,
    "thread_binding": _thread_binding,
    "launch_thread": _launch_thread,
    "env_thread": _env_thread,
    "iter_var": _iter_var,
    "attr": _attribute,
    "tvm_storage_sync": _storage_sync,
    "syncthreads": _barrier(BarrierScope.BLOCK),
    "sync_threads": _barrier(BarrierScope.BLOCK),
    "syncwarp": _barrier(BarrierScope.WARP),
    **dict.fromkeys(_WARP, _device_only),
    **dict.fromkeys(_VENDOR, _vendor_only),
}
PYTHON: Mapping[str, Callable[..., Value]] = {"range": _counted(LoopKind.SERIAL)}
