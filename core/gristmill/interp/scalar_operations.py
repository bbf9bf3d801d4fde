"""The Python text of every operation on scalars. Operations on vectors apply it lane by lane.

Operands come as settled values (rounded, shallow); the result may be unrounded.
"""

from __future__ import annotations

from gristmill.interp import formats, integers, mathematics
from gristmill.interp.source import Writer
from gristmill.interp.values import DEPTH_AT_MOST, Value, value
from gristmill.ir import expr as e
from gristmill.ir.dtype import BOOL, DType, TypeCode
from gristmill.ir.node import Node

HELPERS: dict[str, object] = {
    "NAN": mathematics.NAN,
    "INFINITY": mathematics.INFINITY,
    "round_float16": formats.round_float16,
    "round_bfloat16": formats.round_bfloat16,
    "round_integer": formats.round_integer,
    "encode_float16": formats.encode_float16,
    "encode_bfloat16": formats.encode_bfloat16,
    "reinterpret": formats.reinterpret,
    "fma": formats.fma,
    "divide_towards_zero": integers.divide_towards_zero,
    "remainder_towards_zero": integers.remainder_towards_zero,
    "divide_floor": integers.divide_floor,
    "remainder_floor": integers.remainder_floor,
    "shift_left": integers.shift_left,
    "shift_right": integers.shift_right,
    "saturate": integers.saturate,
    "popcount": integers.count_ones,
    "clz": integers.leading_zeros,
    "ctz": integers.trailing_zeros,
    "dot4": integers.dot_of_bytes,
    "divide": mathematics.divide,
    "minimum": mathematics.minimum,
    "maximum": mathematics.maximum,
    **{f"math_{name}": function for name, function in mathematics.ONE_OPERAND.items()},
    **{f"math_{name}": function for name, function in mathematics.TWO_OPERANDS.items()},
}
"""What generated code calls by name for arithmetic."""

_SYMBOLS: dict[type[Node], str] = {
    e.Equal: "==",
    e.NotEqual: "!=",
    e.Less: "<",
    e.LessEqual: "<=",
    e.Greater: ">",
    e.GreaterEqual: ">=",
    e.BitAnd: "&",
    e.BitOr: "|",
    e.BitXor: "^",
    e.Add: "+",
    e.Sub: "-",
    e.Mul: "*",
}
_SPECIAL_CLASS_TESTS = {
    "isnan": "({a} != {a})",
    "isinf": "({a} == INFINITY or {a} == -INFINITY)",
    "isfinite": "(-INFINITY < {a} < INFINITY)",
}
_PRECONDITIONS = {
    "quotient": "the divisor is not 0, and not -1 with the least dividend",
    "remainder": "the divisor is not 0, and not -1 with the least dividend",
    "shift_left": "the count is at least 0 and less than the width",
    "shift_right": "the count is at least 0 and less than the width",
}


