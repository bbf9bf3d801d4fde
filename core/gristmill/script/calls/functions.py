"""Calls that leave the function: of the module's own functions, of C symbols, of packed functions, of macros."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from gristmill.errors import Note, close_match, suggestion
from gristmill.ir.dtype import INT32, VOID, DType
from gristmill.ir.expr import BufferRef, CallExtern, CallFunction, CallPacked, Expr, IntImm, StringImm, Var
from gristmill.ir.memory import Buffer
from gristmill.ir.readable import parameter_text, signature_text, size_text
from gristmill.ir.stmt import Evaluate
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.conversions import dtype_argument
from gristmill.script.calls.dot_products import SYMBOL, dot_product
from gristmill.script.context import Context
from gristmill.script.memory import check_elements, index_nodes
from gristmill.script.operands import as_operand, constant_text, fit, typed
from gristmill.script.values import Allocated, Callee, Value, describe


def call_function(context: Context, call: ast.Call, callee: Callee) -> Value:
    """A call of a function of this project, typed by its signature."""
    if callee.is_macro:
        from gristmill.script.macros import expand

        return expand(context, call, callee)
    if context.callee is None:
        raise context.mistake(
            "GM0217",
            call,
            f"`{context.segment(call)}` would have to be executed",
            label="a call",
            hint="constants are made of numbers, texts, tuples and arithmetic",
        )
    context.project.sign(callee)
    args = _match_arguments(context, call, callee)
    passed = [_argument(context, node, param, callee) for node, param in zip(args, callee.params, strict=True)]
    returns = context.project.result_of(context, call, callee)
    return CallFunction(context.project.name_of(callee), tuple(passed), returns, context.span(call))


def _match_arguments(context: Context, call: ast.Call, callee: Callee) -> list[ast.expr]:
    names = [arg.arg for arg in callee.node.args.args]
    found: dict[str, ast.expr] = {}
    notes = (Note("the function is here", callee.file.source.name_place(callee.node)),)
    signature = signature_text(callee.name, callee.params, callee.returns or VOID)
    for position, node in enumerate(call.args):
        if position >= len(names) or isinstance(node, ast.Starred):
            raise context.mistake(
                "GM0298",
                node,
                f"`{callee.name}` takes {len(names)} arguments, and {len(call.args)} are given",
                label="one too many",
                hint=f"its signature is `{signature}`",
                notes=notes,
            )
        found[names[position]] = node
    for keyword in call.keywords:
        if keyword.arg not in names or keyword.arg in found:
            why = "is given twice" if keyword.arg in found else "is not one of its parameters"
            meant = close_match(keyword.arg or "", names)
            raise context.mistake(
                "GM0298",
                keyword,
                f"`{callee.name}`: `{keyword.arg or '**'}` {why}",
                label="not a parameter" if keyword.arg not in found else "given twice",
                hint=f"did you mean `{meant}`?"
                if meant and keyword.arg not in found
                else f"its signature is `{signature}`",
                notes=notes,
            )
        assert keyword.arg is not None
        found[keyword.arg] = keyword.value
    missing = [name for name in names if name not in found]
    if missing:
        raise context.mistake(
            "GM0298",
            call,
            f"`{callee.name}` needs {len(names)} arguments, and `{'`, `'.join(missing)}` is missing",
            label=f"{len(found)} given",
            hint=f"its signature is `{signature}`",
            notes=notes,
        )
    return [found[name] for name in names]


def _argument(context: Context, node: ast.expr, param: Var | Buffer, callee: Callee) -> Expr:
    from gristmill.script.expressions import lower

    if isinstance(param, Buffer) and isinstance(node, ast.Subscript):
        _refuse_part(context, node, param, callee)
    value = lower(context, node)
    if isinstance(value, Allocated):
        value = value.buffer.data if isinstance(param, Var) else value.buffer
    if isinstance(value, Buffer):
        check_elements(context, node, value)
    if isinstance(param, Buffer):
        return _buffer_argument(context, node, value, param, callee)
    if param.dtype.is_handle:
        if isinstance(value, Buffer):
            return value.data
        if isinstance(value, Expr) and value.dtype.is_handle:
            return value
        raise _wrong_argument(context, node, value, param, callee, "give a pointer: `A.data`, or `T.address_of(A[i])`")
    if isinstance(value, Buffer) or (isinstance(value, Expr) and value.dtype.is_handle):
        raise _wrong_argument(context, node, value, param, callee, "give a number, or an element: `A[i]`")
    what = f"the parameter `{param.name}` of `{callee.name}`"
    return fit(context, node, as_operand(context, node, value), param.dtype, what, "")


def _buffer_argument(context: Context, node: ast.expr, value: Value, param: Buffer, callee: Callee) -> Expr:
    if isinstance(value, Buffer) and value.dtype == param.dtype and value.rank == param.rank:
        return BufferRef(value, context.span(node))
    if not isinstance(value, Buffer):
        hint = "give a buffer by its name"
        if isinstance(value, Expr) and value.dtype.is_handle:
            hint = "give the buffer itself, not its pointer (the parameter states a shape)"
        raise _wrong_argument(context, node, value, param, callee, hint)
    raise context.mistake(
        "GM0300",
        node,
        f"`{value.name}` has {_dimensions(value)}, and the parameter `{param.name}` of "
        f"`{callee.name}` takes {param.rank} of {param.dtype}",
        label=_dimensions(value),
        hint=f"it is declared as `{parameter_text(param)}`; a view has another shape or type: `T.decl_buffer(...)`",
        notes=(Note("the function is here", callee.file.source.name_place(callee.node)),),
    )


def _refuse_part(context: Context, node: ast.Subscript, param: Buffer, callee: Callee) -> None:
    """A row or another part of a buffer, given for a buffer: NumPy's habit. Says what to write instead."""
    from gristmill.script.expressions import lower

    owner = lower(context, node.value)
    if isinstance(owner, Allocated):
        owner = owner.buffer
    given = index_nodes(node)
    if not isinstance(owner, Buffer) or (
        len(given) >= owner.rank and not any(isinstance(one, ast.Slice) for one in given)
    ):
        return
    raise context.mistake(
        "GM0299",
        node,
        f"the parameter `{param.name}` of `{callee.name}` takes a buffer, and `{context.segment(node)}` is a part of one",
        label=f"wanted: {parameter_text(param)}",
        hint=f"make a view, and give that: `part = {_view_text(context, node, owner)}`; or let `{callee.name}` take "
        f"`{context.segment(node.value)}` and the indices",
        notes=(Note("the function is here", callee.file.source.name_place(callee.node)),),
    )


