"""IR as text that people read and :mod:`gristmill.ir.parser` reads back; :mod:`gristmill.ir.text_form` shows the form.

One work list drives the printing, so depth does not matter: an item is a text, a node, or something to do, and a node
is replaced by the items that it consists of.
"""

from __future__ import annotations

import json

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir import text_form as form
from gristmill.ir.dtype import VOID
from gristmill.ir.functor import ALL_NODES
from gristmill.ir.module import CallingConvention, Function, FunctionFacts, Module
from gristmill.ir.node import Node
from gristmill.ir.print_expressions import ExpressionPrinter, Item, function_name
from gristmill.ir.target import Target, parse_target


def print_module(module: Module, *, spans: bool = False) -> str:
    """The whole module. With ``spans`` the text says where each node comes from."""
    return _Printer(spans).text(module)


def print_function(function: Function) -> str:
    """One function, without spans."""
    return _Printer(False).text(function)


def print_node(node: Node) -> str:
    """Any node, without spans and without a final newline. Variables defined elsewhere appear by their names."""
    return _Printer(False).text(node).rstrip("\n")


class _Printer(ExpressionPrinter, over=ALL_NODES):
    """Prints one tree."""

    def braces(self, body: s.Stmt) -> None:
        """A body in braces: the statements of a sequence, or the one statement that it is."""
        if isinstance(body, s.Seq) and len(body.body) != 1:
            self.sequence(body)
        else:
            self.push("{", self.deeper, self.line, body, self.shallower, self.line, "}")

    def sequence(self, node: s.Seq) -> None:
        span = self.span_before(node).rstrip()
        items: list[Item] = [f"{{ {span}" if span else "{", self.deeper]
        for statement in node.body:
            items += [self.line, statement]
        self.push(*items, self.shallower, self.line, "}")

    def visit_Seq(self, node: s.Seq) -> None:
        # The span stands inside the braces here too.
        if self.spans and node.span is not None:
            self.out.pop()
        self.out.append("seq ")
        self.sequence(node)

    def visit_Bind(self, node: s.Bind) -> None:
        self.push(f"let {self.variable(node.var)} = ", node.value)

    def visit_Allocate(self, node: s.Allocate) -> None:
        self.push("allocate ", node.buffer)

    def visit_View(self, node: s.View) -> None:
        buffer = node.buffer
        if node.source is None:
            self.push("view ", self.span_before(buffer), lambda: self.visit_Buffer(buffer, used_data=True))
        else:
            self.push("view ", buffer, " from ", node.source)

    def visit_Store(self, node: s.Store) -> None:
        self.push(f"{self.name(node.buffer)}[", *self.comma(node.indices), "] = ", node.value)

    def visit_Evaluate(self, node: s.Evaluate) -> None:
        self.push("evaluate ", node.value)

    def visit_Assert(self, node: s.Assert) -> None:
        items: list[Item] = ["assert ", node.condition, f", {json.dumps(node.kind)}"]
        for part in node.message:
            if isinstance(part, str):
                items.append(f", {json.dumps(part)}")
            elif isinstance(part, e.StringImm):
                items += [", (", part, ")"]
            else:
                items += [", ", part]
        self.push(*items)

    def visit_For(self, node: s.For) -> None:
        words = "" if node.kind is s.LoopKind.SERIAL else f" {node.kind.value}"
        if node.thread is not None:
            words += f" on {node.thread.value}"
        hints = node.hints
        if hints.unroll:
            words += f" unroll {hints.unroll}"
        if hints.vector_width:
            words += f" vector_width {hints.vector_width}"
        if hints.vectorize is not None:
            words += f" vectorize {str(hints.vectorize).lower()}"
        if hints.independent:
            words += " independent"
        self.push(
            lambda: self.out.append(f"for {self.variable(node.var)} in "),
            node.minimum,
            " +: ",
            node.extent,
            words + " ",
            lambda: self.braces(node.body),
        )

    def visit_While(self, node: s.While) -> None:
        self.push("while ", node.condition, " ", lambda: self.braces(node.body))

    def visit_Break(self, node: s.Break) -> None:
        self.out.append("break")

    def visit_Continue(self, node: s.Continue) -> None:
        self.out.append("continue")

    def visit_Return(self, node: s.Return) -> None:
        self.out.append("return")
        if node.value is not None:
            self.push(" ", node.value)

    def visit_If(self, node: s.If) -> None:
        items: list[Item] = ["if ", node.condition, " ", lambda: self.braces(node.then)]
        otherwise = node.otherwise
        if isinstance(otherwise, s.If):
            items += [" else ", otherwise]
        elif otherwise is not None:
            items += [" else ", lambda: self.braces(otherwise)]
        self.push(*items)

    def visit_Block(self, node: s.Block) -> None:
        clauses: list[list[Item]] = []
        if node.predicate is not None:
            clauses.append(["where ", node.predicate])
        clauses += [[axis] for axis in node.axes]
        clauses += [["allocate ", buffer] for buffer in node.allocations]
        for word, regions in (("reads", node.reads), ("writes", node.writes)):
            if regions is not None:
                clauses.append([f"{word} ", *self.comma(regions)] if regions else [word])
        clauses += [[match] for match in node.matches]
        if (init := node.init) is not None:
            clauses.append(["init ", lambda: self.braces(init)])
        items: list[Item] = [f"block {json.dumps(node.name)}"]
        self.push(*items, *self.clauses(clauses), lambda: self.braces(node.body))

    def clauses(self, clauses: list[list[Item]]) -> list[Item]:
        """What stands between the first line of a block or function and its brace."""
        if not clauses:
            return [" "]
        items: list[Item] = [self.deeper]
        for clause in clauses:
            items += [self.line, *clause]
        return [*items, self.shallower, self.line]

    def visit_Barrier(self, node: s.Barrier) -> None:
        self.out.append(f"barrier {node.scope.value}")

    def visit_Launch(self, node: s.Launch) -> None:
        items: list[Item] = [f"launch {function_name(node.kernel)}(", *self.comma(node.args), ")"]
        for number, extent in enumerate(node.extents):
            axis = node.axes[number].value if number < len(node.axes) else "?"
            items += [" over " if number == 0 else ", ", f"{axis} = ", extent]
        if node.dynamic_shared is not None:
            items += [" shared ", node.dynamic_shared]
        if node.context is not None:
            items += [" context ", node.context]
        self.push(*items)

    def visit_DeviceRegion(self, node: s.DeviceRegion) -> None:
        self.push(f"device_region {_target(node.target)} ", lambda: self.braces(node.body))

    # Functions and modules

    def visit_Function(self, node: Function) -> None:
        self.forget_names()
        self.note_data_uses(node)
        for found in (*node.sizes, *node.params):  # shapes may name what stands further on
            self.name(found)
        items: list[Item] = [f"function {function_name(node.name)}"]
        if node.sizes:
            items.append("<" + ", ".join(self.variable(size) for size in node.sizes) + ">")
        params: list[Item] = [self.variable(param) if isinstance(param, e.Var) else param for param in node.params]
        items += ["(", *self.comma(params), ")"]
        if node.returns != VOID:
            items.append(f" -> {node.returns}")
        clauses: list[list[Item]] = [[text] for text in _facts(node.facts)]
        self.push(*items, *self.clauses(clauses), lambda: self.braces(node.body), "\n")

    def visit_Module(self, node: Module) -> None:
        span = self.out.pop()  # stands after the header
        blocks: list[Item] = []
        for extern in node.externs:
            blocks.append(f"extern {json.dumps(extern.symbol)} from {json.dumps(extern.library)}\n")
        for number, function in enumerate(node.functions):
            blocks += ["\n" if number or node.externs else "", function]

        def put_head() -> None:
            self.out.insert(0, f"{form.HEADER}{' ' + span.rstrip() if span else ''}\n\n{self.span_table()}")

        self.push(*blocks, put_head)


