"""What must be known of all functions before the first is written: who calls whom, who can fail, what to inline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gristmill.ir.expr import Call, CallExtern, CallFunction, CallPacked
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import Allocate, Assert, For, Launch, While
from gristmill_llvm.allocation import (
    CHAIN_STACK_BYTES,
    RECURSIVE_STACK_BYTES,
    STACK_BYTES,
    constant_bytes,
    fits_stack,
    stack_bytes,
)

INLINE_NODES = 600
"""Functions without loops up to this many nodes, those of their callees counted in, are always inlined: loops that
call them become vectors only then."""
INLINE_STACK_BYTES = 1 << 10
"""Functions with more than this on the stack are not: without optimisation each call would have a copy of its own."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What one walk over a function finds."""

    calls: tuple[str, ...]
    """Names of the functions that it calls, one for each call."""
    nodes: int
    has_loop: bool
    raises: bool
    """Whether it can fail by itself, for want of memory not counted."""
    buffers: tuple[Buffer, ...]
    """The buffers that it allocates, in order."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The functions of a module by name, what they do, and whom they call."""

    functions: Mapping[str, Function]
    summaries: Mapping[str, Summary]
    recursive: frozenset[str]
    """The functions that may call themselves."""
    stack_budgets: Mapping[str, int]
    """How many bytes of buffers each function may keep on the stack; those that it calls come first."""

    @classmethod
    def of(cls, module: Module) -> CallGraph:
        functions = {function.name: function for function in module.functions}
        summaries = {name: summarize(function) for name, function in functions.items()}
        recursive = frozenset(name for name in functions if name in _reachable(name, summaries))
        return cls(functions, summaries, recursive, _stack_budgets(summaries, recursive))

    def failing(self) -> frozenset[str]:
        """The functions that may leave with an error: by themselves, or because a callee does."""
        found = {name for name, summary in self.summaries.items() if summary.raises or self._may_lack_memory(name)}
        grown = True
        while grown:
            more = {name for name, summary in self.summaries.items() if found.intersection(summary.calls)} - found
            found |= more
            grown = bool(more)
        return frozenset(found)

    def _may_lack_memory(self, name: str) -> bool:
        """Whether some buffer does not go onto the stack, so that there may be no memory for it."""
        used = 0
        for buffer in self.summaries[name].buffers:
            if not fits_stack(buffer, used, self.stack_budgets[name]):
                return True
            used += constant_bytes(buffer) or 0
        return False

    def always_inlined(self) -> frozenset[str]:
        """Private functions that are small, have no loop and do not call themselves (see :data:`INLINE_NODES`).

        Never what the packed interface calls: its code stays unoptimised, and what is inlined into it would too.
        """
        interface = {
            called
            for name, summary in self.summaries.items()
            if self.functions[name].facts.convention is CallingConvention.PACKED_HOST
            for called in summary.calls
        }
        sizes: dict[str, int] = {}
        for start in self.functions:
            # Callees first, with an explicit stack: a chain of calls may be long.
            stack = [start]
            while stack:
                name = stack[-1]
                summary = self.summaries[name]
                too_large = summary.has_loop or name in self.recursive or summary.nodes > INLINE_NODES
                waiting = [] if too_large else [called for called in summary.calls if called not in sizes]
                if waiting:
                    stack.extend(waiting)
                    continue
                stack.pop()
                if too_large:
                    sizes[name] = INLINE_NODES + 1
                else:
                    sizes[name] = summary.nodes + sum(sizes[called] for called in summary.calls)
        return frozenset(
            name
            for name, size in sizes.items()
            if size <= INLINE_NODES
            and self._is_private(name)
            and name not in interface
            and stack_bytes(self.summaries[name].buffers, self.stack_budgets[name]) <= INLINE_STACK_BYTES
        )

    def _is_private(self, name: str) -> bool:
        facts = self.functions[name].facts
        return facts.symbol is None and facts.convention is CallingConvention.PLAIN


def summarize(function: Function) -> Summary:
    """Walk over the function once."""
    calls: list[str] = []
    buffers: list[Buffer] = []
    count, has_loop, raises = 0, False, False
    for node in walk(function.body):
        count += 1
        if isinstance(node, CallFunction):
            calls.append(node.function)
        elif isinstance(node, Allocate):
            buffers.append(node.buffer)
        elif isinstance(node, (For, While)):
            has_loop = True
        elif isinstance(node, (Assert, CallPacked, CallExtern, Launch)) or (
            isinstance(node, Call) and node.op.name == "context_device_id"
        ):
            raises = True
    return Summary(tuple(calls), count, has_loop, raises, tuple(buffers))


def _stack_budgets(summaries: Mapping[str, Summary], recursive: frozenset[str]) -> dict[str, int]:
    budgets: dict[str, int] = {}
    taken: dict[str, int] = {}
    for start in summaries:
        # Callees first, with an explicit stack; a call back to a function that is begun counts for nothing.
        stack = [start] if start not in taken else []
        begun = set(stack)
        while stack:
            name = stack[-1]
            called = next(
                (called for called in summaries[name].calls if called not in taken and called not in begun), None
            )
            if called is not None:
                begun.add(called)
                stack.append(called)
                continue
            below = max((taken.get(called, 0) for called in summaries[name].calls), default=0)
            most = RECURSIVE_STACK_BYTES if name in recursive else STACK_BYTES
            budgets[name] = max(0, min(most, CHAIN_STACK_BYTES - below))
            taken[name] = below + stack_bytes(summaries[name].buffers, budgets[name])
            stack.pop()
    return budgets


def _reachable(start: str, summaries: Mapping[str, Summary]) -> set[str]:
    """The functions that a function calls, directly or through others; itself only if it is recursive."""
    found: set[str] = set()
    waiting = list(summaries[start].calls)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(summaries[name].calls)
    return found
