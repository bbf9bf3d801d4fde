"""What declares rather than computes: function attributes, targets, bindings, decorators, variables."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from gristmill.errors import suggestion
from gristmill.ir.dtype import INT32
from gristmill.ir.module import CallingConvention, LaunchParameters
from gristmill.ir.stmt import ThreadAxis
from gristmill.ir.target import Target, parse_target
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.conversions import dtype_argument
from gristmill.script.context import Context
from gristmill.script.operands import operand
from gristmill.script.values import Opening, Symbolic, Value, describe, is_symbol

_KINDS = {"llvm": "cpu", "c": "cpu", "rocm": "amdgpu", "hip": "amdgpu"}
"""TVM's names of target kinds that have another name here."""

_IGNORED = (
    "is_entry_func", "is_global_func", "is_host_func", "op_pattern", "layout_free_buffers", "from_legacy_te_schedule",
    "is_scheduled", "HoistIfThenElseExprWithBlock", "s_tir", "dma_bypass_cache", "device_type",
)  # fmt: skip
_KNOWN = (
    "global_symbol",
    "noalias",
    "no_alias",
    "fast_math",
    "release_gil",
    "target",
    "calling_conv",
    "kernel_launch_params",
)


def _func_attr(context: Context, call: ast.Call) -> Value:
    """``T.func_attr({...})``: what is known of the function beside its body."""
    node = bind(context, call, ("attributes",))["attributes"]
    if not isinstance(node, ast.Dict) or context.callee is None:
        raise context.mistake(
            "GM0237",
            node,
            "function attributes are a dictionary",
            label="not a dictionary",
            hint='write `T.func_attr({"noalias": True})`',
        )
    for key, value in zip(node.keys, node.values, strict=True):
        name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
        if name is None:
            raise context.mistake(
                "GM0236", key or value, "the key of a function attribute is a text", label="not a text",
                hint='write the key in quotes: "noalias"',
            )  # fmt: skip
        _one_attribute(context, key or value, name, value)
    return None


def _one_attribute(context: Context, key: ast.expr, name: str, node: ast.expr) -> None:
    assert context.callee is not None
    plain = name.removeprefix("tirx.").removeprefix("tir.")
    facts = context.callee.facts
    if plain in _IGNORED:
        return
    if plain not in _KNOWN:
        raise context.mistake(
            "GM0236",
            key,
            f"functions have no attribute {name!r}",
            label="not known",
            hint=suggestion(plain, [*_KNOWN, *_IGNORED], f"attributes are {', '.join(_KNOWN)}", form='"{}"'),
        )
    from gristmill.script.expressions import lower

    value = lower(context, node)
    if plain == "global_symbol" and isinstance(value, str) and is_symbol(value):
        context.callee.facts = replace(facts, symbol=value if facts.symbol is not None else None)
    elif plain in ("noalias", "no_alias") and isinstance(value, (bool, int)):
        context.callee.facts = replace(facts, no_alias=bool(value))
    elif plain == "fast_math" and isinstance(value, bool):
        context.callee.facts = replace(facts, fast_math=value)
    elif plain == "release_gil" and isinstance(value, bool):
        context.callee.facts = replace(facts, release_gil=value)
    elif plain == "target" and isinstance(value, Target):
        context.callee.facts = replace(facts, target=value)
    elif plain == "target" and isinstance(value, str):
        context.callee.facts = replace(facts, target=_target_of_text(context, node, value))
    elif plain == "calling_conv" and value in (-1, 0, 2) and not isinstance(value, bool):
        convention = CallingConvention.DEVICE_KERNEL if value == 2 else CallingConvention.PLAIN
        context.callee.facts = replace(facts, convention=convention)
    elif plain == "kernel_launch_params" and isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        context.callee.facts = replace(facts, launch=_launch_parameters(context, node, value))
    else:
        raise context.mistake(
            "GM0237",
            node,
            f"the attribute {name!r} does not take {describe(value)}",
            label="not a value of it",
            hint=_VALUES[plain],
        )


def _launch_parameters(context: Context, node: ast.expr, tags: tuple[str, ...]) -> LaunchParameters:
    """The axes of a launch in order; the size of dynamic shared memory, where there is one, comes last."""
    axes = [axis.value for axis in ThreadAxis]
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == len(tags) else [node] * len(tags)
    dynamic = [place for place, tag in enumerate(tags) if tag.removeprefix("tirx.").removeprefix("tir.") == _DYNAMIC]
    for place, tag in enumerate(tags):
        if place in dynamic or tag in axes:
            continue
        raise context.mistake(
            "GM0237",
            parts[place],
            f"{tag!r} is no parameter of a launch",
            label="not known",
            hint=suggestion(tag, axes, f'parameters are {", ".join(axes)} and, last, "tir.{_DYNAMIC}"', form='"{}"'),
        )
    if dynamic and dynamic != [len(tags) - 1]:
        raise context.mistake(
            "GM0237",
            parts[dynamic[0]],
            "the size of dynamic shared memory is the last parameter of a launch",
            label="not the last",
            hint="move it to the end",
        )
    return LaunchParameters(tuple(ThreadAxis(tag) for tag in tags[: len(tags) - len(dynamic)]), bool(dynamic))


