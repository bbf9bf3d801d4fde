"""Expressions of the syntax tree, by the class of the node."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping

from gristmill.ir.build import const
from gristmill.ir.dtype import DType
from gristmill.ir.expr import And, Expr, IfThenElse, Mul, Or
from gristmill.ir.memory import Buffer
from gristmill.script.context import Context
from gristmill.script.habits import EXPRESSIONS, INSTEAD_OF_EXPRESSIONS
from gristmill.script.lookup import explain_foreign, file_member, name_value, namespace_member
from gristmill.script.memory import buffer_member, element
from gristmill.script.operands import condition, meet, operand, typed
from gristmill.script.operators import binary, compare, unary
from gristmill.script.values import (
    Allocated,
    BufferShape,
    Callee,
    ClassNamespace,
    FileNamespace,
    Foreign,
    Intrinsic,
    LetType,
    Method,
    Namespace,
    Number,
    Value,
    describe,
)

_EXPONENT_AT_MOST = 8


def lower(context: Context, node: ast.expr) -> Value:
    """The value of an expression. Raises Mistake."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        name = EXPRESSIONS.get(type(node), type(node).__name__)
        raise context.mistake(
            "GM0255",
            node,
            f"{name} cannot be used in a kernel",
            label="not part of the language",
            hint=INSTEAD_OF_EXPRESSIONS.get(type(node), "write it with loops, names and arithmetic"),
        )
    return handler(context, node)


def _name(context: Context, node: ast.Name) -> Value:
    return name_value(context, node)


def _constant(context: Context, node: ast.Constant) -> Value:
    value = node.value
    if isinstance(value, (complex, bytes)) or value is Ellipsis:
        raise context.mistake(
            "GM0255",
            node,
            f"{context.segment(node)} cannot be used in a kernel",
            label="not part of the language",
            hint="kernels have integers, floats, bools and texts",
        )
    if isinstance(value, int) and abs(value) >> 64:
        raise context.mistake(
            "GM0219",
            node,
            "the number needs more than 64 bits",
            label="too large",
            hint="no type of the language holds it",
        )
    if isinstance(value, float) and math.isinf(value):
        raise context.mistake(
            "GM0219",
            node,
            f"the number {context.segment(node)} is too large: the largest of float64 is 1.797e308",
            label="too large",
            hint='if infinity is meant, write `T.infinity("float32")`',
        )
    return value


def _tuple(context: Context, node: ast.Tuple | ast.List) -> Value:
    return tuple(lower(context, item) for item in node.elts)


def _attribute(context: Context, node: ast.Attribute) -> Value:
    owner = lower(context, node.value)
    if isinstance(owner, Namespace):
        return namespace_member(context, node, owner)
    if isinstance(owner, FileNamespace):
        return file_member(context, owner.file, node, node.attr)
    if isinstance(owner, ClassNamespace):
        return context.project.method_of(context, owner, node)
    if isinstance(owner, Foreign):
        raise explain_foreign(context, node, owner)
    if isinstance(owner, (Buffer, Allocated)):
        return buffer_member(context, node, owner.buffer if isinstance(owner, Allocated) else owner)
    if isinstance(owner, Intrinsic):
        from gristmill.script.calls import NAMESPACES, unknown_member

        table = NAMESPACES.get(owner.path, {})
        if node.attr in table:
            return table[node.attr]
        raise unknown_member(context, node, owner.path, node.attr)
    if isinstance(owner, (Expr, int, float)):
        if node.attr == "astype":
            return Method("astype", owner)
        if node.attr == "dtype":
            return typed(context, node.value, owner).dtype
    raise context.mistake(
        "GM0284",
        node,
        f"{describe(owner)} has no `{node.attr}`",
        label="not known",
        hint="values have .astype(dtype) and .dtype",
    )


def _subscript(context: Context, node: ast.Subscript) -> Value:
    owner = lower(context, node.value)
    if isinstance(owner, Allocated):
        owner = owner.buffer
    if isinstance(owner, Buffer):
        return element(context, node, owner)
    if isinstance(owner, BufferShape):
        return _shape_of(context, node, owner)
    if isinstance(owner, LetType):
        dtype = lower(context, node.slice)
        if isinstance(dtype, DType):
            return LetType(dtype)
    if isinstance(owner, tuple):
        return _item(context, node, owner)
    if isinstance(owner, Foreign):
        raise explain_foreign(context, node, owner)
    raise context.mistake(
        "GM0286",
        node,
        f"{describe(owner)} cannot be indexed",
        label="not a buffer",
        hint="only buffers and constant tuples are indexed",
    )


