"""The verifier's part for expressions. Rules: :mod:`gristmill.ir.verify`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gristmill.errors import suggestion
from gristmill.ir import expr as e
from gristmill.ir.build import round_to
from gristmill.ir.dtype import BOOL, HANDLE, INT32, INT64, LANES_AT_MOST, VOID, DType, parse_dtype
from gristmill.ir.functor import EXPRESSIONS
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function
from gristmill.ir.node import Node
from gristmill.ir.op import MESSAGE_TEXTS, PACKED_INTERFACE, WARP_WIDTH_AT_MOST, Operands, Result
from gristmill.ir.verify_atomics import check_atomic, element_type
from gristmill.ir.verify_matrices import check_matrix, check_untouched
from gristmill.ir.verify_walk import Use, VerifierWalk, shown

_PACKED_INTERFACE = frozenset(op.name for op in PACKED_INTERFACE)


class ExpressionVerifier(VerifierWalk, over=EXPRESSIONS):
    """Checks expressions of one function."""

    def condition(self, node: e.Expr, of: str) -> None:
        dtype = self.expression(node)
        if dtype != BOOL:
            self.report("GM0412", f"the condition of {of} is {dtype}, not bool: {shown(node)}", node, "compare it")

    def index(self, node: e.Expr, what: str) -> DType:
        """A scalar integer, as indices, sizes and extents are."""
        dtype = self.expression(node)
        if not dtype.is_integer or dtype.is_vector:
            self.report("GM0418", f"{what} is {dtype}, not a scalar integer: {shown(node)}", node)
        return dtype

    # Leaves

    def visit_Var(self, node: e.Var) -> DType:
        if node not in self.visible:
            self.report("GM0424", f"the variable `{node.name}` is used where it is not defined", node)
        return node.type

    def visit_IntImm(self, node: e.IntImm) -> DType:
        dtype = node.type
        if not (dtype.is_integer or dtype.is_bool) or dtype.is_vector or type(node.value) is not int:
            self.report("GM0413", f"a whole constant of type {dtype} cannot be {node.value!r}", node)
        elif not dtype.minimum <= node.value <= dtype.maximum:
            self.report("GM0413", f"{node.value} is not in the range of {dtype}", node)
        return dtype

    def visit_FloatImm(self, node: e.FloatImm) -> DType:
        dtype = node.type
        if not dtype.is_float or dtype.is_vector or type(node.value) is not float:
            self.report("GM0413", f"a float constant of type {dtype} cannot be {node.value!r}", node)
        elif not math.isnan(node.value) and round_to(node.value, dtype) != node.value:
            self.report("GM0413", f"{node.value!r} is not exactly representable in {dtype}", node)
        return dtype

    def visit_StringImm(self, node: e.StringImm) -> DType:
        if self.use is not Use.FOREIGN:
            self.report("GM0448", "a text may only be an argument of a packed or extern call", node)
        return HANDLE

    # Operators

    def operands(self, node: e.Expr, is_allowed: bool, kinds: str) -> None:
        """The rules of two operands or one: values, of one type, of a type that the node takes."""
        if not self.no_void(node):
            return
        if len(set(self.types)) > 1:
            listed = " and ".join(map(str, self.types))
            self.report("GM0410", f"the operands of {shown(node)} are {listed}", node, "cast one of them")
        elif not is_allowed:
            self.report("GM0411", f"{type(node).__name__} takes {kinds}, not {self.types[0]}: {shown(node)}", node)

    def visit_BinaryExpr(self, node: e.BinaryExpr | e.CompareExpr) -> DType:
        dtype = self.types[0]
        self.operands(node, dtype.is_integer or dtype.is_float, "numbers")
        return BOOL.with_lanes(dtype.lanes) if isinstance(node, e.CompareExpr) else dtype

    visit_CompareExpr = visit_BinaryExpr

    def visit_Mod(self, node: e.BinaryExpr) -> DType:
        self.operands(node, self.types[0].is_integer, "integers")
        return self.types[0]

    visit_FloorDiv = visit_FloorMod = visit_ShiftLeft = visit_ShiftRight = visit_Mod

    def visit_BitAnd(self, node: e.BinaryExpr) -> DType:
        self.operands(node, self.types[0].is_integer or self.types[0].is_bool, "integers or bools")
        return self.types[0]

    visit_BitOr = visit_BitXor = visit_BitAnd

    def visit_Equal(self, node: e.CompareExpr) -> DType:
        dtype = self.types[0]
        self.operands(node, not dtype.is_handle, "numbers or bools")
        return BOOL.with_lanes(dtype.lanes)

    visit_NotEqual = visit_Equal

    def visit_And(self, node: e.BinaryExpr | e.Not) -> DType:
        self.operands(node, self.types[0].is_bool, "bools")
        return self.types[0]

    visit_Or = visit_Not = visit_And

    def visit_Negate(self, node: e.Negate) -> DType:
        self.operands(node, self.types[0].is_integer or self.types[0].is_float, "numbers")
        return self.types[0]

    def visit_BitNot(self, node: e.BitNot) -> DType:
        self.operands(node, self.types[0].is_integer, "integers")
        return self.types[0]

    def visit_Select(self, node: e.Select | e.IfThenElse) -> DType:
        condition, a, b = self.types
        if self.no_void(node):
            name = type(node).__name__
            if not condition.is_bool or (condition.is_vector and isinstance(node, e.IfThenElse)):
                self.report("GM0412", f"the condition of {shown(node)} is {condition}, not bool", node)
            elif condition.is_vector and condition.lanes != a.lanes:
                self.report("GM0415", f"{name} chooses lanes of {a} by a condition of {condition.lanes} lanes", node)
            if a != b:
                self.report("GM0410", f"{name} chooses between {a} and {b}: {shown(node)}", node, "cast one of them")
        return a

    visit_IfThenElse = visit_Select

    # Conversions and vectors

    def visit_Cast(self, node: e.Cast) -> DType:
        given, wanted = self.types[0], node.type
        if self.no_void(node):
            if given.is_handle or wanted.is_handle or wanted.is_void:
                self.report("GM0416", f"a cast from {given} to {wanted} has no meaning", node)
            elif given.lanes != wanted.lanes:
                self.report("GM0416", f"a cast keeps the lanes, and this one is from {given} to {wanted}", node)
        return wanted

    def visit_Reinterpret(self, node: e.Reinterpret) -> DType:
        given, wanted = self.types[0], node.type
        if self.no_void(node):
            if not all(dtype.is_integer or dtype.is_float for dtype in (given, wanted)):
                self.report("GM0416", f"the bits of {given} cannot be read as {wanted}", node)
            elif given.bytes != wanted.bytes:
                widths = f"{given.bytes * 8} and {wanted.bytes * 8} bits"
                self.report("GM0416", f"{given} read as {wanted} would need equal widths: {widths}", node)
        return wanted

    def lanes(self, node: e.Expr, element: DType, lanes: int) -> DType:
        """A vector type made of a scalar one; 2 lanes or more."""
        if element.is_vector or element.is_void or element.is_handle:
            self.report("GM0415", f"{type(node).__name__} takes a scalar, not {element}: {shown(node)}", node)
        if not isinstance(lanes, int) or not 2 <= lanes <= LANES_AT_MOST:
            self.report("GM0415", f"a vector has from 2 to {LANES_AT_MOST} lanes, not {lanes}", node)
            return element
        return element.with_lanes(lanes)

    def visit_Ramp(self, node: e.Ramp) -> DType:
        self.operands(node, self.types[0].is_integer, "integers")
        return self.lanes(node, self.types[0], node.lanes)

    def visit_Broadcast(self, node: e.Broadcast) -> DType:
        return self.lanes(node, self.types[0], node.lanes) if self.no_void(node) else VOID

    def visit_Shuffle(self, node: e.Shuffle) -> DType:
        if not self.types or not node.indices or len(node.indices) > LANES_AT_MOST:
            self.report("GM0415", f"a shuffle has one vector or more, and from 1 to {LANES_AT_MOST} indices", node)
            return VOID
        element = self.types[0].element
        if not self.no_void(node):
            return VOID
        if any(dtype.element != element or dtype.is_handle for dtype in self.types):
            listed = ", ".join(map(str, self.types))
            self.report("GM0415", f"a shuffle takes vectors of one element type, not {listed}", node)
        total = sum(dtype.lanes for dtype in self.types)
        wrong = [index for index in node.indices if not 0 <= index < total]
        if wrong:
            self.report("GM0415", f"a shuffle of {total} lanes has no lane {wrong[0]}", node)
        return element.with_lanes(len(node.indices))

    # Memory

    def access(self, node: Node, buffer: Buffer, types: tuple[DType, ...], vector: bool = True) -> DType:
        """An element (or several) of a buffer: its type."""
        if buffer not in self.visible:
            self.report("GM0424", f"the buffer `{buffer.name}` is used where it is not defined", node)
        if not isinstance(node, e.AddressOf) or self.use is not Use.TILE:
            check_untouched(self, node, buffer)
        if len(types) != buffer.rank:
            plural = "dimension" if buffer.rank == 1 else "dimensions"
            message = f"`{buffer.name}` has {buffer.rank} {plural} and is indexed with {len(types)}: {shown(node)}"
            self.report("GM0417", message, node)
        for number, dtype in enumerate(types):
            if not dtype.is_integer:
                self.report("GM0418", f"index {number} of {shown(node)} is {dtype}, not an integer", node)
            elif dtype.is_vector and (number != len(types) - 1 or not vector):
                self.report("GM0418", f"index {number} of {shown(node)} is a vector; only the last may be", node)
        lanes = buffer.dtype.lanes * (types[-1].lanes if types else 1)
        if lanes > LANES_AT_MOST:
            self.report("GM0415", f"{shown(node)} has {lanes} lanes, and at most {LANES_AT_MOST} are allowed", node)
            return buffer.dtype
        return buffer.dtype.with_lanes(lanes)

    def visit_Load(self, node: e.Load) -> DType:
        return self.access(node, node.buffer, self.types)

    def visit_AddressOf(self, node: e.AddressOf) -> DType:
        if self.use in (Use.VALUE, Use.MESSAGE):
            self.report("GM0448", f"{shown(node)} may only be an argument of a call or a pointer binding", node)
        self.access(node, node.buffer, self.types, vector=False)
        return HANDLE

    def visit_BufferRef(self, node: e.BufferRef) -> DType:
        if self.use in (Use.VALUE, Use.POINTER, Use.MESSAGE, Use.TILE):
            self.report("GM0448", f"the whole buffer {shown(node)} may only be an argument of a call", node)
        check_untouched(self, node, node.buffer)
        if node.buffer not in self.visible:
            self.report("GM0424", f"the buffer `{node.buffer.name}` is used where it is not defined", node)
        return HANDLE

    # Calls

    def visit_Call(self, node: e.Call) -> DType:
        op, types = node.op, self.types
        if self.is_device_code and op.name in _PACKED_INTERFACE:
            self.report("GM0444", f"`{op}` belongs to the host, and this is code of a device", node)
        if op.name in MESSAGE_TEXTS and self.use is not Use.MESSAGE:
            self.report("GM0448", f"the text {shown(node)} may only be a part of the message of an assertion", node)
        if len(types) != op.arity:
            self.report("GM0420", f"`{op}` takes {op.arity} operands, not {len(types)}", node)
            return node.type
        if not self.no_void(node):
            return node.type
        if op.name == "disjoint":
            self.handles_and_numbers(node, HANDLE, INT64, HANDLE, INT64)
        elif op.name == "aligned":
            self.handles_and_numbers(node, HANDLE, INT64)
            number = node.args[1]
            if not isinstance(number, e.IntImm) or number.value <= 0 or number.value & (number.value - 1):
                self.report("GM0420", f"the alignment of `{op}` is a constant power of two, not {shown(number)}", node)
        elif op.operands is Operands.WARP:
            self.exchange(node)
        elif op.operands is Operands.ATOMIC:
            check_atomic(self, node)
        elif op.operands is Operands.MATRIX:
            check_matrix(self, node)
        elif op.operands is Operands.ANY:
            self.packed_operands(node)
        else:
            if len(set(types)) > 1:
                self.report("GM0420", f"the operands of `{op}` are {' and '.join(map(str, types))}", node)
            if not _takes(op.operands, types[0]):
                self.report("GM0420", f"`{op}` takes {op.operands.value} operands, not {types[0]}", node)
        wanted = {
            Result.SAME: types[0],
            Result.BOOL: BOOL.with_lanes(types[0].lanes),
            Result.STATED: parse_dtype(op.stated) if op.stated else node.type,
            Result.ELEMENT: element_type(node),
            Result.VOID: VOID,
        }[op.result]
        if node.type != wanted:
            self.report("GM0420", f"`{op}` gives {wanted} here, and the call says {node.type}", node)
        return wanted

    def handles_and_numbers(self, node: e.Call, *expected: DType) -> None:
        """Operands about memory: handles, and numbers of bytes."""
        for number, (dtype, wanted) in enumerate(zip(self.types, expected, strict=True), 1):
            if dtype != wanted:
                self.report("GM0420", f"operand {number} of `{node.op}` is {dtype}, not {wanted}", node)

    def exchange(self, node: e.Call) -> None:
        """An exchange between threads: its place, then its operands."""
        op, types, width = node.op, self.types, node.args[-1]
        if node is not self.bound:
            hint = f"bind it to a name, and use the name: `x = {shown(node).strip('`')}`"
            self.report("GM0450", f"`{op}` stands where it is not the whole value of a binding", node, hint)
        if self.in_unordered_loop:
            self.report("GM0450", f"`{op}` stands in a parallel or vectorized loop of one thread", node)
        if self.function.facts.convention is CallingConvention.PACKED_HOST:
            self.report("GM0444", f"`{op}` cannot stand in a function of the packed host interface", node)
        is_vote = op.arity == 2
        if types[0].is_vector or types[0].is_handle or (is_vote and not types[0].is_bool):
            wanted = "a bool" if is_vote else "a scalar number or bool"
            self.report("GM0420", f"`{op}` takes {wanted}, not {types[0]}", node)
        for dtype in types[1:]:
            if dtype != INT32:
                self.report("GM0420", f"lanes and widths of `{op}` are int32, not {dtype}", node)
        value = width.value if isinstance(width, e.IntImm) else 0
        if not 1 <= value <= WARP_WIDTH_AT_MOST or value & (value - 1):
            message = f"the width of `{op}` is a constant power of two up to {WARP_WIDTH_AT_MOST}, not {shown(width)}"
            self.report("GM0420", message, node)

    def packed_operands(self, node: e.Call) -> None:
        """Operations of the packed host interface: a handle first, then a number."""
        if not self.types[0].is_handle:
            self.report("GM0420", f"the first operand of `{node.op}` is {self.types[0]}, not a handle", node)
        second = self.types[1] if len(self.types) > 1 and node.op.name != "packed_return" else None
        if second is not None and (not second.is_integer or second.is_vector):
            self.report("GM0420", f"the second operand of `{node.op}` is {second}, not an integer", node)

    def visit_CallFunction(self, node: e.CallFunction) -> DType:
        callee = self.functions.get(node.function)
        if callee is None:
            hint = suggestion(node.function, list(self.functions))
            self.report("GM0421", f"the module has no function `{node.function}`", node, hint)
            return node.type
        if self.is_device_code:
            self.device_calls.setdefault(node.function, node.span or self.where)
        if callee.facts.convention is CallingConvention.DEVICE_KERNEL:
            self.report("GM0423", f"`{callee.name}` is a kernel: it is launched, not called", node)
        self.arguments(node, callee, node.args, self.types)
        if node.type != callee.returns:
            self.report("GM0422", f"`{callee.name}` returns {callee.returns}, and the call says {node.type}", node)
        return callee.returns

    def arguments(self, node: Node, callee: Function, args: tuple[e.Expr, ...], types: Iterable[DType]) -> None:
        """Arguments against parameters."""
        if len(args) != len(callee.params):
            message = f"`{callee.name}` has {len(callee.params)} parameters, and the call gives {len(args)}"
            self.report("GM0422", message, node)
            return
        for param, arg, dtype in zip(callee.params, args, types, strict=True):
            if isinstance(param, Buffer):
                given = arg.buffer if isinstance(arg, e.BufferRef) else None
                if given is None:
                    self.report("GM0422", f"parameter `{param.name}` is a buffer, and {shown(arg)} is none", node)
                elif (given.dtype, given.rank) != (param.dtype, param.rank):
                    wanted = f"{param.dtype} with {param.rank} dimensions"
                    message = f"parameter `{param.name}` is {wanted}; `{given.name}` is {given.dtype} with {given.rank}"
                    self.report("GM0422", message, node)
            elif isinstance(arg, e.BufferRef):
                self.report("GM0422", f"parameter `{param.name}` is {param.type}, and {shown(arg)} a buffer", node)
            elif dtype.is_void:
                self.report("GM0414", f"the argument {shown(arg)} gives no value", node)
            elif dtype != param.type:
                self.report("GM0422", f"parameter `{param.name}` is {param.type}, and {shown(arg)} is {dtype}", node)

    def visit_CallExtern(self, node: e.CallExtern) -> DType:
        if self.is_device_code:
            self.report("GM0444", f"the C function `{node.symbol}` cannot be called by code of a device", node)
        if all(extern.symbol != node.symbol for extern in self.module.externs):
            hint = 'declare it in kernels.toml: extern = { symbol = "library" }'
            self.report("GM0447", f"the C symbol `{node.symbol}` is not declared", node, hint)
        self.no_void(node)
        if any(isinstance(arg, e.BufferRef) for arg in node.args):
            self.report("GM0448", "a C function takes the address of an element, not a whole buffer", node)
        return node.type

    def visit_CallPacked(self, node: e.CallPacked) -> DType:
        if self.is_device_code:
            self.report("GM0444", f"the packed function `{node.name}` cannot be called by code of a device", node)
        self.no_void(node)
        return node.type


def _takes(operands: Operands, dtype: DType) -> bool:
    return {
        Operands.FLOAT: dtype.is_float,
        Operands.INTEGER: dtype.is_integer,
        Operands.NUMBER: dtype.is_float or dtype.is_integer,
        Operands.WORD: dtype.is_integer and dtype.bits == 32,
        Operands.BOOL: dtype.is_bool,
        Operands.WARP: True,
        Operands.ATOMIC: True,
        Operands.MATRIX: True,
        Operands.ANY: True,
    }[operands]
