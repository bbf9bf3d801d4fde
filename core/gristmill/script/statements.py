"""Statements of the syntax tree, by the class of the node; a mistake ends its statement, and reading goes on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from gristmill.errors import Note
from gristmill.ir.build import sequence
from gristmill.ir.dtype import HANDLE, VOID
from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked
from gristmill.ir.stmt import Allocate, Break, Continue, Evaluate, If, LoopKind, Return, Stmt, While
from gristmill.script.asserts import assertion
from gristmill.script.assignments import annotated, assign, augmented
from gristmill.script.blocks import with_statement
from gristmill.script.context import Context, Enclosing
from gristmill.script.expressions import lower
from gristmill.script.local_scalars import declare_locals
from gristmill.script.loops import for_loop, launch_loop, refuse_else
from gristmill.script.operands import as_bool, as_operand, condition, fit, typed
from gristmill.script.problems import Mistake, Reported
from gristmill.script.values import Launch, Local, Opening


def lower_list(context: Context, body: Sequence[ast.stmt], *, scope: bool = True) -> Stmt:
    """A statement list as one statement, with a scope of its own for the names it defines."""
    outer = context.statements
    context.statements = []
    if scope:
        context.scopes.append({})
    # A launch opened by a statement takes the rest of the list as its body.
    opened: list[tuple[Launch, list[Stmt | Local], Callable[[Stmt], Stmt]]] = []
    try:
        for index, statement in enumerate(body):
            declare_locals(context, body, index)
            try:
                launch = lower_statement(context, statement)
            except (Mistake, Reported) as problem:
                context.problems.add(problem)
                context.failed = True
                _forget(context, statement)
                if context.problems.are_many:
                    raise
                continue
            if launch is not None:
                finish = launch_loop(context, launch, statement)
                opened.append((launch, context.statements, finish))
                context.statements = []
                context.enclosing.append(Enclosing("for", LoopKind.THREAD, context.source.place(statement)))
        found = gathered(context.statements)
        while opened:
            _, before, finish = opened.pop()
            context.enclosing.pop()
            loop = finish(found)
            found = gathered([*before, loop])
        return found
    finally:
        for _ in opened:
            context.enclosing.pop()
        context.statements = outer
        if scope:
            context.scopes.pop()


def gathered(statements: Sequence[Stmt | Local]) -> Stmt:
    """The statements in sequence, with the allocation of each local scalar where it was declared."""
    found: list[Stmt] = []
    for one in statements:
        if not isinstance(one, Local):
            found.append(one)
        elif one.buffer is not None:
            found.append(Allocate(one.buffer, one.buffer.span))
    return sequence(*found)


def _forget(context: Context, statement: ast.stmt) -> None:
    """Names that a wrong statement would have defined: using them is not another mistake."""
    from gristmill.script.names import target_names

    for node in target_names(statement):
        if not context.has(node.id) or (isinstance(found := context.find(node.id), Local) and found.buffer is None):
            context.poisoned.add(node.id)


def lower_statement(context: Context, node: ast.stmt) -> Launch | None:
    """Read one statement; a launch that is to take the rest of the list is given back."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        name = _NAMES.get(type(node), type(node).__name__.lower())
        raise context.mistake(
            "GM0254",
            context.source.head_place(node),
            f"`{name}` cannot be used in a kernel",
            label="not part of the language",
            hint=_INSTEAD.get(type(node), "kernels have assignments, if, for, while, with, assert, return and calls"),
        )
    return handler(context, node)


_NAMES: Mapping[type[ast.stmt], str] = {
    ast.FunctionDef: "def",
    ast.AsyncFunctionDef: "async def",
    ast.ClassDef: "class",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Delete: "del",
    ast.ImportFrom: "import",
    ast.TryStar: "try",
}
_INSTEAD: Mapping[type[ast.stmt], str] = {
    ast.FunctionDef: "move the helper to the top level of the file, and give its parameters types",
    ast.Import: "import at the top level of the file",
    ast.ImportFrom: "import at the top level of the file",
    ast.Raise: 'stop with an error by `assert condition, ("ValueError", "message")`',
    ast.Try: "errors cannot be caught in a kernel; test before, with `if`",
    ast.Global: "pass values as parameters and return results",
    ast.Match: "compare with `if` and `elif`",
}


def _expression(context: Context, node: ast.Expr) -> Launch | None:
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return None
    if isinstance(value, ast.Call):
        context.whole, context.is_dropped = value, True
        found = lower(context, value)
        if found is None:
            return None
        if isinstance(found, Launch):
            return found
        if isinstance(found, Opening):
            _opening(context, node, value, found)
            return None
        if isinstance(found, (CallFunction, CallExtern, CallPacked)) or (isinstance(found, Call) and not found.op.pure):
            context.emit(Evaluate(found, context.span(node)))
            return None
    elif isinstance(value, (ast.Yield, ast.YieldFrom, ast.Await)):
        lower(context, value)
    hint = "remove it, or assign it to a name"
    if isinstance(value, ast.Compare) and len(value.ops) == 1 and isinstance(value.ops[0], ast.Eq):
        hint = f"to assign, write `{context.segment(value.left)} = {context.segment(value.comparators[0])}`"
    raise context.mistake(
        "GM0256",
        node,
        f"`{context.segment(node)}` has no effect",
        label="computed and dropped",
        hint=hint,
    )


