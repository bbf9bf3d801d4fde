"""Expressions to LLVM IR: each visit writes the code and gives the operand that holds the value."""

from __future__ import annotations

from gristmill.ir import expr as ir
from gristmill.ir.dtype import DType
from gristmill.ir.effects import is_atomic, may_always_run
from gristmill.ir.expr import Expr
from gristmill.ir.functor import EXPRESSIONS, Functor
from gristmill_llvm import conversions, division, memory
from gristmill_llvm.atomics import emit_atomic
from gristmill_llvm.calls import call_extern, call_function, pointer_argument
from gristmill_llvm.context import FunctionContext
from gristmill_llvm.launches import CONTEXT_VALUES
from gristmill_llvm.operations import emit_operation, intrinsic
from gristmill_llvm.packed import PACKED, emit_packed
from gristmill_llvm.packed_calls import call_packed
from gristmill_llvm.refusals import refused_dtype
from gristmill_llvm.types import floating, integer, register_type
from gristmill_llvm.vectors import ramp, shuffle

_FLOAT_ARITHMETIC = {ir.Add: "fadd", ir.Sub: "fsub", ir.Mul: "fmul", ir.Div: "fdiv"}
_INTEGER_ARITHMETIC = {
    ir.Add: "add",
    ir.Sub: "sub",
    ir.Mul: "mul",
    ir.BitAnd: "and",
    ir.BitOr: "or",
    ir.BitXor: "xor",
}
_DIVISIONS = (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod)
_COMPARISONS = {
    # class: (float, signed, unsigned). Of a NaN only NotEqual is true: ordered tests, and the unordered "une".
    ir.Equal: ("oeq", "eq", "eq"),
    ir.NotEqual: ("une", "ne", "ne"),
    ir.Less: ("olt", "slt", "ult"),
    ir.LessEqual: ("ole", "sle", "ule"),
    ir.Greater: ("ogt", "sgt", "ugt"),
    ir.GreaterEqual: ("oge", "sge", "uge"),
}
FAST_FLAGS = "reassoc nsz arcp contract afn "
"""What fast math permits: other orders, contraction, reciprocals. NaNs and infinities keep their meaning."""


