"""Shapes, strides, offsets and scopes in annotations and allocations; new symbolic sizes by name."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gristmill.errors import suggestion
from gristmill.ir.dtype import FLOAT32, HANDLE, INT64, SCALARS, DType
from gristmill.ir.expr import Expr, IntImm, Var
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.script.calls.arguments import bind
from gristmill.script.calls.conversions import dtype_argument
from gristmill.script.context import Context
from gristmill.script.operands import constant_int, constant_text, is_number, number
from gristmill.script.source import Positioned
from gristmill.script.values import Symbolic, Value, describe

BUFFER_OPTIONS = (
    "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators", "layout",
)  # fmt: skip


_TYPE_NAMES = frozenset(str(dtype) for dtype in SCALARS)


@dataclass(slots=True)
class Layout:
    """What describes a buffer beside its name and memory."""

    shape: tuple[Expr, ...]
    dtype: DType
    strides: tuple[Expr, ...]
    offset: Expr | None
    scope: Scope
    alignment: int
    data: ast.expr | None


def layout(
    context: Context,
    call: ast.Call,
    first: str = "shape",
    named: bool = False,
    dtype: DType = FLOAT32,
    leading: str = "",
) -> Layout:
    """The arguments of ``T.Buffer`` and its relatives. ``named``: texts and unknown names in quotes are new sizes."""
    required = (leading, first) if leading else (first,)
    args = bind(context, call, required, (*BUFFER_OPTIONS, "annotations"))
    element = dtype_argument(context, args["dtype"]) if "dtype" in args else dtype
    if element.is_void or (element.is_handle and leading != "any"):
        raise context.mistake(
            "GM0228",
            args.get("dtype", call),
            f"a buffer cannot hold {element}",
            label="no element type",
            hint='buffers hold numbers and bools, as "float32"',
        )
    shape = sizes(context, args[first], named)
    strides = sizes(context, args["strides"], named) if _given(args, "strides") else ()
    if strides and len(strides) != len(shape):
        raise context.mistake(
            "GM0239",
            args["strides"],
            f"{len(strides)} strides are given for {len(shape)} dimensions",
            label=f"{len(strides)} strides",
            hint="give one stride for each dimension, counted in elements",
        )
    offset = size(context, args["elem_offset"], named) if _given(args, "elem_offset") else None
    scope = scope_of(context, args["scope"]) if _given(args, "scope") else Scope.GLOBAL
    alignment = 0
    if _given(args, "align"):
        alignment = constant_int(context, args["align"], "the alignment", -1)
        if alignment <= 0:
            alignment = 0
        elif alignment & (alignment - 1):
            raise context.mistake(
                "GM0239",
                args["align"],
                f"the alignment {alignment} is not a power of two",
                label="in bytes",
                hint=f"write {1 << alignment.bit_length()}",
            )
    return Layout(shape, element, strides, offset, scope, alignment, args.get("data") if _given(args, "data") else None)


def _given(args: dict[str, ast.expr], name: str) -> bool:
    node = args.get(name)
    return node is not None and not (isinstance(node, ast.Constant) and node.value is None)


def sizes(context: Context, node: ast.expr, named: bool = False) -> tuple[Expr, ...]:
    """A shape: a tuple or list of sizes, or one size."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(size(context, item, named) for item in node.elts)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (size(context, node, named),)
    from gristmill.script.expressions import lower

    value = _lowered(context, node, named) if named else lower(context, node)
    if isinstance(value, tuple):
        return tuple(_as_size(context, node, item) for item in value)
    return (_as_size(context, node, value),)


