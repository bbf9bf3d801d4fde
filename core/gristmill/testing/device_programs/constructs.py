"""Counting what of devices occurs in programs, and the list of what must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.effects import is_exchange
from gristmill.ir.functor import children, walk
from gristmill.ir.memory import Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.op import WARP
from gristmill.testing.device_programs.program import with_serial_reductions
from gristmill.testing.programs.constructs import count_constructs
from gristmill.testing.programs.generator import CPU_DTYPES


def required_device_constructs(exchanges: bool = False) -> tuple[str, ...]:
    """What must occur in enough programs for devices, perhaps those with ``exchanges``; none of it may be missing."""
    axes = [f"{axis.value} loop" for axis in s.ThreadAxis]
    scopes = [f"{scope.value} memory" for scope in (Scope.SHARED, Scope.SHARED_DYNAMIC, Scope.LOCAL)]
    barriers = [f"barrier {scope.value}" for scope in (s.BarrierScope.BLOCK, s.BarrierScope.BLOCK_AND_GLOBAL)]
    places = ["shared memory outside of the launch", "shared memory in a thread", "shared memory in a block of threads"]
    host = ["launch in host loop", "launch in host branch", "return of the host", "device temporary", "host scalar"]
    host += ["function with launches", "helper in a thread", "helper on the host", "several launches", "assert"]
    shapes = [
        "symbolic extent",
        "constant extent",
        "extent by a name",
        "guard",
        "barrier in loop",
        "return of a thread",
    ]
    shapes += ["reduction over threads", "reduction with predicate", "two axes of blocks", "blocks in threads"]
    found = (*axes, *scopes, *barriers, *places, *host, *shapes)
    if not exchanges:
        return found
    values = [f"exchange of {dtype}" for dtype in CPU_DTYPES]
    return (*found, *(op.name for op in WARP), *values, "exchange in loop", "exchange in branch", "lane of each thread")


def count_device_constructs(modules: Iterable[Module]) -> Counter[str]:
    """How often each construct occurs in the modules: those of plain programs, and those of devices."""
    modules = list(modules)
    found = count_constructs(modules)
    for module in modules:
        for function in module.functions:
            _Counting(found, function).run()
        found["reduction over threads"] += sum(
            one is not other
            for one, other in zip(module.functions, with_serial_reductions(module).functions, strict=True)
        )
    return found


class _Counting:
    def __init__(self, found: Counter[str], function: Function) -> None:
        self.found = found
        self.function = function

    def run(self) -> None:
        launches = 0
        stack: list[tuple[s.Stmt, tuple[s.Stmt, ...]]] = [(self.function.body, ())]
        while stack:
            node, around = stack.pop()
            threads = [outer for outer in around if _is_thread_loop(outer)]
            launches += _is_thread_loop(node) and not threads
            self.statement(node, around, threads)
            inner = (*around, node)
            for child in children(node):
                if isinstance(child, s.Stmt):
                    stack.append((child, inner))
                elif isinstance(child, e.Expr):
                    calls = sum(
                        isinstance(part, e.CallFunction) and part.type.code.value != "void" for part in walk(child)
                    )
                    self.found["helper in a thread" if threads else "helper on the host"] += calls
        self.found["several launches"] += launches > 1
        self.found["function with launches"] += launches > 0 and not self.function.is_public

    def statement(self, node: s.Stmt, around: tuple[s.Stmt, ...], threads: list[s.Stmt]) -> None:
        found = self.found
        if isinstance(node, s.For) and node.thread is not None:
            self.thread_loop(node, around, threads)
        elif isinstance(node, s.Allocate):
            scope = node.buffer.scope
            found[f"{scope.value} memory"] += 1
            if scope in (Scope.SHARED, Scope.SHARED_DYNAMIC):
                inside = ("outside of the launch", "in a block of threads", "in a thread")[min(len(threads), 2)]
                found[f"shared memory {inside}"] += 1
            found["device temporary"] += scope is Scope.GLOBAL and not threads
            found["host scalar"] += scope is Scope.LOCAL and not threads and self.function.is_public
        elif isinstance(node, s.Bind):
            self.exchange(node.value, around)
        elif isinstance(node, s.Barrier):
            found[f"barrier {node.scope.value}"] += 1
            found["barrier in loop"] += any(isinstance(a, s.For) and a.kind is s.LoopKind.SERIAL for a in around)
        elif isinstance(node, s.Return):
            if self.function.is_public:
                found["return of a thread" if threads else "return of the host"] += any(
                    isinstance(outer, s.If) for outer in around
                )
        elif isinstance(node, s.If):
            found["guard"] += bool(threads) and _is_thread_loop(_last_but_names(around))
        elif isinstance(node, s.Block):
            found["reduction with predicate"] += node.predicate is not None and bool(threads)
        elif isinstance(node, s.Assert):
            found["assert"] += 1

    def exchange(self, node: e.Expr, around: tuple[s.Stmt, ...]) -> None:
        if not isinstance(node, e.Call) or not is_exchange(node):
            return
        found = self.found
        found[node.op.name] += 1
        if node.op.name.startswith("warp_shuffle"):
            found[f"exchange of {node.dtype}"] += 1
            found["lane of each thread"] += not isinstance(node.args[1], e.IntImm)
        found["exchange in loop"] += any(isinstance(a, s.For) and a.kind is s.LoopKind.SERIAL for a in around)
        found["exchange in branch"] += any(isinstance(a, s.If) for a in around)

    def thread_loop(self, node: s.For, around: tuple[s.Stmt, ...], threads: list[s.Stmt]) -> None:
        found = self.found
        axis = node.thread
        assert axis is not None
        found[f"{axis.value} loop"] += 1
        if isinstance(node.extent, e.IntImm):
            found["constant extent"] += 1
        else:
            found["symbolic extent"] += 1
            found["extent by a name"] += isinstance(node.extent, e.Var) and node.extent not in self.function.sizes
        outer = threads[-1] if threads else None
        if isinstance(outer, s.For) and outer.thread is not None and axis.is_block:
            found["two axes of blocks" if outer.thread.is_block else "blocks in threads"] += 1
        if not threads:
            found["launch in host loop"] += any(isinstance(a, s.For) for a in around)
            found["launch in host branch"] += any(isinstance(a, s.If) for a in around)


def _is_thread_loop(node: s.Stmt | None) -> bool:
    return isinstance(node, s.For) and node.kind is s.LoopKind.THREAD


def _last_but_names(around: tuple[s.Stmt, ...]) -> s.Stmt | None:
    """What a statement directly stands in, sequences aside."""
    return next((outer for outer in reversed(around) if not isinstance(outer, s.Seq)), None)
