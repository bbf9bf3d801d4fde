"""Mistakes with names and statements: each code at its place, with its hint."""

import pytest

from gristmill.errors import UserError
from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = "from gristmill.script import tir as T\n"

CASES = {
    "undefined": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    total = T.float32(0)
    x[0] = totl
           ^^^^ GM0245 did you mean `total`
""",
    "undefined without a suggestion": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = qqq
           ^^^ GM0245 assign `qqq` before
""",
    "undefined function": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = qqq(x[1])
           ^^^ GM0245 from .other import qqq
""",
    "names of CUDA and HIP": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    i = blockIdx.x * 64
        ^^^^^^^^ GM0245 T.launch_thread("blockIdx.x"
    t = T.threadIdx.x
        ^^^^^^^^^^^ GM0290 T.launch_thread("threadIdx.x"
    d = T.blockDim.x
        ^^^^^^^^^^ GM0290 gets as its extent
    __syncthreads()
    ^^^^^^^^^^^^^ GM0245 `T.syncthreads()` writes one
    T.grid_sync()
    ^^^^^^^^^^^ GM0290 launches run one after the other
    x[0] = __shfl_xor_sync(7, x[0], 1)
           ^^^^^^^^^^^^^^^ GM0245 write `T.warp_shuffle_xor(x, mask)`
""",
    "a list for memory": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    s = [0.0] * 64
        ^^^^^^^^^^ GM0267 T.alloc_local((n,), "float32")
    x[0] = s[0]
""",
    "module that is not imported": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = math.pi
           ^^^^ GM0245 write `import math` at the top of the file
""",
    "names of other libraries": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = T.clamp(x[1], 0, 1)
           ^^^^^^^ GM0290 write `T.min(T.max(x, low), high)`
    x[0] = T.sum(x)
           ^^^^^ GM0290 write it as a loop
    x[0] = T.qqq(x)
           ^^^^^ GM0290 `gristmill explain language` lists
    x[0] = T.where(x[1] > 0, 1, 0)
           ^^^^^^^^^^^^^^^^^^^^^^^ GM0292 write `a if condition else b`
""",
    "type where the shape stands": """
@T.prim_func
def f(x: T.Buffer("float32")):
                  ^^^^^^^^^ GM0229 the shape stands before the type: `T.Buffer(("n",), "float32")`
    x[0] = 1
""",
    "shape as a number": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = x.shape
           ^^^^^^^ GM0267 an expression of numbers
""",
    "read before assigned": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    for i in range(n):
        total = total + x[i]
                ^^^^^ GM0246 assign a first value to `total` before
""",
    "assigned only in a loop that comes later": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = v
           ^ GM0246 assign a first value to `v` before
    for i in range(n):
        v = x[i]
        x[i] = v
""",
    "assigned in a branch only": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    if x[0] > 0:
        v = x[1]
    x[0] = v + 1
           ^ GM0244 give it a value before the branch or loop: `v = T.float32(0)`
    x[1] = v
""",
    "parameter assigned": """
@T.prim_func
def f(n: T.int32, x: T.Buffer((8,), "float32")):
    n = 3
    ^ GM0247 use another name: `n_now = n`
    x[n] = 1
""",
    "size assigned": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    n = 3
    ^ GM0247 use another name
""",
    "loop variable assigned": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    for i in range(n):
        i += 1
        ^ GM0247 use another name: `i_now = i`
""",
    "let assigned again": """
@T.prim_func
def f(x: T.Buffer(("n",), "int32")):
    v: T.let[T.int32] = x[0]
    ^ GM0247 write `v: T.int32`
    v = x[1]
    x[2] = v
""",
    "loop variable after the loop": """
@T.prim_func
def f(x: T.Buffer(("n",), "int64")):
    for i in range(n):
        x[i] = i
    x[0] = i
           ^ GM0248 assign what you need of `i` to a name of its own
""",
    "buffer assigned twice": """
@T.prim_func
def f(x: T.Buffer(("n",), "int32")):
    a = T.alloc_buffer((4,), "int32")
    ^ GM0249 give each buffer a name of its own
    a = T.alloc_buffer((8,), "int32")
    ^ GM0249 give each buffer a name of its own
""",
    "size without a value": """
@T.prim_func
def f(x: T.Buffer((8,), "int32")):
    m = T.int32()
        ^^^^^^^^^ GM0249 use it in the shape of a parameter
""",
    "buffer of an inner block used outside": """
@T.prim_func
def f(x: T.Buffer(("n",), "int32")):
    for i in range(n):
        a = T.alloc_local((4,), "int32")
        ^ GM0250 allocate it before
        a[0] = x[i]
    x[0] = a[0]
""",
    "foreign name": """
import numpy as np

@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = np.float32(1)
           ^^^^^^^^^^ GM0251 write `T.float32`
    x[1] = np.clip(x[0], 0, 1)
           ^^^^^^^ GM0251 write `T.min(T.max(x, low), high)`
    x[2] = np.interp(x[0])
           ^^^^^^^^^ GM0251 use the functions of `T`
""",
    "carried through a parallel loop": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32"), out: T.Buffer((1,), "float32")):
    total = T.float32(0)
    for i in T.parallel(n):
        total += x[i]
        ^^^^^ GM0252 use a serial loop
    out[0] = total
""",
    "Python's own functions": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    print(x[0])
    ^^^^^ GM0253 print that in Python
    x[0] = isinstance(x, int)
           ^^^^^^^^^^ GM0253 kernels have range, min, max
    for i, v in enumerate(x):
                ^^^^^^^^^ GM0253 index the buffers
        x[i] = v
""",
    "raise": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    raise ValueError("no")
    ^^^^^ GM0254 stop with an error by `assert condition
""",
    "try": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    try:
    ^^^ GM0254 errors cannot be caught
        x[0] = 1
    finally:
        x[1] = 2
""",
    "nested function": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    def g():
    ^^^ GM0254 move the helper to the top level
        pass
""",
    "del": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    v = x[0]
    x[1] = v
    del v
    ^^^ GM0254 kernels have assignments
""",
    "lambda": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    g = lambda a: a
        ^^^^^^^^^^^ GM0255 write a helper function
""",
    "comprehension": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = sum([x[i] for i in range(4)])
               ^^^^^^^^^^^^^^^^^^^^^^^^ GM0255 write a loop
""",
    "walrus": """
@T.prim_func
def f(x: T.Buffer(("n",), "int32")):
    if (v := x[0]) > 1:
        ^^^^^^^^^ GM0255 assign in a statement of its own
        x[1] = 2
""",
    "complex number": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = 2j
           ^^ GM0255 kernels have integers, floats, bools and texts
""",
    "no effect": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] + 1
    ^^^^^^^^ GM0256 remove it, or assign it