def _opening(context: Context, node: ast.Expr, call: ast.Call, found: Opening) -> None:
    if found.what == "nothing":
        return
    if found.what == "return":
        leave(context, node, found.value)
        return
    raise context.mistake(
        "GM0335",
        node,
        f"`{context.segment(call.func)}` opens a part of the kernel",
        label="without `with`",
        hint=f"write `with {context.segment(call)}:` and indent what belongs to it",
    )


def _if(context: Context, node: ast.If) -> None:
    test = condition(context, node.test)
    if isinstance(test, bool):
        # Decided by constants: the other branch is not part of this variant of the kernel.
        chosen = node.body if test else node.orelse
        context.emit(lower_list(context, chosen))
        return
    context.enclosing.append(Enclosing("if", None, context.source.place(node)))
    try:
        then = lower_list(context, node.body)
        otherwise = lower_list(context, node.orelse) if node.orelse else None
    finally:
        context.enclosing.pop()
    context.emit(If(test, then, otherwise, context.span(node)))


def _while(context: Context, node: ast.While) -> None:
    refuse_else(context, node)
    with context.only_sometimes("the condition of a `while`"):
        test = as_bool(context, node.test, condition(context, node.test))
    context.enclosing.append(Enclosing("while", LoopKind.SERIAL, context.source.place(node)))
    try:
        body = lower_list(context, node.body)
    finally:
        context.enclosing.pop()
    context.emit(While(test, body, context.span(node)))


def _break(context: Context, node: ast.Break) -> None:
    loop = next((one for one in reversed(context.enclosing) if one.what in ("for", "while")), None)
    if loop is None:
        raise _outside(context, node, "break")
    if loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        assert loop.kind is not None
        raise context.mistake(
            "GM0314",
            node,
            f"`break` cannot leave a {loop.kind.value} loop: its iterations do not run one after the other",
            label="not possible here",
            hint="use a serial loop, or `continue` with a condition",
            notes=(Note("the loop is here", loop.place),),
        )
    context.emit(Break(context.span(node)))


def _continue(context: Context, node: ast.Continue) -> None:
    if not any(one.what in ("for", "while") for one in context.enclosing):
        raise _outside(context, node, "continue")
    context.emit(Continue(context.span(node)))


def _outside(context: Context, node: ast.stmt, what: str) -> Mistake:
    return context.mistake(
        "GM0314",
        node,
        f"`{what}` stands outside of a loop",
        label="no loop here",
        hint="use `return` to leave the function",
    )


def _return(context: Context, node: ast.Return) -> None:
    leave(context, node, node.value)


def leave(context: Context, node: ast.stmt, value: ast.expr | None) -> None:
    """``return value``: typed by the function's result; without a stated one the first return gives it."""
    callee = context.callee
    assert callee is not None
    if context.macros:
        raise context.mistake(
            "GM0305", node, "a macro has no `return`: its statements become part of the caller", label="in a macro",
            hint="write a helper function with a result instead",
        )  # fmt: skip
    for one in context.enclosing:
        if one.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
            assert one.kind is not None
            raise context.mistake(
                "GM0315",
                node,
                f"`return` cannot leave a {one.kind.value} loop: its iterations do not run one after the other",
                label="not possible here",
                hint="use a serial loop, or `continue`",
                notes=(Note("the loop is here", one.place),),
            )
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        if context.returns is not None and context.returns != VOID:
            raise context.mistake(
                "GM0234",
                node,
                f"`{callee.name}` has a result of type {context.returns}, and nothing is returned",
                label="no value",
                hint="return a value, or remove the result type",
            )
        context.returns = VOID
        context.emit(Return(None, context.span(node)))
        return
    if context.returns == VOID:
        raise context.mistake(
            "GM0234",
            value,
            f"`{callee.name}` has no result, and a value is returned",
            label="a value",
            hint=f"give the result a type: `def {callee.name}(...) -> T.float32:`, or write into a buffer",
        )
    found = as_operand(context, value, lower(context, value))
    if context.returns is None:
        result = typed(context, value, found)
        context.returns = result.dtype
    else:
        result = fit(context, value, found, context.returns, f"the result of `{callee.name}`", "return ")
    if result.dtype.lanes > 1 or result.dtype == HANDLE:
        raise context.mistake(
            "GM0232",
            value,
            f"the result of a function is one number, not {result.dtype}",
            label=str(result.dtype),
            hint="write larger results into a buffer parameter",
        )
    context.emit(Return(result, context.span(node)))


def _pass(context: Context, node: ast.Pass) -> None:
    return None


def _for(context: Context, node: ast.For) -> None:
    for_loop(context, node, lower_list)


def _with(context: Context, node: ast.With) -> None:
    with_statement(context, node, lower_list)


_HANDLERS: Mapping[type[ast.stmt], Callable[..., Launch | None]] = {
    ast.Assign: assign,
    ast.AugAssign: augmented,
    ast.AnnAssign: annotated,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.With: _with,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Assert: assertion,
    ast.Pass: _pass,
}
