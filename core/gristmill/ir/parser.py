"""Reads the text form of IR (:mod:`gristmill.ir.text_form`) back: exactly what the printer prints, and comments.

The text may come from a pack, so it is not trusted: whatever it is, the answer is a module or a
:class:`~gristmill.errors.UserError` with a place. GM0401: it is not in the text form. GM0402: it uses a name that is
not defined. GM0403: it defines a name twice. GM0404: it is too long or too deep. What is read is well formed as text
only; :mod:`gristmill.ir.verify` says whether it means anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from gristmill.errors import close_match
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir import text_form as form
from gristmill.ir.dtype import HANDLE, VOID
from gristmill.ir.memory import Buffer, PointerType, Region, Scope
from gristmill.ir.module import (
    CallingConvention,
    Extern,
    Function,
    FunctionFacts,
    LaunchParameters,
    Module,
)
from gristmill.ir.parse_expressions import ExpressionParser, names_of
from gristmill.ir.scan import Token
from gristmill.ir.span import Span
from gristmill.ir.target import Target, parse_target

STATEMENTS_AT_MOST = 256
"""How deep statements of a text may be nested."""
_INLINED_AT_MOST = 256

E = TypeVar("E", bound=Enum)


def parse_module(text: str, file: str = "<text>") -> Module:
    """The module that ``text`` describes; ``file`` names it in errors. Raises UserError, GM0401 to GM0404."""
    return _Parser(text, file).module()


@dataclass(slots=True)
class _Body:
    """An open brace: the statements so far, and what to do with the finished body."""

    span: Span | None
    deliver: Callable[[s.Stmt], None]
    depth: int
    explicit: bool
    statements: list[s.Stmt]

    def finished(self) -> s.Stmt:
        if len(self.statements) == 1 and not self.explicit:
            return self.statements[0]
        return s.Seq(tuple(self.statements), self.span)


class _Parser(ExpressionParser):
    """Reads statements, functions and modules."""

    def __init__(self, text: str, file: str) -> None:
        self.bodies: list[_Body] = []
        super().__init__(text, file)

    def one_of(self, kind: type[E], what: str) -> E:
        """The member of an enumeration whose value is the word in view."""
        token = self.token
        found = next((member for member in kind if token.kind == "name" and member.value == token.text), None)
        if found is None:
            self.expected(f"{what} ({names_of([str(member.value) for member in kind])})")
        self.advance()
        return found

    def boolean(self) -> bool:
        if not self.is_word("true") and not self.is_word("false"):
            self.expected("`true` or `false`")
        return self.advance().text == "true"

    # Modules

    def module(self) -> Module:
        self.skip_newlines()
        for word in form.HEADER.split():
            if self.token.text != word:
                self.expected(f"the first line `{form.HEADER}`")
            self.advance()
        header = self.mark()
        if self.token.kind == "span":
            self.advance()
        self.skip_newlines()
        if self.take_word("spans"):
            self.span_table()
        rest = self.mark()
        self.back_to(header)
        span = self.span_mark()  # its table is known only now
        self.end_line()
        if self.token.kind != "end":
            self.back_to(rest)
        return self.items(span)

    def items(self, span: Span | None) -> Module:
        externs: list[Extern] = []
        functions: list[Function] = []
        while True:
            self.skip_newlines()
            if self.token.kind == "end":
                return Module(tuple(functions), tuple(externs), span)
            if self.take_word("extern"):
                symbol = self.expect_string("the symbol")
                self.expect_word("from")
                externs.append(Extern(symbol, self.expect_string("the name of a library")))
            else:
                mark = self.span_mark()
                if not self.take_word("function"):
                    self.expected("`function` or `extern`")
                functions.append(self.function(mark))
            self.end_line()

    def span_table(self) -> None:
        self.expect_sign("{")
        rows: dict[int, tuple[Token, Span, int | None]] = {}
        while True:
            self.skip_newlines()
            if self.take_sign("}"):
                break
            token = self.token
            if token.kind != "span":
                self.expected("`#` and a number")
            self.advance()
            self.expect_sign("=")
            file = self.expect_string("the name of a file")
            numbers = [self.expect_integer("a line or column") for _ in range(4)]
            inlined = None
            if self.take_word("inlined"):
                if self.token.kind != "span":
                    self.expected("`#` and a number")
                inlined = int(self.advance().text[1:])
            self.end_line()
            number = int(token.text[1:])
            if number in rows:
                self.fail("GM0403", f"{token.shown} is in the table of spans already", token)
            rows[number] = (token, Span.at(file, *numbers), inlined)
        for number in rows:
            self.resolve_span(number, rows)

    def resolve_span(self, number: int, rows: dict[int, tuple[Token, Span, int | None]]) -> None:
        """Make the span, after those that it was inlined through."""
        chain: list[int] = []
        current: int | None = number
        while current is not None and current not in self.spans:
            if current not in rows:
                self.fail("GM0402", f"the table of spans has no `#{current}`", rows[chain[-1]][0])
            if len(chain) >= _INLINED_AT_MOST:
                self.fail("GM0404", f"a span is inlined at most {_INLINED_AT_MOST} times", rows[number][0])
            chain.append(current)
            current = rows[current][2]
        outer = None if current is None else self.spans[current]
        levels = 0
        walked = outer
        while walked is not None:
            levels, walked = levels + 1, walked.inlined_at
        if levels + len(chain) > _INLINED_AT_MOST:
            self.fail("GM0404", f"a span is inlined at most {_INLINED_AT_MOST} times", rows[number][0])
        for link in reversed(chain):
            outer = replace(rows[link][1], inlined_at=outer)
            self.spans[link] = outer

    # Functions

    def function(self, span: Span | None) -> Function:
        self.names = {}
        name = self.function_name()
        sizes: list[e.Var] = []
        if self.take_sign("<"):
            while not sizes or self.take_sign(","):
                token, size = self.variable_definition()
                self.define(token, size)
                sizes.append(size)
            self.expect_sign(">")
        params = self.parameters()
        returns = self.dtype() if self.take_sign("->") else VOID
        facts = self.facts()
        body = self.whole_body()
        return Function(name, params, tuple(sizes), returns, body, facts, span)

    def parameters(self) -> tuple[e.Var | Buffer, ...]:
        """The parameters. Variables are defined first: shapes may name those that stand further on."""
        self.expect_sign("(")
        start = self.mark()
        variables: dict[int, e.Var] = {}
        depth = 0
        fresh = True
        while depth or not self.is_sign(")"):
            if self.token.kind == "end":
                self.expected("`)`")
            if fresh and depth == 0:
                here = self.mark()
                if (found := self.variable_parameter()) is not None:
                    self.define(*found)
                    variables[here[2].start] = found[1]
                    continue
                self.back_to(here)
            fresh = self.is_sign(",")
            depth += (self.token.text in ("(", "[", "{")) - (self.token.text in (")", "]", "}"))
            self.advance()
        self.back_to(start)
        params: list[e.Var | Buffer] = []
        while not self.is_sign(")"):
            known = variables.get(self.token.start)
            if known is not None:
                self.variable_parameter()
            params.append(known or self.buffer_definition())
            if not self.take_sign(","):
                break
        self.expect_sign(")")
        return tuple(params)

    def variable_parameter(self) -> tuple[Token, e.Var] | None:
        """A variable among the parameters; None if what is in view is something else."""
        ahead = self.mark()
        if self.token.kind == "span":
            self.advance()
        if self.token.kind != "name":
            return None
        self.advance()
        if not self.take_sign(":") or self.token.kind != "name":
            return None
        self.advance()
        if self.is_sign("["):
            return None
        self.back_to(ahead)
        return self.variable_definition()

    def facts(self) -> FunctionFacts:
        found: dict[str, Any] = {}
        readers: dict[str, Callable[[], Any]] = {
            "symbol": lambda: self.expect_string("the symbol"),
            "convention": lambda: self.one_of(CallingConvention, "a calling convention"),
            "target": self.target,
            "launch": self.launch_parameters,
            "no_alias": lambda: True,
            "fast_math": lambda: True,
            "release_gil": self.boolean,
            "signature": lambda: self.expect_string("the signature"),
        }
        while True:
            self.skip_newlines()
            if self.is_sign("{"):
                return FunctionFacts(**found)
            token = self.expect_name("`{`")
            if token.text not in readers:
                near = close_match(token.text, list(readers))
                hint = f"did you mean `{near}`?" if near else f"facts are {', '.join(readers)}"
                self.fail("GM0402", f"no fact of a function is named {token.shown}", token, hint)
            if token.text in found:
                self.fail("GM0403", f"{token.shown} is stated already", token)
            found[token.text] = readers[token.text]()
            self.end_line()

    def target(self) -> Target:
        token = self.token
        if self.take_sign("["):
            words = [self.expect_string("the kind of the target")]
            while self.take_sign(","):
                words.append(self.expect_string("a part of the target"))
            self.expect_sign("]")
            if len(words) < 2:
                self.fail("GM0401", "a target in brackets has a kind and an arch at least", token)
            found = Target(words[0], words[1], tuple(words[2:]))
        else:
            text = self.expect_string("a target")
            try:
                found = parse_target(text)
            except ValueError as wrong:
                self.fail("GM0401", str(wrong), token)
        if not self.take_sign("("):
            return found
        options: list[tuple[str, str | int | float | bool]] = []
        while not options or self.take_sign(","):
            key = self.expect_string("an option")
            self.expect_sign("=")
            options.append((key, self.option()))
        self.expect_sign(")")
        return replace(found, options=tuple(options))

    def option(self) -> str | int | float | bool:
        token = self.token
        if token.kind == "string":
            return self.expect_string("a text")
        if token.kind == "name" and token.text in ("true", "false"):
            return self.boolean()
        sign = -1 if self.take_sign("-") else 1
        token = self.advance()
        if token.kind == "number" and token.text.isdecimal() and len(token.text) <= 100:
            return sign * int(token.text)
        try:
            return sign * float(token.text[:100])
        except ValueError:
            self.fail("GM0401", f"{token.shown} is not a text, a number, `true` or `false`", token)

    def launch_parameters(self) -> LaunchParameters:
        self.expect_sign("(")
        axes: list[s.ThreadAxis] = []
        while not self.is_sign(")"):
            axes.append(self.one_of(s.ThreadAxis, "an axis"))
            if not self.take_sign(","):
                break
        self.expect_sign(")")
        return LaunchParameters(tuple(axes), self.take_word("dynamic_shared"))

    # Definitions

    def new_name(self, what: str) -> Token:
        token = self.expect_name(what)
        if token.text in form.KEYWORDS or form.SPECIAL_FLOAT.fullmatch(token.text):
            self.fail("GM0401", f"{token.shown} is a word of the text form and cannot be {what}", token)
        return token

    def variable_definition(self) -> tuple[Token, e.Var]:
        """A variable and its type; the caller defines it, where its scope begins."""
        span = self.span_mark()
        token = self.new_name("the name of a variable")
        self.expect_sign(":")
        kind = HANDLE if self.is_word("ptr") else self.dtype()
        pointer = self.pointer_type() if self.is_word("ptr") else None
        return token, e.Var(token.text, kind, pointer, span)

    def pointer_type(self) -> PointerType:
        self.advance()
        self.expect_sign("<")
        element = self.dtype()
        self.expect_sign(",")
        scope = self.one_of(Scope, "a scope of memory")
        self.expect_sign(">")
        return PointerType(element, scope)

    def buffer_definition(self) -> Buffer:
        """A buffer, defined, and its data with it unless that is known already."""
        span = self.span_mark()
        token = self.new_name("the name of a buffer")
        self.expect_sign(":")
        dtype = self.dtype()
        self.expect_sign("[")
        shape = self.expressions("]")
        strides: tuple[e.Expr, ...] = ()
        if self.take_word("strides"):
            self.expect_sign("[")
            strides = self.expressions("]")
        offset = self.expression() if self.take_word("offset") else None
        scope = self.one_of(Scope, "a scope of memory") if self.take_word("in") else Scope.GLOBAL
        alignment = self.expect_integer("an alignment") if self.take_word("align") else 0
        if self.take_word("over"):
            data = self.variable(self.expect_name("the name of a variable"))
        elif self.take_word("data"):
            data = self.data_variable()
        else:
            data = e.Var(f"{token.text}_data", HANDLE, PointerType(dtype, scope))
        buffer = Buffer(token.text, dtype, shape, data, strides, offset, scope, alignment, span)
        self.define(token, buffer)
        return buffer

    def data_variable(self) -> e.Var:
        """``name: type`` defines, ``name`` alone uses."""
        here = self.mark()
        span = self.span_mark()
        token = self.expect_name("the name of a variable")
        if span is None and not self.is_sign(":"):
            return self.variable(token)
        self.back_to(here)
        token, found = self.variable_definition()
        self.define(token, found)
        return found

    def region(self) -> Region:
        span = self.span_mark()
        buffer = self.buffer(self.expect_name("the name of a buffer"))
        return Region(buffer, self.ranges(), span)

    # Statements

    def whole_body(self) -> s.Stmt:
        """A body in braces, with all that is nested in it."""
        finished: list[s.Stmt] = []
        self.open_body(finished.append)
        while self.bodies:
            self.skip_newlines()
            if self.take_sign("}"):
                body = self.bodies.pop()
                body.deliver(body.finished())
            else:
                self.statement()
        return finished[0]

    def open_body(self, deliver: Callable[[s.Stmt], None], *, extra: int = 0, explicit: bool = False) -> None:
        """Read ``{``; what stands in it is read by :meth:`whole_body`. ``extra``: levels that braces do not show."""
        self.skip_newlines()
        brace = self.expect_sign("{")
        span = self.span_mark()
        depth = (self.bodies[-1].depth if self.bodies else 0) + 1 + extra
        if depth > STATEMENTS_AT_MOST:
            self.fail("GM0404", f"statements are nested more than {STATEMENTS_AT_MOST} levels deep", brace)
        self.bodies.append(_Body(span, deliver, depth, explicit or span is not None, []))

    def add(self, statement: s.Stmt) -> None:
        self.bodies[-1].statements.append(statement)

    def close_statement(self, statement: s.Stmt) -> None:
        """A statement that ended with a brace."""
        self.end_line()
        self.add(statement)

    def statement(self) -> None:
        """One statement, or the first part of one up to its open brace."""
        span = self.span_mark()
        token = self.token
        if token.kind != "name":
            self.expected("a statement or `}`")
        self.advance()
        nested = _NESTED.get(token.text)
        if nested is not None:
            nested(self, span)
            return
        simple = _SIMPLE.get(token.text)
        if simple is not None:
            self.add(simple(self, span))
        elif self.is_sign("["):
            self.add(self.store(token, span))
        else:
            near = close_match(token.text, [*_SIMPLE, *_NESTED])
            self.fail("GM0401", f"{token.shown} begins no statement", token, f"did you mean `{near}`?" if near else "")
        self.end_line()

    def store(self, token: Token, span: Span | None) -> s.Stmt:
        buffer = self.buffer(token)
        self.expect_sign("[")
        indices = self.expressions("]")
        self.expect_sign("=")
        return s.Store(buffer, indices, self.expression(), span)

    def bind(self, span: Span | None) -> s.Stmt:
        token, var = self.variable_definition()
        self.expect_sign("=")
        value = self.expression()
        self.define(token, var)
        return s.Bind(var, value, span)

    def view(self, span: Span | None) -> s.Stmt:
        buffer = self.buffer_definition()
        return s.View(buffer, self.expression() if self.take_word("from") else None, span)

    def assertion(self, span: Span | None) -> s.Stmt:
        condition = self.expression()
        self.expect_sign(",")
        kind = self.expect_string("the name of an exception")
        message: list[str | e.Expr] = []
        while self.take_sign(","):
            # A text alone is a part of the message; in brackets it is an expression.
            message.append(self.expect_string("a text") if self.token.kind == "string" else self.expression())
        return s.Assert(condition, kind, tuple(message), span)

    def return_(self, span: Span | None) -> s.Stmt:
        empty = self.token.kind in ("newline", "end") or self.is_sign("}")
        return s.Return(None if empty else self.expression(), span)

    def launch(self, span: Span | None) -> s.Stmt:
        kernel = self.function_name()
        self.expect_sign("(")
        args = self.expressions(")")
        axes: list[s.ThreadAxis] = []
        extents: list[e.Expr] = []
        if self.take_word("over"):
            while not axes or self.take_sign(","):
                axes.append(self.one_of(s.ThreadAxis, "an axis"))
                self.expect_sign("=")
                extents.append(self.expression())
        shared = self.expression() if self.take_word("shared") else None
        return s.Launch(kernel, args, tuple(axes), tuple(extents), shared, span)

    def sequence(self, span: Span | None) -> None:
        if span is not None:
            self.fail("GM0401", "the span of a sequence stands inside its braces")
        self.open_body(self.close_statement, explicit=True)

    def loop(self, span: Span | None) -> None:
        token, var = self.variable_definition()
        self.expect_word("in")
        minimum = self.expression()
        self.expect_sign("+:")
        extent = self.expression()
        self.define(token, var)
        named = {kind.value for kind in s.LoopKind if kind is not s.LoopKind.SERIAL}
        is_named = self.token.kind == "name" and self.token.text in named
        kind = self.one_of(s.LoopKind, "a kind of loop") if is_named else s.LoopKind.SERIAL
        thread = self.one_of(s.ThreadAxis, "an axis") if self.take_word("on") else None
        hints = s.LoopHints(
            self.expect_integer("a count") if self.take_word("unroll") else 0,
            self.expect_integer("a count") if self.take_word("vector_width") else 0,
            self.boolean() if self.take_word("vectorize") else None,
        )
        self.open_body(lambda body: self.close_statement(s.For(var, minimum, extent, kind, body, thread, hints, span)))

    def while_(self, span: Span | None) -> None:
        condition = self.expression()
        self.open_body(lambda body: self.close_statement(s.While(condition, body, span)))

    def if_(self, span: Span | None) -> None:
        # The links of an "else if" chain: each is the other branch of the one before.
        chain: list[tuple[Span | None, e.Expr, s.Stmt]] = []
        head: list[tuple[Span | None, e.Expr]] = [(span, self.expression())]

        def finish(otherwise: s.Stmt | None) -> None:
            found = otherwise
            for mark, condition, then in reversed(chain):
                found = s.If(condition, then, found, mark)
            assert found is not None
            self.close_statement(found)

        def after_then(then: s.Stmt) -> None:
            chain.append((*head.pop(), then))
            if not self.take_word("else"):
                finish(None)
                return
            mark = self.span_mark()
            if self.take_word("if"):
                head.append((mark, self.expression()))
                self.open_body(after_then, extra=len(chain))
            else:
                self.open_body(finish, extra=len(chain))

        self.open_body(after_then)

    def block(self, span: Span | None) -> None:
        name = self.expect_string("the name of the block")
        clause = self.next_clause
        predicate = self.expression() if clause("where") else None
        axes: list[s.BlockAxis] = []
        while clause("axis"):
            axes.append(self.axis())
        allocations: list[Buffer] = []
        while clause("allocate"):
            allocations.append(self.buffer_definition())
        reads = self.regions() if clause("reads") else None
        writes = self.regions() if clause("writes") else None
        matches: list[s.MatchBuffer] = []
        while clause("match"):
            matches.append(self.match())
        parts = (name, tuple(axes), predicate, reads, writes, tuple(allocations), tuple(matches))

        def body_after(init: s.Stmt | None) -> None:
            self.open_body(lambda body: self.close_statement(s.Block(*parts, init, body, span)))

        if clause("init"):
            self.open_body(body_after)
        else:
            body_after(None)

    def next_clause(self, word: str) -> bool:
        """Whether the next clause of a block begins with ``word`` (before it a span may stand)."""
        self.skip_newlines()
        here = self.mark()
        self.clause_span = self.span_mark()
        if self.take_word(word):
            return True
        self.back_to(here)
        return False

    def axis(self) -> s.BlockAxis:
        span = self.clause_span
        token, var = self.variable_definition()
        kind = self.one_of(s.AxisKind, "a kind of axis")
        self.expect_word("in")
        domain = self.range()
        self.expect_sign("=")
        value = self.expression()
        self.define(token, var)
        return s.BlockAxis(var, domain, kind, value, span)

    def match(self) -> s.MatchBuffer:
        span = self.clause_span
        # The region is evaluated outside of the buffer, but stands after it.
        buffer = self.buffer_definition()
        self.expect_sign("=")
        return s.MatchBuffer(buffer, self.region(), span)

    def regions(self) -> tuple[Region, ...]:
        found: list[Region] = []
        while self.token.kind != "newline" and not self.is_sign("{"):
            found.append(self.region())
            if not self.take_sign(","):
                break
        return tuple(found)


_SIMPLE: dict[str, Callable[[_Parser, Span | None], s.Stmt]] = {
    "let": _Parser.bind,
    "allocate": lambda parser, span: s.Allocate(parser.buffer_definition(), span),
    "view": _Parser.view,
    "evaluate": lambda parser, span: s.Evaluate(parser.expression(), span),
    "assert": _Parser.assertion,
    "break": lambda parser, span: s.Break(span),
    "continue": lambda parser, span: s.Continue(span),
    "return": _Parser.return_,
    "barrier": lambda parser, span: s.Barrier(parser.one_of(s.BarrierScope, "a scope of threads"), span),
    "launch": _Parser.launch,
}
_NESTED: dict[str, Callable[[_Parser, Span | None], None]] = {
    "seq": _Parser.sequence,
    "for": _Parser.loop,
    "while": _Parser.while_,
    "if": _Parser.if_,
    "block": _Parser.block,
}
