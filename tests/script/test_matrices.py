"""Operations on tiles of matrices in kernels: what they become, what is refused."""

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp.executor import execute
from gristmill.ir.equal import first_difference
from gristmill.ir.functor import walk
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_node
from gristmill.ir.stmt import Evaluate
from gristmill.ir.verify import check
from gristmill.script import parse_source

HEADER = """from gristmill.script import tir as T

@T.prim_func(private=True)
def helper(x: T.Buffer((8, 8), "float32")):
    x[0, 0] = T.float32(1)

@T.prim_func
def f(a: T.Buffer((8, 8), "float16"), b: T.Buffer((8, 8), "float16"), y: T.Buffer((8, "n"), "float32"), k: T.int32):
    t = T.launch_thread("threadIdx.x", 32)
    A = T.alloc_buffer((8, 8), "float16", scope="matrix.a")
    B = T.alloc_buffer((8, 8), "float16", scope="matrix.b")
    C = T.alloc_buffer((8, 8), "float32", scope="matrix.accumulator")
    D = T.alloc_buffer((2, 8, 8), "float32", scope="matrix.accumulator")
    W = T.alloc_buffer((8, 4), "float16", scope="matrix.b")
    H = T.alloc_buffer((8, 8), "float16", scope="matrix.accumulator")
    s = T.alloc_buffer((8,), "float16", scope="local")
"""


def read(body):
    module = parse_source(HEADER + body, "kernel.py").module
    check(module)
    assert first_difference(module, parse_module(print_node(module))) is None
    return module


def test_a_product_of_tiles():
    module = read("""
    T.matrix_fill(D[1], 1)
    T.matrix_load(A, a[0, 0], 8)
    T.matrix_load(B, b[0, 0], 8, layout="column")
    T.matrix_multiply(D[0], A, B, D[1])
    T.matrix_store(y[0, k], D[0], n)
""")
    source = np.random.default_rng(3)
    a, b = (source.integers(-4, 5, (8, 8)).astype(np.float16) for _ in range(2))
    y = np.zeros((8, 10), np.float32)
    execute(module, "f", [a, b, y, 2])
    assert (y[:, 2:] == a.astype(np.float32) @ b.astype(np.float32).T + 1).all()
    assert not y[:, :2].any()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("T.matrix_fill(C, 0)", "matrix_fill(&C[0, 0], 0.0, 32i32)"),
        ("T.matrix_fill(H, 0.5, width=8)", "matrix_fill(&H[0, 0], 0.5f16, 8i32)"),
        ("T.matrix_fill(D[k % 2], y[0, 0])", "matrix_fill(&D[int64(k % 2i32), 0, 0], y[0, 0], 32i32)"),
        ("T.matrix_load(A, a[k, 0], stride=k)", "matrix_load(&A[0, 0], &a[int64(k), 0], k, false, 32i32)"),
        ("T.matrix_load(A, T.address_of(a[0, 0]), 8)", "matrix_load(&A[0, 0], &a[0, 0], 8i32, false, 32i32)"),
        ('T.matrix_store(y[0, 0], C, n, layout="column")', "matrix_store(&y[0, 0], &C[0, 0], int32(n), true, 32i32)"),
        ("T.matrix_multiply(C, A, B, C)", "matrix_multiply(&C[0, 0], &A[0, 0], &B[0, 0], &C[0, 0], 32i32)"),
        ("T.evaluate(T.matrix_fill(C, 0))", "matrix_fill(&C[0, 0], 0.0, 32i32)"),
    ],
)
def test_what_each_becomes(line, text):
    (found,) = (print_node(node.value) for node in walk(read(f"    {line}\n")) if isinstance(node, Evaluate))
    assert found == text


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("GM0348", "y[0, 0] = >>C[0, 0]<<"),
        ("GM0348", ">>C[0, 0]<< = T.float32(1)"),
        ("GM0348", ">>C[0, 0]<< += T.float32(1)"),
        ("GM0348", "y[0, 0:8] = >>C[0, 0:8]<<"),
        ("GM0348", "y[0, 0] = >>D[0, 0, 0]<<"),
        ("GM0348", "helper(>>C<<)"),
        ("GM0348", "v = T.decl_buffer((64,), 'float32', data=>>C.data<<)"),
        ("GM0348", "v = T.decl_buffer((64,), 'float32', data=>>C<<)"),
        ("GM0348", "p = T.address_of(>>C[0, 0]<<)"),
        ("GM0348", "v = >>C.vload<<([0, 0], 'float32x2')"),
        ("GM0348", "T.call_packed('show', >>C<<)"),
        ("GM0349", "x = >>T.alloc_buffer((8,), 'float16', scope='matrix.a')<<"),
        ("GM0349", "x = >>T.alloc_buffer((8, 0), 'float16', scope='matrix.a')<<"),
        ("GM0349", "x = >>T.alloc_buffer((8, 8), 'float32', scope='matrix.b')<<"),
        ("GM0349", "x = >>T.alloc_buffer((8, 8), 'int8', scope='matrix.accumulator')<<"),
        ("GM0349", "x = >>T.alloc_buffer((8, 8), 'float16', strides=(16, 1), scope='matrix.a')<<"),
        ("GM0289", "x = >>T.alloc_buffer((8, n), 'float16', scope='matrix.a')<<"),
        ("GM0349", "T.matrix_fill(>>a<<, 0)"),
        ("GM0349", "T.matrix_fill(>>k<<, 0)"),
        ("GM0349", "T.matrix_fill(>>D<<, 0)"),
        ("GM0349", "T.matrix_fill(>>C[0]<<, 0)"),
        ("GM0349", "T.matrix_multiply(C, >>B<<, B, C)"),
        ("GM0349", ">>T.matrix_multiply(C, A, W, C)<<"),
        ("GM0349", ">>T.matrix_multiply(H, A, B, C)<<"),
        ("GM0349", "T.matrix_load(A, >>a<<, 8)"),
        ("GM0349", "T.matrix_load(A, >>s[0]<<, 8)"),
        ("GM0349", "T.matrix_load(A, >>y[0, 0]<<, 8)"),
        ("GM0349", "T.matrix_load(A, a[0, 0], 8, layout=>>'rows'<<)"),
        ("GM0266", "T.matrix_load(A, a[0, 0], >>y[0, 0]<<)"),
        ("GM0344", "T.matrix_fill(C, 0, width=>>24<<)"),
        ("GM0343", "x = >>T.matrix_fill(C, 0)<<"),
        ("GM0343", "for i in T.vectorized(4):\n        >>T.matrix_fill(C, 0)<<"),
        ("GM0343", "for i in T.parallel(4):\n        >>T.matrix_fill(C, 0)<<"),
        ("GM0343", "with T.block('b'):\n        >>T.matrix_fill(C, 0)<<"),
    ],
)
def test_what_is_refused(code, body):
    """The mistake is the text between the marks, and it is the only one."""
    line = next(line for line in body.split("\n") if ">>" in line)
    start, end = line.index(">>"), line.index("<<") - 2
    with pytest.raises(UserError) as caught:
        read(f"    {body.replace('>>', '').replace('<<', '')}\n")
    (found,) = caught.value.diagnostics
    indent = 4 if line is body.split("\n")[0] or line == body else 0
    assert (found.code, found.place.column, found.place.end_column) == (code, indent + start + 1, indent + end + 1)
    assert found.hint
