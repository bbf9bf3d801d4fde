"""Reads statements of the text form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gristmill.errors import suggestion
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.memory import Buffer, Region
from gristmill.ir.parse_definitions import DefinitionParser
from gristmill.ir.scan import Token
from gristmill.ir.span import Span

STATEMENTS_AT_MOST = 256
"""How deep statements of a text may be nested."""


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


class StatementParser(DefinitionParser):
    """Reads statements. Open braces are a list, so that depth is ours to bound."""

    def __init__(self, text: str, file: str) -> None:
        self.bodies: list[_Body] = []
        super().__init__(text, file)

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
            self.fail(
                "GM0401", f"{token.shown} begins no statement", token, suggestion(token.text, [*_SIMPLE, *_NESTED])
            )
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
        context = self.expression() if self.take_word("context") else None
        return s.Launch(kernel, args, tuple(axes), tuple(extents), shared, context, span)

    def device_region(self, span: Span | None) -> None:
        target = self.target()
        self.open_body(lambda body: self.close_statement(s.DeviceRegion(body, target, span)))

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
            self.take_word("independent"),
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


_SIMPLE: dict[str, Callable[[StatementParser, Span | None], s.Stmt]] = {
    "let": StatementParser.bind,
    "allocate": lambda parser, span: s.Allocate(parser.buffer_definition(), span),
    "view": StatementParser.view,
    "evaluate": lambda parser, span: s.Evaluate(parser.expression(), span),
    "assert": StatementParser.assertion,
    "break": lambda parser, span: s.Break(span),
    "continue": lambda parser, span: s.Continue(span),
    "return": StatementParser.return_,
    "barrier": lambda parser, span: s.Barrier(parser.one_of(s.BarrierScope, "a scope of threads"), span),
    "launch": StatementParser.launch,
}
_NESTED: dict[str, Callable[[StatementParser, Span | None], None]] = {
    "seq": StatementParser.sequence,
    "for": StatementParser.loop,
    "while": StatementParser.while_,
    "if": StatementParser.if_,
    "block": StatementParser.block,
    "device_region": StatementParser.device_region,
}
