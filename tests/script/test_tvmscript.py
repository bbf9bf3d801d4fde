"""Kernels in TVM's dialect: every form of the accepted subset is read, verified, and survives the text form."""

import pytest

from gristmill.errors import UserError
from gristmill.ir import expr, stmt
from gristmill.ir.dtype import FLOAT32, INT32, INT64
from gristmill.ir.equal import first_difference
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_node
from gristmill.ir.verify import check
from gristmill.script import parse_source


def read(text, **options):
    parsed = parse_source(text, "kernel.py", dialect="tvmscript", **options)
    check(parsed.module)
    assert first_difference(parsed.module, parse_module(print_node(parsed.module))) is None
    return parsed.module


def nodes(module, kind):
    return [node for function in module.functions for node in walk(function) if isinstance(node, kind)]


CLASSIC = "from tvm.script import tir as T, ir as I\nimport tvm\n"
NEW = "from tvm.script import tirx as T, ir as I\n"

KERNELS = {
    "buffer arguments": NEW
    + """
@T.prim_func
def f(a: T.Buffer((8,), "float32", strides=(1,), elem_offset=0, scope="global", align=64), b: T.Buffer(8, "int32")):
    a[0] = T.Cast("float32", b[0])
""",
    "pointer arguments": NEW
    + """
@T.prim_func
def f(a: T.handle, p: T.handle("float32", "global"), n: T.int32):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    P = T.decl_buffer((16,), "float32", data=p)
    for i, j in T.grid(m, n):
        A[i, j] = P[j % 16]
""",
    "launches as statements": NEW
    + """
@T.prim_func
def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    T.func_attr({"target": T.target("cuda"), "tirx.noalias": True})
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    B[bx * 64 + tx] = A[bx * 64 + tx] * T.float32(2)
""",
    "launches by with": CLASSIC
    + """
@T.prim_func
def f(A: T.Buffer((128,), "float32")):
    bx = T.env_thread("blockIdx.x")
    tx = T.env_thread("threadIdx.x")
    with T.launch_thread(bx, 2), T.launch_thread(tx, 64):
        A[bx * 64 + tx] = T.float32(1)
    with T.launch_thread("threadIdx.y", 4) as ty:
        A[ty] = T.float32(2)
""",
    "thread bindings": NEW
    + """
@T.prim_func
def f(A: T.Buffer((128,), "float32")):
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(0, 64, "threadIdx.x"):
            A[i * 64 + j] = T.float32(0)
""",
    "thread extents as attributes": CLASSIC
    + """
@T.prim_func
def f(A: T.Buffer((128,), "float32")):
    tx = T.env_thread("threadIdx.x")
    T.attr(tx, "thread_extent", 128)
    A[tx] = T.float32(0)
""",
    "loops": NEW
    + """
@T.prim_func
def f(A: T.Buffer((16, 16), "int32"), n: T.int32):
    for i, j in T.grid(16, 16):
        A[i, j] = i * 16 + j
    for i in T.serial(0, n, step=2):
        A[i, 0] = 1
    for i in T.serial(2, 16):
        A[i, 1] = 1
    for i in T.parallel(16):
        A[i, 2] = 2
    for i in T.unroll(4):
        A[i, 3] = 3
    for i in T.vectorized(16):
        A[5, i] = 4
    for i in range(16):
        if i == 3:
            continue
        elif i > 7 and not i == 9 or n < 0:
            break
        else:
            A[i, 4] = 5
    i: T.int32 = 0
    while i < n:
        i = i + 1
    A[0, 0] = i
""",
    "mutable scalars": NEW
    + """
@T.prim_func
def f(out: T.Buffer((1,), "int32")):
    v = 0
    w: T.int32 = 1
    for i in range(17):
        v = v + w
    out[0] = v
""",
    "bindings": NEW
    + """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), n: T.int32):
    v: T.let[T.int32] = n + 1
    w = T.bind(v * 2)
    A[0] = v + w
""",
    "classic bindings": CLASSIC
    + """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), n: T.int32):
    with T.LetStmt(n + 1) as v:
        A[0] = v
""",
    "expressions": NEW
    + """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32"), H: T.Buffer((8,), "float16")):
    A[0] = T.if_then_else(B[0] > 0, A[1], A[2])
    A[1] = T.Select(B[0] > 0, A[1], A[2])
    A[2] = T.max(T.min(A[1], A[2]), A[3])
    B[0] = T.Cast("int32", A[0])
    B[1] = T.cast(A[0], "int32")
    B[2] = A[0].astype("int32")
    H[0] = T.float16(A[0])
    B[3] = (B[0] & 3) | (B[1] ^ 5) << 2 >> 1
    B[4] = ~B[3]
    B[5] = B[3] // 4 + B[3] % 4 + T.truncdiv(B[3], 4) + T.truncmod(B[3], 4) + B[4] / 3
    A[3] = T.exp(A[0]) + T.sqrt(A[1]) + T.sigmoid(A[2]) + T.tanh(A[3]) + T.pow(A[0], A[1])
    A[4] = T.reinterpret("float32", B[0])
    B[6] = T.popcount(B[0]) + T.clz(B[1])
""",
    "vectors": NEW
    + """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B[0:4] = A.vload([0], "float32x4")
    B[T.Ramp(4, 1, 4)] = A[T.ramp(4, 1, 4)] * T.Broadcast(T.float32(2), 4)
    B[8:12] = T.broadcast(T.float32(1), 4)
    B.vstore([12], A.vload([8], "float32x4"))
""",
    "calls": NEW
    + """
@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    T.call_packed("tell", A, 3, T.float32(2), "text")
    A[0] = T.call_extern("float32", "cbrtf", A[1])
    A[1] = T.call_extern("cbrtf", A[1], dtype="float32")
    A[2] = T.call_pure_extern("float32", "cbrtf", A[1])
    T.evaluate(T.call_extern("int32", "touch", T.address_of(A[4]), A.data, A.access_ptr("rw", offset=2)))
    A[3] = T.call_intrin("float32", "tirx.exp", A[0])
    A[4] = T.call_llvm_pure_intrin("float32", "llvm.fabs", T.uint32(1), A[0])
""",
    "module": NEW
    + """
@I.ir_module(s_tir=True)
class Module:
    @T.prim_func
    def main(A: T.Buffer((1,), "float32")):
        T.func_attr({"target": T.target("llvm")})
        Module.kernel(A.data)
        T.Call(Module.kernel, [A.data], ret_ty="void")

    @T.prim_func(private=True)
    def kernel(p: T.handle("float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80"}, host="llvm")})
        D = T.decl_buffer((1,), "float32", data=p)
        D[0] = T.float32(42)
""",
    "classic module": CLASSIC
    + """
@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, c: T.handle) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, [128, 128], dtype="float32")
        C = T.match_buffer(c, [128, 128], dtype="float32")
        B = T.alloc_buffer([128, 128], dtype="float32")
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.S(128, j)
                vk = T.axis.reduce((0, 128), k)
                T.where(i + j < 200)
                T.block_attr({"double_buffer_scope": 0})
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + B[vi, vk]
""",
    "scheduled blocks": NEW
    + """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    with T.sblock("root"):
        T.reads()
        T.writes()
        B = T.sblock_alloc_buffer((16, 16), scope="shared")
        for i0, j0 in T.grid(4, 4):
            with T.sblock("tile"):
                vi, vj = T.axis.remap("SS", [i0, j0])
                T.sblock_attr({"auto_copy": 1})
                part = T.match_buffer(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "float32", offset_factor=1)
                for i, j in T.grid(4, 4):
                    with T.sblock("copy"):
                        wi, wj = T.axis.remap("SS", [i, j])
                        B[vi * 4 + wi, vj * 4 + wj] = part[wi, wj]
        for i, j in T.grid(16, 16):
            with T.sblock("out"):
                wi, wj = T.axis.remap("SS", [i, j])
                C[wi, wj] = B[wi, wj]
""",
    "classic allocations": CLASSIC
    + """
@T.prim_func
def f(A: T.Buffer((128,), "float32")):
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(tx, 128)
    shared = T.allocate([128], "float32", "shared")
    S = T.Buffer((128,), "float32", data=shared, scope="shared")
    local = T.allocate([4], "float32", "local")
    S[tx] = A[tx]
    local[0] = S[tx]
    T.tvm_storage_sync("shared")
    A[tx] = S[127 - tx] + local[0]
""",
    "allocations": NEW
    + """
@T.prim_func
def f(A: T.Buffer((128,), "float32")):
    B = T.alloc_buffer((128,), "float32", scope="global", annotations={"tirx.volatile": True})
    for i in T.thread_binding(128, thread="threadIdx.x"):
        S = T.alloc_shared((128,), "float32")
        L = T.alloc_local((4,), "float32")
        D = T.decl_buffer((2,), "float32", scope="local")
        S[i] = A[i]
        L[0] = S[i]
        D[0] = L[0]
        B[i] = D[0]
        A[i] = B[i]
""",
    "asserts": NEW
    + """
@T.prim_func
def f(A: T.Buffer((8,), "float32"), n: T.int32):
    assert n > 0, "n must be positive"
    assert n < 8, ("ValueError", ["n is ", n, ", and must be less than 8"])
    assert n != 3
    A[n] = T.float32(1)
""",
    "results": NEW
    + """
@T.prim_func
def f(n: T.int32) -> T.int32:
    if n < 0:
        T.ret(0 - n)
    return n + 1

@T.prim_func
def g(n: T.int32):
    T.evaluate(0)
    return f(n)
""",
    "macros": NEW
    + """
@T.macro
def add(A, i, value):
    A[i] = A[i] + value

@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for k in range(8):
        add(A, k, T.float32(1))
""",
    "old shorthand": CLASSIC
    + """
@T.prim_func
def f(A: T.Buffer[(8,), "float32"], n: T.int32) -> None:
    for i in T.serial(0, 8, annotations={"pragma_auto_unroll_max_step": 16, "pragma_unroll_explicit": False}):
        A[i] = T.Mul(A[i], T.float32(2))
""",
}


