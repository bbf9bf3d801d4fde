"""Counting what occurs in programs, and the list of what must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.dtype import DType
from gristmill.ir.functor import EXPRESSIONS, STATEMENTS, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.op import ATOMICS, BITS, DOT_PRODUCTS, HINTS, MATHEMATICS
from gristmill.testing.programs.generator import CPU_DTYPES

NOT_MADE = frozenset({"StringImm", "CallExtern", "CallPacked", "Barrier", "DeviceRegion", "Launch"})
"""Node classes that random programs do not have: calls out of the module, and devices."""


def required_constructs(dtypes: Iterable[DType] = CPU_DTYPES) -> tuple[str, ...]:
    """What must occur in enough programs of all constructs; none of it may be missing."""
    dtypes = tuple(dtypes)
    nodes = [kind.__name__ for kind in (*EXPRESSIONS, *STATEMENTS) if kind.__name__ not in NOT_MADE]
    operations = [f"op {op.name}" for op in (*MATHEMATICS, *BITS, *DOT_PRODUCTS, *HINTS, *ATOMICS)]
    types = [f"{dtype}" for dtype in dtypes]
    vectors = [f"vector of {dtype}" for dtype in dtypes]
    buffers = [f"buffer of {dtype}" for dtype in dtypes]
    casts = [f"cast {source} to {target}" for source in dtypes for target in dtypes if source != target]
    loops = [f"{kind.value} loop" for kind in s.LoopKind if kind is not s.LoopKind.THREAD]
    special = ["vector load", "vector store", "scattered load", "local scalar", "early return", "recursion"]
    special += ["symbolic size", "view of other type", "view by pointer", "view with strides", "block with reduction"]
    special += ["block with predicate", "block with match", "block with allocation", "helper with buffer", "loop hint"]
    special += ["result of int", "result of float", "result of bool", "result of void", "break in while"]
    special += [
        "constant zero divisor",
        "call in parallel loop",
        "branch in vectorized loop",
        "loop in vectorized loop",
    ]
    return (*nodes, *operations, *types, *vectors, *buffers, *casts, *loops, *special)


def count_constructs(modules: Iterable[Module]) -> Counter[str]:
    """How often each construct occurs in the modules."""
    found: Counter[str] = Counter()
    for module in modules:
        for function in module.functions:
            _Counting(found, function).run()
    return found


class _Counting:
    def __init__(self, found: Counter[str], function: Function) -> None:
        self.found = found
        self.function = function

    def run(self) -> None:
        function = self.function
        returns = function.returns
        kind = "float" if returns.is_float else "bool" if returns.is_bool else "void" if returns.is_void else "int"
        self.found[f"result of {kind}"] += 1
        self.found["symbolic size"] += len(function.sizes)
        for param in function.params:
            if isinstance(param, Buffer):
                self.buffer(param)
                self.found["helper with buffer"] += not function.is_public
        stack: list[tuple[s.Stmt, tuple[object, ...]]] = [(function.body, ())]
        while stack:
            node, around = stack.pop()
            self.statement(node, around)
            inner = (*around, node)
            for name in node.CHILDREN:
                value = getattr(node, name)
                for child in value if type(value) is tuple else (value,):
                    if isinstance(child, s.Stmt):
                        stack.append((child, inner))
                    elif isinstance(child, e.Expr):
                        self.expression(child, around)
                    elif isinstance(child, (s.BlockAxis, s.MatchBuffer)):
                        for part in walk(child):
                            if isinstance(part, e.Expr):
                                self.node(part, around)
        # Expressions that are not under a statement: sizes of parameters.

    def buffer(self, buffer: Buffer) -> None:
        self.found[f"buffer of {buffer.dtype}"] += 1

    def statement(self, node: s.Stmt, around: tuple[object, ...]) -> None:
        found = self.found
        found[type(node).__name__] += 1
        last = around[-1] if around else None
        in_vectorized = any(isinstance(outer, s.For) and outer.kind is s.LoopKind.VECTORIZED for outer in around)
        if isinstance(node, s.For):
            found[f"{node.kind.value} loop"] += 1
            found["loop hint"] += node.hints != s.LoopHints()
        found["branch in vectorized loop"] += in_vectorized and isinstance(node, s.If)
        found["loop in vectorized loop"] += in_vectorized and isinstance(node, (s.For, s.While))
        if isinstance(node, s.Allocate):
            self.buffer(node.buffer)
            found["local scalar"] += not node.buffer.shape
        elif isinstance(node, s.View):
            found["view by pointer"] += node.source is not None
            found["view with strides"] += bool(node.buffer.strides)
            pointer = node.buffer.data.pointer
            found["view of other type"] += pointer is not None and pointer.element != node.buffer.dtype
        elif isinstance(node, s.Store):
            found["vector store"] += bool(node.indices) and node.indices[-1].dtype.is_vector
        elif isinstance(node, s.Return):
            found["early return"] += last is not None and any(isinstance(outer, (s.If, s.For)) for outer in around)
        elif isinstance(node, s.Block):
            found["block with reduction"] += any(axis.kind is s.AxisKind.REDUCE for axis in node.axes)
            found["block with predicate"] += node.predicate is not None
            found["block with match"] += bool(node.matches)
            found["block with allocation"] += bool(node.allocations)
        elif isinstance(node, s.Break):
            loops = [outer for outer in around if isinstance(outer, (s.For, s.While))]
            found["break in while"] += isinstance(loops[-1], s.While)

    def expression(self, root: e.Expr, around: tuple[object, ...]) -> None:
        for node in walk(root):
            if isinstance(node, e.Expr):
                self.node(node, around)

    def node(self, node: e.Expr, around: tuple[object, ...]) -> None:
        found = self.found
        found[type(node).__name__] += 1
        dtype = node.dtype
        found[f"vector of {dtype.element}" if dtype.is_vector else f"{dtype}"] += 1
        if isinstance(node, e.Call):
            found[f"op {node.op.name}"] += 1
        elif isinstance(node, e.Cast):
            found[f"cast {node.value.dtype.element} to {node.type.element}"] += 1
        elif isinstance(node, e.Load):
            if node.indices and node.indices[-1].dtype.is_vector:
                found["vector load"] += 1
                found["scattered load"] += not isinstance(node.indices[-1], e.Ramp)
        elif isinstance(node, e.CallFunction):
            found["recursion"] += node.function == self.function.name
            parallel = any(isinstance(outer, s.For) and outer.kind is s.LoopKind.PARALLEL for outer in around)
            found["call in parallel loop"] += parallel
        elif isinstance(node, (e.Div, e.Mod, e.FloorDiv, e.FloorMod)):
            found["constant zero divisor"] += isinstance(node.b, e.IntImm) and node.b.value == 0
