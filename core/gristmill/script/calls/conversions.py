"""Types as functions, casts, bits, and the extreme values of types."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping

from gristmill.errors import suggestion
from gristmill.ir.build import const
from gristmill.ir.dtype import FLOAT32, INT64, SCALARS, DType, parse_dtype
from gristmill.ir.expr import Cast, Expr, FloatImm, IntImm, Reinterpret
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.operands import number, operand, plain_number
from gristmill.script.source import Positioned
from gristmill.script.types import convert
from gristmill.script.values import Method, Number, PointerAnnotation, Symbolic, Value, describe

_SPECIAL = {"inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf, "nan": math.nan}


def dtype_from_text(context: Context, node: Positioned, text: str) -> DType:
    """The type that a text names. Raises Mistake with the closest one."""
    try:
        return parse_dtype(text)
    except ValueError as error:
        raise context.mistake(
            "GM0228",
            node,
            f"{text!r} is not a type",
            label="not a type",
            hint=suggestion(text, [*map(str, SCALARS), "handle"], str(error), form='"{}"'),
        ) from None


def dtype_argument(context: Context, node: ast.expr) -> DType:
    """A type given as ``"float32"`` or ``T.float32``."""
    from gristmill.script.expressions import lower

    value = lower(context, node)
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return dtype_from_text(context, node, value)
    raise context.mistake(
        "GM0228",
        node,
        f"a type is expected here, and this is {describe(value)}",
        label="not a type",
        hint='write it in quotes, as "float32", or as T.float32',
    )


def call_type(context: Context, call: ast.Call, dtype: DType) -> Value:
    """``T.float32(x)``: a conversion; ``T.int32()``: a new symbolic size; ``T.handle("float32")``: a pointer type."""
    if dtype.is_handle:
        args = bind(context, call, (), ("dtype", "scope", "storage_scope"))
        from gristmill.script.operands import constant_text

        element = dtype_argument(context, args["dtype"]) if "dtype" in args else None
        scope = args.get("scope", args.get("storage_scope"))
        return PointerAnnotation(element, constant_text(context, scope, "the scope") if scope is not None else "global")
    args = bind(context, call, (), ("value", "is_size_var", "dtype"))
    if "value" not in args:
        if dtype.is_integer and dtype.lanes == 1:
            return Symbolic(dtype)
        raise context.mistake(
            "GM0291",
            call,
            f"`{context.segment(call.func)}` needs the value to convert",
            label="no value",
            hint=f"write `{context.segment(call.func)}(0)`; only integer types make symbolic sizes",
        )
    node = args["value"]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if dtype.is_float and node.value.lower() in _SPECIAL:
            return FloatImm(_SPECIAL[node.value.lower()], dtype, context.span(call))
        raise context.mistake(
            "GM0293",
            node,
            f"{describe(node.value)} is not a {dtype}",
            label="not a number",
            hint='of texts, float types take "inf", "-inf" and "nan"',
        )
    return convert_to(context, call, node, operand(context, node), dtype)


def convert_to(context: Context, call: Positioned, node: ast.expr, value: Expr | Number, dtype: DType) -> Expr:
    """An explicit conversion, as :class:`~gristmill.ir.expr.Cast` defines it. Constants must fit, or it is a mistake."""
    if dtype.is_handle or dtype.is_void or (isinstance(value, Expr) and value.dtype.is_handle):
        raise context.mistake(
            "GM0273",
            call,
            f"nothing converts {'to ' + str(dtype) if dtype.is_handle or dtype.is_void else 'a pointer'}",
            label="no such conversion",
            hint="pointers come from `A.data`, `T.address_of(A[i])` and parameters of type T.handle",
        )
    if not isinstance(value, Expr):
        if dtype.is_bool:
            return const(value != 0, dtype, context.span(call))
        if isinstance(value, float) and dtype.element.is_integer and math.isfinite(value):
            return number(context, node, math.trunc(value), dtype)
        found = number(context, node, value, dtype)
        return _at(found, context, call)
    if dtype.lanes == 1 and value.dtype.lanes > 1:
        # A scalar type converts each lane of a vector.
        dtype = dtype.with_lanes(value.dtype.lanes)
    if value.dtype == dtype:
        return value
    if value.dtype.lanes == 1:
        element = value if value.dtype == dtype.element else Cast(dtype.element, value, context.span(call))
        return convert(element, dtype)
    if value.dtype.lanes != dtype.lanes:
        raise context.mistake(
            "GM0266",
            call,
            f"{value.dtype} does not convert to {dtype}: the numbers of lanes differ",
            label=f"{value.dtype.lanes} lanes",
            hint=f"convert to {dtype.with_lanes(value.dtype.lanes)}",
        )
    return Cast(dtype, value, context.span(call))


def _at(found: Expr, context: Context, call: Positioned) -> Expr:
    if isinstance(found, IntImm):
        return IntImm(found.value, found.type, context.span(call))
    if isinstance(found, FloatImm):
        return FloatImm(found.value, found.type, context.span(call))
    return found


def _cast(context: Context, call: ast.Call) -> Value:
    """``T.cast(value, dtype)`` and, classic, ``T.Cast(dtype, value)``: the type is told by being one."""
    args = bind(context, call, ("value", "dtype"))
    first, second = args["value"], args["dtype"]
    if _names_type(context, first):
        first, second = second, first
    return convert_to(context, call, first, operand(context, first), dtype_argument(context, second))


def _names_type(context: Context, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, (ast.Name, ast.Attribute)):
        from gristmill.script.expressions import lower

        return isinstance(lower(context, node), (DType, str))
    return False


def astype(context: Context, call: ast.Call, method: Method) -> Value:
    """``x.astype(dtype)``."""
    args = bind(context, call, ("dtype",))
    assert isinstance(call.func, ast.Attribute)
    return convert_to(context, call, call.func.value, method.owner, dtype_argument(context, args["dtype"]))


def _reinterpret(context: Context, call: ast.Call) -> Value:
    """``T.reinterpret(dtype, value)``, in either order."""
    args = bind(context, call, ("dtype", "value"))
    first, second = args["dtype"], args["value"]
    if not _names_type(context, first):
        first, second = second, first
    dtype = dtype_argument(context, first)
    value = operand(context, second)
    if not isinstance(value, Expr):
        value = number(context, second, value, FLOAT32 if isinstance(value, float) else INT64)
    source = value.dtype
    if source.bits * source.lanes != dtype.bits * dtype.lanes or any(
        one.is_bool or one.is_handle or one.is_void for one in (source, dtype)
    ):
        raise context.mistake(
            "GM0274",
            call,
            f"the bits of {source} cannot be read as {dtype}",
            label=f"{source.bits * source.lanes} bits as {dtype.bits * dtype.lanes}",
            hint="reinterpret only numbers, between types of the same width; convert with `T.cast`",
        )
    return value if source == dtype else Reinterpret(dtype, value, context.span(call))


def _extreme(name: str, value: Callable[[DType], Number]) -> Callable[[Context, ast.Call], Value]:
    def handler(context: Context, call: ast.Call) -> Value:
        args = bind(context, call, ("dtype",))
        dtype = dtype_argument(context, args["dtype"])
        if not (dtype.is_float or (dtype.is_integer and name not in ("infinity", "nan"))):
            raise context.mistake(
                "GM0293",
                args["dtype"],
                f"{dtype} has no {name}",
                label=str(dtype),
                hint="use a float type" if name in ("infinity", "nan") else "use an integer or float type",
            )
        return const(value(dtype.element), dtype, context.span(call))

    return handler


# The greatest finite numbers: IEEE 754-2019 table 3.5 for binary16, 32 and 64; bfloat16 has 8 bits of precision.
_GREATEST = {
    "float16": 65504.0,
    "bfloat16": (2 - 2**-7) * 2.0**127,
    "float32": (2 - 2**-23) * 2.0**127,
    "float64": (2 - 2**-52) * 2.0**1023,
}


def _greatest(dtype: DType) -> Number:
    return _GREATEST[str(dtype)] if dtype.is_float else dtype.maximum


def _least(dtype: DType) -> Number:
    return -_GREATEST[str(dtype)] if dtype.is_float else dtype.minimum


def _python_int(context: Context, call: ast.Call) -> Value:
    return _python_type(context, call, INT64, lambda value: int(value))


def _python_float(context: Context, call: ast.Call) -> Value:
    args = bind(context, call, ("value",))
    node = args["value"]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() in _SPECIAL:
        return _SPECIAL[node.value.lower()]
    return _python_type(context, call, FLOAT32, lambda value: float(value))


def _python_bool(context: Context, call: ast.Call) -> Value:
    return _python_type(context, call, parse_dtype("bool"), lambda value: bool(value))


def _python_type(context: Context, call: ast.Call, dtype: DType, convert_number: Callable[[Number], Number]) -> Value:
    """``int(x)`` and the like: of a constant a constant without a type, else a conversion to the default type."""
    args = bind(context, call, ("value",))
    value = operand(context, args["value"])
    if not isinstance(value, Expr):
        try:
            return convert_number(value)
        except (ValueError, OverflowError) as error:
            raise context.mistake(
                "GM0219", call, f"`{context.segment(call)}` cannot be computed: {error}", label="no such number",
                hint="convert a finite number",
            ) from None  # fmt: skip
    constant = plain_number(value)
    if constant is not None and math.isfinite(constant):
        return convert_number(constant)
    return convert_to(context, call, args["value"], value, dtype)


TABLE: Mapping[str, Callable[..., Value]] = {
    "cast": _cast,
    "Cast": _cast,
    "reinterpret": _reinterpret,
    "max_value": _extreme("maximum", _greatest),
    "min_value": _extreme("minimum", _least),
    "infinity": _extreme("infinity", lambda _: math.inf),
    "nan": _extreme("nan", lambda _: math.nan),
}
PYTHON: Mapping[str, Callable[..., Value]] = {"int": _python_int, "float": _python_float, "bool": _python_bool}