@pytest.mark.parametrize("name", KERNELS)
def test_reads_verifies_and_round_trips(name):
    module = read(KERNELS[name], externs={"cbrtf": "libm.so.6", "touch": "libtouch.so"})
    assert module.functions
    for function in module.functions:
        for node in walk(function):
            if isinstance(node, (stmt.Stmt, expr.Call, expr.Load)) and not isinstance(node, (stmt.Seq, stmt.Return)):
                assert node.span is not None, node


def test_the_dialect_keeps_tvm_widths():
    module = read(KERNELS["loops"])
    assert {node.var.dtype for node in nodes(module, stmt.For)} == {INT32}
    gristmill = parse_source(
        'from gristmill.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n'
        "    for i in range(4):\n        A[i] = 0\n",
        "k.py",
    ).module
    assert {node.var.dtype for node in nodes(gristmill, stmt.For)} == {INT64}


def test_integer_division_truncates():
    module = read(KERNELS["expressions"])
    assert len(nodes(module, expr.Div)) == 2
    folded = read(NEW + '@T.prim_func\ndef f(A: T.Buffer((1,), "int32")):\n    A[0] = -7 / 2\n')
    (store,) = nodes(folded, stmt.Store)
    assert store.value.value == -3


def test_matched_pointers_are_parameters():
    (function,) = read(KERNELS["pointer arguments"]).functions
    assert [param.name for param in function.params] == ["A", "p", "n"]
    assert [(size.name, size.dtype) for size in function.sizes] == [("m", INT32)]
    assert function.params[1].pointer.element == FLOAT32
    assert function.facts.signature == "f(A: Buffer((m, n), float32), p: handle, n: int32)"


