"""Which assignments make immutable names, which make local scalars, and where those are declared.

A name belongs to the innermost statement list that holds all of its uses that depend on each other; two loops that
each use a name for themselves have two names. There it is

* a *binding*, if it is assigned once, in that list itself and before every use;
* a *local scalar* otherwise, declared before the first statement that mentions it.

So a temporary inside a parallel loop is one for each iteration, and a name assigned in both branches of an ``if`` can
be used after it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Names = frozenset[str]
_NONE: Names = frozenset()


@dataclass(frozen=True, slots=True)
class Flow:
    """What a statement does with names. ``always`` is None for a statement that never completes (``return``)."""

    exposed: Names
    """Read, perhaps before the statement itself has assigned them."""
    always: Names | None
    """Assigned whenever the statement completes."""
    assigned: Names
    """Assigned on some path."""
    mentioned: Names


@dataclass(slots=True)
class Plan:
    """The decisions for one function, by identity of lists and nodes of its syntax tree."""

    locals: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    """Names to declare before statement ``index`` of the list with that id."""
    bindings: set[int] = field(default_factory=set)
    """Ids of target nodes (``ast.Name``) that are immutable bindings."""
    names: Names = _NONE
    """All names that the function assigns."""
    completes: bool = True
    """Whether the function may reach its end without a ``return``."""


class _Planner:
    def __init__(self) -> None:
        self.flows: dict[int, Flow] = {}
        self.plan = Plan()

    # What statements do -----------------------------------------------------------------------------------------------

    def flow(self, statement: ast.stmt) -> Flow:
        found = self.flows.get(id(statement))
        if found is None:
            found = self.flows[id(statement)] = self._flow(statement)
        return found

    def _flow(self, statement: ast.stmt) -> Flow:
        match statement:
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                targets = frozenset(node.id for node in target_names(statement))
                reads = _reads(statement)
                if isinstance(statement, ast.AugAssign):
                    reads |= targets
                always = _NONE if isinstance(statement, ast.AnnAssign) and statement.value is None else targets
                return Flow(reads, always, targets, reads | targets)
            case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
                bound = frozenset(node.id for node in ast.walk(target) if isinstance(node, ast.Name))
                inside = self.sequence([*body, *orelse])
                reads = _reads(iterated)
                return Flow(
                    reads | (inside.exposed - bound),
                    _NONE,
                    inside.assigned - bound,
                    reads | (inside.mentioned - bound),
                )
            case ast.While(test=test, body=body, orelse=orelse):
                inside = self.sequence([*body, *orelse])
                reads = _reads(test)
                return Flow(reads | inside.exposed, _NONE, inside.assigned, reads | inside.mentioned)
            case ast.If(test=test, body=body, orelse=orelse):
                then, otherwise = self.sequence(body), self.sequence(orelse)
                reads = _reads(test)
                if then.always is None or otherwise.always is None:
                    always_or_none = otherwise.always if then.always is None else then.always
                else:
                    always_or_none = then.always & otherwise.always
                return Flow(
                    reads | then.exposed | otherwise.exposed,
                    always_or_none,
                    then.assigned | otherwise.assigned,
                    reads | then.mentioned | otherwise.mentioned,
                )
            case ast.With(items=items, body=body):
                reads, bound = _NONE, _NONE
                for item in items:
                    reads |= _reads(item.context_expr)
                    if item.optional_vars is not None:
                        bound |= {node.id for node in ast.walk(item.optional_vars) if isinstance(node, ast.Name)}
                inside = self.sequence(body)
                always_or_none = inside.always
                if _is_init(statement) or inside.always is None:
                    # The init part of a block runs in some iterations only.
                    always_or_none = _NONE if _is_init(statement) else None
                if always_or_none is not None:
                    always_or_none -= bound
                return Flow(
                    reads | (inside.exposed - bound), always_or_none, inside.assigned - bound,
                    reads | (inside.mentioned - bound),
                )  # fmt: skip
            case ast.Return() | ast.Break() | ast.Continue():
                reads = _reads(statement)
                return Flow(reads, None, _NONE, reads)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="ret" | "Return"))):
                reads = _reads(statement)
                return Flow(reads, None, _NONE, reads)
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                return Flow(_NONE, _NONE, _NONE, _NONE)
            case _:
                reads = _reads(statement)
                return Flow(reads, _NONE, _NONE, reads)

    def sequence(self, body: Sequence[ast.stmt]) -> Flow:
        exposed: set[str] = set()
        always: set[str] | None = set()
        assigned: set[str] = set()
        mentioned: set[str] = set()
        for statement in body:
            one = self.flow(statement)
            if always is not None:
                exposed |= one.exposed - always
                always = None if one.always is None else always | one.always
            assigned |= one.assigned
            mentioned |= one.mentioned
        return Flow(
            frozenset(exposed), None if always is None else frozenset(always), frozenset(assigned), frozenset(mentioned)
        )

    # Where names belong -----------------------------------------------------------------------------------------------

    def place(self, body: list[ast.stmt], names: Names, live_out: Names) -> None:
        """Decide for ``names``, none of which has a value from outside, in a statement list."""
        deeper: dict[int, set[str]] = {}
        flows = [self.flow(statement) for statement in body]
        for name in sorted(names):
            where = [index for index, flow in enumerate(flows) if name in flow.mentioned]
            if not any(name in flows[index].assigned for index in where):
                continue
            live_after = self._liveness(name, flows, name in live_out)
            group: list[int] = []
            has_direct = False
            for index in where:
                group.append(index)
                has_direct = has_direct or _is_direct(body[index], name)
                if index != where[-1] and (has_direct or live_after[index]):
                    continue
                self._decide(name, body, flows, group, live_after[index], deeper)
                group, has_direct = [], False
        for index, inner in deeper.items():
            for nested in inner_lists(body[index]):
                self.place(nested, frozenset(inner), _NONE)

    def _liveness(self, name: str, flows: list[Flow], live: bool) -> list[bool]:
        """For each statement, whether the name's value may be read after it before it is assigned again."""
        found = [False] * len(flows)
        for index in range(len(flows) - 1, -1, -1):
            found[index] = live
            flow = flows[index]
            if name in flow.exposed:
                live = True
            elif flow.always is not None and name in flow.always:
                live = False
        return found

    def _decide(
        self,
        name: str,
        body: list[ast.stmt],
        flows: list[Flow],
        group: list[int],
        live: bool,
        deeper: dict[int, set[str]],
    ) -> None:
        first = group[0]
        if not any(name in flows[index].assigned for index in group):
            return
        if len(group) == 1 and inner_lists(body[first]) and name not in flows[first].exposed and not live:
            deeper.setdefault(first, set()).add(name)
            return
        targets = [node for index in group for node in _all_targets(body[index], name)]
        only = targets[0] if len(targets) == 1 else None
        statement = body[first]
        if (
            only is not None
            and isinstance(statement, (ast.Assign, ast.AnnAssign))
            and statement.value is not None
            and _is_direct(statement, name)
            and name not in flows[first].exposed
        ):
            self.plan.bindings.add(id(only))
            return
        self.plan.locals.setdefault((id(body), first), []).append(name)


