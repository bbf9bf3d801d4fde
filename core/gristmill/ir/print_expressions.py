"""The printer's part for names, expressions and definitions; :mod:`gristmill.ir.text_form` shows the form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir import text_form as form
from gristmill.ir.dtype import BOOL, HANDLE, VOID
from gristmill.ir.functor import Functor, walk
from gristmill.ir.memory import Buffer, PointerType, Range, Region, Scope
from gristmill.ir.node import Node
from gristmill.ir.op import Op, Result
from gristmill.ir.span import Span

Item = str | Node | tuple[e.Expr, int] | Callable[[], None]
"""Something to print: a text, a node, an expression in a place that binds so tightly, or something to do."""

_OPERATORS = {kind: entry for table in (form.INFIX, form.PREFIXES) for kind, entry in table.items()}
_BUILTIN_NAME = {kind: name for name, (kind, _) in form.BUILTINS.items()}


class ExpressionPrinter(Functor[None]):
    """The work list, names and spans, and how expressions and definitions look."""

    def __init__(self, spans: bool) -> None:
        self.spans = spans
        self.out: list[str] = []
        self.work: list[Item] = []
        self.indent = 0
        self.span_numbers: dict[Span, int] = {}
        self.forget_names()

    def forget_names(self) -> None:
        """Names are unique within a function."""
        self.names: dict[e.Var | Buffer, str] = {}
        self.taken: set[str] = set()
        self.defined_data: set[e.Var] = set()
        self.shown_data: set[e.Var] = set()

    def text(self, node: Node) -> str:
        self.note_data_uses(node)
        self.work.append(node)
        while self.work:
            item = self.work.pop()
            if type(item) is str:
                self.out.append(item)
            elif type(item) is tuple:
                self.expression(*item)
            elif isinstance(item, Node):
                self.node(item)
            else:
                item()  # type: ignore[operator]
        return "".join(self.out)

    def push(self, *items: Item) -> None:
        self.work.extend(reversed(items))

    # Lines and names

    def line(self) -> None:
        self.out.append("\n" + "  " * self.indent)

    def deeper(self) -> None:
        self.indent += 1

    def shallower(self) -> None:
        self.indent -= 1

    def name(self, found: e.Var | Buffer) -> str:
        """The unique name of a variable or buffer: its own, with a number where that is taken."""
        known = self.names.get(found)
        if known is not None:
            return known
        wanted = name = form.name_for(found.name, "v" if isinstance(found, e.Var) else "b")
        number = 0
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        self.names[found] = name
        return name

    def note_data_uses(self, root: Node) -> None:
        """Find the data variables that must be shown, for something else refers to them."""
        owners: Counter[e.Var] = Counter()
        for node in walk(root):
            if isinstance(node, e.Var):
                self.shown_data.add(node)
            elif isinstance(node, Buffer):
                owners[node.data] += 1
        self.shown_data.update(data for data, count in owners.items() if count > 1)

    # Spans

    def span_number(self, span: Span) -> int:
        outer: Span | None = span
        while outer is not None and outer not in self.span_numbers:
            self.span_numbers[outer] = len(self.span_numbers) + 1
            outer = outer.inlined_at
        return self.span_numbers[span]

    def span_before(self, node: Node) -> str:
        span: Span | None = node.span if self.spans else None
        return f"#{self.span_number(span)} " if span is not None else ""

    def span_table(self) -> str:
        if not self.span_numbers:
            return ""
        lines = []
        for span, number in self.span_numbers.items():
            place = span.place
            inlined = f" inlined #{self.span_numbers[span.inlined_at]}" if span.inlined_at else ""
            lines.append(
                f"  #{number} = {json.dumps(place.file)} {place.line} {place.column} {place.end_line}"
                f" {place.end_column}{inlined}\n"
            )
        return "spans {\n" + "".join(lines) + "}\n\n"

    # Expressions

    def node(self, node: Node) -> None:
        if isinstance(node, e.Expr):
            self.expression(node, form.LOOSEST)
        else:
            self.out.append(self.span_before(node))
            self.visit(node)

    def expression(self, node: e.Expr, tightness: int) -> None:
        """One expression; in brackets where its operator binds less tightly than its place asks."""
        kind = type(node)
        entry = _OPERATORS.get(kind)
        span: Span | None = node.span if self.spans and kind is not e.Var else None
        suffix = f"#{self.span_number(span)}" if span is not None else ""
        if entry is not None and (entry[1] < tightness or suffix):
            self.push("(", lambda: self.visit(node), ")" + suffix)
        elif suffix:
            self.push(lambda: self.visit(node), suffix)
        else:
            self.visit(node)

    def comma(self, items: Iterable[Item]) -> list[Item]:
        found: list[Item] = []
        for item in items:
            if found:
                found.append(", ")
            found.append(item)
        return found

    def visit_Var(self, node: e.Var) -> None:
        self.out.append(self.name(node))

    def visit_IntImm(self, node: e.IntImm) -> None:
        self.out.append(form.integer_text(node.value, node.type))

    def visit_FloatImm(self, node: e.FloatImm) -> None:
        self.out.append(form.float_text(node.value, node.type))

    def visit_StringImm(self, node: e.StringImm) -> None:
        self.out.append(json.dumps(node.value))

    def visit_UnaryExpr(self, node: e.UnaryExpr) -> None:
        sign, tightness = form.PREFIXES[type(node)]
        if type(node) is e.Negate and isinstance(node.a, (e.IntImm, e.FloatImm)):
            self.push("-(", node.a, ")")  # "-1" would be the constant
        else:
            self.push(sign, (node.a, tightness))

    def visit_BinaryExpr(self, node: e.BinaryExpr | e.CompareExpr) -> None:
        entry = _OPERATORS.get(type(node))
        if entry is None:
            self.push(_BUILTIN_NAME[type(node)], "(", node.a, ", ", node.b, ")")
            return
        sign, tightness = entry
        left = tightness + 1 if tightness == form.COMPARISON else tightness
        self.push((node.a, left), f" {sign} ", (node.b, tightness + 1))

    visit_CompareExpr = visit_BinaryExpr

    def visit_Select(self, node: e.Select | e.IfThenElse) -> None:
        self.push(_BUILTIN_NAME[type(node)], "(", node.condition, ", ", node.a, ", ", node.b, ")")

    visit_IfThenElse = visit_Select

    def visit_Cast(self, node: e.Cast) -> None:
        self.push(f"{node.type}(", node.value, ")")

    def visit_Reinterpret(self, node: e.Reinterpret) -> None:
        self.push(f"reinterpret[{node.type}](", node.value, ")")

    def visit_Ramp(self, node: e.Ramp) -> None:
        self.push("ramp(", node.base, ", ", node.stride, f", {node.lanes})")

    def visit_Broadcast(self, node: e.Broadcast) -> None:
        self.push("broadcast(", node.value, f", {node.lanes})")

    def visit_Shuffle(self, node: e.Shuffle) -> None:
        indices = ", ".join(map(str, node.indices))
        self.push(f"shuffle[{indices}](", *self.comma(node.vectors), ")")

    def visit_Load(self, node: e.Load | e.AddressOf) -> None:
        mark = "&" if type(node) is e.AddressOf else ""
        self.push(f"{mark}{self.name(node.buffer)}[", *self.comma(node.indices), "]")

    visit_AddressOf = visit_Load

    def visit_BufferRef(self, node: e.BufferRef) -> None:
        self.out.append(f"buffer({self.name(node.buffer)})")

    def visit_Call(self, node: e.Call) -> None:
        stated = "" if node.type == derived_type(node.op, node.args) else f" as {node.type}"
        self.push(f"{node.op.name}(", *self.comma(node.args), ")" + stated)

    def call(self, callee: str, node: e.CallFunction | e.CallExtern | e.CallPacked) -> None:
        self.push(callee, "(", *self.comma(node.args), ")" + ("" if node.type == VOID else f" as {node.type}"))

    def visit_CallFunction(self, node: e.CallFunction) -> None:
        self.call(function_name(node.function), node)

    def visit_CallExtern(self, node: e.CallExtern) -> None:
        self.call(f"extern {json.dumps(node.symbol)}", node)

    def visit_CallPacked(self, node: e.CallPacked) -> None:
        self.call(f"packed {json.dumps(node.name)}", node)

    # Definitions and parts

    def variable(self, var: e.Var) -> str:
        """The definition of a variable."""
        if var.pointer is None:
            kind = str(var.type)
        else:
            kind = str(var.pointer) if var.type == HANDLE else f"{var.type} {var.pointer}"
        return f"{self.span_before(var)}{self.name(var)}: {kind}"

    def visit_Buffer(self, node: Buffer, used_data: bool = False) -> None:
        """The definition of a buffer; ``used_data`` says that its data variable is no part of the definition."""
        items: list[Item] = [f"{self.name(node)}: {node.dtype}[", *self.comma(node.shape), "]"]
        if node.strides:
            items += [" strides [", *self.comma(node.strides), "]"]
        if node.offset is not None:
            items += [" offset ", node.offset]
        if node.scope is not Scope.GLOBAL:
            items.append(f" in {node.scope.value}")
        if node.alignment:
            items.append(f" align {node.alignment}")
        if used_data:
            items.append(f" over {self.name(node.data)}")
        elif self.is_data_shown(node):
            known = node.data in self.defined_data
            self.defined_data.add(node.data)
            items.append(f" data {self.name(node.data) if known else self.variable(node.data)}")
        self.push(*items)

    def is_data_shown(self, buffer: Buffer) -> bool:
        data = buffer.data
        usual = data.type == HANDLE and data.pointer == PointerType(buffer.dtype, buffer.scope)
        return not usual or data in self.shown_data or (self.spans and data.span is not None)

    def visit_Range(self, node: Range) -> None:
        self.push(node.minimum, " +: ", node.extent)

    def visit_Region(self, node: Region) -> None:
        self.push(f"{self.name(node.buffer)}[", *self.comma(node.ranges), "]")

    def visit_BlockAxis(self, node: s.BlockAxis) -> None:
        self.push(f"axis {self.variable(node.var)} {node.kind.value} in ", node.domain, " = ", node.value)

    def visit_MatchBuffer(self, node: s.MatchBuffer) -> None:
        self.push("match ", node.buffer, " = ", node.region)


def function_name(name: str) -> str:
    return f"@{name}" if form.NAME.fullmatch(name) else f"@{json.dumps(name)}"


def derived_type(op: Op, args: tuple[e.Expr, ...]) -> Any:
    """The type of a call that follows from its operands, None where it must be stated."""
    if not args or op.result is Result.STATED:
        return None
    if op.result is Result.VOID:
        return VOID
    if op.result is Result.ELEMENT:
        return args[0].buffer.dtype if isinstance(args[0], e.AddressOf) else None
    dtype = args[0].dtype
    return BOOL.with_lanes(dtype.lanes) if op.result is Result.BOOL else dtype