def size(context: Context, node: ast.expr, named: bool = False) -> Expr:
    """One size: a number, a constant, a name in quotes, an expression of those."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if not named:
            raise _misplaced_name(context, node, node.value)
        node = quoted(context, node, node.value)
        _new_sizes(context, node)
    return _as_size(context, node, _lowered(context, node, named))


def _misplaced_name(context: Context, node: ast.expr, text: str) -> Exception:
    return context.mistake(
        "GM0229",
        node,
        f"the size {text!r} stands in quotes, which only parameters take",
        label="in quotes",
        hint=f"write `{text}` without quotes",
    )


def _lowered(context: Context, node: ast.expr, named: bool) -> Value:
    from gristmill.script.expressions import lower

    if named and isinstance(node, ast.Name) and not context.has(node.id) and node.id not in context.file.definitions:
        raise context.mistake(
            "GM0229",
            node,
            f"the size `{node.id}` is not defined",
            label="not known",
            hint=f'a new size by name stands in quotes: "{node.id}"',
        )
    value = lower(context, node)
    if isinstance(value, Symbolic):
        # A size declared at the top level of the file: every function that uses it has one of its own.
        name = node.id if isinstance(node, ast.Name) else "size"
        value = Var(name, value.dtype, span=context.span(node))
        context.scopes[0][name] = value
    return value


def _new_sizes(context: Context, node: ast.expr) -> None:
    """Names in a quoted size that mean nothing yet become symbolic sizes."""
    called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
    owners = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    for part in ast.walk(node):
        if not isinstance(part, ast.Name) or id(part) in called or id(part) in owners or context.has(part.id):
            continue
        definition = context.file.definitions.get(part.id)
        if definition is None or definition.kind not in ("constant", "import"):
            if part.id in _TYPE_NAMES:
                raise context.mistake(
                    "GM0229",
                    node,
                    f"`{part.id}` is a type, and a size is expected here",
                    label="not a size",
                    hint=f'the shape stands before the type: `T.Buffer(("n",), "{part.id}")`',
                )
            context.scopes[0][part.id] = Var(part.id, INT64, span=context.span(part))


def quoted(context: Context, node: ast.Constant, text: str) -> ast.expr:
    """The expression in a text, its nodes placed at the text."""
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise context.mistake(
            "GM0229",
            node,
            f"{text!r} is not a size",
            label="not an expression",
            hint='write a name or an expression of names: "n", "n + 1"',
        ) from None
    if sum(1 for _ in ast.walk(found)) > 200:
        raise context.mistake(
            "GM0229", node, "the size is too long", label="too long", hint="compute it in a parameter of its own"
        )
    for part in ast.walk(found):
        ast.copy_location(part, node)
    return found


def _as_size(context: Context, node: Positioned, value: Value) -> Expr:
    if is_number(value) and not isinstance(value, (bool, float)):
        if value < 0:
            raise context.mistake(
                "GM0229",
                node,
                f"the size {value} is negative",
                label="negative",
                hint="sizes count from 0",
            )
        return number(context, node, value, context.index_type if value <= context.index_type.maximum else INT64)
    if isinstance(value, Expr) and value.dtype.is_integer and value.dtype.lanes == 1:
        return value
    raise context.mistake(
        "GM0229",
        node,
        f"a size must be an integer, and this is {describe(value)}",
        label="not a size",
        hint='write a number, an integer constant, or a name in quotes: ("n", 4)',
    )


def scope_of(context: Context, node: ast.expr) -> Scope:
    """A storage scope by its text."""
    text = constant_text(context, node, "the scope")
    try:
        return Scope(text)
    except ValueError:
        known = [scope.value for scope in Scope]
        raise context.mistake(
            "GM0230",
            node,
            f"{text!r} is not a scope of memory",
            label="not known",
            hint=suggestion(text, known, f"scopes are {', '.join(known)}", form='"{}"'),
        ) from None


def make_buffer(context: Context, name: str, found: Layout, at: Positioned, data: Var | None = None) -> Buffer:
    """A buffer of that layout; its data variable is new unless given."""
    span = context.span(at)
    if data is None:
        data = Var(f"{name}_data", HANDLE, PointerType(found.dtype, found.scope), span)
    return Buffer(name, found.dtype, found.shape, data, found.strides, found.offset, found.scope, found.alignment, span)


def element_count(shape: tuple[Expr, ...]) -> int | None:
    """How many elements a shape has, if that is constant."""
    total = 1
    for one in shape:
        if not isinstance(one, IntImm):
            return None
        total *= one.value
    return total
