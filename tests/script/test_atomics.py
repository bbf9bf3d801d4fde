"""Atomic operations in kernels: each spelling, what it becomes, what is refused."""

import numpy as np
import pytest

from gristmill.interp.executor import execute
from gristmill.ir.equal import first_difference
from gristmill.ir.functor import walk
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_node
from gristmill.ir.stmt import Bind, Evaluate
from gristmill.ir.verify import check
from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((40,), "int32"), k: T.Buffer((40,), "uint64"), y: T.Buffer((40,), "float32"),
      h: T.Buffer((40,), "float16")):
    tx = T.launch_thread("threadIdx.x", 40)
"""


def read(body):
    module = parse_source(HEADER + body, "kernel.py").module
    check(module)
    assert first_difference(module, parse_module(print_node(module))) is None
    return module


def run(body):
    arrays = [np.full(40, 6, "int32"), np.full(40, 6, "uint64"), np.full(40, 0.5, "float32"), np.zeros(40, "float16")]
    execute(read(body), "f", arrays)
    return arrays


@pytest.mark.parametrize(
    ("call", "left"),
    [
        ("T.atomic_add(x[0], 2)", 86),
        ("T.atomic_add(x[0], T.int32(tx))", 6 + sum(range(40))),
        ("T.atomic_sub(x[0], 2)", -74),
        ("T.atomic_sub(x[0], T.int32(tx))", 6 - sum(range(40))),
        ("T.atomic_min(x[0], T.int32(tx) - 3)", -3),
        ("T.atomic_max(x[0], T.int32(tx))", 39),
        ("T.atomic_and(x[0], 3)", 2),
        ("T.atomic_or(x[0], T.int32(tx))", 63),
        ("T.atomic_xor(x[0], 1)", 6),
        ("T.atomic_exchange(x[0], value=9)", 9),
        ("T.atomic_store(x[0], 9)", 9),
        ("T.atomic_compare_exchange(x[0], 6, 7)", 7),
        ("T.atomic_compare_exchange(x[0], expected=5, value=7)", 6),
        ('T.call_intrin("int32", "tir.atomic_add", T.address_of(x[0]), 2)', 86),
        ('T.call_intrin("int32", "tir.atomic_add", T.call_intrin("handle", "tir.address_of", x[0]), T.int32(2))', 86),
        ('T.call_intrin("int32", "tirx.atomic_add", x.access_ptr("rw"), 2)', 86),
        ("T.evaluate(T.atomic_add(x[0], 2))", 86),
    ],
)
def test_each_spelling(call, left):
    # Of threads that all name the same constant, `x[0]` keeps what the table says.
    assert run(f"    {call}\n")[0][0] == left


def test_the_old_value_has_a_name():
    body = """
    place = T.atomic_add(x[0], 1)
    k[place - 6] = T.uint64(tx)
    y[tx] = T.atomic_add(y[tx], 1.5)
    seen: T.int32 = T.atomic_load(x[1])
    seen = seen + 1
    T.atomic_store(x[1], seen)
"""
    x, k, y, _ = run(body)
    assert x[0] == 46
    assert sorted(k) == list(range(40))
    assert set(y.tolist()) == {0.5}
    assert 7 <= x[1] <= 46


def test_statements_and_bindings_in_the_text():
    module = read("    T.atomic_sub(k[tx], 1)\n    old = T.atomic_max(x[0], T.int32(tx))\n    x[tx] = old\n")
    found = [print_node(node) for node in walk(module) if isinstance(node, (Bind, Evaluate))]
    assert found == [
        "evaluate atomic_add(&k[tx], 18446744073709551615u64)",
        "let old: int32 = atomic_max(&x[0], int32(tx))",
    ]


def test_a_block_reads_and_writes_the_element():
    body = """
    with T.block("b"):
        v = T.axis.spatial(40, tx)
        T.atomic_add(x[v], 1)
"""
    text = print_node(read(body))
    assert "reads x[v" in text
    assert "writes x[v" in text


CASES = {
    "in an index": """
    k[T.atomic_add(x[0], 1)] = 1
      ^^^^^^^^^^^^^^^^^^^^^ GM0345 give its result a name first: `old = T.atomic_add(x[0], 1)`
""",
    "in a sum": """
    x[tx] = x[0] + T.atomic_add(x[0], 1)
                   ^^^^^^^^^^^^^^^^^^^^^ GM0345 give its result a name first
""",
    "added to what is there": """
    x[tx] += T.atomic_load(x[0])
             ^^^^^^^^^^^^^^^^^^^ GM0345 give its result a name first
""",
    "in a condition": """
    if T.atomic_add(x[0], 1) == 39:
       ^^^^^^^^^^^^^^^^^^^^^ GM0345 give its result a name first
        x[1] = 0
""",
    "in an atomic operation": """
    T.atomic_add(x[T.atomic_add(x[0], 1)], 1)
                   ^^^^^^^^^^^^^^^^^^^^^ GM0345 give its result a name first
""",
    "no element": """
    T.atomic_add(x, 1)
                 ^ GM0346 write the element
""",
    "a vector": """
    T.atomic_add(x[0:4], 1)
                 ^^^^^^ GM0346 write the element
""",
    "a local scalar": """
    n = T.int32(0)
    n = n + 1
    T.atomic_add(n, 1)
                 ^ GM0346 use plain assignments
""",
    "local memory": """
    own = T.alloc_buffer((4,), "int32", scope="local")
    T.atomic_add(own[0], 1)
                 ^^^^^^ GM0346 use plain assignments
""",
    "a type without": """
    T.atomic_add(h[0], 1.0)
                 ^^^^ GM0346 keep it in a buffer of float32
""",
    "a float's maximum": """
    T.atomic_max(y[0], 1.0)
                 ^^^^ GM0346 keep it in a buffer of int32
""",
    "a value that does not fit": """
    T.atomic_add(x[0], 1.5)
                       ^^^ GM0260 write a whole number
""",
    "one value too few": """
    T.atomic_compare_exchange(x[0], 1)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0291 its arguments are: element, expected, value
""",
    "one operand too few by name": """
    T.call_intrin("int32", "tir.atomic_add", x[0])
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0291 give the address of an element
""",
    "another type stated": """
    old = T.call_intrin("int64", "tir.atomic_add", x[0], 1)
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0262 state "int32"
""",
    "a store gives nothing": """
    old = T.atomic_store(x[0], 1)
          ^^^^^^^^^^^^^^^^^^^^^^^ GM0306 write it as a statement
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    check_marked(HEADER + CASES[name].lstrip("\n"), lambda text: parse_source(text, "kernel.py"))


def test_a_constant_is_no_place():
    text = HEADER.replace("\n\n@", "\n\nALL = T.atomic_load(1)\n\n@") + "    x[tx] = T.int32(ALL)\n"
    with pytest.raises(Exception, match="GM0345"):
        parse_source(text, "kernel.py")
