"""Expressions to SPIR-V: each visit writes the code and gives the ids of the lanes."""

from __future__ import annotations

from gristmill.ir import expr as ir
from gristmill.ir.build import constant_value
from gristmill.ir.dtype import BOOL, DType
from gristmill.ir.effects import is_atomic, is_matrix, may_always_run
from gristmill.ir.expr import Expr
from gristmill.ir.functor import EXPRESSIONS, Functor
from gristmill_spirv import conversions, floats, integers, memory
from gristmill_spirv.atomics import atomic
from gristmill_spirv.calls import call_function
from gristmill_spirv.context import FunctionContext
from gristmill_spirv.dot_products import FEATURE
from gristmill_spirv.dot_products import OPERATIONS as DOT_PRODUCTS
from gristmill_spirv.enumerants import Op
from gristmill_spirv.exchanges import EXCHANGES, exchange
from gristmill_spirv.matrices import matrix_operation
from gristmill_spirv.operations import NATIVE
from gristmill_spirv.refusals import refused_construct, refused_operation
from gristmill_spirv.registers import Lanes, constant, register_type, select
from gristmill_spirv.zeros import apart, compared_constant, float_constant, hidden, unknown

_COMPARISONS = {
    # class: (float, signed, unsigned). Of a NaN only NotEqual is true: ordered tests, and the unordered one.
    ir.Equal: (Op.FOrdEqual, Op.IEqual, Op.IEqual),
    ir.NotEqual: (Op.FUnordNotEqual, Op.INotEqual, Op.INotEqual),
    ir.Less: (Op.FOrdLessThan, Op.SLessThan, Op.ULessThan),
    ir.LessEqual: (Op.FOrdLessThanEqual, Op.SLessThanEqual, Op.ULessThanEqual),
    ir.Greater: (Op.FOrdGreaterThan, Op.SGreaterThan, Op.UGreaterThan),
    ir.GreaterEqual: (Op.FOrdGreaterThanEqual, Op.SGreaterThanEqual, Op.UGreaterThanEqual),
}
_BOOL_OPERATIONS = {
    ir.BitAnd: Op.LogicalAnd,
    ir.BitOr: Op.LogicalOr,
    ir.BitXor: Op.LogicalNotEqual,
    ir.Equal: Op.LogicalEqual,
    ir.NotEqual: Op.LogicalNotEqual,
}


