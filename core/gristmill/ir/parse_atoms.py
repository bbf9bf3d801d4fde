"""Reads the smallest pieces of the text form: names and what they stand for, spans, types, constants."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NoReturn

from gristmill.errors import suggestion
from gristmill.ir import expr as e
from gristmill.ir import text_form as form
from gristmill.ir.build import round_to
from gristmill.ir.dtype import FLOAT32, INT64, DType, parse_dtype
from gristmill.ir.memory import Buffer
from gristmill.ir.scan import NUMBER_CHARACTERS_AT_MOST, Scanner, Token
from gristmill.ir.span import Span

_DIGITS = re.compile(r"[0-9]+(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)|\.[0-9]+)?")


class AtomParser(Scanner):
    """A scanner that knows the names and spans defined so far."""

    def __init__(self, text: str, file: str) -> None:
        self.names: dict[str, e.Var | Buffer] = {}
        self.spans: dict[int, Span] = {}
        super().__init__(text, file)

    # Names

    def define(self, token: Token, found: e.Var | Buffer) -> None:
        if token.text in self.names:
            self.fail("GM0403", f"the name `{token.text}` is defined already in this function", token)
        self.names[token.text] = found

    def variable(self, token: Token) -> e.Var:
        found = self.names.get(token.text)
        if not isinstance(found, e.Var):
            self.unknown("variable", token, e.Var)
        return found

    def buffer(self, token: Token) -> Buffer:
        found = self.names.get(token.text)
        if not isinstance(found, Buffer):
            self.unknown("buffer", token, Buffer)
        return found

    def unknown(self, what: str, token: Token, kind: type[e.Var] | type[Buffer]) -> NoReturn:
        known = [name for name, found in self.names.items() if isinstance(found, kind)]
        self.fail("GM0402", f"no {what} is named {token.shown} here", token, suggestion(token.text, known))

    def span_mark(self) -> Span | None:
        """The span that a ``#n`` in view stands for."""
        if self.token.kind != "span":
            return None
        found = self.spans.get(int(self.token.text[1:]))
        if found is None:
            self.fail("GM0402", f"the table of spans has no {self.token.shown}")
        self.advance()
        return found

    def dtype(self) -> DType:
        token = self.expect_name("a type")
        try:
            return parse_dtype(token.text)
        except ValueError as wrong:
            self.fail("GM0402", str(wrong), token)

    # Constants

    def literal(self, negative: bool) -> e.Expr | None:
        """A constant, if one is in view; ``negative``: after its sign."""
        token = self.token
        if token.kind == "number":
            self.advance()
            return self.number(token, -1 if negative else 1)
        special = form.SPECIAL_FLOAT.fullmatch(token.text) if token.kind == "name" else None
        if special is not None:
            self.advance()
            value = math.nan if special[1] == "nan" else math.inf
            return e.FloatImm(-value if negative else value, form.SUFFIXES[special[2]])
        if not negative and token.kind == "name" and token.text in ("true", "false"):
            self.advance()
            return e.IntImm(int(token.text == "true"), form.SUFFIXES["bool"])
        return None

    def number(self, token: Token, sign: int) -> e.Expr:
        if len(token.text) > NUMBER_CHARACTERS_AT_MOST:
            self.fail("GM0404", f"a number has at most {NUMBER_CHARACTERS_AT_MOST} characters", token)
        digits, dtype = token.text, None
        for suffix, found in form.SUFFIXES.items():
            if token.text.endswith(suffix) and (dtype is None or len(suffix) > len(token.text) - len(digits)):
                digits, dtype = token.text[: -len(suffix)], found
        match = _DIGITS.fullmatch(digits)
        whole = match is not None and match["fraction"] is None
        if dtype is None:
            dtype = INT64 if whole else FLOAT32
        if not dtype.is_float and whole:
            return e.IntImm(sign * int(digits), dtype)
        if match is None or not dtype.is_float:
            known = ", ".join(form.SUFFIXES)
            self.fail("GM0401", f"{token.shown} is not a number", token, f"the suffixes of types are {known}")
        value = round_to(math.copysign(float(digits), sign), dtype)
        if math.isinf(value):
            self.fail("GM0401", f"{token.shown} is too large for {dtype}", token)
        return e.FloatImm(value, dtype)

    def function_name(self) -> str:
        """``@name`` or ``@"name"``."""
        self.expect_sign("@")
        if self.token.kind == "string":
            return self.expect_string("the name of a function")
        return self.expect_name("the name of a function").text


def names_of(kinds: Sequence[str]) -> str:
    """``a, b or c``, for messages."""
    return f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else "".join(kinds)