_DYNAMIC = "use_dyn_shared_memory"
_VALUES = {
    "global_symbol": 'it takes the exported name in quotes, of letters a to z, digits and _: "blur"',
    "noalias": "it takes True or False",
    "no_alias": "it takes True or False",
    "fast_math": "it takes True or False",
    "release_gil": "it takes True or False",
    "target": 'it takes a target: T.target("cpu:x86-64-v3")',
    "calling_conv": "it takes 0 (a plain function) or 2 (a kernel of a device)",
    "kernel_launch_params": 'it takes the axes of the launch: ["blockIdx.x", "threadIdx.x"]',
}


def _target(context: Context, call: ast.Call) -> Value:
    """``T.target("cpu:x86-64-v3")``; TVM's kinds and dictionaries are understood too."""
    args = bind(context, call, ("target",), ("host",))
    node = args["target"]
    if isinstance(node, ast.Dict):
        return _target_of_table(context, node)
    from gristmill.script.expressions import lower

    value = lower(context, node)
    if isinstance(value, Target):
        return value
    if isinstance(value, str):
        return _target_of_text(context, node, value)
    raise context.mistake(
        "GM0342", node, f"{describe(value)} is not a target", label="not a target",
        hint='write it in quotes: T.target("cpu:x86-64-v3")',
    )  # fmt: skip


def _target_of_text(context: Context, node: ast.expr, text: str) -> Target:
    """The kind is the first word; of TVM's options after it only ``-mcpu`` matters here."""
    words = text.split()
    try:
        found = parse_target(words[0] if words else "")
    except ValueError as error:
        raise context.mistake(
            "GM0342", node, str(error), label="not a target", hint='write it as "cpu:x86-64-v3"'
        ) from None
    arch = next((word.partition("=")[2] for word in words[1:] if word.startswith("-mcpu=")), found.arch)
    return replace(found, kind=_KINDS.get(found.kind, found.kind), arch=arch)


def _target_of_table(context: Context, node: ast.Dict) -> Target:
    from gristmill.script.expressions import lower

    kind, arch = "", ""
    for key, value in zip(node.keys, node.values, strict=True):
        name = key.value if isinstance(key, ast.Constant) else None
        if name == "kind":
            kind = str(lower(context, value))
        elif name in ("mcpu", "arch"):
            arch = str(lower(context, value))
    if not kind:
        raise context.mistake(
            "GM0342", node, "the target has no kind", label='"kind" is missing', hint='write {"kind": "cpu"}'
        )
    found = _target_of_text(context, node, kind)
    return replace(found, arch=arch or found.arch)


def let(context: Context, call: ast.Call) -> Value:
    """``with T.let(v, value):``, a binding for the statements inside."""
    args = bind(context, call, ("var", "value"))
    if not isinstance(args["var"], ast.Name):
        raise context.mistake(
            "GM0257",
            args["var"],
            "a value is bound to a name",
            label="not a name",
            hint="write `with T.let(v, value):`",
        )
    return Opening("let", args["var"].id, operand(context, args["value"]))


def _let_statement(context: Context, call: ast.Call) -> Value:
    """Classic ``with T.LetStmt(value, var=v):``."""
    args = bind(context, call, ("value",), ("var", "type_annotation"))
    var = args.get("var")
    return Opening("let", var.id if isinstance(var, ast.Name) else "", operand(context, args["value"]))


def _bind(context: Context, call: ast.Call) -> Value:
    """``v = T.bind(value)``: the value itself, bound by the assignment."""
    args = bind(context, call, ("value",), ("var", "type_annotation"))
    return operand(context, args["value"])


def _variable(context: Context, call: ast.Call) -> Value:
    """``T.var("int32")``: a symbolic size."""
    args = bind(context, call, (), ("dtype",))
    dtype = dtype_argument(context, args["dtype"]) if "dtype" in args else INT32
    return Symbolic(dtype)


def _return(context: Context, call: ast.Call) -> Value:
    """``T.ret(value)``: the classic ``return``; the statement reader does the rest."""
    args = bind(context, call, (), ("value",))
    return Opening("return", value=args.get("value"))


def _decorator(context: Context, call: ast.Call) -> Value:
    raise context.mistake(
        "GM0296", call, f"`{context.segment(call.func)}` is a decorator", label="called in a kernel",
        hint="write it above a function or class, after `@`",
    )  # fmt: skip


TABLE: Mapping[str, Callable[..., Value]] = {
    "func_attr": _func_attr,
    "target": _target,
    "LetStmt": _let_statement,
    "bind": _bind,
    "var": _variable,
    "Var": _variable,
    "dynamic": _variable,
    "ret": _return,
    "Return": _return,
    "prim_func": _decorator,
    "macro": _decorator,
}
MODULE_TABLE: Mapping[str, Callable[..., Value]] = {"ir_module": _decorator}