def test_targets_and_symbols():
    module = read(KERNELS["module"])
    main, kernel = module.functions
    assert (main.facts.symbol, str(main.facts.target)) == ("main", "cpu")
    assert (kernel.facts.symbol, str(kernel.facts.target)) == (None, "cuda:sm_80")


def test_shared_memory_and_threads():
    module = read(KERNELS["classic allocations"])
    assert {node.buffer.scope for node in nodes(module, stmt.Allocate)} == {Scope.SHARED, Scope.LOCAL}
    (loop,) = nodes(module, stmt.For)
    assert loop.thread is stmt.ThreadAxis.THREAD_X
    assert len(nodes(module, stmt.Barrier)) == 1


def test_macros_note_where_they_were_expanded():
    module = read(KERNELS["macros"])
    (store,) = nodes(module, stmt.Store)
    assert store.span.place.line == 5
    assert store.span.inlined_at.place.line == 10


def test_gristmill_files_too():
    text = KERNELS["mutable scalars"].replace("tvm.script", "gristmill.script")
    read(text)
    with pytest.raises(UserError) as caught:
        parse_source(KERNELS["mutable scalars"], "kernel.py")
    assert caught.value.code == "GM0209"


def test_attributes_of_blocks_change_nothing():
    plain = """
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            ATTRIBUTES
            A[v] = 1.0
"""
    given = plain.replace(
        "ATTRIBUTES", 'T.block_attr({"meta_schedule.thread_extent_low_inclusive": 32, "anything": "1"})'
    )
    without = read(CLASSIC + plain.replace("            ATTRIBUTES\n", ""))
    assert first_difference(read(CLASSIC + given), without) is None
    with pytest.raises(UserError, match="GM0336"):
        parse_source("from gristmill.script import tir as T\n" + given, "kernel.py")
