"""Whether two pieces of IR say the same: structural equality up to the names and identities of what they define.

Variables and buffers that are defined inside the two pieces correspond one to one; those defined outside must be the
same objects. Names of variables and buffers, and spans, do not count; everything else does. Nothing here recurses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.functor import ALL_NODES, USES_BUFFER
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.ir.printer import print_node

DEFINES: dict[type[Node], frozenset[str]] = {
    s.Bind: frozenset({"var"}),
    s.For: frozenset({"var"}),
    s.BlockAxis: frozenset({"var"}),
    s.Allocate: frozenset({"buffer"}),
    s.View: frozenset({"buffer"}),
    s.MatchBuffer: frozenset({"buffer"}),
    s.Block: frozenset({"allocations"}),
    Function: frozenset({"sizes", "params"}),
}
"""The fields whose variables and buffers a node defines. A buffer defines its ``data`` unless that is in scope already."""


class _Role(Enum):
    """What a field is to the comparison."""

    VALUE = 0
    BUFFER = 1
    """A buffer that is used."""
    CHILD = 2
    """A node, None, or a tuple of nodes."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    role: _Role
    defines: bool


def _plan(kind: type[Node]) -> tuple[_Field, ...]:
    """The fields of a class in the order to compare them: plain values first, then children as they are evaluated."""
    children: tuple[str, ...] = kind.CHILDREN
    names = [field.name for field in fields(kind) if field.name != "span"]  # type: ignore[arg-type]
    if issubclass(kind, (e.Var, Buffer)):
        names = [name for name in names if name not in ("name", "data")]
    defines = DEFINES.get(kind, frozenset())
    plan = []
    for name in sorted(names, key=lambda name: children.index(name) if name in children else -1):
        if name not in children:
            role = _Role.BUFFER if name == "buffer" and kind in USES_BUFFER else _Role.VALUE
        else:
            role = _Role.CHILD
        plan.append(_Field(name, role, name in defines))
    return tuple(plan)


_PLANS = {kind: _plan(kind) for kind in ALL_NODES}

_Path = tuple[Any, ...]
"""The way to a piece, as nested pairs (the way to its parent, step)."""


def structural_equal(a: Node, b: Node) -> bool:
    """Whether ``a`` and ``b`` are the same up to names and identities of what they define, and spans."""
    return a is b or _Comparison().run(a, b) is None


def first_difference(a: Node, b: Node) -> str | None:
    """Where ``a`` and ``b`` first differ, with both pieces, for people; None if they are equal."""
    found = None if a is b else _Comparison().run(a, b)
    if found is None:
        return None
    path, left, right = found
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(step)
    return f"{''.join(reversed(steps)).lstrip('.') or 'the root'}: {_shown(left)} against {_shown(right)}"


def _shown(piece: Any) -> str:
    text = print_node(piece) if isinstance(piece, Node) else repr(piece)
    return f"`{text}`" if len(text) <= 400 else f"`{text[:400]}...`"


