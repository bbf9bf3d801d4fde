"""Operations by name, as TVM's kernels call them: ``T.call_intrin``, ``T.call_llvm_pure_intrin``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.errors import suggestion
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr
from gristmill.ir.op import OPS, Result
from gristmill.script.calls import atomics
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.buffers import address_of
from gristmill.script.calls.functions import with_type
from gristmill.script.calls.mathematics import apply
from gristmill.script.context import Context
from gristmill.script.operands import constant_text
from gristmill.script.source import Positioned
from gristmill.script.values import Value

# LLVM's intrinsics that have an operation here (LLVM Language Reference, "Standard C/C++ Library Intrinsics").
_LLVM = {
    "llvm.fabs": "abs", "llvm.sqrt": "sqrt", "llvm.exp": "exp", "llvm.exp2": "exp2", "llvm.log": "log", "llvm.log2": "log2",
    "llvm.sin": "sin", "llvm.cos": "cos", "llvm.pow": "pow", "llvm.floor": "floor", "llvm.ceil": "ceil",
    "llvm.trunc": "trunc", "llvm.rint": "round", "llvm.nearbyint": "round", "llvm.roundeven": "round", "llvm.fma": "fma",
    "llvm.copysign": "copysign", "llvm.ctpop": "popcount",
}  # fmt: skip
_SURFACE = frozenset(
    name
    for name, op in OPS.items()
    if op.pure and op.result is not Result.STATED and name not in ("quotient", "remainder")
) - {"shift_left", "shift_right", "dot4", "dot4_mixed"}


def _intrinsic(context: Context, call: ast.Call) -> Value:
    """``T.call_intrin("float32", "tirx.exp", x)``: an operation by its name; ``T.call_llvm_pure_intrin`` by LLVM's."""
    nodes, dtype = with_type(context, call)
    if not nodes:
        bind(context, call, ("dtype", "name"))
    title = constant_text(context, nodes[0], "the name of an operation")
    name = _LLVM.get(".".join(title.split(".")[:2]), title.removeprefix("tirx.").removeprefix("tir."))
    rest = nodes[1:]
    if title.startswith("llvm.") and name in OPS and len(rest) == OPS[name].arity + 1:
        # TVM passes the number of arguments that select the overload first.
        rest = rest[1:]
    if name == "address_of" and len(rest) == 1:
        return address_of(context, ast.copy_location(ast.Call(call.func, rest, []), call))
    if name in atomics.NAMES:
        return _checked_type(context, call, atomics.intrinsic(context, call, name, rest), dtype)
    if name not in _SURFACE:
        raise _unknown_intrinsic(context, nodes[0], title)
    op = OPS[name]
    if len(rest) != op.arity:
        raise context.mistake(
            "GM0291",
            call,
            f"the operation `{title}` takes {op.arity} operands, and {len(rest)} are given",
            label=f"{len(rest)} operands",
            hint=f"it means: {op.meaning}",
        )
    return _checked_type(context, call, apply(context, call, op, rest), dtype)


def _checked_type(context: Context, call: ast.Call, found: Value, dtype: DType) -> Value:
    """The value of an operation whose result type the call states."""
    if isinstance(found, Expr) and not dtype.is_void and found.dtype != dtype:
        raise context.mistake(
            "GM0262",
            call,
            f"the operation gives {found.dtype}, and {dtype} is stated",
            label=str(found.dtype),
            hint=f'state "{found.dtype}", or convert the result: `T.cast(..., "{dtype}")`',
        )
    return found


def _unknown_intrinsic(context: Context, node: Positioned, title: str) -> Exception:
    return context.mistake(
        "GM0294",
        node,
        f"the operation `{title}` is not part of the language",
        label="not here",
        hint=suggestion(
            title.rpartition(".")[2], sorted(_SURFACE), "call the functions of `T`: `T.exp(x)`", form="`T.{}`"
        ),
    )


TABLE: Mapping[str, Callable[..., Value]] = {
    "call_intrin": _intrinsic,
    "call_llvm_intrin": _intrinsic,
    "call_llvm_pure_intrin": _intrinsic,
}
