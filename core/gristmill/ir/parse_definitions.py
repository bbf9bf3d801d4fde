"""Reads definitions of the text form: variables, buffers, regions, and what a function says before its body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

from gristmill.errors import suggestion
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir import text_form as form
from gristmill.ir.dtype import HANDLE
from gristmill.ir.memory import Buffer, PointerType, Region, Scope
from gristmill.ir.module import (
    CallingConvention,
    FunctionFacts,
    LaunchParameters,
)
from gristmill.ir.parse_atoms import names_of
from gristmill.ir.parse_expressions import ExpressionParser
from gristmill.ir.scan import Token
from gristmill.ir.target import Target, parse_target

E = TypeVar("E", bound=Enum)


class DefinitionParser(ExpressionParser):
    """Reads what introduces names."""

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
            "declaration": lambda: True,
            "no_alias": lambda: True,
            "fast_math": lambda: True,
            "release_gil": self.boolean,
            "signature": lambda: self.expect_string("the signature"),
            "summary": lambda: self.expect_string("the summary"),
        }
        while True:
            self.skip_newlines()
            if self.is_sign("{"):
                return FunctionFacts(**found)
            token = self.expect_name("`{`")
            if token.text not in readers:
                hint = suggestion(token.text, list(readers), f"facts are {', '.join(readers)}")
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
