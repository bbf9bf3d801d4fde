"""What a packed function says when an argument is wrong: one form for all messages.

Each names the function, the argument with its number (from 1), what is expected and what was given with its value, and
ends with the whole signature on a line of its own::

    blur_rows: argument `dst` (number 2) has size 7 in dimension 1, but `w` is 8 (from dimension 1 of `src`)
      signature: blur_rows(src: Buffer((h, w), float32), dst: Buffer((h, w), float32))
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.codegen.packed_interface import DEVICE_TYPE_NAMES, TypeIndex, signature_text
from gristmill.ir.build import conjunction, const, equal, false, is_constant, not_equal
from gristmill.ir.dtype import DLPACK_CODES, INT32, TypeCode
from gristmill.ir.expr import BitAnd, Expr, Not, ShiftRight, Var
from gristmill.ir.module import Function
from gristmill.ir.span import Span
from gristmill.ir.stmt import Assert, If, Seq, Stmt

Part = str | Expr

# What a value of another type is called, in the order in which they are told apart.
_KIND_NAMES: tuple[tuple[tuple[TypeIndex, ...], str], ...] = (
    ((TypeIndex.NONE,), "None"),
    ((TypeIndex.BOOL,), "a bool"),
    ((TypeIndex.INT,), "an int"),
    ((TypeIndex.FLOAT,), "a float"),
    ((TypeIndex.TENSOR, TypeIndex.DLTENSOR), "an array"),
    ((TypeIndex.RAW_TEXT, TypeIndex.SMALL_TEXT, TypeIndex.TEXT), "a str"),
    ((TypeIndex.BIG_INT,), "an int beyond 64 bits"),
    ((TypeIndex.POINTER,), "a pointer"),
    ((TypeIndex.ARRAY, TypeIndex.LIST), "a list or tuple"),
    ((TypeIndex.PYTHON_OBJECT,), "a Python object that is neither a number nor an array"),
)

_CODE_NAMES: tuple[tuple[TypeCode, bool], ...] = (
    (TypeCode.INT, True),
    (TypeCode.UINT, True),
    (TypeCode.FLOAT, True),
    (TypeCode.BFLOAT, True),
    (TypeCode.BOOL, False),
)


@dataclass(frozen=True, slots=True)
class Messages:
    """Makes the checks of one function; ``name`` and ``signature`` are those of the public function."""

    name: str
    signature: str
    span: Span | None

    @classmethod
    def of(cls, function: Function) -> Messages:
        return cls(function.facts.symbol or function.name, signature_text(function), function.span)

    def check(self, condition: Expr, kind: str, *parts: Part) -> Stmt:
        """Raise ``kind`` with the parts as message, between the function's name and its signature, unless it holds."""
        # Texts stay apart: a code generator keeps each of them once, and the signature is in every message.
        message = (f"{self.name}: ", *parts, f"\n  signature: {self.signature}")
        return Assert(condition, kind, message, self.span)

    def argument(self, number: int, name: str) -> str:
        """How messages name an argument; ``number`` counts from 0."""
        return f"argument `{name}` (number {number + 1})"

    def wrong_kind(self, accepted: Expr, kind: Var, argument: str, wanted: str, *also: TypeIndex) -> Stmt:
        """TypeError unless ``accepted``: what is wanted, and what kind was given; ``also`` are the kinds accepted."""
        must = f" must be {wanted}, and "
        tests: list[Stmt] = []
        for indices, given in _KIND_NAMES:
            differs = conjunction(not_equal(kind, int(index)) for index in indices if index not in also)
            if not is_constant(differs, 1):
                tests.append(self.check(differs, "TypeError", argument, must, f"{given} was given"))
        other = (argument, must, "an object of another type (TVM FFI type index ", kind, ") was given")
        tests.append(self.check(false(), "TypeError", *other))
        return If(Not(accepted), Seq(tuple(tests), self.span), None, self.span)

    def wrong_dtype(self, accepted: Expr, dtype: Var, argument: str, wanted: str) -> Stmt:
        """TypeError unless ``accepted``: the dtype wanted, and the one given. ``dtype`` as ``tensor_dtype`` gives it."""
        end = f", but {wanted} is expected"
        code = BitAnd(dtype, const(0xFF, INT32))
        bits = BitAnd(ShiftRight(dtype, const(8, INT32)), const(0xFF, INT32))
        lanes = ShiftRight(dtype, const(16, INT32))
        vector = (argument, " has elements of ", lanes, " lanes (DLPack code ", code, ", ", bits, " bits)", end)
        tests = [self.check(equal(lanes, 1), "TypeError", *vector)]
        for type_code, sized in _CODE_NAMES:
            given: tuple[Part, ...] = (argument, f" has dtype {type_code.value}", *((bits,) if sized else ()), end)
            tests.append(self.check(not_equal(code, DLPACK_CODES[type_code]), "TypeError", *given))
        other = (argument, " has a dtype of DLPack code ", code, " with ", bits, " bits", end)
        tests.append(self.check(false(), "TypeError", *other))
        return If(Not(accepted), Seq(tuple(tests), self.span), None, self.span)

    def wrong_device(self, accepted: Expr, device: Var, argument: str, wanted: int) -> Stmt:
        """ValueError unless ``accepted``: the kind of memory wanted, and the one given."""
        place = DEVICE_TYPE_NAMES.get(wanted, f"device type {wanted}")
        names = ", ".join(f"{number} {name}" for number, name in DEVICE_TYPE_NAMES.items())
        end = f" (of {names}), but {place} memory is expected"
        return self.check(accepted, "ValueError", argument, " is in memory of device type ", device, end)
