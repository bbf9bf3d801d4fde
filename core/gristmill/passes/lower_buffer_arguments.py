"""Pass buffers to plain functions as pointers, and their symbolic sizes as numbers.

Before::

    function @scale<n: int64>(x: float32[n], factor: float32) { ... }
    ...
    @scale(y, 2.0f32)                        ; y: float32[m + 1]

After::

    function @scale(x: handle, factor: float32, n: int64) {
      view x: float32[n] over x
      ...
    }
    ...
    @scale(y_data, 2.0f32, m + 1)

Sizes come after the parameters, in their order. A call solves the equations between the shapes that the callee states
and those of its arguments; what is not true by construction, and not provable, is checked: the call then goes to a
function ``checked_scale`` that asserts it first, at the very place of the call. Arguments of packed and extern calls
stay buffers.

Requires: no blocks. Ensures: plain functions have no buffer parameters and no symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gristmill.arith.rules_compare import decide
from gristmill.arith.simplify import Simplifier
from gristmill.arith.size_equations import Equation, solve_sizes
from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.build import cast, const, disjunction, equal, less_equal, sequence
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import AddressOf, BufferRef, CallFunction, Equal, Expr, IntImm, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, FunctionFacts, Module
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import Assert, Evaluate, Return, View
from gristmill.passes.layout import as_int64, offset_of, strides_of
from gristmill.passes.manager import Pass


@dataclass(frozen=True)
class LowerBufferArguments(Pass):
    """Pass buffers to plain functions as pointers, and their symbolic sizes as numbers."""

    def run(self, module: Module) -> Module:
        takers = {function.name: function for function in module.functions if _takes_buffers(function)}
        if not takers:
            return module
        calls = BufferCalls(takers, {function.name for function in module.functions})
        functions = []
        for function in module.functions:
            found = function.with_body(calls.visit(function.body))
            functions.append(_lowered(found) if function.name in takers else found)
        return module.with_functions([*functions, *calls.checkers])


def _takes_buffers(function: Function) -> bool:
    if function.facts.convention is not CallingConvention.PLAIN:
        return False
    return bool(function.sizes) or any(isinstance(param, Buffer) for param in function.params)


def _lowered(function: Function) -> Function:
    """The function with pointers and sizes as parameters, and views of the pointers in its body."""
    views = [View(param, None, param.span) for param in function.params if isinstance(param, Buffer)]
    body = sequence(*views, function.body, span=function.body.span)
    return replace(function, params=_parameters(function), sizes=(), body=body)


def _parameters(function: Function) -> tuple[Var, ...]:
    params = [param.data if isinstance(param, Buffer) else param for param in function.params]
    return (*params, *function.sizes)


@dataclass(frozen=True, slots=True)
class _Fact:
    """What a callee states of the argument for ``param``: a pattern over its sizes, the argument's value, and words for a
    message.

    ``unless_at_most_one`` is a size: where it is 0 or 1, the fact need not hold (the stride of such a dimension).
    """

    pattern: Expr
    actual: Expr
    text: str
    param: Buffer
    unless_at_most_one: Expr | None = None


def _facts(param: Buffer, given: Buffer) -> Iterator[_Fact]:
    """The equations between a buffer parameter and its argument."""
    for number, (states, size) in enumerate(zip(param.shape, given.shape, strict=True)):
        yield _Fact(states, as_int64(size), f"size of dimension {number} of `{param.name}`", param)
    if not param.strides and not given.strides:
        return
    expected = strides_of(param) if param.strides else strides_of(replace(given, strides=()))
    for number, (states, stride) in enumerate(zip(expected, strides_of(given), strict=True)):
        # A dimension that states its stride by a variable must give it; else one of size 1 may have any.
        free = None if isinstance(states, Var) and param.strides else as_int64(given.shape[number])
        yield _Fact(states, stride, f"stride of dimension {number} of `{param.name}`", param, free)


def _pointer(param: Buffer, given: Buffer) -> tuple[Expr, _Fact | None]:
    """The pointer to pass for an argument, and what it says of the offset that the parameter states, if it states one."""
    first = given.data if given.offset is None else AddressOf(given, (const(0, INT64),) * given.rank)
    if param.offset is None:
        return first, None
    text = f"offset of `{param.name}`"
    if isinstance(param.offset, Var):
        return first, _Fact(param.offset, const(0, INT64), text, param)
    return given.data, _Fact(param.offset, offset_of(given), text, param)


def _assertion(callee: Function, fact: _Fact, span: Span | None) -> Assert:
    """The check of a fact when a call is made."""
    condition: Expr = equal(fact.pattern, fact.actual)
    if fact.unless_at_most_one is not None:
        condition = disjunction((less_equal(fact.unless_at_most_one, 1), condition))
    message = (f"{callee.name}: the {fact.text} is ", fact.actual, ", expected ", fact.pattern)
    return Assert(condition, "ValueError", message, span)


@dataclass(frozen=True, slots=True)
class SolvedCall:
    """The arguments of a call for what is no buffer, and pointers to the others; the sizes of the callee; and what of
    its shapes is not proven."""

    args: tuple[Expr, ...]
    sizes: tuple[Expr, ...]
    open_checks: tuple[_Fact, ...]
    asserts: tuple[Assert, ...]


class BufferCalls(Mutator):
    """Changes calls of functions that take buffers; :meth:`solved` says what a call gives."""

    def __init__(self, takers: dict[str, Function], names: set[str]) -> None:
        super().__init__()
        self.takers = takers
        self.names = names
        self.checkers: list[Function] = []
        self.simplifier = Simplifier()

    def visit_Expr(self, node: Expr) -> Expr:
        # Calls stand in few expressions; the others are not gone through node by node.
        if type(node).CHILDREN and any(isinstance(part, CallFunction) for part in walk(node)):
            return self.generic(node)
        return node

    def visit_CallFunction(self, node: CallFunction) -> Expr:
        node = self.generic(node)
        callee = self.takers.get(node.function)
        if callee is None:
            return node
        found = self.solved(node, callee)
        args = (*found.args, *found.sizes)
        return self.checked(node, callee, args, found.open_checks) if found.open_checks else replace(node, args=args)

    def solved(self, node: CallFunction, callee: Function) -> SolvedCall:
        """What a call of a function that takes buffers gives it. Raises UserError (GM0606)."""
        args: list[Expr] = []
        facts: list[_Fact] = []
        scalars: dict[Var, Expr] = {}
        for param, arg in zip(callee.params, node.args, strict=True):
            if isinstance(param, Var):
                args.append(arg)
                scalars[param] = arg
                continue
            assert isinstance(arg, BufferRef)
            pointer, offset = _pointer(param, arg.buffer)
            args.append(pointer)
            facts += _facts(param, arg.buffer)
            if offset is not None:
                facts.append(offset)
        facts = [replace(fact, pattern=substitute(fact.pattern, scalars)) for fact in facts]
        solution = solve_sizes([Equation(fact.pattern, fact.actual) for fact in facts], callee.sizes)
        if solution.unsolved:
            names = ", ".join(f"`{size.name}`" for size in solution.unsolved)
            raise UserError(
                Diagnostic(
                    "GM0606",
                    f"the call of `{callee.name}` doesn't say what {names} {'is' if len(solution.unsolved) == 1 else 'are'}",
                    place_of(node.span),
                    hint="let the shape of a parameter be the size itself, or pass it as a scalar",
                    notes=(Note(f"`{callee.name}` is here", place_of(callee.span)),),
                )
            )
        known: dict[Var, Expr] = {}
        for binding in solution.bindings:
            value = self.simplifier.simplify(cast(substitute(binding.value, known), binding.var.dtype))
            known[binding.var] = value
        checks = [self.check(facts[index], known) for index in solution.checks]
        open_checks = tuple(check for check in checks if check is not None)
        asserts = tuple(_assertion(callee, fact, node.span) for fact in open_checks)
        return SolvedCall(tuple(args), tuple(known[size] for size in callee.sizes), open_checks, asserts)

    def check(self, fact: _Fact, known: dict[Var, Expr]) -> _Fact | None:
        """The fact with sizes put in; None if it is proven."""
        pattern = self.simplifier.simplify(as_int64(substitute(fact.pattern, known)))
        actual = self.simplifier.simplify(fact.actual)
        if decide(self.simplifier, Equal, pattern, actual):
            return None
        return replace(fact, pattern=pattern, actual=actual)

    def checked(
        self, node: CallFunction, callee: Function, args: tuple[Expr, ...], checks: Sequence[_Fact]
    ) -> CallFunction:
        """A call of a new function that asserts the checks and then calls."""
        params = tuple(replace(param) for param in _parameters(callee))
        asserts = []
        extra_params: list[Var] = []
        extra_args: list[Expr] = []

        def parameter(name: str, value: Expr) -> Expr:
            if isinstance(value, IntImm):
                return value
            var = Var(name, INT64)
            extra_params.append(var)
            extra_args.append(value)
            return var

        for number, fact in enumerate(checks):
            named = replace(
                fact,
                pattern=parameter(f"expected_{number}", fact.pattern),
                actual=parameter(f"given_{number}", fact.actual),
                unless_at_most_one=None
                if fact.unless_at_most_one is None
                else parameter(f"size_{number}", fact.unless_at_most_one),
            )
            asserts.append(_assertion(callee, named, node.span))
        call = CallFunction(callee.name, params, node.type, node.span)
        last = (Evaluate(call, node.span),) if node.type.is_void else (Return(call, node.span),)
        name = self.new_name(f"checked_{callee.name}")
        body = sequence(*asserts, *last)
        self.checkers.append(Function(name, (*params, *extra_params), (), node.type, body, FunctionFacts(), node.span))
        return replace(node, function=name, args=(*args, *extra_args))

    def new_name(self, stem: str) -> str:
        name, number = stem, 1
        while name in self.names:
            number += 1
            name = f"{stem}_{number}"
        self.names.add(name)
        return name
