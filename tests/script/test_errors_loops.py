"""Mistakes with loops, asserts, threads and blocks: each code at its place, with its hint."""

import pytest

from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = """from gristmill.script import tir as T

LIMIT = 4

@T.prim_func
def f(x: T.Buffer((8,), "float32"), m: T.Buffer(("h", "w"), "int32"), s: T.int32):
"""

CASES = {
    "more values than the type counts": """
    for i in range(-5, 9223372036854775807):
                       ^^^^^^^^^^^^^^^^^^^ GM0310 loop over fewer values
        pass
""",
    "loop over a buffer": """
    for v in x:
             ^ GM0310 loop over `range(...)`
        x[0] = v
""",
    "loop over a number": """
    for i in h:
             ^ GM0310 write `range(h)`
        x[0] = 1
""",
    "loop over a list": """
    for i in [1, 2]:
             ^^^^^^ GM0310 loop over `range(...)`
        x[0] = 1
""",
    "grid that is not called": """
    for i in T.grid:
             ^^^^^^ GM0310 call it: `T.grid(n)`
        x[0] = 1
""",
    "step of zero": """
    for i in range(0, 8, 0):
                         ^ GM0311 write a number other than 0
        x[i] = 1
""",
    "step that varies": """
    for i in range(0, 8, s):
                         ^ GM0311 for a step that varies write a `while` loop
        x[i] = 1
""",
    "number of names": """
    for i in T.grid(h, w):
        ^ GM0312 write one name for each loop
        m[i, 0] = 1
""",
    "no name": """
    for x[0] in range(8):
        ^^^^ GM0312 write one name for each loop
        x[1] = 1
""",
    "one name for two loops": """
    for i, i in T.grid(h, w):
           ^ GM0312 give each loop its own name
        m[i, i] = 1
""",
    "else of a for": """
    for i in range(8):
        x[i] = 1
    else:
        x[0] = 2
        ^^^^^^^^ GM0313 set a local bool
""",
    "else of a while": """
    while x[0] > 1:
        x[0] = 1
    else:
        x[0] = 2
        ^^^^^^^^ GM0313 set a local bool
""",
    "element that all iterations write": """
    for i in T.parallel(8):
        x[0] += x[i]
        ^^^^^^^^^^^^ GM0259 use a serial loop, `for i in range(...)`
        for j in range(4):
            m[0, j] = m[1, j]
            ^^^^^^^ GM0259 let each iteration write an element of its own
""",
    "break of a parallel loop": """
    for i in T.parallel(8):
        if x[i] > 0:
            break
            ^^^^^ GM0314 use a serial loop
""",
    "break in a thread": """
    tx = T.launch_thread("threadIdx.x", 8)
    if x[tx] > 0:
        break
        ^^^^^ GM0314 use a serial loop
""",
    "break outside of a loop": """
    break
    ^^^^^ GM0314 use `return` to leave the function
""",
    "continue in a branch only": """
    if s > 0:
        continue
        ^^^^^^^^ GM0314 use `return` to leave the function
""",
    "return from a parallel loop": """
    for i in T.parallel(8):
        if x[i] > 0:
            return
            ^^^^^^ GM0315 use a serial loop, or `continue`
""",
    "unknown annotation of a loop": """
    for i in T.serial(8, annotations={"unrol": 4}):
                                      ^^^^^^^ GM0316 did you mean "unroll"
        x[i] = 1
""",
    "annotations that are no dictionary": """
    for i in T.serial(8, annotations=4):
                                     ^ GM0316 write `annotations={"unroll": 4}`
        x[i] = 1
""",
    "unknown axis": """
    for i in T.thread_binding(8, thread="threadIdx.w"):
                                        ^^^^^^^^^^^^^ GM0317 did you mean "threadIdx.
        x[i] = 1
""",
    "axis without its letter": """
    for i in T.thread_binding(8, thread="threadIdx"):
                                        ^^^^^^^^^^^ GM0317 did you mean "threadIdx.x"?
        x[i] = 1
""",
    "length of a vectorized loop": """
    for i in T.vectorized(w):
                          ^ GM0318 T.serial(n, annotations={"vectorize": True})
        m[0, i] = 1
""",
    "launch over a number": """
    tx = T.launch_thread(s, 8)
                         ^ GM0319 write "threadIdx.x"
    x[tx] = 1
""",
    "assert that constants decide": """
    assert LIMIT > 8, "the limit is too small"
           ^^^^^^^^^ GM0321 mend the constants
    x[0] = 1
""",
    "float in a message": """
    assert x[0] > 0, f"x is {x[0]}"
                             ^^^^ GM0322 messages are texts, integers and bools
""",
    "format in a message": """
    assert s > 0, f"s is {s:3d}"
                          ^ GM0322 messages are texts, integers and bools
""",
    "unknown exception": """
    assert s > 0, ("ValeuError", "no")
                   ^^^^^^^^^^^^ GM0323 did you mean "ValueError"
""",
    "axis outside of a block": """
    for i in range(8):
        vi = T.axis.spatial(8, i)
             ^^^^^^^^^^^^^^^^^^^^ GM0330 directly inside `with T.block("name"):`
        x[vi] = 1
""",
    "where outside of a block": """
    T.where(s > 0)
    ^^^^^^^^^^^^^^ GM0330 directly inside
""",
    "kinds and loops": """
    for i, j in T.grid(h, w):
        with T.block("b"):
            vi, vj = T.axis.remap("SSR", [i, j])
                                  ^^^^^ GM0331 write one letter
            m[vi, vj] = 1
""",
    "unknown kind": """
    for i, j in T.grid(h, w):
        with T.block("b"):
            vi, vj = T.axis.remap("SX", [i, j])
                                  ^^^^ GM0331 write S for spatial and R for reduce
            m[vi, vj] = 1
""",
    "remap of an expression": """
    for i, j in T.grid(h, w):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j + 1])
                                            ^^^^^ GM0332 write `T.axis.spatial(extent, j + 1)`
            m[vi, vj] = 1
""",
    "two inits": """
    for i in range(8):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            with T.init():
                x[vi] = 0
            with T.init():
                 ^^^^^^^^ GM0333 write both into one
                x[vi] = 1
            x[vi] = 2
""",
    "init outside of a block": """
    with T.init():
         ^^^^^^^^ GM0333 directly inside `with T.block("name"):`
        x[0] = 0
""",
    "reads stated twice": """
    with T.block("b"):
        T.reads(x[0])
        T.reads(x[1])
        ^^^^^^^^^^^^^ GM0333 name all regions in one
        x[2] = x[0] + x[1]
""",
    "no region": """
    with T.block("b"):
        T.reads(s)
                ^ GM0334 write `A[i, 0:4]`
        x[0] = 1
""",
    "with of something else": """
    with T.exp(x[0]):
         ^^^^^^^^^^^ GM0335 write `with T.block("name"):`
        x[0] = 0
""",
    "block without with": """
    T.block("b")
    ^^^^^^^^^^^^ GM0335 write `with T.block("b"):`
""",
    "unknown attribute of a block": """
    with T.block("b"):
        T.block_attr({"double_bufer_scope": 0})
                      ^^^^^^^^^^^^^^^^^^^^ GM0336 did you mean "double_buffer_scope"
        x[0] = 1
""",
    "scan axis": """
    for i in range(8):
        with T.block("b"):
            vi = T.axis.scan(8, i)
                 ^^^^^^^^^^^^^^^^^ GM0337 write the loop inside the block
            x[vi] = 1
""",
    "match of another shape": """
    with T.block("b"):
        a = T.match_buffer(x[0:4], (2, 2), "float32")
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0338 the dimensions and the type of the part
        a[0, 0] = 1
""",
    "match outside of a block": """
    a = T.match_buffer(x[0:4], (4,), "float32")
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0240 T.decl_buffer(shape, dtype, data=A.data)
""",
    "unknown scope of a barrier": """
    T.tvm_storage_sync("shred")
                       ^^^^^^^ GM0340 did you mean "shared"
""",
    "unknown attribute": """
    T.attr(0, "thread_extnt", 8)
              ^^^^^^^^^^^^^^ GM0341 did you mean "thread_extent"
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    check_marked(HEADER + CASES[name].lstrip("\n"), lambda text: parse_source(text, "kernel.py"))