def _facts(facts: FunctionFacts) -> list[str]:
    """The facts that differ from what they are if nothing is said, one a line."""
    lines = []
    if facts.symbol is not None:
        lines.append(f"symbol {json.dumps(facts.symbol)}")
    if facts.convention is not CallingConvention.PLAIN:
        lines.append(f"convention {facts.convention.value}")
    if facts.target is not None:
        lines.append(f"target {_target(facts.target)}")
    if facts.launch is not None:
        axes = ", ".join(axis.value for axis in facts.launch.axes)
        lines.append(f"launch ({axes}){' dynamic_shared' if facts.launch.dynamic_shared else ''}")
    if facts.declaration:
        lines.append("declaration")
    if facts.no_alias:
        lines.append("no_alias")
    if facts.fast_math:
        lines.append("fast_math")
    if facts.release_gil is not None:
        lines.append(f"release_gil {str(facts.release_gil).lower()}")
    if facts.signature:
        lines.append(f"signature {json.dumps(facts.signature)}")
    if facts.summary:
        lines.append(f"summary {json.dumps(facts.summary)}")
    return lines


def _target(target: Target) -> str:
    plain = Target(target.kind, target.arch, target.features)
    try:
        simple = parse_target(str(target)) == plain
    except ValueError:
        simple = False
    words = [target.kind, target.arch, *target.features]
    text = json.dumps(str(plain)) if simple else f"[{', '.join(map(json.dumps, words))}]"
    if target.options:
        text += f" ({', '.join(f'{json.dumps(key)} = {json.dumps(value)}' for key, value in target.options)})"
    return text
