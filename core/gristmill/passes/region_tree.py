"""The statements of a launch region as a tree with their accesses to memory that threads of a block share.

Leaves are simple statements; chains, branches and loops hold them. The tree keeps each occurrence of a statement apart,
and can be built back with further barriers in its chains. :mod:`gristmill.passes.block_accesses` makes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gristmill.arith.interval import Interval
from gristmill.ir.build import sequence
from gristmill.ir.expr import Var
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.span import Span
from gristmill.ir.stmt import Barrier, BarrierScope, For, If, Seq, Stmt, While
from gristmill.passes.element_forms import Form
from gristmill.passes.index_facts import Fact
from gristmill.passes.thread_pairs import Side


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One read or write of memory that several threads see. ``dimensions`` and ``flat`` (in bytes) are where it goes;
    None: anywhere in the memory."""

    root: Var
    scope: Scope
    writes: bool
    name: str
    span: Span | None
    opened: frozenset[Var]
    axes: dict[Var, Interval]
    facts: tuple[Fact, ...] = ()
    buffer: Buffer | None = None
    dimensions: tuple[Form, ...] | None = None
    flat: Form | None = None
    room: Interval | None = None
    """The bytes of the memory that the buffer has, if its place in it is known; no access is outside of them."""
    atomic: bool = False
    """Whether this is an atomic operation, which is in no other one's way."""
    of_group: bool = False
    """Whether the threads of a group make it together, so that each may have made any part of it."""
    signature: int = 0
    """The same number for accesses between which no question of hazards makes a difference."""

    def side(self, stale: frozenset[Var]) -> Side:
        return Side(stale, self.axes, self.facts)


@dataclass(slots=True, eq=False)
class Leaf:
    """A simple statement."""

    stmt: Stmt
    accesses: list[Access]


@dataclass(slots=True, eq=False)
class Fence:
    """A barrier; ``stmt`` is None for one that was not in the program."""

    scope: BarrierScope
    stmt: Barrier | None = None


@dataclass(slots=True, eq=False)
class Chain:
    items: list[Leaf | Fence | Branch | Loop] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Branch:
    """Code that is run or not. ``stmt`` None: the rest of a chain that some threads have left by ``continue``."""

    stmt: If | None
    accesses: list[Access]
    divergent: bool
    then: Chain
    otherwise: Chain | None
    cause: Span | None


@dataclass(slots=True, eq=False)
class Loop:
    """A loop. ``accesses`` are made once before it, ``test`` before each iteration; ``stale`` are the variables that
    each iteration has its own values of."""

    stmt: Stmt
    accesses: list[Access]
    test: list[Access]
    repeats: bool
    divergent: bool
    at_least_once: bool
    body: Chain
    stale: frozenset[Var]
    cause: Span | None


def everything(chain: Chain | None) -> Iterator[Access]:
    """All accesses in a chain."""
    for item in chain.items if chain is not None else ():
        if isinstance(item, (Leaf, Branch, Loop)):
            yield from item.accesses
        if isinstance(item, Branch):
            yield from everything(item.then)
            yield from everything(item.otherwise)
        elif isinstance(item, Loop):
            yield from item.test
            yield from everything(item.body)


def built(chain: Chain) -> Stmt:
    """The statement of a chain; where nothing was put in, the same object."""
    parts: list[Stmt] = []
    for item in chain.items:
        match item:
            case Leaf():
                parts.append(item.stmt)
            case Fence():
                parts.append(item.stmt if item.stmt is not None else Barrier(item.scope))
            case Branch(stmt=None):
                parts.append(built(item.then))
            case Branch():
                assert item.stmt is not None
                then = _same(item.stmt.then, built(item.then))
                otherwise = item.stmt.otherwise
                if item.otherwise is not None and otherwise is not None:
                    otherwise = _same(otherwise, built(item.otherwise))
                changed = then is not item.stmt.then or otherwise is not item.stmt.otherwise
                parts.append(replace(item.stmt, then=then, otherwise=otherwise) if changed else item.stmt)
            case Loop():
                assert isinstance(item.stmt, (For, While))
                body = _same(item.stmt.body, built(item.body))
                parts.append(item.stmt if body is item.stmt.body else replace(item.stmt, body=body))
    return sequence(*parts)


def _same(old: Stmt, new: Stmt) -> Stmt:
    """The old statement if the new one has the same parts."""
    before = old.body if isinstance(old, Seq) else (old,)
    after = new.body if isinstance(new, Seq) else (new,)
    same = len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
    return old if same else new
