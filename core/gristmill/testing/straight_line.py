"""Evaluates straight-line functions of scalars over whole NumPy arrays: millions of points of a library function a second.

Only for functions whose body is bindings and one return. The reference executor runs everything, one value at a time;
this runs little, fast, and exactly (NumPy's elementwise arithmetic rounds like the IR's; ``exp`` and the like are not
evaluated at all).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gristmill.ir import expr as e
from gristmill.ir.dtype import DType
from gristmill.ir.functor import EXPRESSIONS, Functor
from gristmill.ir.module import Function
from gristmill.ir.stmt import Bind, Return, Seq

Array = np.ndarray[Any, Any]


def evaluate(function: Function, *arguments: Array) -> Array:
    """The results for arrays of arguments (one a parameter, of its type). Raises TypeError for any other function."""
    evaluator = _Evaluator()
    for param, argument in zip(function.params, arguments, strict=True):
        if not isinstance(param, e.Var) or argument.dtype != numpy_type(param.type):
            raise TypeError(f"parameter {param.name} does not take an array of {argument.dtype}")
        evaluator.values[param] = argument
    statements = function.body.body if isinstance(function.body, Seq) else (function.body,)
    with np.errstate(all="ignore"):
        for statement in statements:
            if isinstance(statement, Bind):
                evaluator.values[statement.var] = evaluator.visit(statement.value)
            elif isinstance(statement, Return) and statement.value is not None:
                return np.asarray(evaluator.visit(statement.value))
            else:
                raise TypeError(f"{type(statement).__name__} is not straight-line code")
    raise TypeError("the function does not end with a return")


def numpy_type(dtype: DType) -> np.dtype[Any]:
    """The NumPy type of a scalar type (bfloat16 has none)."""
    return np.dtype(str(dtype))


_ARITHMETIC: dict[type[e.Expr], Any] = {
    e.Add: np.add,
    e.Sub: np.subtract,
    e.Mul: np.multiply,
    e.Min: np.fmin,
    e.Max: np.fmax,
    e.BitAnd: np.bitwise_and,
    e.BitOr: np.bitwise_or,
    e.BitXor: np.bitwise_xor,
    e.Equal: np.equal,
    e.NotEqual: np.not_equal,
    e.Less: np.less,
    e.LessEqual: np.less_equal,
    e.Greater: np.greater,
    e.GreaterEqual: np.greater_equal,
    e.And: np.logical_and,
    e.Or: np.logical_or,
}


class _Evaluator(Functor[Any], over=EXPRESSIONS):
    def __init__(self) -> None:
        self.values: dict[e.Var, Any] = {}

    def visit_Expr(self, node: e.Expr) -> Any:
        raise TypeError(f"{type(node).__name__} cannot be evaluated over arrays")

    def visit_Var(self, node: e.Var) -> Any:
        return self.values[node]

    def visit_IntImm(self, node: e.IntImm) -> Any:
        return numpy_type(node.type).type(node.value)

    def visit_FloatImm(self, node: e.FloatImm) -> Any:
        return numpy_type(node.type).type(node.value)

    def visit_BinaryExpr(self, node: e.BinaryExpr | e.CompareExpr) -> Any:
        operation = _ARITHMETIC.get(type(node))
        if operation is None:
            return self.visit_Expr(node)
        return operation(self.visit(node.a), self.visit(node.b))

    visit_CompareExpr = visit_BinaryExpr

    def visit_Div(self, node: e.Div) -> Any:
        if not node.dtype.is_float:
            return self.visit_Expr(node)
        return np.divide(self.visit(node.a), self.visit(node.b))

    def visit_Mod(self, node: e.Mod) -> Any:
        a, b = self.visit(node.a), self.visit(node.b)
        return np.where(b == 0, np.zeros_like(a), np.fmod(a, np.where(b == 0, np.ones_like(b), b)))

    def visit_ShiftLeft(self, node: e.ShiftLeft) -> Any:
        a, b = self.visit(node.a), self.visit(node.b)
        inside = (b >= 0) & (b < node.dtype.bits)
        return np.where(inside, np.left_shift(a, np.where(inside, b, np.zeros_like(b))), np.zeros_like(a))

    def visit_ShiftRight(self, node: e.ShiftRight) -> Any:
        a, b = self.visit(node.a), self.visit(node.b)
        inside = (b >= 0) & (b < node.dtype.bits)
        filled = np.right_shift(a, numpy_type(node.dtype).type(node.dtype.bits - 1)) if node.dtype.is_signed else a * 0
        return np.where(inside, np.right_shift(a, np.where(inside, b, np.zeros_like(b))), filled)

    def visit_Negate(self, node: e.Negate) -> Any:
        return np.negative(self.visit(node.a))

    def visit_BitNot(self, node: e.BitNot) -> Any:
        return np.invert(self.visit(node.a))

    def visit_Not(self, node: e.Not) -> Any:
        return np.logical_not(self.visit(node.a))

    def visit_Select(self, node: e.Select) -> Any:
        return np.where(self.visit(node.condition), self.visit(node.a), self.visit(node.b))

    def visit_Cast(self, node: e.Cast) -> Any:
        if node.value.dtype.is_float and not node.type.is_float:
            return self.visit_Expr(node)  # saturates in the IR, and has no meaning in NumPy
        return np.asarray(self.visit(node.value)).astype(numpy_type(node.type))

    def visit_Reinterpret(self, node: e.Reinterpret) -> Any:
        return np.ascontiguousarray(self.visit(node.value)).view(numpy_type(node.type))
