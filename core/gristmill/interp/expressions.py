"""Python text for expressions.

A visit method that needs the value of an operand yields the operand and gets its :class:`Value` back; one driver runs
all of them with a stack of its own, so that the depth of an expression does not matter. ``yield Raw(node)`` gives the
value as it is, perhaps unrounded.

What may fail or depends on memory (loads, calls, checks) is written as statements in evaluation order, under names;
the text that remains can be put anywhere. Where an operand is evaluated only sometimes, its statements go under an
``if``; without statements Python's own ``and``, ``or`` and conditional expression do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

from gristmill.interp.atomics import AtomicAccess
from gristmill.interp.buffers import tuple_text
from gristmill.interp.matrices import Tiles
from gristmill.interp.source import INDENTATION_AT_MOST, Line
from gristmill.interp.values import Value, floating, integer, value
from gristmill.ir import expr as e
from gristmill.ir.dtype import BOOL, DType
from gristmill.ir.effects import is_atomic, is_exchange, is_matrix
from gristmill.ir.functor import Functor
from gristmill.ir.memory import MATRIX_SCOPES, Buffer, Scope
from gristmill.ir.node import Node
from gristmill.ir.op import MEMORY, PACKED_INTERFACE
from gristmill.ir.span import Span

Visit = Generator[Any, Any, Any]

_HELPER_NAMES = frozenset(op.name for op in (*MEMORY, *PACKED_INTERFACE))
_OUTLINE_OPERANDS_AT = INDENTATION_AT_MOST + 20


@dataclass(frozen=True, slots=True)
class Raw:
    """Asks the driver for a value as it is."""

    node: Node


class ExpressionWriter(AtomicAccess, Functor[Any], over=()):
    """Writes expressions. The class that compiles functions adds statements."""

    variables: dict[e.Var, Value]
    span: Span | None
    """That of the statement being written: for nodes that have none."""

    def site(self, node: Node, what: str = "") -> int:
        """The number of a place in the program."""
        raise NotImplementedError

    def lane_function(
        self, key: tuple[Any, ...], dtypes: list[DType], build: Callable[[Any, list[Value]], Value]
    ) -> str:
        """The name of a function that does a scalar operation, for use on every lane."""
        raise NotImplementedError

    def call_function(self, node: e.CallFunction, args: list[str]) -> Value:
        raise NotImplementedError

    def exchange(self, node: e.Call, args: list[Value]) -> Value:
        """The value of an exchange between threads."""
        raise NotImplementedError

    def together(self, node: e.Call, operands: list[str], width: int) -> Value:
        """An operation on matrices, which the threads of a group do together."""
        raise NotImplementedError

    def tensor_text(self, buffer: Buffer, site: int) -> str:
        """The text of a tensor for a buffer as an argument."""
        raise NotImplementedError

    def part(self, lines: list[Line], before: int, result: str) -> str:
        """Make a function of some lines, and give the text that calls it."""
        raise NotImplementedError

    # Driver -----------------------------------------------------------------------------------------------------------

    def drive(self, visit: Visit) -> Any:
        """Run a visit and all that it asks for."""
        pending: list[tuple[Any, bool]] = [(visit, True)]
        found: Any = None
        request: Any = None
        while True:
            if request is not None:
                raw = type(request) is Raw
                inner = request.node if raw else request
                visit = self.table[type(inner)](self, inner)
                if isinstance(visit, GeneratorType):
                    pending.append((visit, raw))
                    found = None
                else:
                    found = visit if raw or not isinstance(visit, Value) else self.settled(visit)
            try:
                request = pending[-1][0].send(found)
            except StopIteration as done:
                raw = pending.pop()[1]
                found = done.value
                if not pending:
                    return found
                if not raw and isinstance(found, Value):
                    found = self.settled(found)
                request = None

    def on_lanes(
        self, key: tuple[Any, ...], operands: list[Value], dtype: DType, build: Callable[[Any, list[Value]], Value]
    ) -> Value:
        """An operation on scalars, or on every lane of vectors (a scalar among vectors counts for every lane)."""
        if dtype.lanes == 1 and all(operand.dtype.lanes == 1 for operand in operands):
            return build(self, operands)
        elements = [operand.dtype.element for operand in operands]
        name = self.lane_function((*key, *map(str, elements), str(dtype.element)), elements, build)
        letters = [f"lane{number}" for number in range(len(operands))]
        vectors = [number for number, operand in enumerate(operands) if operand.dtype.lanes > 1]
        args = ", ".join(
            letters[number] if operand.dtype.lanes > 1 else operand.text for number, operand in enumerate(operands)
        )
        call = f"{name}(E, {self.strand}, {args})"
        if len(vectors) == 1:
            text = f"[{call} for {letters[vectors[0]]} in {operands[vectors[0]].text}]"
        else:
            heads = ", ".join(letters[number] for number in vectors)
            texts = ", ".join(operands[number].text for number in vectors)
            text = f"[{call} for {heads} in zip({texts})]"
        # Under a name, for the operation may report.
        return self.named(value(text, dtype, 1))

    # Leaves -----------------------------------------------------------------------------------------------------------

    def visit_Var(self, node: e.Var) -> Value:
        return self.variables[node]

    def visit_IntImm(self, node: e.IntImm) -> Value:
        return Value("None", node.type) if node.type.is_handle else integer(node.value, node.type)

    def visit_FloatImm(self, node: e.FloatImm) -> Value:
        return floating(node.value, node.type)

    def visit_StringImm(self, node: e.StringImm) -> Value:
        return Value(self.constant(node.value), node.dtype)

    def constant(self, found: object) -> str:
        """The name under which generated code finds a constant that is not a number."""
        raise NotImplementedError

    # Arithmetic -------------------------------------------------------------------------------------------------------

    def visit_UnaryExpr(self, node: e.UnaryExpr) -> Visit:
        a = yield node.a
        kind = type(node)
        return self.on_lanes((kind,), [a], a.dtype, lambda to, args: to.unary(kind, args[0]))

    def visit_BinaryExpr(self, node: e.BinaryExpr) -> Visit:
        a = yield node.a
        b = yield node.b
        kind = type(node)
        return self.on_lanes((kind,), [a, b], a.dtype, lambda to, args: to.binary(kind, args[0], args[1]))

    def visit_CompareExpr(self, node: e.CompareExpr) -> Visit:
        a = yield node.a
        b = yield node.b
        kind = type(node)
        dtype = BOOL.with_lanes(a.dtype.lanes)
        return self.on_lanes((kind,), [a, b], dtype, lambda to, args: to.binary(kind, args[0], args[1]))

    def visit_Select(self, node: e.Select) -> Visit:
        condition = yield node.condition
        a = yield node.a
        b = yield node.b
        if condition.dtype.lanes == 1:
            return self.select(condition, a, b)
        return self.on_lanes(
            (e.Select,), [condition, a, b], a.dtype, lambda to, args: to.select(args[0], args[1], args[2])
        )

    def visit_Cast(self, node: e.Cast) -> Visit:
        a = yield node.value
        target = node.type.element
        return self.on_lanes((e.Cast,), [a], node.type, lambda to, args: to.converted(args[0], target))

    def visit_Reinterpret(self, node: e.Reinterpret) -> Visit:
        a = yield node.value
        return self.named(self.reinterpreted(a, node.type))

    # Operands that are evaluated only sometimes -----------------------------------------------------------------------

    def visit_And(self, node: e.And) -> Visit:
        return self._short_circuit(node, "if {}:")

    def visit_Or(self, node: e.Or) -> Visit:
        return self._short_circuit(node, "if not {}:")

    def _short_circuit(self, node: e.And | e.Or, head: str) -> Visit:
        a = yield node.a
        if a.dtype.lanes > 1:
            b = yield node.b
            kind = type(node)
            return self.on_lanes((kind,), [a, b], a.dtype, lambda to, args: to.binary(kind, args[0], args[1]))
        lines, b = yield from self._operand(node.b)
        if not lines:
            return self.binary(type(node), a, b)
        name = self.writer.fresh("t")
        self.writer.emit(f"{name} = {a.text}")
        with self.writer.block(head.format(name)):
            self.writer.lines.extend(lines)
            self.writer.emit(f"{name} = {b.text}")
        return value(name, a.dtype)

    def visit_IfThenElse(self, node: e.IfThenElse) -> Visit:
        condition = yield node.condition
        then_lines, a = yield from self._operand(node.a)
        else_lines, b = yield from self._operand(node.b)
        if not then_lines and not else_lines:
            return self.select(condition, a, b)
        name = self.writer.fresh("t")
        for head, lines, found in ((f"if {condition.text}:", then_lines, a), ("else:", else_lines, b)):
            with self.writer.block(head):
                self.writer.lines.extend(lines)
                self.writer.emit(f"{name} = {found.text}")
        return Value(name, a.dtype, 0, min(a.low, b.low), max(a.high, b.high))

    def _operand(self, node: e.Expr) -> Generator[Any, Any, tuple[list[Line], Value]]:
        """An operand that is evaluated only sometimes: its statements, one level in, and its value."""
        deep = self.writer.indent >= _OUTLINE_OPERANDS_AT
        before = self.writer.names
        with self.writer.captured(1 if deep else self.writer.indent + 1, in_part=deep) as lines:
            found = yield node
        if deep and lines:
            text = self.part(lines, before, found.text)
            with self.writer.captured(self.writer.indent + 1) as lines:
                name = self.writer.fresh("t")
                self.writer.emit(f"{name} = {text}")
            found = Value(name, found.dtype, 0, found.low, found.high)
        return lines, found

    # Vectors ----------------------------------------------------------------------------------------------------------

    def visit_Ramp(self, node: e.Ramp) -> Visit:
        base = yield node.base
        stride = yield node.stride
        dtype = base.dtype
        base, stride = self.named(base), self.named(stride)
        text = f"[wrap_{dtype}({base.text} + lane * {stride.text}) for lane in range({node.lanes})]"
        return self.named(value(text, dtype.with_lanes(node.lanes), 1))

    def visit_Broadcast(self, node: e.Broadcast) -> Visit:
        found = yield node.value
        return self.named(value(f"[{found.text}] * {node.lanes}", found.dtype.with_lanes(node.lanes), 1))

    def visit_Shuffle(self, node: e.Shuffle) -> Visit:
        lanes: list[str] = []
        element = BOOL
        for vector in node.vectors:
            found = self.named((yield vector))
            element = found.dtype.element
            if found.dtype.lanes == 1:
                lanes.append(found.text)
            else:
                lanes.extend(f"{found.text}[{lane}]" for lane in range(found.dtype.lanes))
        texts = [lanes[index] for index in node.indices]
        if len(texts) == 1:
            return value(texts[0], element, 1)
        return self.named(value(f"[{', '.join(texts)}]", element.with_lanes(len(texts)), 1))

    # Memory -----------------------------------------------------------------------------------------------------------

    def visit_Load(self, node: e.Load) -> Visit:
        indices = []
        for index in node.indices:
            indices.append(self.named((yield index)))
        site = self.site(node, node.buffer.name)
        if indices and indices[-1].dtype.lanes > 1:
            return self.load_vector(node.buffer, indices, site)
        return self.load_scalar(node.buffer, indices, site)

    def visit_AddressOf(self, node: e.AddressOf) -> Visit:
        indices = []
        for index in node.indices:
            indices.append(self.named((yield index)))
        names = self.names_of[node.buffer]
        # The origin of a strided view counts from where its views begin; an address counts from the pointer.
        number = self.numbered(names, indices, names.offset)
        pointer = self.variables[node.buffer.data].text
        site = self.site(node, node.buffer.name)
        return self.named(Value(f"E.address({pointer}, {number}, DT_{node.buffer.dtype}, {site})", node.dtype, 1))

    def visit_BufferRef(self, node: e.BufferRef) -> Value:
        site = self.site(node, node.buffer.name)
        return self.named(Value(self.tensor_text(node.buffer, site), node.dtype, 1))

    # Calls ------------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: e.Call) -> Visit:
        if is_atomic(node):
            return (yield from self._atomic(node))
        if is_matrix(node):
            return (yield from self._matrix(node))
        args = []
        for arg in node.args:
            args.append((yield arg))
        name = node.op.name
        if is_exchange(node):
            return self.exchange(node, [self.named(arg) for arg in args])
        site = self.site(node, name)
        if name in _HELPER_NAMES:
            texts = ", ".join(arg.text for arg in args)
            if name == "packed_return":  # what is stored depends on the type of the value
                texts += f", DT_{args[1].dtype}"
            return self.named(value(f"{name}(E, {site}, {texts})", node.type, 1))
        element = node.type.element
        key: tuple[Any, ...] = (e.Call, name)
        if node.op.name in ("quotient", "remainder", "shift_left", "shift_right"):
            key = (*key, site)
        return self.on_lanes(key, args, node.type, lambda to, found: to.operation(name, element, found, site))

    def _atomic(self, node: e.Call) -> Visit:
        """The indices and operands in order, then the operation."""
        element = node.args[0]
        assert isinstance(element, e.AddressOf)
        indices, operands = [], []
        for index in element.indices:
            indices.append(self.named((yield index)))
        for operand in node.args[1:]:
            operands.append(self.named((yield operand)))
        return self.atomic_access(node.op.name, element.buffer, indices, operands, self.site(node, element.buffer.name))

    def _matrix(self, node: e.Call) -> Visit:
        """The operands in order, then the operation."""
        operands = []
        for arg in node.args[:-1]:
            if not isinstance(arg, e.AddressOf):
                operands.append(self.named((yield arg)).text)
            elif arg.buffer.scope in MATRIX_SCOPES:
                indices = []
                for index in arg.indices[:-2]:
                    indices.append(self.named((yield index)).text)
                tiles, room = self.constant(tiles_of(arg.buffer)), self.variables[arg.buffer.data].text
                operands.append(f"Tile({tiles}, {room}, {tuple_text(indices)})")
            else:
                name = self.constant(arg.buffer.name)
                operands.append(f"MatrixElement({name}, {(yield arg).text}, {arg.buffer.scope is Scope.GLOBAL})")
        width = node.args[-1]
        assert isinstance(width, e.IntImm)
        return self.together(node, operands, width.value)

    def visit_CallFunction(self, node: e.CallFunction) -> Visit:
        args = []
        for arg in node.args:
            args.append(self.named((yield arg)).text)
        return self.call_function(node, args)

    def visit_CallExtern(self, node: e.CallExtern) -> Visit:
        return (yield from self._call_outside("call_extern", node.symbol, node))

    def visit_CallPacked(self, node: e.CallPacked) -> Visit:
        return (yield from self._call_outside("call_packed", node.name, node))

    def _call_outside(self, how: str, name: str, node: e.CallExtern | e.CallPacked) -> Visit:
        args = []
        for arg in node.args:
            args.append(self.named((yield arg)).text)
        site = self.site(node, name)
        text = f"{how}(E, {site}, {self.constant(name)}, {tuple_text(args)}, DT_{node.type})"
        return self.named(value(text, node.type, 1))


def tiles_of(buffer: Buffer) -> Tiles:
    """What is known of a buffer of tiles."""
    *counts, rows, columns = (size.value for size in buffer.shape if isinstance(size, e.IntImm))
    return Tiles(buffer.name, tuple(counts), rows, columns, buffer.dtype)
