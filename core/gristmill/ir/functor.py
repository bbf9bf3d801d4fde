"""Going over IR: dispatch by exact class, walking, and rewriting that keeps what does not change.

:class:`Functor` is the table dispatch: forgetting a node class is an error when the subclass is defined.
:func:`walk` visits with an explicit stack, so depth does not matter. :class:`Mutator` is the identity transform to
subclass; it recurses, so run it under the pass manager, which raises the recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from gristmill.ir import expr as _expr
from gristmill.ir import memory as _memory
from gristmill.ir import module as _module
from gristmill.ir import stmt as _stmt
from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import Buffer
from gristmill.ir.node import Node
from gristmill.ir.stmt import Seq, Stmt

R = TypeVar("R")
N = TypeVar("N", bound=Node)


def _concrete(namespace: object, base: type[Node]) -> tuple[type[Node], ...]:
    return tuple(
        found
        for found in vars(namespace).values()
        if isinstance(found, type) and issubclass(found, base) and "__dataclass_fields__" in vars(found)
    )


EXPRESSIONS = _concrete(_expr, Expr)
STATEMENTS = _concrete(_stmt, Stmt)
PARTS = tuple(
    found
    for namespace in (_memory, _stmt, _module)
    for found in _concrete(namespace, Node)
    if not issubclass(found, (Expr, Stmt)) and found.__module__ == vars(namespace)["__name__"]
)
"""Nodes that are neither: buffers, ranges, regions, axes, functions, modules."""
ALL_NODES = (*EXPRESSIONS, *STATEMENTS, *PARTS)


class Functor(Generic[R]):
    """Calls ``visit_<Class>`` for a node, or the method of the nearest base class (``visit_BinaryExpr``, ``visit_Expr``...).

    A subclass names the classes it must handle: ``class Emit(Functor[str], over=EXPRESSIONS)``. It may inherit
    methods; what is missing is reported when the class is made.
    """

    table: ClassVar[dict[type[Node], Callable[..., Any]]] = {}
    over: ClassVar[tuple[type[Node], ...]] = ()

    def __init_subclass__(cls, over: tuple[type[Node], ...] | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if over is not None:
            cls.over = over
        cls.table = {}
        missing = []
        for kind in cls.over:
            method = next(
                (found for base in kind.__mro__ if (found := getattr(cls, f"visit_{base.__name__}", None))), None
            )
            if method is None:
                missing.append(kind.__name__)
            else:
                cls.table[kind] = method
        if missing:
            raise TypeError(f"{cls.__name__} has no visit_ method for: {', '.join(missing)}")

    def visit(self, node: Node, /) -> R:
        return self.table[type(node)](self, node)  # type: ignore[no-any-return]


def children(node: Node) -> Iterator[Node]:
    """The child nodes in evaluation order (texts in an assert's message left out)."""
    for name in type(node).CHILDREN:
        child = getattr(node, name)
        if type(child) is tuple:
            for item in child:
                if isinstance(item, Node):
                    yield item
        elif child is not None:
            yield child


def walk(node: Node) -> Iterator[Node]:
    """The node and all under it, parents before children, in evaluation order. Needs no recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if type(current).CHILDREN:
            stack.extend(reversed(list(children(current))))


USES_BUFFER = (_expr.Load, _expr.AddressOf, _expr.BufferRef, _stmt.Store, _memory.Region)
"""Node classes whose field ``buffer`` is a use, not a definition."""


class Mutator(Functor[Any], over=ALL_NODES):
    """The identity transform: a node whose children come back the same is itself returned.

    Override ``visit_<Class>``; call ``self.generic(node)`` to do the children first. A statement is removed by
    returning ``Seq(())``. When a buffer's definition is rewritten, later uses refer to the new one. Variables come
    back as themselves, also where they are defined; override ``visit_Var`` to replace them (both places).
    """

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}

    def generic(self, node: N) -> N:
        changes: dict[str, Any] = {}
        kind = type(node)
        for name in kind.CHILDREN:
            old = getattr(node, name)
            if old is None:
                continue
            new = self._sequence(old) if type(old) is tuple else self.visit(old)
            if new is not old:
                changes[name] = new
        if kind in _USES_BUFFER:
            old_buffer: Buffer = node.buffer  # type: ignore[attr-defined]
            new_buffer = self.use_buffer(old_buffer)
            if new_buffer is not old_buffer:
                changes["buffer"] = new_buffer
        return replace(node, **changes) if changes else node  # type: ignore[type-var]

    def _sequence(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        found = [self.visit(item) if isinstance(item, Node) else item for item in items]
        return items if all(a is b for a, b in zip(found, items, strict=True)) else tuple(found)

    def use_buffer(self, buffer: Buffer) -> Buffer:
        """The buffer that a use refers to now."""
        return self.buffers.get(buffer, buffer)

    def visit_Node(self, node: Node) -> Any:
        return self.generic(node)

    def visit_Var(self, node: Var) -> Any:
        return node

    def visit_Buffer(self, node: Buffer) -> Any:
        found = self.generic(node)
        data = self.visit(node.data)
        if data is not node.data:
            found = replace(found, data=data)
        if found is not node:
            self.buffers[node] = found
        return found

    def visit_Seq(self, node: Seq) -> Any:
        """Flatten what became a sequence, drop what became empty."""
        found: list[Stmt] = []
        changed = False
        for old in node.body:
            new = self.visit(old)
            changed = changed or new is not old
            if isinstance(new, Seq):
                found.extend(new.body)
            else:
                found.append(new)
        if not changed:
            return node
        return found[0] if len(found) == 1 else Seq(tuple(found), node.span)

    def visit_If(self, node: _stmt.If) -> Any:
        found = self.generic(node)
        # An else branch that became empty is no else branch.
        if isinstance(found.otherwise, Seq) and not found.otherwise.body and found is not node:
            return replace(found, otherwise=None)
        return found

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(over=ALL_NODES, **rest)


_USES_BUFFER = frozenset(USES_BUFFER)


class _Substitution(Mutator):
    def __init__(self, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer]) -> None:
        super().__init__()
        self.variables = variables
        self.buffers.update(buffers)

    def visit_Var(self, node: Var) -> Any:
        return self.variables.get(node, node)


def substitute(node: N, variables: Mapping[Var, Expr], buffers: Mapping[Buffer, Buffer] | None = None) -> N:
    """The node with variables replaced by expressions, and uses of buffers by uses of others.

    A variable that the node itself defines may be replaced only by a variable.
    """
    return _Substitution(variables, buffers or {}).visit(node)  # type: ignore[no-any-return]
