"""``with``: blocks and their init, launches, allocations and bindings for a part of the kernel."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gristmill.ir.build import sequence
from gristmill.ir.expr import Var
from gristmill.ir.stmt import Bind, Block, LoopKind, Stmt
from gristmill.script.context import BlockParts, Context, Enclosing
from gristmill.script.expressions import lower
from gristmill.script.footprint import footprint
from gristmill.script.loops import launch_loop
from gristmill.script.operands import as_operand, typed
from gristmill.script.values import Allocated, Launch, Opening, Value, describe

Body = Callable[[Context, Sequence[ast.stmt]], Stmt]


def with_statement(context: Context, node: ast.With, lower_list: Body) -> None:
    """Read a ``with`` of one item or several (as several, one inside the other)."""
    _items(context, node, list(node.items), lower_list)


def _items(context: Context, node: ast.With, items: list[ast.withitem], lower_list: Body) -> None:
    if not items:
        context.emit(lower_list(context, node.body))
        return
    item, rest = items[0], items[1:]
    named = item.optional_vars
    if named is not None and not isinstance(named, ast.Name):
        raise context.mistake("GM0257", named, "`as` takes one name", label="not a name", hint="write `as name`")
    context.target = named.id if named is not None else ""
    try:
        value = lower(context, item.context_expr)
    finally:
        context.target = ""

    def inside() -> Stmt:
        if not rest:
            return lower_list(context, node.body)
        outer, context.statements = context.statements, []
        try:
            _items(context, node, rest, lower_list)
            from gristmill.script.statements import gathered

            return gathered(context.statements)
        finally:
            context.statements = outer

    if isinstance(value, Launch):
        context.scopes.append({})
        finish = launch_loop(context, value, item.context_expr)
        context.enclosing.append(Enclosing("for", LoopKind.THREAD, context.source.place(item.context_expr)))
        try:
            body = inside()
        finally:
            context.enclosing.pop()
            context.scopes.pop()
        context.emit(finish(body))
    elif isinstance(value, Allocated):
        _scoped(context, named.id if named is not None else value.buffer.name, value, inside)
    elif isinstance(value, Opening):
        _opening(context, node, item, value, inside, lower_list)
    else:
        raise _unknown(context, item.context_expr, value)


def _scoped(context: Context, name: str, value: Value, inside: Callable[[], Stmt]) -> None:
    context.scopes.append({name: value})
    try:
        body = inside()
    finally:
        context.scopes.pop()
    context.emit(body)


def _unknown(context: Context, node: ast.expr, value: Value) -> Exception:
    return context.mistake(
        "GM0335",
        node,
        f"`with` does not take {describe(value)}",
        label="not a block",
        hint='write `with T.block("name"):`, `with T.init():` or `with T.launch_thread(...) as tx:`',
    )


def _opening(
    context: Context, node: ast.With, item: ast.withitem, value: Opening, inside: Callable[[], Stmt], lower_list: Body
) -> None:
    if value.what == "block":
        _block(context, item, value.name, inside)
    elif value.what == "init":
        _init(context, node, item, lower_list)
    elif value.what == "nothing":
        context.emit(inside())
    elif value.what == "let":
        name = value.name or (item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else "value")
        found = typed(context, item.context_expr, as_operand(context, item.context_expr, value.value))
        var = Var(name, found.dtype, span=context.span(item.context_expr))
        context.scopes.append({name: var})
        try:
            body = inside()
        finally:
            context.scopes.pop()
        bound = Bind(var, found, context.span(item.context_expr))
        context.emit(sequence(bound, body))
    else:
        raise _unknown(context, item.context_expr, value)


def _block(context: Context, item: ast.withitem, name: str, inside: Callable[[], Stmt]) -> None:
    place = context.source.place(item.context_expr)
    parts = BlockParts(depth=len(context.enclosing) + 1)
    context.blocks.append(parts)
    context.enclosing.append(Enclosing("block", None, place))
    try:
        body = inside()
    finally:
        context.enclosing.pop()
        context.blocks.pop()
    local = {*parts.allocations, *(match.buffer for match in parts.matches)}
    reads, writes = parts.reads, parts.writes
    if reads is None or writes is None:
        outside = context.visible_variables() | {axis.var for axis in parts.axes}
        found_reads, found_writes = footprint(
            body, parts.init, local, parts.matches, outside, context.visible_buffers()
        )
        reads = found_reads if reads is None else reads
        writes = found_writes if writes is None else writes
    context.emit(
        Block(
            name,
            tuple(parts.axes),
            parts.predicate,
            reads,
            writes,
            tuple(parts.allocations),
            tuple(parts.matches),
            parts.init,
            body,
            context.span(item.context_expr),
        )
    )


def _init(context: Context, node: ast.With, item: ast.withitem, lower_list: Body) -> None:
    block = context.block
    if block is None:
        raise context.mistake(
            "GM0333",
            item.context_expr,
            "`T.init()` stands outside of the start of a block",
            label="no block here",
            hint='write it directly inside `with T.block("name"):`',
        )
    if block.init is not None:
        raise context.mistake(
            "GM0333",
            item.context_expr,
            "the block has two inits",
            label="the second one",
            hint="write both into one `with T.init():`",
        )
    context.enclosing.append(Enclosing("if", None, context.source.place(item.context_expr)))
    try:
        block.init = lower_list(context, node.body)
    finally:
        context.enclosing.pop()
