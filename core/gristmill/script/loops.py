"""``for`` loops and launches, normalised to a step of one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gristmill.ir.build import const
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Add, Expr, FloorDiv, IntImm, Load, Mul, Sub, Var
from gristmill.ir.stmt import Bind, For, LoopKind, Seq, Stmt
from gristmill.script.context import Context, Enclosing
from gristmill.script.expressions import lower
from gristmill.script.source import Positioned
from gristmill.script.values import Intrinsic, Launch, Loops, Value, describe

Body = Callable[[Context, Sequence[ast.stmt]], Stmt]


def refuse_else(context: Context, node: ast.For | ast.While) -> None:
    """Refuse a loop with an ``else``."""
    if node.orelse:
        raise context.mistake(
            "GM0313",
            node.orelse[0],
            "a loop has no `else` in a kernel",
            label="belongs to the else of the loop",
            hint="set a local bool in the loop, and test it after",
        )


def for_loop(context: Context, node: ast.For, lower_list: Body) -> None:
    """``for i in range(...)``, ``for i, j in T.grid(...)`` and the other loops of the language."""
    refuse_else(context, node)
    loops = _loops(context, node.iter)
    names = _names(context, node, len(loops.bounds))
    if loops.kind is LoopKind.VECTORIZED:
        _, stop, _ = loops.bounds[0]
        start = loops.bounds[0][0]
        if not isinstance(distance(context, node.iter, start, stop), IntImm):
            raise context.mistake(
                "GM0318",
                loops.places[0],
                "the length of a vectorized loop must be constant",
                label="not constant",
                hint='for other lengths ask the compiler: `T.serial(n, annotations={"vectorize": True})`',
            )
    headers: list[tuple[Var, Expr, Expr, Var | None, int, Expr]] = []
    scope: dict[str, Value] = {}
    for name, (start, stop, step), place in zip(names, loops.bounds, loops.places, strict=True):
        headers.append(_header(context, name, start, stop, step, place, scope))
    place_of_node = context.source.place(node)
    context.scopes.append(scope)
    for _ in headers:
        context.enclosing.append(Enclosing("for", loops.kind, place_of_node))
    try:
        body = lower_list(context, node.body)
    finally:
        for _ in headers:
            context.enclosing.pop()
        context.scopes.pop()
    for name in names:
        context.hidden[name.id] = context.source.place(name)
    span = context.span(node)
    for counter, minimum, extent, var, step, start in reversed(headers):
        if var is not None:
            offset = Mul(counter, const(step, counter.type, span), span)
            value = offset if isinstance(start, IntImm) and start.value == 0 else Add(start, offset, span)
            body = _prepend(Bind(var, value, span), body)
        body = For(counter, minimum, extent, loops.kind, body, loops.thread, loops.hints, span)
    context.emit(body)


def _prepend(first: Stmt, rest: Stmt) -> Stmt:
    return Seq((first, *rest.body), rest.span) if isinstance(rest, Seq) else Seq((first, rest))


def _loops(context: Context, node: ast.expr) -> Loops:
    value: Value
    if isinstance(node, ast.Call):
        value = lower(context, node)
    elif isinstance(node, (ast.Tuple, ast.List)):
        value = ()
    else:
        value = lower(context, node)
    if isinstance(value, Loops):
        return value
    hint = "loop over `range(...)`, `T.grid(...)`, `T.parallel(...)` and the like, and index the buffer"
    if isinstance(value, Intrinsic):
        hint = f"call it: `{context.segment(node)}(n)`"
    elif isinstance(value, (int, Expr)):
        hint = f"write `range({context.segment(node)})`"
    raise context.mistake(
        "GM0310",
        node,
        f"a loop cannot run over {describe(value)}",
        label="not a range",
        hint=hint,
    )


def _names(context: Context, node: ast.For, count: int) -> list[ast.Name]:
    target = node.target
    names = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
    found = [name for name in names if isinstance(name, ast.Name)]
    if len(found) != len(names) or len(names) != count:
        raise context.mistake(
            "GM0312",
            target,
            f"{len(names)} name{'s' if len(names) != 1 else ''} for {count} loop{'s' if count != 1 else ''}"
            if len(found) == len(names)
            else "the variable of a loop must be a name",
            label=f"{count} name{'s' if count != 1 else ''} wanted",
            hint="write one name for each loop: `for i, j in T.grid(n, m):`",
        )
    seen: set[str] = set()
    for name in found:
        if name.id in seen and name.id != "_":
            raise context.mistake(
                "GM0312", name, f"`{name.id}` names two loops", label="used before", hint="give each loop its own name"
            )
        seen.add(name.id)
    return found


def _header(
    context: Context, name: ast.Name, start: Expr, stop: Expr, step: int, place: Positioned, scope: dict[str, Value]
) -> tuple[Var, Expr, Expr, Var | None, int, Expr]:
    """The loop's own variable, minimum and extent; with a step also the user's variable, computed from it."""
    span = context.span(name)
    dtype = stop.dtype
    if step == 1:
        var = Var(name.id, dtype, span=span)
        extent = distance(context, place, start, stop)
        scope[name.id] = var
        context.loops[var] = (start, extent)
        return var, start, extent, None, 1, start
    if not isinstance(start, (IntImm, Var)):
        # Evaluated once, before the loop, and used in every iteration.
        kept = Var(f"{name.id}_start", dtype, span=span)
        context.emit(Bind(kept, start, context.span(place)))
        start = kept
    counter = Var(f"{name.id}_step", dtype, span=span)
    var = Var(name.id, dtype, span=span)
    scope[name.id] = var
    span = context.span(place)
    length = distance(context, place, start, stop) if step > 0 else distance(context, place, stop, start)
    width = abs(step)
    if isinstance(length, IntImm):
        extent = const(max(0, -(-length.value // width)), dtype, span)
    elif width == 1:
        extent = length
    else:
        extent = FloorDiv(Add(length, const(width - 1, dtype, span), span), const(width, dtype, span), span)
    minimum = const(0, dtype, span)
    context.loops[counter] = (minimum, extent)
    return counter, minimum, extent, var, step, start


def distance(context: Context, place: Positioned, start: Expr, stop: Expr) -> Expr:
    """``stop - start``, folded where it is easy."""
    span = context.span(place)
    if isinstance(start, IntImm) and isinstance(stop, IntImm):
        return _count(context, place, stop.value - start.value, stop.dtype)
    if isinstance(start, IntImm) and start.value == 0:
        return stop
    if isinstance(start, IntImm) and start.value < 0:
        return Add(stop, const(-start.value, stop.dtype, span), span)
    from gristmill.script.linear import difference

    known = difference(stop, start) if not _loads(stop) and not _loads(start) else None
    if known is not None:
        return _count(context, place, known, stop.dtype)
    return Sub(stop, start, span)


def _count(context: Context, place: Positioned, count: int, dtype: DType) -> Expr:
    if count > dtype.maximum:
        raise context.mistake(
            "GM0310",
            place,
            f"the loop runs over {count} values, and {dtype} counts to {dtype.maximum}",
            label="too many",
            hint="loop over fewer values, or leave the loop by `break` from a `while`",
        )
    return const(max(count, 0), dtype, context.span(place))


def _loads(expr: Expr) -> bool:
    from gristmill.ir.functor import walk

    return any(isinstance(part, Load) and part.indices for part in walk(expr))


def launch_loop(context: Context, launch: Launch, node: Positioned) -> Callable[[Stmt], Stmt]:
    """Open a loop over threads whose body is the rest of a statement list; the result closes it."""
    var = Var(launch.name, launch.extent.dtype, span=launch.span)
    minimum = const(0, launch.extent.dtype, launch.span)
    context.define(launch.name, var)
    context.loops[var] = (minimum, launch.extent)
    del node

    def finish(body: Stmt) -> Stmt:
        return For(var, minimum, launch.extent, LoopKind.THREAD, body, launch.axis, span=launch.span)

    return finish
