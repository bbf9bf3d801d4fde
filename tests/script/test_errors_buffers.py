"""Mistakes with buffers, calls and vectors: each code at its place, with its hint."""

import pytest

from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = """from gristmill.script import tir as T

def helper(v: T.float32, k: T.int32) -> T.float32:
    return v * k

def fill(out: T.Buffer((8,), "float32"), v: T.float32):
    for i in range(8):
        out[i] = v

def touch(p: T.handle("float32")):
    pass

@T.macro
def twice(v):
    twice(v)
    ^^^^^^^^ GM0305 use a helper function for recursion

@T.prim_func
def f(x: T.Buffer((8,), "float32"), m: T.Buffer((4, 4), "float32"), k: T.Buffer(("n",), "int32"),
      p: T.handle, s: T.int32):
"""
PLAIN = HEADER.replace("    ^^^^^^^^ GM0305 use a helper function for recursion\n", "")

CASES = {
    "too few indices": """
    m[0] = 1
    ^^^^ GM0280 write `m[i, j]`
""",
    "too many indices": """
    x[0] = x[0, 1]
           ^^^^^^^ GM0280 write `x[i]`
""",
    "float index": """
    x[1.0] = 1
      ^^^ GM0281 convert it: `T.int64(1.0)`
""",
    "float expression as an index": """
    x[0] = x[x[1]]
             ^^^^ GM0281 convert it: `T.int64(x[1])`
""",
    "index out of bounds": """
    x[0] = x[8]
             ^ GM0282 the last element is 7
""",
    "negative index": """
    x[-1] = 0
      ^^ GM0282 negative ones do not count from the end
""",
    "slice of unknown length": """
    k[0:n] = 0
      ^^^ GM0283 loop over the elements
""",
    "slice in the wrong dimension": """
    m[0:4, 0] = 0
      ^^^ GM0283 loop over the other dimensions
""",
    "slice with a varying step": """
    x[0:8:s] = 0
      ^^^^^ GM0283 write the step as a number
""",
    "unknown member of a buffer": """
    x[0] = x.shap[0]
           ^^^^^^ GM0284 did you mean `shape`
""",
    "unknown member of a value": """
    x[0] = x[1].real
           ^^^^^^^^^ GM0284 values have .astype(dtype)
""",
    "no such dimension": """
    x[0] = x.shape[1]
                   ^ GM0285 dimensions are counted from 0 to 0
""",
    "indexing a number": """
    v = x[0]
    x[1] = v[0]
           ^^^^ GM0286 only buffers and constant tuples are indexed
""",
    "storing to a number": """
    s[0] = 1
    ^ GM0286 assign to elements of buffers
""",
    "load of another type": """
    v = x.vload([0], "int32x4")
        ^^^^^^^^^^^^^^^^^^^^^^^ GM0287 load "float32x4"
""",
    "local memory of a size not constant": """
    a = T.alloc_buffer((n,), "float32", scope="local")
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0289 use constants for its shape
""",
    "unknown function of the language": """
    x[0] = T.sqtr(x[1])
           ^^^^^^ GM0290 did you mean `T.sqrt`
""",
    "unknown function of math": """
    import_me = 1
    x[0] = T.axis.spatail(8, 0)
           ^^^^^^^^^^^^^^ GM0290 did you mean `T.axis.spatial`
""",
    "missing argument": """
    x[0] = T.pow(x[1])
           ^^^^^^^^^^^ GM0291 its arguments are: base, exponent
""",
    "too many arguments": """
    x[0] = T.exp(x[1], x[2])
                       ^^^^ GM0292 its arguments are: x
""",
    "unknown argument": """
    a = T.alloc_buffer((8,), "float32", scop="local")
                                        ^^^^^^^^^^^^ GM0292 did you mean `scope`
""",
    "argument given twice": """
    x[0] = T.cast(x[1], "float32", dtype="float32")
                                   ^^^^^^^^^^^^^^^ GM0292 give it once
""",
    "lanes not constant": """
    v = T.Broadcast(x[0], s)
                          ^ GM0293 write a number, or a constant
""",
    "text wanted": """
    T.tvm_storage_sync(3)
                       ^ GM0293 write it in quotes
""",
    "function that is not here": """
    x[0] = T.tan(x[1])
           ^^^^^ GM0294 write T.sin(x) / T.cos(x)
""",
    "operation that is not here": """
    x[0] = T.call_intrin("float32", "tir.erff", x[1])
                                    ^^^^^^^^^^ GM0294 call the functions of `T`
""",
    "constant data": """
    a = T.allocate_const([1, 2], "int32", [2])
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0294 store the values in a local buffer
""",
    "sum over the threads of a warp": """
    T.tvm_thread_allreduce(x)
    ^^^^^^^^^^^^^^^^^^^^^^^^^ GM0295 use `T.warp_shuffle_down(x, 16)` and its like
""",
    "thread axes of one vendor": """
    b = T.cta_id([4], parent="kernel")
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0295 write the loops over threads
""",
    "decorator in a kernel": """
    T.prim_func(x)
    ^^^^^^^^^^^^^^ GM0296 write it above a function
""",
    "calling a number": """
    x[0] = s(1)
           ^ GM0297 call functions of `T`
""",
    "missing argument of a helper": """
    x[0] = helper(x[1])
           ^^^^^^^^^^^^ GM0298 its signature is `helper(v: float32, k: int32) -> float32`
""",
    "surplus argument of a helper": """
    x[0] = helper(x[1], 2, 3)
                           ^ GM0298 its signature is
""",
    "unknown argument of a helper": """
    x[0] = helper(x[1], kk=2)
                        ^^^^ GM0298 did you mean `k`
""",
    "narrowing argument": """
    x[0] = helper(x[1], n)
                        ^ GM0262 write `T.int32(n)`
""",
    "buffer for a number": """
    x[0] = helper(x, 2)
                  ^ GM0299 give a number, or an element: `A[i]`
""",
    "number for a buffer": """
    fill(x[0], 1.0)
         ^^^^ GM0299 give a buffer by its name
""",
    "row for a buffer": """
    fill(m[2], 1.0)
         ^^^^ GM0299 `part = T.decl_buffer((4,), "float32", data=m.data, elem_offset=2 * 4)`; or let `fill` take `m`
""",
    "slice for a buffer": """
    fill(m[2, 0:4], 1.0)
         ^^^^^^^^^ GM0299 `part = T.decl_buffer((...,), "float32", data=m.data, elem_offset=...)`
""",
    "pointer for a buffer": """
    fill(x.data, 1.0)
         ^^^^^^ GM0299 give the buffer itself, not its pointer
""",
    "number for a pointer": """
    touch(s)
          ^ GM0299 give a pointer: `A.data`
""",
    "buffer of another type": """
    fill(m, 1.0)
         ^ GM0300 it is declared as `out: Buffer((8,), float32)`
""",
    "no result": """
    x[0] = fill(x, 1.0)
           ^^^^^^^^^^^^ GM0301 give the function a result type
""",
    "symbol not declared": """
    x[0] = T.call_extern("float32", "cbrtf", x[1])
                                    ^^^^^^^ GM0302 write `extern = { cbrtf = "LIBRARY" }`
""",
    "text with a NUL": """
    T.call_packed("log", "a\\0b")
                         ^^^^^^ GM0303 leave the NUL out
""",
    "statement as a value": """
    a = T.func_attr({"noalias": True})
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0306 write it as a statement
""",
    "memory that is no pointer": """
    a = T.decl_buffer((8,), "float32", data=s)
                                            ^ GM0267 write `data=A.data`
""",
    "address of a value": """
    T.call_packed("show", T.address_of(s))
                                       ^ GM0267 write `T.address_of(A[i])`
""",
    "no such lane": """
    x[0] = T.Shuffle([x[0:4]], [4])
                                ^ GM0282 lanes are counted from 0 to 3
""",
    "unpacking in a call": """
    x[0] = T.max(*x)
                 ^^ GM0255 write the arguments one by one
""",
    "operands of an operation": """
    x[0] = T.call_intrin("float32", "tir.pow", x[1])
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0291 it means: a to the power b
""",
    "length of a number": """
    x[0] = len(s)
               ^ GM0267 len() takes a constant tuple or a buffer
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    check_marked(PLAIN + CASES[name].lstrip("\n"), lambda text: parse_source(text, "kernel.py"))


def test_macro_that_calls_itself():
    found = check_marked(HEADER + "    twice(x[0])\n", lambda text: parse_source(text, "kernel.py"))
    assert [note.message for note in found[0].notes] == ["the macro is here", "inlined from this call"]


def test_close_extern_symbol():
    text = (
        PLAIN
        + """    x[0] = T.call_extern("float32", "cbrt", x[1])
                                    ^^^^^^ GM0302 did you mean `cbrtf`
"""
    )
    check_marked(text, lambda text: parse_source(text, "kernel.py", externs={"cbrtf": "libm.so.6"}))
