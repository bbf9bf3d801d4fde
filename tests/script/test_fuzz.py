"""Damaged kernels: whatever the text, the answer is a coded error or a module that verifies; never a crash."""

import random
import re

import pytest

from gristmill.errors import UserError
from gristmill.ir.verify import check
from gristmill.script import parse_source

SEED = 20240613
TEXT = """from gristmill.script import tir as T, ir as I
N = 8
SHAPE = (N, 4)

def clamp(v: T.float32, low: T.float32) -> T.float32:
    if v < low:
        return low
    return v

@T.macro
def add(A, i, value):
    A[i] = A[i] + value

@T.prim_func
def f(x: T.Buffer(("n", N), "float32"), y: T.Buffer((N,), "int32"), p: T.handle, k: T.int64) -> T.int32:
    P = T.match_buffer(p, ("m",), "uint8", align=16)
    T.func_attr({"tir.noalias": True})
    total = T.float32(0)
    for i, j in T.grid(n, 8):
        v = x[i, j] * 2
        if v > 1.5 and not j == 3 or k < 0:
            total += clamp(v, -1.0)
            continue
        x[i, j] = T.max(v, total) if j % 2 == 0 else T.exp(v ** 2)
    for i in T.parallel(8):
        t = 0
        while t < 4:
            t = t + 1
        y[i] = T.int32(t) << 2 | y[(i + 1) % 8]
    for i in range(6, -1, -2):
        y[i : i + 2] = T.Broadcast(y[i], 2)
        add(y, i, 1)
    a = T.alloc_buffer(SHAPE, "float32", scope="local")
    b = T.decl_buffer((32,), "float32", data=a.data)
    assert m > 0, ("ValueError", ["m is ", m])
    for i, j in T.grid(*SHAPE) if False else T.grid(8, 4):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vi < 7)
            with T.init():
                a[vi, vj] = 0
            a[vi, vj] = a[vi, vj] + P[0] + b[vi]
    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, 64))
    s = T.alloc_shared((64,), "float32")
    s[bx] = T.cast(k, "float32")
    T.tvm_storage_sync("shared")
    return 0

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def g(q: T.Buffer((4,), "float16")):
        q[0], q[1] = q[1], q[0]
""".replace("T.grid(*SHAPE) if False else T.grid(8, 4)", "T.grid(8, 4)")
TOKENS = re.findall(r"\s+|\w+|[^\w\s]", TEXT)
POOL = [token for token in {*TOKENS} if not token.isspace()] + [
    "0", "-1", "1e400", "2**70", "None", "True", '"float32"', "lambda", "T.bool",
    "x", "y", "a", "A", "()", "[]", "...", "\\", "\0", "'", "é",
]  # fmt: skip


def damaged(source):
    """The sample with a few tokens dropped, doubled, swapped, replaced; or with lines moved."""
    tokens = list(TOKENS)
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        at = source.randrange(len(tokens))
        kind = source.randrange(5)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, tokens[at])
        elif kind == 2:
            other = source.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            while tokens[at].isspace():
                at = source.randrange(len(tokens))
            tokens[at] = source.choice(POOL)
    text = "".join(tokens)
    if source.random() < 0.2:
        lines = text.split("\n")
        at, to = source.randrange(len(lines)), source.randrange(len(lines))
        lines.insert(to, lines.pop(at))
        text = "\n".join(lines)
    return text


def read_or_refused(text, dialect):
    """The module, or None if the text is refused as it should be."""
    try:
        return parse_source(text, "k.py", dialect=dialect).module
    except UserError as error:
        wrong = [one for one in error.diagnostics if not re.fullmatch(r"GM0[23]\d\d", one.code) or not one.hint]
        if wrong or not str(error) or any(one.place is None for one in error.diagnostics):
            raise
        return None


@pytest.mark.parametrize("dialect", ["gristmill", "tvmscript"])
def test_damaged_kernels(dialect):
    print(f"seed {SEED}")
    check(parse_source(TEXT, "k.py", dialect=dialect).module)
    source = random.Random(SEED)
    read = 0
    for _ in range(400):
        text = damaged(source)
        module = read_or_refused(text, dialect)
        if module is None:
            continue
        check(module)
        read += 1
    # Both outcomes must occur, or the damage is too small or too large to show anything.
    assert 15 < read < 385