""",
    "comparison for an assignment": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] == 1
    ^^^^^^^^^ GM0256 to assign, write `x[0] = 1`
""",
    "assigning to an attribute": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x.shape = 3
    ^^^^^^^ GM0257 assign to a name, or to an element
""",
    "taking apart": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    a, b = x[0]
           ^^^^ GM0258 assign to one name
""",
    "wrong number of names": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    a, b = x[0], x[1], x[2]
    ^^^^ GM0258 write one name for each value
""",
    "all mistakes at once": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    x[0] = aaa
           ^^^ GM0245 assign `aaa`
    x[1] = 1
    for i in range(n):
        x[i] = bbb
               ^^^ GM0245 assign `bbb`

@T.prim_func
def g(x: T.Buffer(("n",), "float32")):
    x[0] = ccc
           ^^^ GM0245 assign `ccc`
""",
    "names of wrong statements are no further mistakes": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    v = x[0] + aaa
               ^^^ GM0245 assign `aaa`
    x[1] = v
    v2 = v + 1
    x[2] = v2
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    check_marked(HEADER + CASES[name], lambda text: parse_source(text, "kernel.py"))


def test_notes_show_the_loop_that_carries():
    found = check_marked(HEADER + CASES["carried through a parallel loop"], lambda text: parse_source(text, "k.py"))
    assert [note.message for note in found[0].notes] == ["the loop is here", "it is declared outside of it"]
    assert [note.place.line for note in found[0].notes] == [6, 5]


def test_kernels_without_the_import():
    text = """
@T.prim_func
 ^^^^^^^^^^^ GM0221 write `from gristmill.script import tir as T` at the top of the file
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1
"""
    check_marked(text, lambda text: parse_source(text, "kernel.py"))


@pytest.mark.parametrize(("count", "shown"), [(49, 49), (50, 50), (60, 50)])
def test_many_mistakes_are_cut_with_a_word(count, shown):
    lines = "".join(f"    x[{index}] = a{index}\n" for index in range(count))
    text = HEADER + f'@T.prim_func\ndef f(x: T.Buffer((64,), "float32")):\n{lines}'
    with pytest.raises(UserError) as caught:
        parse_source(text, "kernel.py")
    found = caught.value.diagnostics
    assert len(found) == shown
    notes = [note.message for note in found[-1].notes]
    assert notes == (["no more than 50 mistakes are shown at a time"] if shown == 50 else [])
