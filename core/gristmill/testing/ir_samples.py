"""Modules to test what handles IR: one that has every node class in it, also with spans. All are verified IR.

They mean nothing in particular, and are not made to be run; :mod:`gristmill.testing.random_ir` makes random ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gristmill.ir import dtype as d
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import call, const, equal, true
from gristmill.ir.functor import Mutator
from gristmill.ir.memory import Buffer, PointerType, Range, Region, Scope
from gristmill.ir.module import CallingConvention, Extern, Function, FunctionFacts, LaunchParameters, Module
from gristmill.ir.node import Node
from gristmill.ir.span import Span
from gristmill.ir.stmt import LoopHints, LoopKind, ThreadAxis
from gristmill.ir.target import Target


def index(value: int) -> e.Expr:
    """An int64 constant."""
    return const(value, d.INT64)


def new_buffer(
    name: str, dtype: d.DType, shape: tuple[e.Expr, ...], scope: Scope = Scope.GLOBAL, **more: Any
) -> Buffer:
    """A buffer with a data variable of its own."""
    data = e.Var(f"{name}_data", d.HANDLE, PointerType(dtype, scope))
    return Buffer(name, dtype, shape, data, scope=scope, **more)


def every_node() -> Module:
    """A module in which every node class occurs, with every field set somewhere."""
    functions = (_operators(), _memory(), _control(), _blocks(), _kernel(), _declared(), _host(), _regions(), _helper())
    return Module(functions, (Extern("tuned_sum", "acme"), Extern("other", "acme numerics")))


def _operators() -> Function:
    a, b = e.Var("a", d.INT32), e.Var("b", d.INT32)
    x, flag = e.Var("x", d.FLOAT32), e.Var("flag", d.BOOL)
    integers = (e.Add, e.Sub, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.Min, e.Max)
    bits = (e.BitAnd, e.BitOr, e.BitXor, e.ShiftLeft, e.ShiftRight)
    values: list[e.Expr] = [kind(a, b) for kind in (*integers, *bits)]
    values += [kind(a, b) for kind in (e.Equal, e.NotEqual, e.Less, e.LessEqual, e.Greater, e.GreaterEqual)]
    values += [e.And(flag, e.Not(flag)), e.Or(e.And(flag, true()), flag), e.Not(e.Or(flag, flag))]
    values += [e.Negate(a), e.Negate(const(1, d.INT32)), e.Negate(const(-1.5, d.FLOAT64)), e.Negate(e.Negate(x))]
    values += [e.BitNot(a), e.Select(flag, a, b), e.IfThenElse(flag, x, const(-0.0, d.FLOAT32))]
    values += [e.Cast(d.BFLOAT16, x), e.Reinterpret(d.UINT32, x), e.Sub(a, e.Sub(b, e.Add(a, b)))]
    values += [e.Mul(e.Add(a, b), e.FloorDiv(a, e.Mul(a, b))), e.Equal(e.Less(a, b), e.Not(flag))]
    ramp = e.Ramp(a, const(2, d.INT32), 4)
    values += [ramp, e.Broadcast(x, 8), e.Shuffle((ramp, a), (4, 0, 3)), e.Shuffle((ramp,), (2,))]
    values += [call("exp", x), call("isnan", x), call("pow", x, x), call("popcount", a)]
    values += [const(value, d.FLOAT32) for value in (0.1, 1e-45, 3.4028234663852886e38, float("inf"), float("nan"))]
    values += [const(value, d.FLOAT16) for value in (0.1, 6e-8, 65504.0, float("-inf"))]
    values += [const(value, d.FLOAT64) for value in (0.1, 5e-324, 1e300, 100.0, 1e22)]
    values += [const(0.1, d.BFLOAT16), const(1, d.UINT64) - 2, const(-128, d.INT8), e.IntImm(0, d.BOOL)]
    body = [s.Bind(e.Var("v", value.dtype), value) for value in values]
    return Function("operators", (a, b, x, flag), (), d.INT32, s.Seq((*body, s.Return(a))))


def _memory() -> Function:
    n, m, data = e.Var("n", d.INT64), e.Var("m", d.INT64), e.Var("raw", d.HANDLE)
    whole = new_buffer("A", d.FLOAT32, (n, m + 1), strides=(m * 2, index(1)), offset=m, alignment=64)
    last = e.Var("m", d.INT32)
    late = new_buffer("B", d.FLOAT32.with_lanes(4), (e.Cast(d.INT64, last),))
    local = new_buffer("tile", d.INT8, (index(4), index(8)), Scope.LOCAL)
    scalar = new_buffer("total", d.FLOAT64, (), Scope.LOCAL)
    same = Buffer("bytes", d.UINT8, (n,), whole.data)
    pointer = e.Var("p", d.HANDLE, PointerType(d.INT32))
    other = new_buffer("other", d.INT32, (n,))
    untyped = Buffer("untyped", d.INT32, (n,), e.Var("bare", d.HANDLE))
    i = e.Var("i", d.INT64)
    body = s.Seq(
        (
            s.Allocate(local),
            s.Allocate(scalar),
            s.View(same),
            s.View(other, e.AddressOf(whole, (index(0), index(1)))),
            s.View(untyped, data),
            s.Bind(pointer, e.AddressOf(other, (index(3),))),
            s.Store(scalar, (), const(1.0, d.FLOAT64)),
            s.Store(local, (index(1), e.Ramp(index(0), index(1), 4)), e.Broadcast(const(7, d.INT8), 4)),
            s.Store(late, (index(0),), e.Load(late, (index(1),)) * 2.0),
            s.Store(other, (index(0),), e.Cast(d.INT32, e.Load(scalar, ()))),
            s.For(i, index(0), n, LoopKind.SERIAL, s.Store(same, (i,), const(255, d.UINT8))),
            s.Evaluate(e.CallFunction("helper", (e.BufferRef(other), i_less(n)), d.FLOAT32)),
            s.Evaluate(e.CallExtern("tuned_sum", (e.AddressOf(other, (index(0),)), pointer), d.VOID)),
        )
    )
    return Function("memory", (whole, late, last, data), (n, m), d.VOID, body, FunctionFacts(no_alias=True))


def i_less(n: e.Expr) -> e.Expr:
    return e.Select(e.Less(n, index(4)), n, index(4))


def _control() -> Function:
    n, limit = e.Var("n", d.INT64), e.Var("limit", d.FLOAT32)
    x = new_buffer("x", d.FLOAT32, (n,))
    i, j, k, u = (e.Var(name, d.INT64) for name in "ijiu")
    less = e.Less(e.Load(x, (i,)), limit)
    chain = s.If(less, s.Break(), s.If(e.Not(less), s.Continue(), s.Seq((s.Evaluate(i), s.Evaluate(limit)))))
    inner = s.For(j, i, n - i, LoopKind.UNROLLED, chain, hints=LoopHints(4, 8, False))
    vector = s.For(k, index(0), index(16), LoopKind.VECTORIZED, s.Store(x, (k,), limit))
    tasks = s.For(u, index(0), n, LoopKind.PARALLEL, s.Seq(()), hints=LoopHints(vectorize=True, independent=True))
    body = s.Seq(
        (
            s.Assert(e.Greater(n, index(0)), "ValueError", ("n is ", n, ', not "positive"\n')),
            s.Assert(true(), "TypeError", ()),
            s.For(i, index(0), n, LoopKind.SERIAL, s.Seq((inner,))),
            vector,
            tasks,
            s.While(true(), s.Seq((s.If(less_than(limit), s.Break()), s.Continue()))),
            s.If(true(), s.Seq(()), s.Seq(())),
            s.Return(),
        )
    )
    signature = 'control(x: Tensor[("n",), float32], limit: float32)'
    target = Target("cpu", "x86-64-v3", ("avx2",), (("fast", True), ("size", 3), ("scale", 0.5), ("name", "a b")))
    summary = 'Counts "up"; \u00e4.'
    facts = FunctionFacts(
        "control", target=target, fast_math=True, release_gil=False, signature=signature, summary=summary
    )
    return Function("control", (x, limit), (n,), d.VOID, body, facts)


def less_than(limit: e.Expr) -> e.Expr:
    return e.Less(limit, const(0.5, d.FLOAT32))


def _blocks() -> Function:
    n = e.Var("n", d.INT64)
    a = new_buffer("A", d.FLOAT32, (n, index(16)))
    c = new_buffer("C", d.FLOAT32, (n,))
    i, k, vi, vk = (e.Var(name, d.INT64) for name in ("i", "k", "vi", "vk"))
    temporary = new_buffer("T", d.FLOAT32, (index(16),), Scope.SHARED)
    row = Buffer("row", d.FLOAT32, (index(16),), e.Var("row_data", d.HANDLE, PointerType(d.FLOAT32)), offset=vi)
    region = Region(a, (Range(vi, index(1)), Range(index(0), index(16))))
    one = Region(c, (Range(vi, index(1)),))
    block = s.Block(
        "sum",
        (
            s.BlockAxis(vi, Range(index(0), n), s.AxisKind.SPATIAL, i),
            s.BlockAxis(vk, Range(index(0), index(16)), s.AxisKind.REDUCE, k),
        ),
        e.Less(i, n),
        (region, one),
        (one,),
        (temporary,),
        (s.MatchBuffer(row, region),),
        s.Store(c, (vi,), const(0.0, d.FLOAT32)),
        s.Store(c, (vi,), e.Load(c, (vi,)) + e.Load(row, (vk,))),
    )
    bare = s.Block("bare", (), None, None, (), (), (), None, s.Seq(()))
    loops = s.For(i, index(0), n, LoopKind.SERIAL, s.For(k, index(0), index(16), LoopKind.SERIAL, s.Seq((block, bare))))
    return Function("blocks", (a, c), (n,), d.VOID, loops, FunctionFacts("blocks", target=Target("Not A Target")))


def _kernel() -> Function:
    n = e.Var("n", d.INT64)
    x = Buffer("x", d.FLOAT32, (n,), e.Var("x_pointer", d.HANDLE))
    shared = new_buffer("shared", d.FLOAT32, (n,), Scope.SHARED_DYNAMIC)
    b, t = e.Var("b", d.INT32), e.Var("t", d.INT32)
    inside = s.Seq(
        (
            s.Store(x, (e.Cast(d.INT64, t),), const(1.0, d.FLOAT32)),
            s.Barrier(s.BarrierScope.BLOCK),
            s.Barrier(s.BarrierScope.BLOCK_AND_GLOBAL),
            s.Barrier(s.BarrierScope.WARP),
        )
    )
    threads = s.For(t, const(0, d.INT32), const(64, d.INT32), LoopKind.THREAD, inside, ThreadAxis.THREAD_X)
    blocks = s.For(b, const(0, d.INT32), const(8, d.INT32), LoopKind.THREAD, threads, ThreadAxis.BLOCK_X)
    facts = FunctionFacts(
        convention=CallingConvention.DEVICE_KERNEL,
        target=Target("vulkan"),
        launch=LaunchParameters((ThreadAxis.BLOCK_X, ThreadAxis.THREAD_X), True),
    )
    return Function("kernel", (n, x), (), d.VOID, s.Seq((s.Allocate(shared), blocks)), facts)


def _declared() -> Function:
    launch = LaunchParameters((ThreadAxis.BLOCK_X,))
    facts = FunctionFacts("declared", CallingConvention.DEVICE_KERNEL, Target("vulkan"), launch, declaration=True)
    return Function("declared", (e.Var("n", d.INT64),), (), d.VOID, s.Seq(()), facts)


def _regions() -> Function:
    n = e.Var("n", d.INT64)
    x = new_buffer("x", d.FLOAT32, (n,))
    i, t, size = e.Var("i", d.INT64), e.Var("t", d.INT64), e.Var("size", d.INT64)
    store = s.Store(x, (t,), const(2.0, d.FLOAT32))
    threads = s.For(t, index(0), size, LoopKind.THREAD, store, ThreadAxis.THREAD_Y)
    target = Target("vulkan", "1.2", ("float16",), (("subgroup", 32),))
    region = s.DeviceRegion(s.Seq((s.Bind(size, n + 1), threads)), target)
    one = s.DeviceRegion(s.Store(x, (index(0),), const(1.0, d.FLOAT32)), Target("reference"))
    body = s.Seq((s.For(i, index(0), n, LoopKind.SERIAL, region), one, s.DeviceRegion(s.Seq(()), Target("reference"))))
    return Function("regions", (x,), (n,), d.VOID, body)


def _host() -> Function:
    handles = [e.Var(name, d.HANDLE) for name in ("self", "args", "result")]
    count = e.Var("count", d.INT32)
    tensor, n = e.Var("tensor", d.HANDLE), e.Var("n", d.INT64)
    view = new_buffer("x", d.FLOAT32, (n,))
    zero, axes = const(0, d.INT32), (ThreadAxis.BLOCK_X, ThreadAxis.THREAD_X)
    body = s.Seq(
        (
            s.Assert(
                equal(count, 1), "TypeError", ("not ", call("packed_kind_text", handles[1], zero, dtype=d.HANDLE))
            ),
            s.Bind(tensor, call("packed_tensor", handles[1], zero, dtype=d.HANDLE)),
            s.Bind(n, call("tensor_size", tensor, zero, dtype=d.INT64)),
            s.View(view, call("tensor_data", tensor, dtype=d.HANDLE)),
            s.Launch("kernel", (n, e.BufferRef(view)), axes, (n, index(64)), index(256)),
            s.Launch("kernel", (n, e.BufferRef(view)), axes, (n, n), n, handles[0]),
            s.Evaluate(e.CallPacked("acme.report", (e.BufferRef(view), e.StringImm('a "text"\t\u00e9'), n), d.VOID)),
            s.Evaluate(call("packed_return", handles[2], n, dtype=d.VOID)),
            s.Return(zero),
        )
    )
    facts = FunctionFacts("entry", CallingConvention.PACKED_HOST)
    return Function("host", (handles[0], handles[1], count, handles[2]), (), d.INT32, body, facts)


def _helper() -> Function:
    n = e.Var("n", d.INT64)
    x = new_buffer("x", d.INT32, (n,))
    y = e.Var("y", d.INT64)
    return Function("helper", (x, y), (n,), d.FLOAT32, s.Return(const(1.0, d.FLOAT32)))


# Spans ----------------------------------------------------------------------------------------------------------------


class _Spans(Mutator):
    """Puts another span on every node, some inlined through others."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.variables: dict[e.Var, e.Var] = {}

    def next_span(self) -> Span:
        self.count += 1
        outer = Span.at("caller.py", self.count, 1, self.count, 9) if self.count % 5 == 0 else None
        return replace(Span.at("kernel \u00e9.py", self.count, 3, self.count + 1, 8), inlined_at=outer)

    def visit_Node(self, node: Node) -> Any:
        return replace(self.generic(node), span=self.next_span())  # type: ignore[type-var]

    visit_If = visit_Seq = visit_Node

    def visit_Var(self, node: e.Var) -> Any:
        if node not in self.variables:
            self.variables[node] = replace(node, span=self.next_span())
        return self.variables[node]

    def visit_Buffer(self, node: Buffer) -> Any:
        found = replace(self.generic(node), data=self.visit(node.data), span=self.next_span())
        self.buffers[node] = found
        return found


def with_spans(module: Module) -> Module:
    """The module with a span of its own on every node."""
    return _Spans().visit(module)  # type: ignore[no-any-return]
