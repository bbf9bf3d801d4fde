"""A copy of a function's body for one call: parameters, sizes and names put in, and early returns made branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gristmill.ir.build import const, constant_value, sequence
from gristmill.ir.dtype import BOOL, HANDLE, INT64, DType
from gristmill.ir.expr import AddressOf, BufferRef, CallFunction, Expr, Load, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.ir.span import Span
from gristmill.ir.stmt import Allocate, Bind, Break, Continue, For, If, LoopKind, Return, Seq, Stmt, Store, While
from gristmill.passes.hoist_shared_memory import SHARED_SCOPES
from gristmill.passes.inline_functions import InlinedBody
from gristmill.passes.lower_buffer_arguments import BufferCalls


@dataclass(slots=True)
class Arguments:
    """What the names of a function stand for in one call, and the statements that must come before."""

    before: list[Stmt] = field(default_factory=list)
    variables: dict[Var, Expr] = field(default_factory=dict)
    buffers: dict[Buffer, Buffer] = field(default_factory=dict)


def arguments_of(function: Function, node: CallFunction, sizes: BufferCalls) -> Arguments:
    """The arguments of a call. Raises UserError (GM0606) where they do not say what a size is."""
    found = Arguments()
    args: list[Expr] = []
    for param, arg in zip(function.params, node.args, strict=True):
        args.append(_named(found, param, arg) if isinstance(param, Var) else arg)
        if isinstance(param, Var):
            found.variables[param] = args[-1]
        else:
            assert isinstance(arg, BufferRef)
            found.buffers[param] = arg.buffer
            found.variables[param.data] = _pointer(found, param, arg.buffer, function)
    if any(isinstance(param, Buffer) for param in function.params):
        solved = sizes.solved(replace(node, args=tuple(args)), function)
        found.before += solved.asserts
        for size, value in zip(function.sizes, solved.sizes, strict=True):
            found.variables[size] = _named(found, size, value)
    return found


def _named(found: Arguments, param: Var, arg: Expr) -> Expr:
    """What a parameter stands for: an argument that is the same wherever it is evaluated, or a name for it."""
    if isinstance(arg, Var) or (constant_value(arg) is not None and not arg.dtype.is_vector):
        return arg
    name = replace(param)
    found.before.append(Bind(name, arg, arg.span))
    return name


def _pointer(found: Arguments, param: Buffer, given: Buffer, function: Function) -> Expr:
    """What the data of a buffer parameter is: where the argument begins, or, if an offset is stated, its data."""
    if given.offset is None or param.offset is not None or not _views(function, param.data):
        return given.data
    start = Var(param.data.name, param.data.type, PointerType(given.dtype, given.scope))
    found.before.append(Bind(start, AddressOf(given, (const(0, INT64),) * given.rank)))
    return start


def _views(function: Function, data: Var) -> bool:
    """Whether the function uses a pointer by its own name."""
    return any(node is data or (isinstance(node, Buffer) and node.data is data) for node in walk(function.body))


def local_scalar(name: str, dtype: DType) -> Buffer:
    """A scalar of one thread."""
    return Buffer(name, dtype, (), Var(f"{name}_data", HANDLE, PointerType(dtype, Scope.LOCAL)), scope=Scope.LOCAL)


def copied(
    function: Function, arguments: Arguments, at: Span | None, shared: dict[Buffer, Buffer]
) -> tuple[list[Stmt], Expr | None]:
    """The body for a call, and the call's value; None if it has none.

    ``shared`` are the instances of shared memory in this launch; those of the function are added to it.
    """
    body: Stmt = _Copy(function, arguments, at, shared).visit(function.body)
    returns = None if function.returns.is_void else function.returns
    steps = list(body.body) if isinstance(body, Seq) else [body]
    if steps and isinstance(steps[-1], Return) and not any(map(_returns, steps[:-1])):
        last = steps.pop()
        assert isinstance(last, Return)
        return steps, last.value
    if not any(map(_returns, steps)):
        return steps, None if returns is None else const(0, returns)
    result = None if returns is None else local_scalar("result", returns)
    leaving = _Leaving(result)
    first: list[Stmt] = []
    if result is not None:
        assert returns is not None
        first.append(Allocate(result))
        if not _always_returns(steps):
            first.append(Store(result, (), const(0, returns)))
    return [*first, *leaving.straight(steps)], None if result is None else Load(result, ())


class _Copy(InlinedBody):
    """The copying of a body, with what the call gives it."""

    def __init__(self, function: Function, arguments: Arguments, at: Span | None, shared: dict[Buffer, Buffer]) -> None:
        super().__init__(function.body, arguments.variables, at)
        self.buffers.update(arguments.buffers)
        self.shared = shared
        for node in walk(function.body):
            if isinstance(node, Allocate) and _is_one_a_block(node.buffer):
                buffer = node.buffer
                if buffer not in shared:
                    shared[buffer] = replace(buffer, data=replace(buffer.data))
                self.buffers[buffer] = shared[buffer]
                self.variables[buffer.data] = shared[buffer].data

    def visit_Allocate(self, node: Allocate) -> Any:
        return Seq(()) if _is_one_a_block(node.buffer) else self.generic(node)

    def visit_Buffer(self, node: Buffer) -> Any:
        found = super().visit_Buffer(node)
        # Memory is where the argument's is, whatever the parameter says.
        pointer = found.data.pointer
        if pointer is not None and pointer.scope is not found.scope:
            found = self.buffers[node] = replace(found, scope=pointer.scope)
        return found


def _is_one_a_block(buffer: Buffer) -> bool:
    """Whether all calls in a launch can use one instance: shared memory of a constant size."""
    return buffer.scope in SHARED_SCOPES and all(constant_value(size) is not None for size in buffer.shape)


def _returns(node: Node) -> bool:
    return any(isinstance(part, Return) for part in walk(node))


def _always_returns(steps: Sequence[Stmt]) -> bool:
    """Whether the statements never come to their end."""
    for step in steps:
        if isinstance(step, Return):
            return True
        if (
            isinstance(step, If)
            and step.otherwise is not None
            and all(_always_returns(_steps(part)) for part in (step.then, step.otherwise))
        ):
            return True
    return False


def _steps(stmt: Stmt | None) -> list[Stmt]:
    return [] if stmt is None else list(stmt.body) if isinstance(stmt, Seq) else [stmt]


class _Leaving:
    """Ends a function's statements where they return, without a ``return``."""

    def __init__(self, result: Buffer | None) -> None:
        self.result = result

    def value(self, node: Return) -> list[Stmt]:
        """The result is kept."""
        return [] if self.result is None or node.value is None else [Store(self.result, (), node.value, node.span)]

    def straight(self, steps: Sequence[Stmt]) -> list[Stmt]:
        """The statements with what follows an ``if`` that returns in its other branch; from a loop that returns on, in
        a loop. Nothing of the function comes after these statements."""
        found: list[Stmt] = []
        for number, step in enumerate(steps):
            if not _returns(step):
                found.append(step)
                continue
            if isinstance(step, Return):
                return found + self.value(step)
            rest = list(steps[number + 1 :])
            then = _steps(step.then) if isinstance(step, If) else []
            otherwise = _steps(step.otherwise) if isinstance(step, If) else []
            if not isinstance(step, If) or (rest and not _always_returns(then) and not _always_returns(otherwise)):
                return found + self.in_loop(steps[number:])
            if _always_returns(then):
                otherwise += rest
            else:
                then += rest
            parts = self.straight(then), self.straight(otherwise)
            branch = replace(step, then=sequence(*parts[0]), otherwise=sequence(*parts[1]) if parts[1] else None)
            return [*found, branch]
        return found

    def in_loop(self, steps: Sequence[Stmt]) -> list[Stmt]:
        """The statements in a loop of one iteration, which a ``return`` leaves; loops within are left one by one."""
        self.left = local_scalar("left", BOOL)
        once = Var("once", INT64)
        body = sequence(*self.leaving(steps, Break))
        start = [Allocate(self.left), Store(self.left, (), const(False, BOOL))]
        return [
            *start,
            For(once, const(0, INT64), const(1, INT64), LoopKind.SERIAL, body, span=getattr(steps[0], "span", None)),
        ]

    def leaving(self, steps: Sequence[Stmt], leave: type[Break] | type[Continue]) -> list[Stmt]:
        found: list[Stmt] = []
        for step in steps:
            if not _returns(step):
                found.append(step)
            elif isinstance(step, Return):
                return [*found, *self.value(step), Store(self.left, (), const(True, BOOL), step.span), leave(step.span)]
            elif isinstance(step, If):
                parts = [self.leaving(_steps(part), leave) for part in (step.then, step.otherwise)]
                found.append(
                    replace(step, then=sequence(*parts[0]), otherwise=sequence(*parts[1]) if parts[1] else None)
                )
            else:
                assert isinstance(step, (For, While)), "only loops and branches hold statements"
                inner = replace(step, body=sequence(*self.leaving(_steps(step.body), Break)))
                found += [inner, If(Load(self.left, ()), leave(step.span))]
        return found