class _Comparison:
    """Walks two trees side by side with a list of what is still to be compared."""

    def __init__(self) -> None:
        self.left: dict[Node, Node] = {}
        self.right: dict[Node, Node] = {}
        self.work: list[tuple[_Path, Any, Any, bool]] = []

    def run(self, a: Node, b: Node) -> tuple[_Path, Any, Any] | None:
        """The first difference: where, and the two pieces."""
        self.work = [((), a, b, False)]
        while self.work:
            path, left, right, defines = self.work.pop()
            if not isinstance(left, Node) or not isinstance(right, Node):
                if left is not right and not _same_value(left, right):
                    return path, left, right
            elif type(left) is not type(right):
                return path, left, right
            elif isinstance(left, e.Var) and not defines:
                if not self.corresponds(left, right):
                    return path, left, right
            else:
                found = self.compare(path, left, right, defines)
                if found is not None:
                    return found
        return None

    def compare(self, path: _Path, a: Node, b: Node, defines: bool) -> tuple[_Path, Any, Any] | None:
        todo: list[tuple[_Path, Any, Any, bool]] = []
        if defines:
            self.define(a, b)
        if isinstance(a, Function) and isinstance(b, Function):
            # Functions share no names; a copy of a function may define the same objects again.
            self.left.clear()
            self.right.clear()
            # Shapes of parameters may name parameters that stand further on.
            for param, other in zip(a.params, b.params, strict=False):
                if isinstance(param, e.Var) and isinstance(other, e.Var):
                    self.define(param, other)
        for field in _PLANS[type(a)]:
            left, right = getattr(a, field.name), getattr(b, field.name)
            here = (path, f".{field.name}")
            if type(left) is tuple and type(right) is tuple and field.role is not _Role.VALUE:
                if len(left) != len(right):
                    return (here, " (length)"), len(left), len(right)
                todo += [
                    ((here, f"[{number}]"), one, other, field.defines)
                    for number, (one, other) in enumerate(zip(left, right, strict=True))
                ]
            elif field.role is _Role.BUFFER:
                if not self.corresponds(left, right):
                    return here, left, right
            elif field.role is _Role.VALUE:
                if not _same_value(left, right):
                    return here, left, right
            else:
                todo.append((here, left, right, field.defines))
        if isinstance(a, Buffer) and isinstance(b, Buffer):
            found = self.compare_data(path, a, b, defines)
            if found is not None:
                return found
        if isinstance(a, s.View) and isinstance(b, s.View) and a.source is None and b.source is None:
            found = self.use_data(path, a.buffer, b.buffer)
            if found is not None:
                return found
        self.work.extend(reversed(todo))
        return None

    def compare_data(self, path: _Path, a: Buffer, b: Buffer, defines: bool) -> tuple[_Path, Any, Any] | None:
        here = (path, ".data")
        if a.data in self.left or b.data in self.right or not defines:
            return None if self.corresponds(a.data, b.data) else (here, a.data, b.data)
        if (a.data.type, a.data.pointer) != (b.data.type, b.data.pointer):
            return here, a.data, b.data
        self.define(a.data, b.data)
        return None

    def use_data(self, path: _Path, a: Buffer, b: Buffer) -> tuple[_Path, Any, Any] | None:
        """The data of a view without a source is no definition: it must correspond already."""
        return None if self.corresponds(a.data, b.data) else ((path, ".buffer.data"), a.data, b.data)

    def define(self, a: Node, b: Node) -> None:
        self.left[a] = b
        self.right[b] = a

    def corresponds(self, a: Node, b: Node) -> bool:
        """Whether a use of ``a`` is a use of ``b``: defined together, or the same object from outside."""
        if a in self.left or b in self.right:
            return self.left.get(a) is b and self.right.get(b) is a
        return a is b


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))
    if type(a) is tuple and type(b) is tuple:
        # Of texts and numbers only (features and options of a target, indices of a shuffle), so not deep.
        return len(a) == len(b) and all(_same_value(one, other) for one, other in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def structural_hash(node: Node) -> int:
    """A number that is the same for all pieces of IR that are structurally equal, within one process."""
    numbers: dict[Node, int] = {}
    found: list[Any] = []
    work: list[tuple[Any, bool]] = [(node, False)]
    while work:
        piece, defines = work.pop()
        if not isinstance(piece, Node):
            found.append(_hashed_value(piece))
            continue
        if isinstance(piece, e.Var) and not defines:
            found.append(numbers.get(piece, piece))
            continue
        if defines:
            numbers[piece] = len(numbers)
        if isinstance(piece, Function):
            numbers.clear()
            numbers.update(
                {param: len(numbers) + k for k, param in enumerate(piece.params) if isinstance(param, e.Var)}
            )
        found.append(type(piece))
        if isinstance(piece, Buffer) and piece.data not in numbers and defines:
            numbers[piece.data] = len(numbers)
        todo: list[tuple[Any, bool]] = []
        for field in _PLANS[type(piece)]:
            value = getattr(piece, field.name)
            if field.role is _Role.BUFFER:
                found.append(numbers.get(value, value))
            elif field.role is _Role.VALUE:
                found.append(_hashed_value(value))
            elif type(value) is tuple:
                found.append(len(value))
                todo += [(item, field.defines) for item in value]
            else:
                todo.append((value, field.defines))
        work.extend(reversed(todo))
    return hash(tuple(found))


def _hashed_value(value: Any) -> Any:
    # Every NaN is equal to every other here; hash(nan) is not the same for two of them.
    return "nan" if isinstance(value, float) and math.isnan(value) else value