class ScalarOperations:
    """Writes operations on scalars to ``self.writer``; ``self.strand`` is the text of who runs."""

    writer: Writer
    strand: str

    # Names and rounding -----------------------------------------------------------------------------------------------

    def named(self, found: Value, letter: str = "t") -> Value:
        """The value under a name of its own (or itself, if it is a name or literal already)."""
        found = self.rounded(found)
        if found.depth == 0:
            return found
        name = self.writer.fresh(letter)
        self.writer.emit(f"{name} = {found.text}")
        return Value(name, found.dtype, 0, found.low, found.high)

    def rounded(self, found: Value) -> Value:
        """The value, rounded to its type."""
        if not found.unrounded or found.dtype.bits == 64:
            return found if not found.unrounded else Value(found.text, found.dtype, found.depth, 0, 1)
        name = self.writer.fresh("t")
        if found.dtype.bits == 32:
            self.writer.emit(f"F32[0] = {found.text}")
            self.writer.emit(f"{name} = F32[0]")
        else:
            self.writer.emit(f"{name} = round_{found.dtype}({found.text})")
        return value(name, found.dtype)

    def settled(self, found: Value) -> Value:
        """The value as an operand may be: rounded, and not nested deeply."""
        found = self.rounded(found)
        return self.named(found) if found.depth > DEPTH_AT_MOST else found

    def wrapped(self, text: str, dtype: DType, depth: int, low: int, high: int) -> Value:
        """An integer text with the bounds of its value before wrapping."""
        if dtype.minimum <= low and high <= dtype.maximum:
            return Value(text, dtype, depth, low, high)
        if not dtype.is_signed:
            return value(f"({text} & {dtype.maximum})", dtype, depth + 1)
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = {text}")
        self.writer.emit(f"if not {dtype.minimum} <= {name} <= {dtype.maximum}: {name} = wrap_{dtype}({name})")
        return value(name, dtype)

    # Nodes ------------------------------------------------------------------------------------------------------------

    def binary(self, kind: type[Node], a: Value, b: Value) -> Value:
        """Arithmetic, bits, logic and comparisons of two scalars of one type."""
        depth = max(a.depth, b.depth) + 1
        dtype = a.dtype
        if issubclass(kind, e.CompareExpr):
            return Value(f"({a.text} {_SYMBOLS[kind]} {b.text})", BOOL, depth, 0, 1)
        if kind is e.And or kind is e.Or:
            return Value(f"({a.text} {'and' if kind is e.And else 'or'} {b.text})", BOOL, depth, 0, 1)
        if kind in (e.BitAnd, e.BitOr, e.BitXor):
            found = value(f"({a.text} {_SYMBOLS[kind]} {b.text})", dtype, depth)
            if kind is e.BitAnd and b.is_constant and b.low >= 0:
                return Value(found.text, dtype, depth, 0, b.low)
            return found
        if dtype.is_float:
            return self._float(kind, a, b, depth)
        if kind in (e.Add, e.Sub, e.Mul):
            return self._ring(kind, a, b, depth)
        return self._integer(kind, a, b, depth)

    def _float(self, kind: type[Node], a: Value, b: Value, depth: int) -> Value:
        if kind in (e.Add, e.Sub, e.Mul):
            return Value(f"({a.text} {_SYMBOLS[kind]} {b.text})", a.dtype, depth, 0, 1, unrounded=True)
        names: dict[type[Node], str] = {e.Div: "divide", e.Min: "minimum", e.Max: "maximum"}
        name = names[kind]
        return Value(f"{name}({a.text}, {b.text})", a.dtype, depth, 0, 1, unrounded=kind is e.Div)

    def _ring(self, kind: type[Node], a: Value, b: Value, depth: int) -> Value:
        if kind is e.Add:
            low, high = a.low + b.low, a.high + b.high
        elif kind is e.Sub:
            low, high = a.low - b.high, a.high - b.low
        else:
            corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
            low, high = min(corners), max(corners)
        return self.wrapped(f"({a.text} {_SYMBOLS[kind]} {b.text})", a.dtype, depth, low, high)

    def _integer(self, kind: type[Node], a: Value, b: Value, depth: int) -> Value:
        dtype = a.dtype
        positive = b.is_constant and b.low > 0
        if kind in (e.Min, e.Max):
            pick = min if kind is e.Min else max
            a, b = self.named(a), self.named(b)
            sign = "<" if kind is e.Min else ">"
            low, high = pick(a.low, b.low), pick(a.high, b.high)
            return Value(f"({a.text} if {a.text} {sign} {b.text} else {b.text})", dtype, 1, low, high)
        if positive and (kind is e.FloorDiv or (kind is e.Div and a.low >= 0)):
            return Value(f"({a.text} // {b.text})", dtype, depth, a.low // b.low, a.high // b.low)
        if positive and (kind is e.FloorMod or (kind is e.Mod and a.low >= 0)):
            return Value(f"({a.text} % {b.text})", dtype, depth, 0, b.low - 1)
        if kind is e.ShiftLeft:
            if b.is_constant and 0 <= b.low < dtype.bits:
                return self.wrapped(f"({a.text} << {b.text})", dtype, depth, a.low << b.low, a.high << b.low)
            return value(f"shift_left({a.text}, {b.text}, {dtype.bits}, wrap_{dtype})", dtype, depth)
        if kind is e.ShiftRight:
            if b.is_constant and 0 <= b.low < dtype.bits:
                return Value(f"({a.text} >> {b.text})", dtype, depth, a.low >> b.low, a.high >> b.low)
            return value(f"shift_right({a.text}, {b.text}, {dtype.bits})", dtype, depth)
        if kind in (e.Div, e.FloorDiv):
            name = "divide_towards_zero" if kind is e.Div else "divide_floor"
            return value(f"{name}({a.text}, {b.text}, {dtype.maximum})", dtype, depth)
        name = "remainder_towards_zero" if kind is e.Mod else "remainder_floor"
        return value(f"{name}({a.text}, {b.text})", dtype, depth)

    def unary(self, kind: type[Node], a: Value) -> Value:
        """Negate, BitNot, Not."""
        if kind is e.Not:
            return Value(f"(not {a.text})", a.dtype, a.depth + 1, 0, 1)
        if kind is e.BitNot:
            if a.dtype.is_signed:
                return Value(f"(~{a.text})", a.dtype, a.depth + 1, ~a.high, ~a.low)
            return value(f"({a.text} ^ {a.dtype.maximum})", a.dtype, a.depth + 1)
        if a.dtype.is_float:
            return Value(f"(-{a.text})", a.dtype, a.depth + 1, 0, 1)
        return self.wrapped(f"(-{a.text})", a.dtype, a.depth + 1, -a.high, -a.low)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """One of two values; both are evaluated already."""
        depth = max(condition.depth, a.depth, b.depth) + 1
        text = f"({a.text} if {condition.text} else {b.text})"
        return Value(text, a.dtype, depth, min(a.low, b.low), max(a.high, b.high))

    def converted(self, a: Value, target: DType) -> Value:
        """The value in another scalar type."""
        source, depth = a.dtype, a.depth + 1
        if source == target:
            return a
        if target.is_bool:
            return Value(f"({a.text} != 0)", target, depth, 0, 1)
        if source.is_float:
            if target.is_float:
                wider = target.bits > source.bits and not (target.bits == 16 or source.bits == 64)
                return Value(a.text, target, a.depth, 0, 1, unrounded=not wider)
            return value(f"saturate({a.text}, {target.minimum}, {target.maximum})", target, depth)
        if target.is_float:
            if a.low >= -(1 << 53) and a.high <= 1 << 53:
                return Value(f"float({a.text})", target, depth, 0, 1, unrounded=True)
            return Value(f"round_integer({a.text}, DT_{target})", target, depth, 0, 1)
        if source.is_bool:
            return Value(f"int({a.text})", target, depth, a.low, a.high)
        if target.minimum <= a.low and a.high <= target.maximum:
            return Value(a.text, target, a.depth, a.low, a.high)
        if not target.is_signed:
            return value(f"({a.text} & {target.maximum})", target, depth)
        return value(f"wrap_{target}({a.text})", target, depth)

    def reinterpreted(self, a: Value, target: DType) -> Value:
        """The bits of a value (scalar or vector) as another type."""
        lanes = a.text if a.dtype.lanes > 1 else f"[{a.text}]"
        text = f"reinterpret({lanes}, DT_{a.dtype}, DT_{target})"
        return value(text if target.lanes > 1 else f"{text}[0]", target, a.depth + 1)

    def operation(self, name: str, dtype: DType, args: list[Value], site: int) -> Value:
        """A call of an operation of :mod:`gristmill.ir.op` on scalars; the packed interface is elsewhere."""
        texts = ", ".join(arg.text for arg in args)
        depth = max(arg.depth for arg in args) + 1
        source = args[0].dtype
        if name == "likely":
            return args[0]
        if name in _SPECIAL_CLASS_TESTS:
            a = self.named(args[0])
            return Value(_SPECIAL_CLASS_TESTS[name].format(a=a.text), BOOL, 1, 0, 1)
        if name == "fma":
            return value(f"fma({texts}, DT_{source})", dtype, depth)
        if name == "abs":
            if source.is_float:
                return Value(f"abs({texts})", dtype, depth, 0, 1)
            if not source.is_signed:
                return args[0]
            high = max(abs(args[0].low), abs(args[0].high))
            return self.wrapped(f"abs({texts})", dtype, depth, 0, high)
        if name in ("dot4", "dot4_mixed"):
            most = 4 << 16
            is_mixed = name == "dot4_mixed"
            text = f"dot4({texts}, {is_mixed or source.is_signed}, {source.is_signed and not is_mixed})"
            return self.wrapped(text, dtype, depth, args[2].low - most, args[2].high + most)
        if name in ("popcount", "clz", "ctz"):
            return Value(f"{name}({texts}, {(1 << source.bits) - 1})", dtype, depth, 0, source.bits)
        if name in _PRECONDITIONS:
            return self._partial(name, dtype, args, site)
        exact = name in mathematics.EXACT_IN_TYPE
        return Value(f"math_{name}({texts})", dtype, depth, 0, 1, unrounded=not exact)

    def _partial(self, name: str, dtype: DType, args: list[Value], site: int) -> Value:
        a, b = (self.named(arg) for arg in args)
        if name in ("quotient", "remainder"):
            broken = f"{b.text} == 0"
            if dtype.is_signed:
                broken += f" or ({b.text} == -1 and {a.text} == {dtype.minimum})"
        else:
            broken = f"not 0 <= {b.text} < {dtype.bits}"
        self.writer.emit(
            f"if {broken}: "
            f"E.precondition({site}, {name!r}, {_PRECONDITIONS[name]!r}, ({a.text}, {b.text}), {self.strand})"
        )
        kind = {"quotient": e.Div, "remainder": e.Mod, "shift_left": e.ShiftLeft, "shift_right": e.ShiftRight}[name]
        return self.named(self.binary(kind, a, b))


def wrapping_helpers(dtypes: tuple[DType, ...]) -> dict[str, object]:
    """``wrap_int32`` and the like, and the types themselves as ``DT_int32``."""
    found: dict[str, object] = {}
    for dtype in dtypes:
        found[f"DT_{dtype}"] = dtype
        if dtype.code in (TypeCode.INT, TypeCode.UINT):
            found[f"wrap_{dtype}"] = integers.wrapping_to(dtype)
    return found
