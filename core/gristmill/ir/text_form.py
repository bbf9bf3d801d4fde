"""The vocabulary of the text form: what printer and parser must agree on, and nothing else.

The form, by example::

    gristmill ir 1

    extern "saxpy_tuned" from "mylibrary"

    function @scale<n: int64>(x: float32[n], factor: float32) -> int32
      symbol "scale"
      signature "scale(x: Tensor[(n,), float32], factor: float32)"
    {
      for i: int64 in 0 +: n parallel {
        let y: float32 = x[i] * factor
        x[i] = select(y < 0.0, -y, exp(y))
      }
      return 0i32
    }

``a +: b`` is the range that starts at a and has b elements. A bare whole number is an int64, a bare decimal a float32;
other types have a suffix (``1i32``, ``2u8``, ``0.5f64``, ``inf_f32``). ``/`` is Div, ``//`` FloorDiv, ``%`` FloorMod,
``truncmod`` Mod. ``float32(x)`` is a Cast, ``@name(...)`` a call of a function, any other ``name(...)`` an operation;
``as type`` after a call states its type where it does not follow. Braces hold statements: none is an empty sequence,
one is that statement itself, several are a sequence. ``;`` starts a comment. With spans, ``#n`` stands after an
expression or before anything else, and numbers the table at the head.
"""

from __future__ import annotations

import math
import re

from gristmill.ir import expr as e
from gristmill.ir.build import round_to
from gristmill.ir.dtype import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

HEADER = "gristmill ir 1"

SUFFIXES: dict[str, DType] = {
    "i8": INT8,
    "i16": INT16,
    "i32": INT32,
    "i64": INT64,
    "u8": UINT8,
    "u16": UINT16,
    "u32": UINT32,
    "u64": UINT64,
    "f16": FLOAT16,
    "bf16": BFLOAT16,
    "f32": FLOAT32,
    "f64": FLOAT64,
    "bool": BOOL,
}
SUFFIX_OF = {dtype: suffix for suffix, dtype in SUFFIXES.items()}

# How tightly operators bind, loosest first, as in Python; all but comparisons group to the left.
OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, PREFIX, PRIMARY = range(1, 13)
LOOSEST = OR

INFIX: dict[type[e.Expr], tuple[str, int]] = {
    e.Or: ("or", OR),
    e.And: ("and", AND),
    e.Equal: ("==", COMPARISON),
    e.NotEqual: ("!=", COMPARISON),
    e.Less: ("<", COMPARISON),
    e.LessEqual: ("<=", COMPARISON),
    e.Greater: (">", COMPARISON),
    e.GreaterEqual: (">=", COMPARISON),
    e.BitOr: ("|", BIT_OR),
    e.BitXor: ("^", BIT_XOR),
    e.BitAnd: ("&", BIT_AND),
    e.ShiftLeft: ("<<", SHIFT),
    e.ShiftRight: (">>", SHIFT),
    e.Add: ("+", SUM),
    e.Sub: ("-", SUM),
    e.Mul: ("*", PRODUCT),
    e.Div: ("/", PRODUCT),
    e.FloorDiv: ("//", PRODUCT),
    e.FloorMod: ("%", PRODUCT),
}
PREFIXES: dict[type[e.Expr], tuple[str, int]] = {
    e.Not: ("not ", NOT),
    e.Negate: ("-", PREFIX),
    e.BitNot: ("~", PREFIX),
}
BUILTINS: dict[str, tuple[type[e.Expr], int]] = {
    "truncmod": (e.Mod, 2),
    "min": (e.Min, 2),
    "max": (e.Max, 2),
    "select": (e.Select, 3),
    "if_then_else": (e.IfThenElse, 3),
}
"""Nodes written like a call: their class and how many operands they take."""

KEYWORDS = frozenset(
    {"allocate", "assert", "barrier", "block", "break", "continue", "evaluate", "for", "if", "launch", "let", "return"}
    | {"device_region"}
    | {"seq", "view", "while", "else", "axis", "init", "match", "reads", "where", "writes", "function"}
    | {"align", "data", "from", "in", "offset", "on", "over", "shared", "strides", "as", "and", "not", "or"}
    | {"true", "false", "extern", "packed", "reinterpret", "shuffle"}
)
"""Words that are never the name of a variable or buffer."""

NAME = re.compile(r"[^\W\d][\w.]*")
SPECIAL_FLOAT = re.compile(r"(nan|inf)_(f16|bf16|f32|f64)")


def name_for(text: str, default: str) -> str:
    """``text`` made a name of the text form; itself where it is one."""
    if NAME.fullmatch(text) is None:
        text = re.sub(r"[^\w.]", "_", text)
        if NAME.fullmatch(text) is None:
            text = default + text
    return text + "_" if text in KEYWORDS or SPECIAL_FLOAT.fullmatch(text) else text


def integer_text(value: int, dtype: DType) -> str:
    """A whole or bool constant; the suffix is left out for int64."""
    if dtype == BOOL and value in (0, 1):
        return "true" if value else "false"
    value = int(value)  # a bool would be shown as a word
    return str(value) if dtype == INT64 else f"{value}{SUFFIX_OF.get(dtype, f'_{dtype}')}"


def float_text(value: float, dtype: DType) -> str:
    """The shortest decimal that rounds to ``value`` in its type; the suffix is left out for float32."""
    suffix = SUFFIX_OF.get(dtype, f"_{dtype}")
    if math.isnan(value):
        return f"nan_{suffix}"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}inf_{suffix}"
    text = repr(value) if dtype == FLOAT64 else _shortest(value, dtype)
    if "." not in text and "e" not in text:
        text += ".0"
    return text if dtype == FLOAT32 else text + suffix


def _shortest(value: float, dtype: DType) -> str:
    # 9 significant digits tell all float32 apart, and so all narrower floats.
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if round_to(float(text), dtype) == value:
            return text
    return repr(value)