def _shape_of(context: Context, node: ast.Subscript, owner: BufferShape) -> Value:
    shape = owner.buffer.shape
    axis = operand(context, node.slice)
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise context.mistake(
            "GM0285",
            node.slice,
            f"`{owner.buffer.name}` has {len(shape)} dimensions, and {context.segment(node.slice)} is none of them",
            label="no such dimension",
            hint=f"dimensions are counted from 0 to {len(shape) - 1}" if shape else "it is a single element",
        )
    return shape[axis]


def _item(context: Context, node: ast.Subscript, owner: tuple[Value, ...]) -> Value:
    position = operand(context, node.slice)
    if not isinstance(position, int) or not -len(owner) <= position < len(owner):
        raise context.mistake(
            "GM0282",
            node.slice,
            f"the tuple has {len(owner)} items, and `{context.segment(node.slice)}` is not the number of one of them",
            label="no such item",
            hint="tuples are indexed by constants; to index by a variable, store the values in a local buffer",
        )
    return owner[position]


def _binary(context: Context, node: ast.BinOp) -> Value:
    left = lower(context, node.left)
    if isinstance(left, (tuple, str)) and isinstance(node.op, (ast.Add, ast.Mult)):
        return _join(context, node, left)
    if isinstance(node.op, ast.Pow):
        return _power(context, node, left)
    from gristmill.script.operands import as_operand

    a = as_operand(context, node.left, left)
    b = operand(context, node.right)
    return binary(context, node, type(node.op), a, b, node.left, node.right)


def _join(context: Context, node: ast.BinOp, left: tuple[Value, ...] | str) -> Value:
    """Tuples and texts of constants are joined with ``+``."""
    right = lower(context, node.right)
    if isinstance(node.op, ast.Add) and isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
        return left + right
    hint = "tuples and texts are only joined with their like, by `+`"
    if isinstance(node.op, ast.Mult) and isinstance(left, tuple):
        hint = 'memory that a kernel writes is `T.alloc_local((n,), "float32")`, or `T.alloc_shared` for all threads of a block'
    raise context.mistake(
        "GM0267",
        node,
        f"{describe(left)} and {describe(right)} cannot be computed with",
        label="not numbers",
        hint=hint,
    )


def _power(context: Context, node: ast.BinOp, left: Value) -> Value:
    from gristmill.script.operands import as_operand

    base = as_operand(context, node.left, left)
    exponent = operand(context, node.right)
    whole = not isinstance(exponent, (Expr, bool)) and float(exponent).is_integer()
    if isinstance(base, Expr) and whole and not isinstance(exponent, Expr) and 0 <= exponent <= _EXPONENT_AT_MOST:
        if exponent == 0:
            return const(1, base.dtype, context.span(node))
        if exponent == 1:
            return base
        # The base is read again for each factor, so it must be cheap and free of effects.
        if _is_simple(node.left):
            product = base
            for _ in range(int(exponent) - 1):
                factor = as_operand(context, node.left, lower(context, node.left))
                assert isinstance(factor, Expr)
                product = Mul(product, factor, context.span(node))
            return product
        if base.dtype.is_integer:
            raise context.mistake(
                "GM0270",
                node,
                "the power of an integer is written as a product, and its base is too long to repeat",
                label="name the base first",
                hint=f"write `x = {context.segment(node.left)}` before, and `x ** {exponent}` here",
            )
    return binary(context, node, ast.Pow, base, exponent, node.left, node.right)


def _is_simple(node: ast.expr) -> bool:
    if isinstance(node, (ast.Name, ast.Constant, ast.Attribute)):
        return True
    if isinstance(node, ast.Subscript):
        return all(
            isinstance(part, (ast.Name, ast.Constant, ast.Tuple, ast.Subscript, ast.BinOp, ast.Load, ast.operator))
            and not isinstance(part, ast.Pow)
            for part in ast.walk(node)
        )
    return False


def _unary(context: Context, node: ast.UnaryOp) -> Value:
    return unary(context, node, operand(context, node.operand))