def plan_names(body: list[ast.stmt], params: Iterable[str]) -> Plan:
    """The plan for a function's body. Assignments to parameters are left out: they are mistakes, found later."""
    planner = _Planner()
    flow = planner.sequence(body)
    planner.plan.names = flow.assigned
    planner.plan.completes = flow.always is not None
    planner.place(body, flow.assigned - frozenset(params), _NONE)
    return planner.plan


def target_names(statement: ast.stmt) -> list[ast.Name]:
    """The names that an assignment statement itself assigns."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    found = []
    while targets:
        target = targets.pop(0)
        if isinstance(target, ast.Name):
            found.append(target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets = [*target.elts, *targets]
        elif isinstance(target, ast.Starred):
            targets.insert(0, target.value)
    return found


def inner_lists(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists directly inside a compound statement."""
    if isinstance(statement, (ast.For, ast.While, ast.If)):
        return [statement.body, statement.orelse] if statement.orelse else [statement.body]
    return [statement.body] if isinstance(statement, ast.With) else []


def _is_direct(statement: ast.stmt, name: str) -> bool:
    return any(node.id == name for node in target_names(statement))


def _all_targets(statement: ast.stmt, name: str) -> list[ast.Name]:
    """Every node under a statement that assigns the name."""
    return [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
    ]


def _reads(node: ast.AST) -> Names:
    # An annotation is no use of a name: types are known before the function runs.
    if isinstance(node, ast.AnnAssign):
        return (_reads(node.value) if node.value is not None else _NONE) | _reads(node.target)
    return frozenset(
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    )


def _is_init(statement: ast.With) -> bool:
    expression = statement.items[0].context_expr
    return (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and expression.func.attr == "init"
    )
