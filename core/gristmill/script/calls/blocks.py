"""The parts of a block: axes, predicate, regions, init."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.errors import suggestion
from gristmill.ir.build import const
from gristmill.ir.expr import And, Expr, Var
from gristmill.ir.functor import substitute
from gristmill.ir.memory import Range, Region
from gristmill.ir.stmt import AxisKind, BlockAxis
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.buffers import as_region
from gristmill.script.context import BlockParts, Context
from gristmill.script.operands import as_bool, condition, constant_text, index, operand
from gristmill.script.values import Opening, Value, describe


def _block(context: Context, call: ast.Call) -> Value:
    """``T.block("name")``, opened by ``with``."""
    args = bind(context, call, (), ("name", "no_realize"))
    return Opening("block", constant_text(context, args["name"], "the name of a block") if "name" in args else "")


def _init(context: Context, call: ast.Call) -> Value:
    bind(context, call, ())
    return Opening("init")


def _parts(context: Context, call: ast.Call) -> BlockParts:
    block = context.block
    if block is None:
        raise context.mistake(
            "GM0330",
            call,
            f"`{context.segment(call.func)}` stands outside of the start of a block",
            label="no block here",
            hint='write it directly inside `with T.block("name"):`, before the loops of the block',
        )
    return block


def _axis(kind: AxisKind) -> Callable[[Context, ast.Call], Value]:
    """``T.axis.spatial(extent, value)``; the domain may be a (start, stop) pair."""

    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("domain", "value"), ("dtype",))
        block = _parts(context, call)
        domain = args["domain"]
        value = _in_loops(block, index(context, args["value"]))
        if isinstance(domain, ast.Tuple) and len(domain.elts) == 2:
            start, stop = index(context, domain.elts[0]), index(context, domain.elts[1])
            start, stop = _like(start, value), _like(stop, value)
            from gristmill.script.loops import distance

            ranged = Range(start, distance(context, domain, start, stop), context.span(domain))
        else:
            extent = _like(index(context, domain), value)
            ranged = Range(const(0, value.dtype, context.span(domain)), extent, context.span(domain))
        return _new_axis(context, call, block, kind, ranged, value, context.target)

    return handler


def _in_loops(block: BlockParts, value: Expr) -> Expr:
    """A value in terms of the loops outside of a block, where its author used axes of the block."""
    return substitute(value, {axis.var: axis.value for axis in block.axes}) if block.axes else value


def _like(bound: Expr, value: Expr) -> Expr:
    from gristmill.ir.build import cast
    from gristmill.ir.expr import IntImm

    if isinstance(bound, IntImm):
        return const(bound.value, value.dtype, bound.span)
    return cast(bound, value.dtype)


def _new_axis(
    context: Context, at: ast.expr, block: BlockParts, kind: AxisKind, domain: Range, value: Expr, name: str
) -> Var:
    var = Var(name or "axis", value.dtype, span=context.span(at))
    block.axes.append(BlockAxis(var, domain, kind, value, context.span(at)))
    context.loops[var] = (domain.minimum, domain.extent)
    return var


_KINDS = {"S": AxisKind.SPATIAL, "R": AxisKind.REDUCE}


def _remap(context: Context, call: ast.Call) -> Value:
    """``T.axis.remap("SR", [i, k])``: an axis for each loop, over the domain of the loop."""
    args = bind(context, call, ("kinds", "bindings"), ("dtype",))
    block = _parts(context, call)
    kinds = constant_text(context, args["kinds"], "the kinds of the axes")
    node = args["bindings"]
    loops = list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]
    for letter in kinds:
        if letter not in _KINDS:
            raise context.mistake(
                "GM0331",
                args["kinds"],
                f"{letter!r} is not the kind of an axis",
                label="not known",
                hint="write S for spatial and R for reduce",
            )
    if len(kinds) != len(loops):
        raise context.mistake(
            "GM0331",
            args["kinds"],
            f"{len(kinds)} kinds are given for {len(loops)} loops",
            label=f"{len(kinds)} letters",
            hint="write one letter, S or R, for each loop",
        )
    names = context.target.split(",") if context.target else []
    found = []
    for position, (letter, at) in enumerate(zip(kinds, loops, strict=True)):
        value = operand(context, at)
        if not isinstance(value, Var) or value not in context.loops:
            raise context.mistake(
                "GM0332",
                at,
                f"`{context.segment(at)}` is not the variable of a loop",
                label="not a loop",
                hint=f"write `T.axis.{'spatial' if letter == 'S' else 'reduce'}(extent, {context.segment(at)})`",
            )
        minimum, extent = context.loops[value]
        name = names[position] if position < len(names) and len(names) == len(loops) else f"axis{position}"
        found.append(
            _new_axis(context, at, block, _KINDS[letter], Range(minimum, extent, context.span(at)), value, name)
        )
    return tuple(found) if len(found) != 1 else found[0]


def _other_axis(context: Context, call: ast.Call) -> Value:
    raise context.mistake(
        "GM0337",
        call,
        f"`{context.segment(call.func)}` axes are not supported",
        label="spatial and reduce axes only",
        hint="write the loop inside the block",
    )


def _where(context: Context, call: ast.Call) -> Value:
    """``T.where(condition)``: when false the block does nothing."""
    if len(call.args) == 3:
        raise context.mistake(
            "GM0292",
            call,
            "`T.where` is the condition of a block, and takes 1 argument",
            label="3 are given",
            hint="to choose between values write `a if condition else b`",
        )
    node = bind(context, call, ("predicate",))["predicate"]
    block = _parts(context, call)
    found = _in_loops(block, as_bool(context, node, condition(context, node)))
    block.predicate = found if block.predicate is None else And(block.predicate, found, context.span(call))
    return None


def _regions(which: str) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        bind(context, call, (), rest="regions")
        block = _parts(context, call)
        if getattr(block, which) is not None:
            raise context.mistake(
                "GM0333",
                call,
                f"the block states its {which} twice",
                label="stated before",
                hint=f"name all regions in one `T.{which}(...)`",
            )
        found: list[Region] = []
        for node in call.args:
            items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
            for item in items:
                found.append(_region(context, item, which))
        setattr(block, which, tuple(found))
        return None

    return handler


def _region(context: Context, node: ast.expr, which: str) -> Region:
    from gristmill.script.expressions import lower

    value = lower(context, node)
    found = as_region(value)
    if found is None:
        raise context.mistake(
            "GM0334",
            node,
            f"`T.{which}` names parts of buffers, and this is {describe(value)}",
            label="not a part of a buffer",
            hint="write `A[i, 0:4]`",
        )
    return found


_BLOCK_ATTRIBUTES_IGNORED = (
    "buffer_dim_align", "double_buffer_scope", "script_parsing_detect_access", "meta_schedule.tiling_structure",
    "layout_free_placeholders", "software_pipeline_stage", "auto_copy", "warp_execution", "pragma_auto_unroll_max_step",
)  # fmt: skip


def _block_attribute(context: Context, call: ast.Call) -> Value:
    """``T.block_attr({...})``: hints of TVM's schedules, which change nothing here and are read over.

    Files in TVM's dialect were written for its schedules, so there every attribute is read over.
    """
    node = bind(context, call, ("attributes",))["attributes"]
    _parts(context, call)
    if context.is_tvmscript:
        return None
    keys = node.keys if isinstance(node, ast.Dict) else [node]
    for key in keys:
        name = key.value if isinstance(key, ast.Constant) else None
        plain = str(name).removeprefix("tirx.").removeprefix("tir.")
        if plain not in _BLOCK_ATTRIBUTES_IGNORED:
            raise context.mistake(
                "GM0336",
                key or node,
                f"blocks have no attribute {name!r}",
                label="not known",
                hint=suggestion(
                    plain, _BLOCK_ATTRIBUTES_IGNORED, "leave it out; schedules of TVM have no effect here", form='"{}"'
                ),
            )
    return None


TABLE: Mapping[str, Callable[..., Value]] = {
    "block": _block,
    "sblock": _block,
    "init": _init,
    "where": _where,
    "reads": _regions("reads"),
    "writes": _regions("writes"),
    "block_attr": _block_attribute,
    "sblock_attr": _block_attribute,
}
AXIS: Mapping[str, Callable[..., Value]] = {
    "spatial": _axis(AxisKind.SPATIAL),
    "S": _axis(AxisKind.SPATIAL),
    "reduce": _axis(AxisKind.REDUCE),
    "R": _axis(AxisKind.REDUCE),
    "remap": _remap,
    "scan": _other_axis,
    "opaque": _other_axis,
}
