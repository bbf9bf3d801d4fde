"""Writes the straight-line body of a library function: named intermediate values, then the result.

Every intermediate value that is used more than once must be named by :meth:`Body.let`, or the tree would repeat it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.ir.build import const
from gristmill.ir.dtype import FLOAT32, INT32, INT64, UINT32, UINT64, DType
from gristmill.ir.expr import BitAnd, BitOr, BitXor, Cast, Expr, Reinterpret, Select, Var
from gristmill.ir.module import Function
from gristmill.ir.stmt import Bind, Return, Seq, Stmt


def function_name(op_name: str, dtype: DType) -> str:
    """What a module calls the library's function for an operation: ``math_exp_float32``, ``math_exp_float32x8``."""
    return f"math_{op_name}_{dtype}"


class Body:
    """A function that is being written. All types have the lanes of ``dtype``."""

    def __init__(self, op_name: str, dtype: DType, arity: int = 1, returns: DType | None = None) -> None:
        self.name = function_name(op_name, dtype)
        self.dtype = dtype
        self.returns = returns or dtype
        self.params = tuple(Var(name, dtype) for name in "xyz"[:arity])
        self.statements: list[Stmt] = []
        is_single = dtype.element == FLOAT32
        self.signed = (INT32 if is_single else INT64).with_lanes(dtype.lanes)
        """Integers as wide as the floats."""
        self.unsigned = (UINT32 if is_single else UINT64).with_lanes(dtype.lanes)
        self.fraction_bits = 23 if is_single else 52
        self.bias = 127 if is_single else 1023

    def let(self, name: str, value: Expr) -> Var:
        """Name a value."""
        var = Var(name, value.dtype)
        self.statements.append(Bind(var, value))
        return var

    def constant(self, value: float) -> Expr:
        return const(value, self.dtype)

    def result(self, value: Expr) -> Function:
        """The function that returns ``value``."""
        return Function(self.name, self.params, (), self.returns, Seq((*self.statements, Return(value))))

    # Bits

    @property
    def sign_mask(self) -> int:
        return 1 << (self.signed.bits - 1)

    @property
    def magnitude_mask(self) -> int:
        return self.sign_mask - 1

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    def bits(self, value: Expr) -> Expr:
        """The bits of a float as an unsigned integer."""
        return Reinterpret(self.unsigned, value)

    def signed_bits(self, value: Expr) -> Expr:
        return Reinterpret(self.signed, value)

    def float_of(self, bits: Expr) -> Expr:
        """The float with these bits."""
        return Reinterpret(self.dtype, bits)

    def magnitude(self, value: Expr) -> Expr:
        """The value without its sign."""
        return self.float_of(BitAnd(self.bits(value), const(self.magnitude_mask, self.unsigned)))

    def sign_bit(self, value: Expr) -> Expr:
        """The sign bit in its place, all else zero."""
        return BitAnd(self.bits(value), const(self.sign_mask, self.unsigned))

    def with_sign(self, magnitude: Expr, sign_bit: Expr) -> Expr:
        """The value with another sign; ``magnitude`` has none."""
        return self.float_of(BitOr(self.bits(magnitude), sign_bit))

    def flip_sign(self, value: Expr, sign_bit: Expr) -> Expr:
        """The value negated where the sign bit is set."""
        return self.float_of(BitXor(self.bits(value), sign_bit))

    def power_of_two(self, exponent: Expr) -> Expr:
        """2 to a signed whole power within the exponents of normal numbers."""
        return self.float_of((exponent + self.bias) << self.fraction_bits)

    # Arithmetic

    def polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """By Horner's rule; coefficients from the lowest power up."""
        found = self.constant(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            found = found * x + self.constant(coefficient)
        return found

    @property
    def whole_from(self) -> float:
        """From here on every number is whole: 2**23 for float32."""
        return 2.0**self.fraction_bits

    def nearest(self, name: str, value: Expr) -> tuple[Var, Var]:
        """A value of magnitude under 2**22 (2**51) rounded to a whole number, half to even: as float and as integer.

        Adding 1.5 * 2**23 moves the fraction out of the significand, and leaves the integer in its low bits.
        """
        magic = self.constant(1.5 * self.whole_from)
        moved = self.let(f"{name}_moved", value + magic)
        whole = self.let(name, moved - magic)
        integer = self.let(f"{name}_integer", self.signed_bits(moved) - self.signed_bits(magic))
        return whole, integer

    def select(self, condition: Expr, a: Expr | float, b: Expr | float) -> Expr:
        return Select(
            condition,
            a if isinstance(a, Expr) else self.constant(a),
            b if isinstance(b, Expr) else self.constant(b),
        )

    def cast(self, value: Expr, dtype: DType) -> Expr:
        """The value in another element type, with the lanes of this function."""
        return Cast(dtype.with_lanes(self.dtype.lanes), value)
