"""Splits the text form of IR into tokens, and says where in the text something is wrong.

Newlines end statements, so they are tokens; inside round and square brackets they are not. Tokens are made one by one,
so a text costs no more memory than what is built of it.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple, NoReturn

from gristmill.errors import Diagnostic, Place, UserError

CHARACTERS_AT_MOST = 1 << 24
NUMBER_CHARACTERS_AT_MOST = 400

_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r]|;[^\n]*)+)
    |(?P<newline>\n)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[A-Za-z_]\w*)?)
    |(?P<span>\#\d{1,9})
    |(?P<name>[^\W\d][\w.]*)
    |(?P<sign>\+:|<<|>>|//|==|!=|<=|>=|->|[-+*/%&|^~<>=()\[\]{},:@])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text: what it is (a group of the pattern above, or ``end``), its text, where it is."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def shown(self) -> str:
        """How messages call it."""
        if self.kind == "end":
            return "the end of the text"
        if self.kind == "newline":
            return "the end of the line"
        return f"`{self.text}`" if len(self.text) <= 60 else f"`{self.text[:60]}...`"


class Scanner:
    """The tokens of a text, with one token in view (``token``)."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.position = 0
        self.brackets = 0
        self.token = Token("end", "", 0, 0)
        if len(text) > CHARACTERS_AT_MOST:
            self.fail("GM0404", f"the text has {len(text)} characters, and at most {CHARACTERS_AT_MOST} are allowed")
        self.token = self._scan()

    def _scan(self) -> Token:
        while True:
            if self.position >= len(self.text):
                return Token("end", "", len(self.text), len(self.text))
            match = _TOKEN.match(self.text, self.position)
            if match is None:
                wrong = Token("sign", self.text[self.position], self.position, self.position + 1)
                self.fail("GM0401", f"{wrong.shown} does not begin anything of the text form", wrong)
            self.position = match.end()
            kind = match.lastgroup or ""
            if kind == "blank" or (kind == "newline" and self.brackets > 0):
                continue
            if kind == "sign":
                self.brackets += (match[0] in "([") - (match[0] in ")]")
            return Token(kind, match[0], match.start(), match.end())

    def advance(self) -> Token:
        """The token in view; the next one comes into view."""
        token = self.token
        self.token = self._scan()
        return token

    # The state is small, so that going back costs nothing.

    def mark(self) -> tuple[int, int, Token]:
        return self.position, self.brackets, self.token

    def back_to(self, mark: tuple[int, int, Token]) -> None:
        self.position, self.brackets, self.token = mark

    # What is in view

    def is_sign(self, text: str) -> bool:
        return self.token.kind == "sign" and self.token.text == text

    def is_word(self, text: str) -> bool:
        return self.token.kind == "name" and self.token.text == text

    def take_sign(self, text: str) -> bool:
        found = self.is_sign(text)
        if found:
            self.advance()
        return found

    def take_word(self, text: str) -> bool:
        found = self.is_word(text)
        if found:
            self.advance()
        return found

    def expect_sign(self, text: str) -> Token:
        if not self.is_sign(text):
            self.expected(f"`{text}`")
        return self.advance()

    def expect_word(self, text: str) -> Token:
        if not self.is_word(text):
            self.expected(f"`{text}`")
        return self.advance()

    def expect_name(self, what: str) -> Token:
        if self.token.kind != "name":
            self.expected(what)
        return self.advance()

    def expect_string(self, what: str) -> str:
        if self.token.kind != "string":
            self.expected(f"{what} in quotes")
        token = self.advance()
        try:
            found = json.loads(token.text)
        except ValueError:
            self.fail("GM0401", f"{token.shown} is not a text in the notation of JSON", token)
        return str(found)

    def expect_integer(self, what: str) -> int:
        """A plain decimal number, as counts and sizes of the text form are."""
        token = self.token
        if token.kind != "number" or not token.text.isdecimal():
            self.expected(what)
        if len(token.text) > 18:
            self.fail("GM0401", f"{token.shown} is too large for {what}", token)
        return int(self.advance().text)

    def skip_newlines(self) -> None:
        while self.token.kind == "newline":
            self.advance()

    def end_line(self) -> None:
        """After a statement: the end of the line, or the brace that closes the body."""
        if self.token.kind not in ("newline", "end") and not self.is_sign("}"):
            self.expected("the end of the statement")

    # Errors

    def place(self, token: Token) -> Place:
        line, column = self._line_column(token.start)
        if token.kind == "newline":  # ends on the next line
            return Place(self.file, line, column, line, column + 1)
        return Place(self.file, line, column, *self._line_column(token.end))

    def _line_column(self, offset: int) -> tuple[int, int]:
        return self.text.count("\n", 0, offset) + 1, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def expected(self, what: str) -> NoReturn:
        self.fail("GM0401", f"expected {what}, found {self.token.shown}")

    def fail(self, code: str, message: str, token: Token | None = None, hint: str = "") -> NoReturn:
        """Raise the error, with its place at ``token`` (the one in view if none is given)."""
        place = self.place(token or self.token)
        raise UserError(Diagnostic(code, message, place, hint=hint), {self.file: self.text})