class Expressions(Functor[Lanes], over=EXPRESSIONS):
    """Writes the expressions of one function."""

    def __init__(self, context: FunctionContext) -> None:
        self.context = context
        self.writer = context.writer

    # Leaves ---------------------------------------------------------------------------------------------------------

    def visit_Var(self, node: ir.Var) -> Lanes:
        return self.context.values[node]

    def visit_IntImm(self, node: ir.IntImm) -> Lanes:
        self.check(node.type, node)
        return (constant(self.writer, node.type.element, node.value),) * node.type.lanes

    def visit_FloatImm(self, node: ir.FloatImm) -> Lanes:
        self.check(node.type, node)
        return (float_constant(self.context, node.type.element, node.value),) * node.type.lanes

    def visit_StringImm(self, node: ir.StringImm) -> Lanes:
        raise self.refused("a text", "texts are for the host", node)

    # Arithmetic -----------------------------------------------------------------------------------------------------

    def visit_BinaryExpr(self, node: ir.BinaryExpr) -> Lanes:
        # A sum of hundreds of terms leans to the left: go down its spine without recursion.
        spine = [node]
        while isinstance(below := spine[-1].a, ir.BinaryExpr) and not isinstance(below, (ir.And, ir.Or)):
            spine.append(below)
        lanes = self.visit(spine[-1].a)
        while spine:
            current = spine.pop()
            lanes = self.binary(current, lanes, self.visit(current.b))
        return lanes

    def binary(self, node: ir.BinaryExpr, a: Lanes, b: Lanes) -> Lanes:
        dtype, writer = node.dtype.element, self.writer
        self.check(dtype, node)
        pairs = zip(unknown(self.context, (node.a, node.b), a), b, strict=True)
        if dtype.is_float:
            pairs = ((x, apart(self.context, dtype, x, y)) for x, y in pairs)  # type: ignore[assignment]
            return tuple(floats.binary(writer, node, dtype, x, y, self.context.fast) for x, y in pairs)
        if dtype.is_bool:
            op = _BOOL_OPERATIONS[type(node)]
            return tuple(writer.value(op, writer.module.type_bool(), x, y) for x, y in pairs)
        value = constant_value(node.b)
        known = None if value is None else int(value)
        return tuple(integers.binary(writer, node, dtype, x, y, known) for x, y in pairs)

    def visit_Negate(self, node: ir.Negate) -> Lanes:
        self.check(node.dtype, node)
        negate = floats.negate if node.dtype.is_float else integers.negate
        return tuple(negate(self.writer, node.dtype.element, a) for a in self.visit(node.a))

    def visit_BitNot(self, node: ir.BitNot) -> Lanes:
        return tuple(integers.invert(self.writer, node.dtype.element, a) for a in self.visit(node.a))

    # Comparisons and logic ------------------------------------------------------------------------------------------

    def visit_CompareExpr(self, node: ir.CompareExpr) -> Lanes:
        dtype = node.a.dtype.element
        pairs = zip(self.compared(node.a), self.compared(node.b), strict=True)
        condition = self.writer.module.type_bool()
        if dtype.is_bool and type(node) in _BOOL_OPERATIONS:
            return tuple(self.writer.value(_BOOL_OPERATIONS[type(node)], condition, x, y) for x, y in pairs)
        if dtype.is_bool:
            pairs = ((self.as_word(x), self.as_word(y)) for x, y in pairs)  # type: ignore[assignment]
        if dtype.is_float:
            pairs = ((x, apart(self.context, dtype, x, y)) for x, y in pairs)  # type: ignore[assignment]
        float_, signed, unsigned = _COMPARISONS[type(node)]
        op = float_ if dtype.is_float else signed if dtype.is_signed else unsigned
        return tuple(self.writer.value(op, condition, x, y) for x, y in pairs)

    def compared(self, node: Expr) -> Lanes:
        """An operand of a comparison."""
        if isinstance(node, ir.FloatImm):
            return (compared_constant(self.context, node.type.element, node.value),) * node.type.lanes
        return self.visit(node)

    def as_word(self, value: int) -> int:
        return conversions.to_bits(self.writer, value, BOOL)

    def visit_And(self, node: ir.And) -> Lanes:
        return self.logical(node, Op.LogicalAnd, False)

    def visit_Or(self, node: ir.Or) -> Lanes:
        return self.logical(node, Op.LogicalOr, True)

    def logical(self, node: ir.BinaryExpr, op: Op, decided: bool) -> Lanes:
        """Evaluate ``b`` only where ``a`` leaves the result open, unless evaluating it is harmless and cheap."""
        a, condition = self.visit(node.a), self.writer.module.type_bool()
        if node.dtype.is_vector or may_always_run(node.b):
            pairs = zip(a, self.visit(node.b), strict=True)
            return tuple(self.writer.value(op, condition, x, y) for x, y in pairs)
        known = constant(self.writer, node.dtype, decided)
        more, done = (lambda: self.visit(node.b)[0]), (lambda: known)
        arms = (done, more) if decided else (more, done)
        return (self.writer.choice(condition, a[0], *arms),)

    def visit_Not(self, node: ir.Not) -> Lanes:
        condition = self.writer.module.type_bool()
        return tuple(self.writer.value(Op.LogicalNot, condition, a) for a in self.visit(node.a))

    def visit_Select(self, node: ir.Select) -> Lanes:
        if node.dtype.is_handle:
            raise self.refused("a choice between arrays", "choose between their elements", node)
        conditions = self.visit(node.condition)
        a, b = self.visit(node.a), self.visit(node.b)
        dtype = node.dtype.element
        if len(conditions) == 1:
            conditions *= len(a)
        return tuple(select(self.writer, dtype, c, x, y) for c, x, y in zip(conditions, a, b, strict=True))

    def visit_IfThenElse(self, node: ir.IfThenElse) -> Lanes:
        if node.dtype.is_handle:
            raise self.refused("a choice between arrays", "choose between their elements", node)
        (condition,) = self.visit(node.condition)
        type_ = register_type(self.writer.module, node.dtype.element)
        return self.writer.choices(type_, condition, lambda: self.visit(node.a), lambda: self.visit(node.b))

    # Conversions and vectors ----------------------------------------------------------------------------------------

    def visit_Cast(self, node: ir.Cast) -> Lanes:
        self.check(node.type, node)
        source, target = node.value.dtype.element, node.type.element
        lanes = self.visit(node.value)
        if target.is_float:
            lanes = unknown(self.context, [node.value], hidden(self.context, node.value, lanes))
        return tuple(conversions.cast(self.writer, lane, source, target) for lane in lanes)

    def visit_Reinterpret(self, node: ir.Reinterpret) -> Lanes:
        self.check(node.type, node)
        lanes = self.visit(node.value)
        if node.type.is_float:
            lanes = hidden(self.context, node.value, lanes)
        return conversions.reinterpret(self.writer, lanes, node.value.dtype, node.type)

    def visit_Ramp(self, node: ir.Ramp) -> Lanes:
        (base,), (stride,) = self.visit(node.base), self.visit(node.stride)
        dtype = node.dtype.element
        type_ = register_type(self.writer.module, dtype)
        found = [base]
        for _ in range(node.lanes - 1):
            found.append(integers.wrap(self.writer, dtype, self.writer.value(Op.IAdd, type_, found[-1], stride)))
        return tuple(found)

    def visit_Broadcast(self, node: ir.Broadcast) -> Lanes:
        return self.visit(node.value) * node.lanes

    def visit_Shuffle(self, node: ir.Shuffle) -> Lanes:
        lanes = [lane for vector in node.vectors for lane in self.visit(vector)]
        return tuple(lanes[index] for index in node.indices)

    # Memory and calls -----------------------------------------------------------------------------------------------

    def visit_Load(self, node: ir.Load) -> Lanes:
        return memory.load(self.context, node)

    def visit_AddressOf(self, node: ir.AddressOf) -> Lanes:
        raise self.refused("an address as a value", "pass arrays to functions, and index them", node)

    def visit_BufferRef(self, node: ir.BufferRef) -> Lanes:
        raise self.refused("an array as a value", "pass arrays to functions, and index them", node)

    def visit_Call(self, node: ir.Call) -> Lanes:
        if is_matrix(node):
            matrix_operation(self.context, node)
            return ()
        if is_atomic(node):
            return atomic(self.context, node)
        if node.op.name in EXCHANGES:
            return exchange(self.context, node)
        if node.op.name in DOT_PRODUCTS:
            self.context.kernel.require(FEATURE, f"`{node.op.name}`", node.span)
        emit = NATIVE.get(node.op.name)
        if emit is None:
            raise refused_operation(node.op.name, node.dtype, self.context.kernel.profile.target, node.span)
        dtype = node.args[0].dtype.element
        self.check(dtype, node)
        operands = [self.visit(argument) for argument in node.args]
        operands[0] = unknown(self.context, node.args, operands[0])
        return tuple(emit(self.writer, dtype, *lane) for lane in zip(*operands, strict=True))

    def visit_CallFunction(self, node: ir.CallFunction) -> Lanes:
        return call_function(self.context, node)

    def visit_CallExtern(self, node: ir.CallExtern) -> Lanes:
        remedy = "write the function in the kernel language"
        raise self.refused(f"the call of the C function `{node.symbol}` in a kernel", remedy, node)

    def visit_CallPacked(self, node: ir.CallPacked) -> Lanes:
        raise self.refused(
            f"the packed call of `{node.name}` in a kernel", "call it outside of loops over threads", node
        )

    # Refusals -------------------------------------------------------------------------------------------------------

    def check(self, dtype: DType, node: Expr) -> None:
        """Note what computing with a type needs of the device."""
        self.context.kernel.require_dtype(dtype, node.span)

    def refused(self, construct: str, remedy: str, node: Expr) -> Exception:
        return refused_construct(construct, self.context.kernel.profile.target, remedy, node.span)