def _view_text(context: Context, node: ast.Subscript, owner: Buffer) -> str:
    """The view of a part of a buffer, as the user would write it; with dots where that is more than a row."""
    name, given = context.segment(node.value), index_nodes(node)
    if owner.strides or len(given) >= owner.rank or any(isinstance(one, ast.Slice) for one in given):
        return f'T.decl_buffer((...,), "{owner.dtype}", data={name}.data, elem_offset=...)'
    sizes = [size_text(size) for size in owner.shape]
    factors = [size if size.isalnum() else f"({size})" for size in sizes]
    offset = context.operand_text(given[0])
    for one, factor in zip(given[1:], factors[1:], strict=False):
        offset = f"({offset} * {factor} + {context.operand_text(one)})"
    offset = " * ".join([offset, *factors[len(given) :]])
    kept = ", ".join(sizes[len(given) :]) + ("," if owner.rank - len(given) == 1 else "")
    if owner.offset is not None and not (isinstance(owner.offset, IntImm) and owner.offset.value == 0):
        offset = f"{name}.elem_offset + {offset}"
    return f'T.decl_buffer(({kept}), "{owner.dtype}", data={name}.data, elem_offset={offset})'


def _dimensions(buffer: Buffer) -> str:
    return f"{buffer.rank} dimension{'' if buffer.rank == 1 else 's'} of {buffer.dtype}"


def _wrong_argument(
    context: Context, node: ast.expr, value: Value, param: Var | Buffer, callee: Callee, hint: str
) -> Exception:
    return context.mistake(
        "GM0299",
        node,
        f"the parameter `{param.name}` of `{callee.name}` does not take {describe(value)}",
        label=f"wanted: {parameter_text(param)}",
        hint=hint,
        notes=(Note("the function is here", callee.file.source.name_place(callee.node)),),
    )


def _classic_call(context: Context, call: ast.Call) -> Value:
    """``T.Call(function, [args], ret_ty=...)``: the call of a function of the module, or of an operation."""
    from gristmill.script.expressions import lower

    args = bind(context, call, ("function", "args"), ("ret_ty", "dtype"))
    function = lower(context, args["function"])
    listed = list(args["args"].elts) if isinstance(args["args"], (ast.Tuple, ast.List)) else [args["args"]]
    if isinstance(function, Callee):
        return call_function(context, ast.copy_location(ast.Call(args["function"], listed, []), call), function)
    raise context.mistake(
        "GM0297",
        args["function"],
        f"{describe(function)} is not a function of the module",
        label="not a function",
        hint="call operations by their names: `T.exp(x)`",
    )


# C symbols and packed functions ---------------------------------------------------------------------------------------


