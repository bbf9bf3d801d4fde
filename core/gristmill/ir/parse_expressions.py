"""Reads expressions of the text form: operator precedence over explicit stacks, so that depth is ours to bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn

from gristmill.errors import suggestion
from gristmill.ir import expr as e
from gristmill.ir import text_form as form
from gristmill.ir.dtype import LANES_AT_MOST, VOID, parse_dtype
from gristmill.ir.memory import Range
from gristmill.ir.op import OPS
from gristmill.ir.parse_atoms import AtomParser
from gristmill.ir.print_expressions import derived_type
from gristmill.ir.scan import Token

DEPTH_AT_MOST = 1000
"""How many nodes an expression of a text may be deep."""

_INFIX = {sign: (kind, tightness) for kind, (sign, tightness) in form.INFIX.items()}
_PREFIX = {sign.strip(): (kind, tightness) for kind, (sign, tightness) in form.PREFIXES.items()}


Build = Callable[[list[e.Expr]], e.Expr]


@dataclass(slots=True)
class _Operator:
    """An operator that waits for its right operand."""

    kind: type[e.Expr]
    tightness: int
    is_prefix: bool


@dataclass(slots=True)
class _Bracket:
    """An open bracket: what closes it, what its contents become, and the contents so far."""

    token: Token
    close: str
    build: Build
    typed: Callable[[e.Expr, Token], e.Expr] | None = None
    items: list[e.Expr] = field(default_factory=list)
    depth: int = 0


class ExpressionParser(AtomParser):
    """Reads expressions."""

    # The two stacks

    def expression(self) -> e.Expr:
        """An expression as long as it goes. Raises UserError for what is none, and for one that is too deep."""
        operators: list[_Operator | _Bracket] = []
        operands: list[tuple[e.Expr, int]] = []
        while True:
            bracket = self.operand(operators, operands)
            if bracket is not None and not self.is_sign(bracket.close):
                continue
            if bracket is not None:
                self.close(operators, operands, bracket)
            while self.token.kind == "span":
                self.put_span(operands)
            if not self.operator(operators, operands):
                return operands[0][0]

    def operand(self, operators: list[_Operator | _Bracket], operands: list[tuple[e.Expr, int]]) -> _Bracket | None:
        """Read up to an operand (put on its stack) or an opening bracket (put on the other, and returned)."""
        while True:
            token = self.token
            prefix = _PREFIX.get(token.text) if token.kind in ("sign", "name") else None
            if prefix is None:
                found: e.Expr | _Bracket = self.primary()
                break
            self.advance()
            constant = self.literal(negative=True) if token.text == "-" else None
            if constant is not None:
                found = constant
                break
            operators.append(_Operator(prefix[0], prefix[1], True))
            if len(operators) > DEPTH_AT_MOST:
                self.too_deep(token)
        if isinstance(found, _Bracket):
            operators.append(found)
            if len(operators) > DEPTH_AT_MOST:
                self.too_deep(found.token)
            return found
        operands.append((found, 1))
        return None

    def operator(self, operators: list[_Operator | _Bracket], operands: list[tuple[e.Expr, int]]) -> bool:
        """After an operand: whether another must follow (an infix operator or a comma was read)."""
        while True:
            token = self.token
            infix = _INFIX.get(token.text) if token.kind in ("sign", "name") else None
            if infix is not None:
                kind, tightness = infix
                self.reduce(operators, operands, tightness)
                top = operators[-1] if operators else None
                if tightness == form.COMPARISON and isinstance(top, _Operator) and top.tightness == tightness:
                    self.fail("GM0401", "comparisons do not chain; put one of them in brackets", token)
                self.advance()
                operators.append(_Operator(kind, tightness, False))
                return True
            self.reduce(operators, operands, form.LOOSEST, all_of_them=True)
            bracket = operators[-1] if operators else None
            if bracket is None:
                return False
            assert isinstance(bracket, _Bracket)
            if not self.is_sign(",") and not self.is_sign(bracket.close):
                self.expected(f"an operator, `,` or `{bracket.close}`")
            item, depth = operands.pop()
            bracket.items.append(item)
            bracket.depth = max(bracket.depth, depth)
            if self.take_sign(","):
                return True
            self.close(operators, operands, bracket)
            while self.token.kind == "span":
                self.put_span(operands)

    def reduce(
        self,
        operators: list[_Operator | _Bracket],
        operands: list[tuple[e.Expr, int]],
        tightness: int,
        all_of_them: bool = False,
    ) -> None:
        """Apply the waiting operators that bind at least so tightly (a comparison waits for its error)."""
        while operators and isinstance(top := operators[-1], _Operator):
            chains = top.tightness == tightness == form.COMPARISON and not top.is_prefix
            if not all_of_them and (top.tightness < tightness or chains):
                return
            operators.pop()
            b, depth = operands.pop()
            if top.is_prefix:
                found: e.Expr = top.kind(b)  # type: ignore[call-arg]
            else:
                a, other = operands.pop()
                found = top.kind(a, b)  # type: ignore[call-arg]
                depth = max(depth, other)
            if depth >= DEPTH_AT_MOST:
                self.too_deep(self.token)
            operands.append((found, depth + 1))

    def close(
        self, operators: list[_Operator | _Bracket], operands: list[tuple[e.Expr, int]], bracket: _Bracket
    ) -> None:
        """The closing bracket is in view: what it closes becomes an operand."""
        operators.pop()
        self.advance()
        found = bracket.build(bracket.items)
        if bracket.typed is not None:
            found = bracket.typed(found, bracket.token)
        if bracket.depth >= DEPTH_AT_MOST:
            self.too_deep(bracket.token)
        operands.append((found, bracket.depth + 1))

    def put_span(self, operands: list[tuple[e.Expr, int]]) -> None:
        token = self.token
        span = self.span_mark()
        found, depth = operands[-1]
        if isinstance(found, e.Var):
            self.fail("GM0401", "the span of a variable stands where it is defined", token)
        operands[-1] = (replace(found, span=span), depth)  # type: ignore[type-var]

    def too_deep(self, token: Token) -> NoReturn:
        self.fail("GM0404", f"the expression is nested more than {DEPTH_AT_MOST} levels deep", token)

    # What an expression begins with

    def primary(self) -> e.Expr | _Bracket:
        token = self.token
        literal = self.literal(negative=False)
        if literal is not None:
            return literal
        if token.kind == "string":
            return e.StringImm(self.expect_string("a text"))
        if self.take_sign("("):
            return _Bracket(token, ")", lambda items: self.exactly(items, 1, "brackets", token)[0])
        if self.take_sign("&"):
            name = self.expect_name("the name of a buffer")
            address = self.buffer(name)
            self.expect_sign("[")
            return _Bracket(token, "]", lambda items: e.AddressOf(address, tuple(items)))
        if self.is_sign("@"):
            return self.function_call()
        if token.kind != "name":
            self.expected("an expression")
        self.advance()
        if token.text in ("extern", "packed"):
            return self.foreign_call(token)
        if token.text in ("shuffle", "reinterpret"):
            return self.bracketed(token)
        if self.take_sign("["):
            buffer = self.buffer(token)
            return _Bracket(token, "]", lambda items: e.Load(buffer, tuple(items)))
        return self.named(token) if self.take_sign("(") else self.variable(token)

    def exactly(self, items: list[e.Expr], count: int, what: str, token: Token) -> list[e.Expr]:
        if len(items) != count:
            self.fail("GM0401", f"{what} takes {count} operand{'s' * (count != 1)}, not {len(items)}", token)
        return items

    # What looks like a call

    def named(self, token: Token) -> e.Expr | _Bracket:
        """``name(``: a node that is written like a call, an operation, or a cast."""
        name = token.text
        if name == "buffer":
            whole = e.BufferRef(self.buffer(self.expect_name("the name of a buffer")))
            self.expect_sign(")")
            return whole
        if name in form.BUILTINS:
            kind, count = form.BUILTINS[name]
            return _Bracket(token, ")", lambda items: kind(*self.exactly(items, count, f"`{name}`", token)))
        if name == "broadcast":
            return _Bracket(token, ")", lambda items: self.broadcast(items, token))
        if name == "ramp":
            return _Bracket(token, ")", lambda items: self.ramp(items, token))
        if (op := OPS.get(name)) is not None:
            return _Bracket(token, ")", lambda items: e.Call(op, tuple(items), VOID), self.operation_type)
        try:
            dtype = parse_dtype(name)
        except ValueError:
            hint = suggestion(
                name,
                [*form.BUILTINS, "broadcast", "ramp", "buffer", *OPS],
                "functions of the module are called as `@name(...)`",
            )
            self.fail("GM0402", f"{token.shown} is neither an operation nor a type", token, hint)
        return _Bracket(token, ")", lambda items: e.Cast(dtype, self.exactly(items, 1, f"`{name}`", token)[0]))

    def broadcast(self, items: list[e.Expr], token: Token) -> e.Expr:
        value, lanes = self.exactly(items, 2, "`broadcast`", token)
        return e.Broadcast(value, self.lanes(lanes, token))

    def ramp(self, items: list[e.Expr], token: Token) -> e.Expr:
        base, stride, lanes = self.exactly(items, 3, "`ramp`", token)
        return e.Ramp(base, stride, self.lanes(lanes, token))

    def lanes(self, count: e.Expr, token: Token) -> int:
        if not isinstance(count, e.IntImm) or not 1 <= count.value <= LANES_AT_MOST:
            self.fail("GM0401", f"the lanes of `{token.text}` are a number from 1 to {LANES_AT_MOST}", token)
        return count.value

    def bracketed(self, token: Token) -> _Bracket:
        """``shuffle[1, 0](a, b)`` and ``reinterpret[int32](x)``."""
        self.expect_sign("[")
        if token.text == "reinterpret":
            dtype = self.dtype()
            self.close_square()
            return _Bracket(
                token, ")", lambda items: e.Reinterpret(dtype, self.exactly(items, 1, "`reinterpret`", token)[0])
            )
        indices = [self.expect_integer("the number of a lane")]
        while self.take_sign(","):
            indices.append(self.expect_integer("the number of a lane"))
        if len(indices) > LANES_AT_MOST:
            self.fail("GM0404", f"a vector has at most {LANES_AT_MOST} lanes", token)
        self.close_square()

        def build(items: list[e.Expr]) -> e.Expr:
            if not items:
                self.fail("GM0401", "`shuffle` takes one vector or more", token)
            return e.Shuffle(tuple(items), tuple(indices))

        return _Bracket(token, ")", build)

    def close_square(self) -> None:
        self.expect_sign("]")
        self.expect_sign("(")

    def function_call(self) -> _Bracket:
        token = self.token
        name = self.function_name()
        self.expect_sign("(")
        return _Bracket(token, ")", lambda items: e.CallFunction(name, tuple(items), VOID), self.stated_type)

    def foreign_call(self, token: Token) -> _Bracket:
        name = self.expect_string("the name of a function")
        self.expect_sign("(")
        kind: type[e.CallExtern] | type[e.CallPacked] = e.CallExtern if token.text == "extern" else e.CallPacked
        return _Bracket(token, ")", lambda items: kind(name, tuple(items), VOID), self.stated_type)

    def stated_type(self, call: e.Expr, token: Token) -> e.Expr:
        """The call with the type after ``as``; without, nothing comes out."""
        return replace(call, type=self.dtype()) if self.take_word("as") else call  # type: ignore[type-var]

    def operation_type(self, call: e.Expr, token: Token) -> e.Expr:
        assert isinstance(call, e.Call)
        if self.take_word("as"):
            return replace(call, type=self.dtype())
        dtype = derived_type(call.op, call.args)
        if dtype is None:
            self.fail(
                "GM0401", f"the result type of `{call.op}` must be stated", token, "write `as type` after the call"
            )
        return replace(call, type=dtype)

    # Lists

    def expressions(self, close: str) -> tuple[e.Expr, ...]:
        """Expressions between an opening bracket, already read, and ``close``."""
        found: list[e.Expr] = []
        while not self.is_sign(close):
            found.append(self.expression())
            if not self.take_sign(","):
                break
        self.expect_sign(close)
        return tuple(found)

    def range(self) -> Range:
        span = self.span_mark()
        minimum = self.expression()
        self.expect_sign("+:")
        return Range(minimum, self.expression(), span)

    def ranges(self) -> tuple[Range, ...]:
        """Ranges between square brackets."""
        self.expect_sign("[")
        found: list[Range] = []
        while not self.is_sign("]"):
            found.append(self.range())
            if not self.take_sign(","):
                break
        self.expect_sign("]")
        return tuple(found)
