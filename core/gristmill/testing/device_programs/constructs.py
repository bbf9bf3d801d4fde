"""Counting what of devices occurs in programs, and the list of what must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.effects import atomic_element, is_exchange
from gristmill.ir.functor import children, walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.op import WARP
from gristmill.testing.device_programs.program import with_serial_reductions
from gristmill.testing.programs.constructs import count_constructs
from gristmill.testing.programs.generator import CPU_DTYPES


def required_device_constructs(exchanges: bool = False) -> tuple[str, ...]:
    """What must occur in enough programs for devices, perhaps those with ``exchanges``; none of it may be missing."""
    axes = [f"{axis.value} loop" for axis in s.ThreadAxis]
    scopes = [f"{scope.value} memory" for scope in (Scope.SHARED, Scope.SHARED_DYNAMIC, Scope.LOCAL, Scope.WARP)]
    barriers = [f"barrier {scope.value}" for scope in s.BarrierScope]
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
    shapes += ["reduction over two axes", "reduction over two axes of threads", "two dynamic memories in a launch"]
    shapes += ["assert in a thread", "temporary in host loop", "temporary in host branch", "return before a barrier"]
    together = ["barrier in a function", "barriers in loop of a function", "shared memory of a function"]
    together += ["function that takes shared memory", "return of a function with barriers", "function in a function"]
    together += [
        "call with barriers in a loop",
        "call with barriers in a branch",
        "call with barriers in an expression",
    ]
    shapes += ["atomic operation on global memory", "atomic operation on shared memory"]
    found = (*axes, *scopes, *barriers, *places, *host, *shapes, *together)
    if not exchanges:
        return found
    values = [f"exchange of {dtype}" for dtype in CPU_DTYPES]
    return (*found, *(op.name for op in WARP), *values, "exchange in loop", "exchange in branch", "lane of each thread")


def count_device_constructs(modules: Iterable[Module]) -> Counter[str]:
    """How often each construct occurs in the modules: those of plain programs, and those of devices."""
    modules = list(modules)
    found = count_constructs(modules)
    for module in modules:
        waiting = {function.name for function in module.functions if _waits(function)}
        for function in module.functions:
            _Counting(found, function, waiting).run()
        found["reduction over threads"] += sum(
            one is not other
            for one, other in zip(module.functions, with_serial_reductions(module).functions, strict=True)
        )
    return found


def _waits(function: Function) -> bool:
    """Whether it is a function of threads with barriers."""
    nodes = list(walk(function.body))
    return any(isinstance(node, s.Barrier) for node in nodes) and not any(map(_is_thread_loop, nodes))


class _Counting:
    def __init__(self, found: Counter[str], function: Function, waiting: Collection[str]) -> None:
        self.found = found
        self.function = function
        self.waiting = waiting
        """The names of functions of threads with barriers."""

    def run(self) -> None:
        launches = 0
        if self.function.name in self.waiting:
            self.function_of_threads()
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
                        isinstance(part, e.CallFunction)
                        and part.type.code.value != "void"
                        and part.function not in self.waiting
                        for part in walk(child)
                    )
                    self.found["helper in a thread" if threads else "helper on the host"] += calls
                    if threads:
                        self.calls(child, node, around)
            if _is_thread_loop(node) and not threads:
                self.launch(node)
        self.found["several launches"] += launches > 1
        self.found["function with launches"] += launches > 0 and not self.function.is_public

    def function_of_threads(self) -> None:
        found, function = self.found, self.function
        nodes = list(walk(function.body))
        found["barrier in a function"] += 1
        found["barriers in loop of a function"] += any(
            isinstance(node, s.For) and any(isinstance(part, s.Barrier) for part in walk(node)) for node in nodes
        )
        found["shared memory of a function"] += any(
            isinstance(node, s.Allocate) and node.buffer.scope is Scope.SHARED for node in nodes
        )
        found["function that takes shared memory"] += any(
            isinstance(param, Buffer) and param.scope is Scope.SHARED for param in function.params
        )
        found["return of a function with barriers"] += sum(isinstance(node, s.Return) for node in nodes) > 1
        found["function in a function"] += any(self.is_call(node) for node in nodes)

    def is_call(self, node: object) -> bool:
        return isinstance(node, e.CallFunction) and node.function in self.waiting

    def calls(self, expr: e.Expr, stmt: s.Stmt, around: tuple[s.Stmt, ...]) -> None:
        """Calls of functions with barriers in an expression of a thread."""
        if not any(map(self.is_call, walk(expr))):
            return
        self.found["call with barriers in an expression"] += not self.is_call(expr)
        self.found["call with barriers in a loop"] += any(
            isinstance(outer, s.For) and not _is_thread_loop(outer) for outer in _inside_launch(around)
        )
        self.found["call with barriers in a branch"] += any(isinstance(a, s.If) for a in _inside_launch(around))

    def launch(self, node: s.Stmt) -> None:
        """What a launch has as a whole."""
        parts = list(walk(node))
        dynamic = [part for part in parts if isinstance(part, s.Allocate) and part.buffer.scope is Scope.SHARED_DYNAMIC]
        self.found["two dynamic memories in a launch"] += len(dynamic) > 1
        places = [
            number
            for number, part in enumerate(parts)
            if isinstance(part, s.If) and any(isinstance(inner, s.Return) for inner in walk(part))
        ]
        barriers = [number for number, part in enumerate(parts) if isinstance(part, s.Barrier)]
        self.found["return before a barrier"] += bool(places and barriers) and places[0] < barriers[-1]

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
            if scope is Scope.GLOBAL and not threads:
                found["device temporary"] += 1
                found["temporary in host loop"] += any(isinstance(a, s.For) for a in around)
                found["temporary in host branch"] += any(isinstance(a, s.If) for a in around)
            found["host scalar"] += scope is Scope.LOCAL and not threads and self.function.is_public
        elif isinstance(node, s.Bind):
            self.exchange(node.value, around)
        elif isinstance(node, s.Evaluate):
            self.atomic(node.value, threads)
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
            reduced = [axis for axis in node.axes if axis.kind is s.AxisKind.REDUCE]
            if threads and len(reduced) > 1:
                over = [loop for loop in threads if isinstance(loop, s.For) and not loop.thread.is_block]  # type: ignore[union-attr]
                found["reduction over two axes"] += 1
                found["reduction over two axes of threads"] += len(over) > 1
        elif isinstance(node, s.Assert):
            found["assert"] += 1
            found["assert in a thread"] += bool(threads)
            found["assert outside of launches"] += not threads and self.function.is_public

    def atomic(self, node: e.Expr, threads: list[s.Stmt]) -> None:
        element = atomic_element(node)
        if element is not None and threads:
            memory = "global" if element.buffer.scope is Scope.GLOBAL else "shared"
            self.found[f"atomic operation on {memory} memory"] += 1

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


def _is_thread_loop(node: object) -> bool:
    return isinstance(node, s.For) and node.kind is s.LoopKind.THREAD


def _inside_launch(around: tuple[s.Stmt, ...]) -> tuple[s.Stmt, ...]:
    """What of the statements around one stands in the launch."""
    first = next((number for number, outer in enumerate(around) if _is_thread_loop(outer)), len(around))
    return around[first:]


def _last_but_names(around: tuple[s.Stmt, ...]) -> s.Stmt | None:
    """What a statement directly stands in, sequences aside."""
    return next((outer for outer in reversed(around) if not isinstance(outer, s.Seq)), None)