class Expressions(Functor[str], over=EXPRESSIONS):
    """Writes the expressions of one function."""

    def __init__(self, context: FunctionContext) -> None:
        self.context = context
        self.writer = context.writer
        self.fast = FAST_FLAGS if context.function.facts.fast_math else ""

    # Leaves ---------------------------------------------------------------------------------------------------------

    def visit_Var(self, node: ir.Var) -> str:
        return self.context.values[node]

    def visit_IntImm(self, node: ir.IntImm) -> str:
        return integer(node.value, node.type)

    def visit_FloatImm(self, node: ir.FloatImm) -> str:
        self.check_dtype(node.type, node)
        return floating(node.value, node.type)

    def visit_StringImm(self, node: ir.StringImm) -> str:
        return self.context.module.string(node.value)

    # Arithmetic -----------------------------------------------------------------------------------------------------

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> str:
        # A sum of hundreds of terms leans to the left: go down its spine without recursion.
        spine = [node]
        while isinstance(below := spine[-1].a, ir.BinaryExpr) and not isinstance(below, (ir.And, ir.Or)):
            spine.append(below)
        operand = self.visit(spine[-1].a)
        while spine:
            current = spine.pop()
            operand = self.binary(current, operand, self.visit(current.b))
        return operand

    def binary(self, node: ir.BinaryExpr, a: str, b: str) -> str:
        kind, dtype = type(node), node.dtype
        text = register_type(dtype)
        if dtype.is_float:
            self.check_dtype(dtype, node)
            if kind in (ir.Min, ir.Max):
                # nsz: of zeros of two signs either may come out, which spares instructions.
                name = "minimumnum" if kind is ir.Min else "maximumnum"
                return intrinsic(self.context, name, dtype, [a, b], flags=self.fast or "nsz ")
            return self.writer.value(f"{_FLOAT_ARITHMETIC[kind]} {self.fast}{text} {a}, {b}")
        if kind in _INTEGER_ARITHMETIC:
            return self.writer.value(f"{_INTEGER_ARITHMETIC[kind]} {text} {a}, {b}")
        if kind in _DIVISIONS:
            return division.divide(self.context, node, a, b)
        if kind is ir.ShiftLeft:
            return division.shift_left(self.context, node, a, b)
        if kind is ir.ShiftRight:
            return division.shift_right(self.context, node, a, b)
        name = ("s" if dtype.is_signed else "u") + ("min" if kind is ir.Min else "max")
        return intrinsic(self.context, name, dtype, [a, b])

    def visit_Negate(self, node: ir.Negate) -> str:
        operand = self.visit(node.a)
        text = register_type(node.dtype)
        if node.dtype.is_float:
            return self.writer.value(f"fneg {text} {operand}")
        return self.writer.value(f"sub {text} {integer(0, node.dtype)}, {operand}")

    def visit_BitNot(self, node: ir.BitNot) -> str:
        operand = self.visit(node.a)
        return self.writer.value(f"xor {register_type(node.dtype)} {operand}, {integer(-1, node.dtype)}")

    # Comparisons and logic ------------------------------------------------------------------------------------------

    def visit_CompareExpr(self, node: ir.CompareExpr) -> str:
        a, b = self.visit(node.a), self.visit(node.b)
        dtype = node.a.dtype
        floats, signed, unsigned = _COMPARISONS[type(node)]
        if dtype.is_float:
            test = f"fcmp {floats}"
        else:
            test = f"icmp {signed if dtype.is_signed else unsigned}"
        return self.writer.value(f"{test} {register_type(dtype)} {a}, {b}")

    def visit_And(self, node: ir.And) -> str:
        return self.logical(node, "and", "false")

    def visit_Or(self, node: ir.Or) -> str:
        return self.logical(node, "or", "true")

    def logical(self, node: ir.BinaryExpr, instruction: str, decided: str) -> str:
        """Evaluate ``b`` only where ``a`` leaves the result open, unless evaluating it is harmless and cheap."""
        a = self.visit(node.a)
        if node.dtype.is_vector or may_always_run(node.b):
            return self.writer.value(f"{instruction} {register_type(node.dtype)} {a}, {self.visit(node.b)}")
        more, done = self.writer.new_label(f"{instruction}.more"), self.writer.new_label(f"{instruction}.done")
        start = self.writer.label
        if instruction == "and":
            self.writer.branch_if(a, more, done)
        else:
            self.writer.branch_if(a, done, more)
        self.writer.block(more)
        b = self.visit(node.b)
        end = self.writer.label
        self.writer.block(done)
        return self.writer.phi("i1", [(decided, start), (b, end)])

    def visit_Not(self, node: ir.Not) -> str:
        operand = self.visit(node.a)
        return self.writer.value(f"xor {register_type(node.dtype)} {operand}, {integer(1, node.dtype)}")

    def visit_Select(self, node: ir.Select) -> str:
        condition, a, b = self.visit(node.condition), self.visit(node.a), self.visit(node.b)
        text = register_type(node.dtype)
        test = register_type(node.condition.dtype)
        return self.writer.value(f"select {test} {condition}, {text} {a}, {text} {b}")

    def visit_IfThenElse(self, node: ir.IfThenElse) -> str:
        writer = self.writer
        condition = self.visit(node.condition)
        then, otherwise, done = (writer.new_label(purpose) for purpose in ("then", "otherwise", "chosen"))
        writer.branch_if(condition, then, otherwise)
        writer.block(then)
        a, after_a = self.visit(node.a), writer.label
        writer.branch(done)
        writer.block(otherwise)
        b, after_b = self.visit(node.b), writer.label
        writer.block(done)
        if node.dtype.is_void:
            return ""
        return writer.phi(register_type(node.dtype), [(a, after_a), (b, after_b)])

    # Conversions and vectors ----------------------------------------------------------------------------------------

    def visit_Cast(self, node: ir.Cast) -> str:
        self.check_dtype(node.type, node)
        return conversions.cast(self.context, self.visit(node.value), node.value.dtype, node.type)

    def visit_Reinterpret(self, node: ir.Reinterpret) -> str:
        self.check_dtype(node.type, node)
        return conversions.reinterpret(self.context, self.visit(node.value), node.value.dtype, node.type)

    def visit_Ramp(self, node: ir.Ramp) -> str:
        return ramp(self.context, node, self.visit(node.base), self.visit(node.stride))

    def visit_Broadcast(self, node: ir.Broadcast) -> str:
        return memory.broadcast(self.context, self.visit(node.value), register_type(node.value.dtype), node.lanes)

    def visit_Shuffle(self, node: ir.Shuffle) -> str:
        return shuffle(self.context, node, [self.visit(vector) for vector in node.vectors])

    # Memory ---------------------------------------------------------------------------------------------------------

    def visit_Load(self, node: ir.Load) -> str:
        self.check_dtype(node.dtype, node)
        return memory.load(self.context, node.buffer, node.indices, node.dtype)

    def visit_AddressOf(self, node: ir.AddressOf) -> str:
        return memory.element_address(self.context, node.buffer, node.indices).rpartition(" ")[2]

    def visit_BufferRef(self, node: ir.BufferRef) -> str:
        return pointer_argument(self.context, node)

    # Calls ----------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ir.Call) -> str:
        if node.op.name in CONTEXT_VALUES:
            return CONTEXT_VALUES[node.op.name](self.context, node)
        if node.op.name in PACKED:
            return emit_packed(self.context, node)
        if is_atomic(node):
            return emit_atomic(self.context, node)
        return emit_operation(self.context, node)

    def visit_CallFunction(self, node: ir.CallFunction) -> str:
        return call_function(self.context, node)

    def visit_CallExtern(self, node: ir.CallExtern) -> str:
        return call_extern(self.context, node)

    def visit_CallPacked(self, node: ir.CallPacked) -> str:
        return call_packed(self.context, node)

    def check_dtype(self, dtype: DType, node: Expr) -> None:
        """Refuse what the machine has no code for (GM0660)."""
        if dtype.is_float and dtype.bits < 32:
            raise refused_dtype(dtype.element, self.context.profile.target, node.span)
