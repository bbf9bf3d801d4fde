"""The body of a kernel with its int64 arithmetic in int32; :mod:`gristmill.passes.narrow_indices` says when that is right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.ir.build import cast
from gristmill.ir.dtype import BOOL, INT32, INT64, DType
from gristmill.ir.expr import (
    Add,
    AddressOf,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Broadcast,
    Call,
    CallFunction,
    Cast,
    CompareExpr,
    Expr,
    Greater,
    GreaterEqual,
    IfThenElse,
    IntImm,
    Less,
    LessEqual,
    Load,
    Mul,
    Negate,
    Ramp,
    Select,
    Sub,
    Var,
)
from gristmill.ir.functor import Mutator
from gristmill.ir.memory import Buffer
from gristmill.ir.stmt import Assert, Bind, For, If, Return, Store
from gristmill.passes.index_reach import Reach, Reaches
from gristmill.passes.narrow_helpers import Helpers

Narrow = tuple[Expr, Reach]
"""An int32 expression with the value of an int64 one, and how far it reaches."""

_ZERO = Reach.point(0)
_WRAPPING = (Add, Sub, Mul, BitAnd, BitOr, BitXor)
"""Operations whose low 32 bits depend on nothing but those of the operands."""


class KernelNarrowing(Mutator):
    """Visit a kernel's body after its parameters. An expression of int64 stays one for who asks with :meth:`visit`."""

    def __init__(self, sizes: frozenset[Var], helpers: Helpers, limit: int = INT32.maximum) -> None:
        super().__init__()
        self.sizes = sizes
        """Parameters that are known not to be negative."""
        self.helpers = helpers
        self.reaches = Reaches(limit)
        self.results: list[Reach | None] = []
        """How far what the function being narrowed returns reaches; None for a value that could not be followed."""
        self.narrow: dict[Var, Narrow] = {}
        self.small: dict[Var, Reach] = {}
        """How far parameters of narrower integers reach."""
        self.countable: set[Buffer] = set()
        """Buffers whose sizes are in int32, by what is checked."""

    def parameter(self, param: Var) -> Var:
        """What stands for a parameter: of int64 one of int32."""
        if param.dtype != INT64:
            if param.dtype.is_integer and _is_small(param.dtype):
                self.small[param] = self.reaches.of_argument(param, param in self.sizes)
            return param
        reach = self.reaches.of_argument(param, param in self.sizes)
        self.reaches.must_fit(reach)
        return self.define(param, reach)

    def define(self, var: Var, reach: Reach) -> Var:
        new = replace(var, type=INT32.with_lanes(var.dtype.lanes))
        self.narrow[var] = new, reach
        return new

    # Expressions of int64

    def exact(self, node: Expr) -> Narrow | None:
        """The expression in int32 with the same value; None if that cannot be followed."""
        found = self._exact(node)
        return found if found is not None and self.reaches.must_fit(found[1]) else None

    def _exact(self, node: Expr) -> Narrow | None:
        lanes = node.dtype.lanes
        match node:
            case Var():
                return self.narrow.get(node)
            case IntImm():
                return IntImm(INT32.wrap(node.value), INT32, node.span), Reach.point(node.value)
            case Cast() if _is_small(node.value.dtype):
                return cast(self.visit(node.value), INT32.with_lanes(lanes)), self._small_reach(node.value)
            case Broadcast():
                inner = self.exact(node.value)
                return None if inner is None else (replace(node, value=inner[0]), inner[1])
            case Ramp():
                return self._ramp(node)
            case Negate():
                inner = self.exact(node.a)
                return None if inner is None else (replace(node, a=inner[0]), self.reaches.minus(_ZERO, inner[1]))
            case BitNot():
                inner = self.exact(node.a)
                return None if inner is None else (replace(node, a=inner[0]), Reach.of_type(INT32))
            case Select() | IfThenElse():
                a, b = self.exact(node.a), self.exact(node.b)
                if a is None or b is None:
                    return None
                made = replace(node, condition=self.visit(node.condition), a=a[0], b=b[0])
                return made, self.reaches.union(a[1], b[1])
            case BinaryExpr():
                return self._binary(node)
            case CallFunction():
                return self._call(node)
            case Call() if node.op.name == "likely":
                inner = self.exact(node.args[0])
                return None if inner is None else (replace(node, args=(inner[0],), type=inner[0].dtype), inner[1])
        return None

    def _small_reach(self, node: Expr) -> Reach:
        """How far an integer of a narrower type reaches: a parameter, also with a constant added; else any of its type."""
        match node:
            case Var() if node in self.small:
                return self.small[node]
            case Add(a=Var() as var, b=IntImm() as added) | Sub(a=Var() as var, b=IntImm() as added) if (
                var in self.small
            ):
                operation = self.reaches.plus if isinstance(node, Add) else self.reaches.minus
                found = operation(self.small[var], Reach.point(added.value))
                # It has not wrapped where it fits.
                if node.dtype == INT32 and self.reaches.must_fit(found):
                    return found
        return Reach.of_type(node.dtype.element)

    def _ramp(self, node: Ramp) -> Narrow | None:
        base, stride = self.exact(node.base), self.exact(node.stride)
        if base is None or stride is None:
            return None
        steps = self.reaches.times(stride[1], Reach(0.0, float(node.lanes - 1), True))
        return replace(node, base=base[0], stride=stride[0]), self.reaches.plus(base[1], steps)

    def _binary(self, node: BinaryExpr) -> Narrow | None:
        a, b = self.exact(node.a), self.exact(node.b)
        if a is None or b is None:
            return None
        reach = self.reaches.of_operation(node, a[1], b[1])
        return None if reach is None else (_with_operands(node, a[0], b[0]), reach)

    def wrapping(self, node: Expr) -> Expr | None:
        """An int32 expression with the low 32 bits of an int64 one; None if that cannot be followed."""
        lanes = node.dtype.lanes
        match node:
            case Cast() if node.value.dtype.bits <= 32 and not node.value.dtype.is_float:
                return cast(self.visit(node.value), INT32.with_lanes(lanes))
            case IntImm():
                return IntImm(INT32.wrap(node.value), INT32, node.span)
            case Broadcast():
                inner = self.wrapping(node.value)
                return None if inner is None else replace(node, value=inner)
            case Negate() | BitNot():
                inner = self.wrapping(node.a)
                return None if inner is None else replace(node, a=inner)
            case Ramp():
                base, stride = self.wrapping(node.base), self.wrapping(node.stride)
                return None if base is None or stride is None else replace(node, base=base, stride=stride)
            case Select() | IfThenElse():
                a, b = self.wrapping(node.a), self.wrapping(node.b)
                if a is None or b is None:
                    return None
                return replace(node, condition=self.visit(node.condition), a=a, b=b)
        if isinstance(node, _WRAPPING):
            a, b = self.wrapping(node.a), self.wrapping(node.b)
            return None if a is None or b is None else _with_operands(node, a, b)
        found = self.exact(node)
        return None if found is None else found[0]

    # Calls of helpers

    def _call(self, node: CallFunction) -> Narrow | None:
        """A call whose result is int64, of a copy of the function for it that returns int32."""
        found = self._copied(node, INT32)
        return None if found is None else (replace(node, function=found[0], args=found[1], type=INT32), found[2])

    def visit_CallFunction(self, node: CallFunction) -> Any:
        if node.type != INT64 and any(arg.dtype == INT64 for arg in node.args):
            found = self._copied(node, node.type)
            if found is not None:
                return replace(node, function=found[0], args=found[1])
        return self.generic(node)

    def _copied(self, node: CallFunction, returns: DType) -> tuple[str, tuple[Expr, ...], Reach] | None:
        """The name of a copy of the function with int32 for int64, its arguments, and how far its results reach."""
        callee = self.helpers.copy_of(node.function)
        if callee is None or any(isinstance(param, Buffer) for param in callee.params):
            return None
        params, args = [], []
        for param, arg in zip(callee.params, node.args, strict=True):
            assert isinstance(param, Var)
            narrow = self.exact(arg) if arg.dtype == INT64 else None
            args.append(self.visit(arg) if narrow is None else narrow[0])
            params.append(param if narrow is None else self.define(param, narrow[1]))
        outer, self.results = self.results, []
        body = self.visit(callee.body)
        results, self.results = self.results, outer
        reach = _ZERO
        for result in results if returns != callee.returns else ():
            if result is None:
                return None
            reach = self.reaches.union(reach, result)
        self.helpers.add(replace(callee, params=tuple(params), returns=returns, body=body))
        return callee.name, tuple(args), reach

    def visit_Return(self, node: Return) -> Any:
        if node.value is None or node.value.dtype != INT64:
            return self.generic(node)
        found = self.exact(node.value)
        self.results.append(None if found is None else found[1])
        return self.generic(node) if found is None else replace(node, value=found[0])

    # What uses them

    def visit_Var(self, node: Var) -> Any:
        found = self.narrow.get(node)
        return node if found is None else Cast(node.dtype, found[0], node.span)

    def visit_CompareExpr(self, node: CompareExpr) -> Any:
        if node.a.dtype.element == INT64:
            a, b = self.exact(node.a), self.exact(node.b)
            if a is not None and b is not None:
                return _with_operands(node, a[0], b[0])
        return self.generic(node)

    def visit_Cast(self, node: Cast) -> Any:
        if node.value.dtype.element != INT64 or node.type.element == INT64:
            return self.generic(node)
        wraps = node.type.is_integer and node.type.bits <= 32
        value = self.wrapping(node.value) if wraps else _value(self.exact(node.value))
        if value is None or (node.type.is_integer and not wraps):
            return self.generic(node)
        return cast(value, node.type, node.span)

    def _indices(self, node: Load | Store | AddressOf) -> tuple[Expr, ...]:
        """The indices, in 32 bits: each is within its array."""
        if node.buffer not in self.countable:
            return self._sequence(node.indices)
        wide = [index.dtype.element == INT64 for index in node.indices]
        narrow = [self.wrapping(index) if is_wide else None for index, is_wide in zip(node.indices, wide, strict=True)]
        return tuple(
            self.visit(index) if found is None else found for index, found in zip(node.indices, narrow, strict=True)
        )

    def visit_Load(self, node: Load) -> Any:
        return replace(node, buffer=self.use_buffer(node.buffer), indices=self._indices(node))

    def visit_Store(self, node: Store) -> Any:
        indices, value = self._indices(node), self.visit(node.value)
        return replace(node, buffer=self.use_buffer(node.buffer), indices=indices, value=value)

    def visit_AddressOf(self, node: AddressOf) -> Any:
        return replace(node, buffer=self.use_buffer(node.buffer), indices=self._indices(node))

    # Statements

    def visit_Bind(self, node: Bind) -> Any:
        if node.var.dtype.element == INT64:
            found = self.exact(node.value)
            if found is not None:
                return Bind(self.define(node.var, found[1]), found[0], node.span)
        return self.generic(node)

    def visit_For(self, node: For) -> Any:
        if node.var.dtype != INT64:
            return self.generic(node)
        minimum, extent = self.exact(node.minimum), self.exact(node.extent)
        if minimum is None or extent is None:
            return self.generic(node)
        end = self.reaches.plus(minimum[1], extent[1])
        last = Reach(minimum[1].low, self.reaches.subtract(end.high, 1.0), minimum[1].natural)
        # Where a loop ends is computed too.
        if not self.reaches.must_fit(end):
            return self.generic(node)
        var = self.define(node.var, last)
        return replace(node, var=var, minimum=minimum[0], extent=extent[0], body=self.visit(node.body))

    def visit_If(self, node: If) -> Any:
        condition = self.visit(node.condition)
        before = dict(self.narrow)
        self._know(node.condition)
        then = self.visit(node.then)
        self.narrow.update(before)
        otherwise = None if node.otherwise is None else self.visit(node.otherwise)
        return replace(node, condition=condition, then=then, otherwise=otherwise)

    def _know(self, condition: Expr) -> None:
        """A name that is less than something where a condition holds reaches no farther than that."""
        match condition:
            case And():
                self._know(condition.a)
                self._know(condition.b)
            case Less() | LessEqual():
                self._know_less(condition.a, condition.b, 1.0 if isinstance(condition, Less) else 0.0)
            case Greater() | GreaterEqual():
                self._know_less(condition.b, condition.a, 1.0 if isinstance(condition, Greater) else 0.0)

    def _know_less(self, lesser: Expr, greater: Expr, by: float) -> None:
        if not isinstance(lesser, Var) or lesser not in self.narrow:
            return
        limit = self.exact(greater)
        if limit is not None:
            new, reach = self.narrow[lesser]
            high = self.reaches.lesser(reach.high, self.reaches.subtract(limit[1].high, by))
            self.narrow[lesser] = new, replace(reach, high=high)

    def visit_Assert(self, node: Assert) -> Any:
        message = tuple(
            (_value(self.exact(part)) or part) if isinstance(part, Expr) and part.dtype == INT64 else part
            for part in node.message
        )
        return self.generic(replace(node, message=message))

    # Buffers

    def visit_Buffer(self, node: Buffer) -> Any:
        sizes = [self._number(size) for size in node.shape]
        strides = [self._number(stride) for stride in node.strides]
        offset = None if node.offset is None else self._number(node.offset)
        made = replace(
            node,
            shape=tuple(found for found, _ in sizes),
            strides=tuple(found for found, _ in strides),
            offset=None if offset is None else offset[0],
        )
        same = made.shape == node.shape and made.strides == node.strides and made.offset is node.offset
        if same:
            made = node
        else:
            self.buffers[node] = made
        if all(fits for _, fits in sizes) and (offset is None or offset[1]):
            self.countable.add(node)
        return made

    def _number(self, node: Expr) -> tuple[Expr, bool]:
        """A size, stride or offset of a buffer, and whether it is known to be in int32."""
        if node.dtype != INT64:
            return self.visit(node), _is_small(node.dtype)
        found = self.exact(node)
        # The type of constants is of no matter.
        if isinstance(node, IntImm):
            return node, found is not None
        return (self.visit(node), False) if found is None else (found[0], True)


def _with_operands(node: BinaryExpr | CompareExpr, a: Expr, b: Expr) -> Expr:
    changed: Any = node
    return replace(changed, a=a, b=b)  # type: ignore[no-any-return]


def _value(found: Narrow | None) -> Expr | None:
    return None if found is None else found[0]


def _is_small(dtype: DType) -> bool:
    """Whether all values of an integer type are in int32."""
    element = dtype.element
    if element == BOOL:
        return True
    return element.is_integer and (element.bits < 32 or element == INT32)
