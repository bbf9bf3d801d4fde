"""Reads the text form of IR (:mod:`gristmill.ir.text_form`) back: exactly what the printer prints, and comments.

The text may come from a pack, so it is not trusted: whatever it is, the answer is a module or a
:class:`~gristmill.errors.UserError` with a place. GM0401: it is not in the text form. GM0402: it uses a name that is
not defined. GM0403: it defines a name twice. GM0404: it is too long or too deep. What is read is well formed as text
only; :mod:`gristmill.ir.verify` says whether it means anything.
"""

from __future__ import annotations

from dataclasses import replace

from gristmill.ir import expr as e
from gristmill.ir import text_form as form
from gristmill.ir.dtype import VOID
from gristmill.ir.module import (
    Extern,
    Function,
    Module,
)
from gristmill.ir.parse_statements import StatementParser
from gristmill.ir.scan import Token
from gristmill.ir.span import Span

_INLINED_AT_MOST = 256


def parse_module(text: str, file: str = "<text>") -> Module:
    """The module that ``text`` describes; ``file`` names it in errors. Raises UserError, GM0401 to GM0404."""
    return _Parser(text, file).module()


class _Parser(StatementParser):
    """Reads functions and modules."""

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