def _extern(context: Context, call: ast.Call) -> Value:
    """``T.call_extern("float32", "cbrtf", x)`` or ``T.call_extern("cbrtf", x, dtype="float32")``."""
    nodes, dtype = with_type(context, call)
    if not nodes:
        bind(context, call, ("dtype", "symbol"))
    symbol = constant_text(context, nodes[0], "the symbol")
    if symbol == SYMBOL and symbol not in context.project.externs and 3 <= len(nodes) <= 4:
        return dot_product(context, call, nodes[1:])
    if symbol not in context.project.externs:
        raise context.mistake(
            "GM0302",
            nodes[0],
            f"the symbol `{symbol}` is not declared",
            label="not declared",
            hint=suggestion(
                symbol,
                [*context.project.externs],
                f'write `extern = {{ {symbol} = "LIBRARY" }}` in the [[module]] of kernels.toml',
            ),
        )
    passed = tuple(_raw_argument(context, node, tensors=False) for node in nodes[1:])
    context.project.used_externs.setdefault(symbol, context.project.externs[symbol])
    return CallExtern(symbol, passed, dtype, context.span(call))


def with_type(context: Context, call: ast.Call) -> tuple[list[ast.expr], DType]:
    """Positional arguments without the result type, which stands first, last or in ``dtype=``."""
    from gristmill.script.expressions import lower

    nodes = list(call.args)
    for keyword in call.keywords:
        if keyword.arg == "dtype":
            return nodes, dtype_argument(context, keyword.value)
        raise context.mistake(
            "GM0292",
            keyword,
            f"`{context.segment(call.func)}` has no argument `{keyword.arg or '**'}`",
            label="not known",
            hint="its arguments are: dtype, the name, and what is passed",
        )
    for position in (0, -1):
        if len(nodes) > 1:
            value = lower(context, nodes[position]) if _may_be_type(nodes[position]) else None
            if isinstance(value, DType) or (isinstance(value, str) and _is_dtype(value)):
                dtype = dtype_argument(context, nodes[position])
                del nodes[position]
                return nodes, dtype
    return nodes, INT32 if context.is_tvmscript else VOID


def _may_be_type(node: ast.expr) -> bool:
    return isinstance(node, (ast.Constant, ast.Attribute, ast.Name))


def _is_dtype(text: str) -> bool:
    from gristmill.ir.dtype import parse_dtype

    try:
        parse_dtype(text)
    except ValueError:
        return False
    return True


def _raw_argument(context: Context, node: ast.expr, tensors: bool) -> Expr:
    """An argument that no signature describes: scalars, texts, pointers; buffers as tensors or as pointers."""
    from gristmill.script.expressions import lower

    value = lower(context, node)
    if isinstance(value, str):
        if "\0" in value:
            raise context.mistake(
                "GM0303", node, "a text with a NUL character cannot be passed", label="ends at the NUL",
                hint="leave the NUL out",
            )  # fmt: skip
        return StringImm(value, context.span(node))
    if isinstance(value, (Allocated, Buffer)):
        check_elements(context, node, value.buffer if isinstance(value, Allocated) else value)
    if isinstance(value, Allocated):
        return BufferRef(value.buffer, context.span(node)) if tensors else value.buffer.data
    if isinstance(value, Buffer):
        return BufferRef(value, context.span(node)) if tensors else value.data
    return typed(context, node, as_operand(context, node, value))


def _packed(context: Context, call: ast.Call) -> Value:
    """``T.call_packed("name", ...)``: a function registered with TVM FFI. Its result is an int32 unless stated."""
    returns: DType = VOID
    for keyword in call.keywords:
        if keyword.arg not in ("dtype", "ret_ty"):
            raise context.mistake(
                "GM0292",
                keyword,
                f"`{context.segment(call.func)}` has no argument `{keyword.arg or '**'}`",
                label="not known",
                hint="its arguments are: the name, what is passed, and dtype=",
            )
        returns = dtype_argument(context, keyword.value)
    if not call.args:
        bind(context, call, ("name",))
    name = constant_text(context, call.args[0], "the name of a packed function")
    passed = tuple(_raw_argument(context, node, tensors=True) for node in call.args[1:])
    return CallPacked(name, passed, returns, context.span(call))


# Evaluation for effect ------------------------------------------------------------------------------------------------


def _evaluate(context: Context, call: ast.Call) -> Value:
    """``T.evaluate(x)``: evaluated for its effect."""
    from gristmill.script.expressions import lower

    node = bind(context, call, ("value",))["value"]
    context.whole, context.is_dropped = node, True
    value = lower(context, node)
    if value is None:
        return None
    if isinstance(value, Expr):
        context.emit(Evaluate(value, context.span(call)))
    else:
        context.emit(Evaluate(typed(context, node, as_operand(context, node, value)), context.span(call)))
    return None


TABLE: Mapping[str, Callable[..., Value]] = {
    "Call": _classic_call,
    "call_extern": _extern,
    "call_pure_extern": _extern,
    "call_packed": _packed,
    "call_cpacked": _packed,
    "evaluate": _evaluate,
}