def _compare(context: Context, node: ast.Compare) -> Value:
    """A chain of comparisons is their conjunction; the middle operands are read once for each side."""
    found: Expr | bool = True
    left_at = node.left
    for kind, right_at in zip(node.ops, node.comparators, strict=True):
        left, right = lower(context, left_at), lower(context, right_at)
        if isinstance(left, str) or isinstance(right, str) or isinstance(left, DType) or isinstance(right, DType):
            one: Expr | bool = _compare_names(context, node, kind, left, right)
        else:
            from gristmill.script.operands import as_operand

            a, b = as_operand(context, left_at, left), as_operand(context, right_at, right)
            one = compare(context, node, type(kind), a, b, left_at, right_at)
        found = _both(context, node, found, one)
        left_at = right_at
    return found


def _compare_names(context: Context, node: ast.Compare, kind: ast.cmpop, left: Value, right: Value) -> bool:
    """Texts and types are compared while the kernel is read, so that constants choose between variants."""
    same = str(left) == str(right) and isinstance(left, (str, DType)) and isinstance(right, (str, DType))
    if isinstance(kind, ast.Eq):
        return same
    if isinstance(kind, ast.NotEq):
        return not same
    raise context.mistake(
        "GM0269",
        node,
        f"{describe(left)} and {describe(right)} can only be compared with == and !=",
        label="not numbers",
        hint="compare with == or !=",
    )


def _both(context: Context, node: ast.expr, left: Expr | bool, right: Expr | bool) -> Expr | bool:
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return And(left, right, context.span(node))


def _logic(context: Context, node: ast.BoolOp) -> Value:
    is_and = isinstance(node.op, ast.And)
    found: Expr | None = None
    what = "`and` takes bools: an operand" if is_and else "`or` takes bools: an operand"
    for part in node.values:
        with context.only_sometimes("" if part is node.values[0] else "the second part of a condition"):
            value = _logic_operand(context, part, what)
        if isinstance(value, bool):
            if value is not is_and:
                # False ends an `and`, True an `or`; what stands before it has no effect worth keeping.
                return value
            continue
        if found is None:
            found = value
        else:
            a, b = meet(context, node, found, value, node, part)
            found = (And if is_and else Or)(a, b, context.span(node))
    return is_and if found is None else found


def _logic_operand(context: Context, node: ast.expr, what: str) -> Expr | bool:
    value = operand(context, node)
    if isinstance(value, bool) or (isinstance(value, Expr) and value.dtype.is_bool):
        return value
    return condition(context, node, what)


def _choice(context: Context, node: ast.IfExp) -> Value:
    test = condition(context, node.test)
    if isinstance(test, bool):
        return lower(context, node.body if test else node.orelse)
    with context.only_sometimes("a part of a choice"):
        a, b = operand(context, node.body), operand(context, node.orelse)
    return choose(context, node, test, a, b, node.body, node.orelse)


def choose(
    context: Context,
    node: ast.expr,
    test: Expr,
    a: Expr | Number,
    b: Expr | Number,
    a_at: ast.expr,
    b_at: ast.expr,
) -> Expr:
    """``a if test else b``: only one side is evaluated."""
    left, right = meet(context, node, a, b, a_at, b_at)
    return IfThenElse(test, left, right, context.span(node))


def _call(context: Context, node: ast.Call) -> Value:
    from gristmill.script.calls import call_function, call_method

    function = (
        name_value(context, node.func, called=True) if isinstance(node.func, ast.Name) else lower(context, node.func)
    )
    if isinstance(function, Intrinsic):
        return function.handler(context, node)
    if isinstance(function, DType):
        from gristmill.script.calls.conversions import call_type

        return call_type(context, node, function)
    if isinstance(function, Callee):
        return call_function(context, node, function)
    if isinstance(function, Method):
        return call_method(context, node, function)
    if isinstance(function, Foreign):
        raise explain_foreign(context, node.func, function)
    raise context.mistake(
        "GM0297",
        node.func,
        f"{describe(function)} cannot be called",
        label="not a function",
        hint="call functions of `T`, and helper functions with typed parameters",
    )


_HANDLERS: Mapping[type[ast.expr], Callable[..., Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _logic,
    ast.IfExp: _choice,
    ast.Call: _call,
}
