"""Which pointers code mentions, where pointers that it defines may lead, and through which parameters it may write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gristmill.ir.effects import written_element
from gristmill.ir.expr import AddressOf, BufferRef, CallExtern, CallFunction, CallPacked, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.node import Node
from gristmill.ir.stmt import Bind, Launch, MatchBuffer, Store, View


def pointers_in(node: Node) -> Iterator[Var]:
    """The pointer variables in an expression, and the ``data`` of buffers whose addresses it takes, maybe repeatedly."""
    for part in walk(node):
        if isinstance(part, Var):
            if part.dtype.is_handle:
                yield part
        elif isinstance(part, (AddressOf, BufferRef)):
            yield part.buffer.data


def pointer_sources(body: Node) -> dict[Var, frozenset[Var]]:
    """For each pointer that code defines from others (a binding, the ``data`` of a view or of a buffer that stands for a
    region), those that it may have come from, in one step."""
    found: dict[Var, frozenset[Var]] = {}
    for node in walk(body):
        if isinstance(node, View):
            # Without a source it is another buffer over the same pointer.
            if node.source is not None:
                found[node.buffer.data] = frozenset(pointers_in(node.source))
        elif isinstance(node, Bind):
            if node.var.dtype.is_handle:
                found[node.var] = frozenset(pointers_in(node.value))
        elif isinstance(node, MatchBuffer):
            found[node.buffer.data] = frozenset((node.region.buffer.data,))
    return found


def origins(pointers: Iterable[Var], sources: Mapping[Var, Iterable[Var]]) -> set[Var]:
    """The pointers and all that they may have come from, in any number of steps."""
    found: set[Var] = set()
    waiting = list(pointers)
    while waiting:
        pointer = waiting.pop()
        if pointer not in found:
            found.add(pointer)
            waiting += sources.get(pointer, ())
    return found


def written_parameters(function: Function, module: Module) -> frozenset[int]:
    """The places of the parameters that a function of the module may write through.

    It may where it stores to the memory itself, through whatever view, where a function that it calls or a kernel that
    it launches may, and where it hands a pointer to code outside of the module.
    """
    functions = {found.name: found for found in module.functions}
    uses: dict[str, _Uses] = {}
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if current.name not in uses:
            uses[current.name] = found = _Uses.of(current)
            waiting += [functions[callee] for callee, _ in found.handed if _has_code(functions.get(callee))]
    # Nothing at first, then what follows from what is known, until no more does: right for recursion too.
    written: dict[str, frozenset[int]] = dict.fromkeys(uses, frozenset())
    changed = True
    while changed:
        changed = False
        for name, found in uses.items():
            more = found.written(written)
            changed = changed or more != written[name]
            written[name] = more
    return written[function.name]


def _has_code(function: Function | None) -> bool:
    return function is not None and not function.facts.declaration


@dataclass(slots=True)
class _Uses:
    """What one function does with pointers: stores, and hands on to functions by name."""

    parameters: tuple[Var, ...]
    sources: dict[Var, frozenset[Var]]
    stored: set[Var] = field(default_factory=set)
    handed: list[tuple[str, tuple[Expr, ...]]] = field(default_factory=list)

    @classmethod
    def of(cls, function: Function) -> _Uses:
        parameters = tuple(param.data if isinstance(param, Buffer) else param for param in function.params)
        found = cls(parameters, pointer_sources(function.body))
        for node in walk(function.body):
            if isinstance(node, Store):
                found.stored.add(node.buffer.data)
            elif (element := written_element(node)) is not None:
                found.stored.add(element.buffer.data)
            elif isinstance(node, (CallPacked, CallExtern)):
                found.stored.update(_handles(node.args))
            elif isinstance(node, CallFunction):
                found.handed.append((node.function, node.args))
            elif isinstance(node, Launch):
                found.handed.append((node.kernel, node.args))
        return found

    def written(self, known: Mapping[str, frozenset[int]]) -> frozenset[int]:
        """The places of the parameters, by what is known of the functions; of one that is not there, it may write all."""
        pointers = set(self.stored)
        for callee, args in self.handed:
            places = known.get(callee, range(len(args)))
            pointers.update(_handles(args[place] for place in places))
        reached = origins(pointers, self.sources)
        return frozenset(place for place, param in enumerate(self.parameters) if param in reached)


def _handles(args: Iterable[Expr]) -> Iterator[Var]:
    for arg in args:
        if arg.dtype.is_handle:
            yield from pointers_in(arg)
