"""Which elements a block reads and writes, found from its body where its author does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from gristmill.ir.build import const
from gristmill.ir.effects import atomic_element
from gristmill.ir.expr import AddressOf, BufferRef, Expr, Load, Ramp, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Range, Region
from gristmill.ir.stmt import Allocate, Block, MatchBuffer, Stmt, Store, View
from gristmill.script.linear import same
from gristmill.script.memory import whole


class _Gathering:
    """The union of accesses to each buffer, one range a dimension."""

    def __init__(self, hidden: AbstractSet[Buffer], outside: AbstractSet[Var]) -> None:
        self.hidden = hidden
        self.outside = outside
        self.found: dict[Buffer, list[Range]] = {}

    def add(self, buffer: Buffer, ranges: Sequence[Range | None]) -> None:
        """``None`` stands for a whole dimension."""
        if buffer in self.hidden:
            return
        known = [
            one if one is not None and self._is_known(one) else _whole(extent)
            for one, extent in zip(ranges, buffer.shape, strict=True)
        ]
        before = self.found.get(buffer)
        if before is None:
            self.found[buffer] = known
            return
        self.found[buffer] = [
            a if same(a.minimum, b.minimum) and same(a.extent, b.extent) else _whole(extent)
            for a, b, extent in zip(before, known, buffer.shape, strict=True)
        ]

    def _is_known(self, one: Range) -> bool:
        """Whether a range depends only on what exists outside of the body."""
        for end in (one.minimum, one.extent):
            for part in walk(end):
                if isinstance(part, Load) or (isinstance(part, Var) and part not in self.outside):
                    return False
        return True

    def regions(self) -> tuple[Region, ...]:
        return tuple(Region(buffer, tuple(ranges), buffer.span) for buffer, ranges in self.found.items())


def _whole(extent: Expr) -> Range:
    return Range(const(0, extent.dtype), extent)


def _at(indices: Sequence[Expr]) -> list[Range | None]:
    found: list[Range | None] = []
    for one in indices:
        if isinstance(one, Ramp):
            stride = one.stride
            plain = getattr(stride, "value", None) == 1
            found.append(Range(one.base, const(one.lanes, one.base.dtype)) if plain else None)
        elif one.dtype.lanes > 1:
            found.append(None)
        else:
            found.append(Range(one, const(1, one.dtype)))
    return found


def footprint(
    body: Stmt,
    init: Stmt | None,
    local: AbstractSet[Buffer],
    matches: Sequence[MatchBuffer],
    outside: AbstractSet[Var],
    roots: Mapping[Var, Buffer],
) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Reads and writes of a block with that body; ``outside`` are the variables that regions may be stated in.

    ``roots`` are the buffers outside, by their data: an access through a view made inside counts for all of its root.

    What a reduction reads of its own result is no read: its init makes it.
    """
    made = {node.buffer for node in walk(body) if isinstance(node, (Allocate, View))}
    made |= {one for node in walk(body) if isinstance(node, Block) for one in node.allocations}
    made |= {one.buffer for node in walk(body) if isinstance(node, Block) for one in node.matches}
    if init is not None:
        made |= {node.buffer for node in walk(init) if isinstance(node, Allocate)}
    hidden = made | local
    reads, writes = _Gathering(hidden, outside), _Gathering(hidden, outside)
    sources = {match.buffer: match.region for match in matches}
    for node in walk(body):
        if isinstance(node, View) and node.source is None and node.buffer.data in roots:
            sources[node.buffer] = whole(roots[node.buffer.data])
    for part in (init, body):
        if part is None:
            continue
        elements = set[AddressOf]()
        for node in walk(part):
            element = atomic_element(node)
            if element is not None:
                elements.add(element)
                for side in (reads, writes):
                    _access(side, element.buffer, element.indices, sources)
            elif isinstance(node, Load):
                _access(reads, node.buffer, node.indices, sources)
            elif isinstance(node, Store):
                _access(writes, node.buffer, node.indices, sources)
            elif isinstance(node, (AddressOf, BufferRef)) and node not in elements:
                # What happens through a pointer is not known: all of the buffer, both ways.
                everything: list[Range | None] = [None] * node.buffer.rank
                for side in (reads, writes):
                    if node.buffer in sources:
                        side.add(sources[node.buffer].buffer, sources[node.buffer].ranges)
                    else:
                        side.add(node.buffer, everything)
    if init is not None:
        for buffer in list(reads.found):
            if buffer in writes.found:
                del reads.found[buffer]
    return reads.regions(), writes.regions()


def _access(side: _Gathering, buffer: Buffer, indices: Sequence[Expr], sources: dict[Buffer, Region]) -> None:
    region = sources.get(buffer)
    if region is not None:
        side.add(region.buffer, region.ranges)
    else:
        side.add(buffer, _at(indices))
