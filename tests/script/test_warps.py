"""Exchanges between threads: what kernels write, what it becomes, where it may not stand."""

import numpy as np
import pytest

from gristmill.interp.executor import execute
from gristmill.ir.build import constant_value
from gristmill.ir.equal import first_difference
from gristmill.ir.functor import walk
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_node
from gristmill.ir.stmt import Bind
from gristmill.ir.verify import check
from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((40,), "float32"), k: T.Buffer((40,), "int32"), y: T.Buffer((40,), "uint64")):
    tx = T.launch_thread("threadIdx.x", 40)
"""


def read(body):
    module = parse_source(HEADER + body, "kernel.py").module
    check(module)
    assert first_difference(module, parse_module(print_node(module))) is None
    return module


def run(body):
    x, k, y = np.arange(40, dtype="float32"), np.arange(40, dtype="int32") % 5, np.zeros(40, "uint64")
    execute(read(body), "f", [x, k, y])
    return x, k, y


def shifted(distance, width):
    """What `warp_shuffle_down` makes of 0, 1, 2, ..."""
    end = [min(t // width * width + width, 40) for t in range(40)]
    return [t + distance if t + distance < end[t] else t for t in range(40)]


def test_each_spelling():
    assert run("    x[tx] = T.warp_shuffle_down(x[tx], 3)\n")[0].tolist() == shifted(3, 32)
    assert run("    x[tx] = T.warp_shuffle_down(x[tx], 3, width=8)\n")[0].tolist() == shifted(3, 8)
    assert run("    x[tx] = T.warp_shuffle_up(x[tx], -3, width=8)\n")[0].tolist() == shifted(3, 8)
    assert run("    x[tx] = T.warp_shuffle(x[tx], -1, 8)\n")[0].tolist() == [t // 8 * 8 + 7 for t in range(40)]
    assert run("    x[tx] = T.warp_shuffle_xor(x[tx], mask=5, width=8)\n")[0].tolist() == [t ^ 5 for t in range(40)]
    classic = "    x[tx] = T.tvm_warp_shuffle_down(T.uint32(0xFFFFFFFF), x[tx], T.int32(3), 16, 32)\n"
    assert run(classic)[0].tolist() == shifted(3, 16)
    classic = "    x[tx] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), x[tx], 0, 32, 32)\n"
    assert run(classic)[0].tolist() == [0] * 32 + [32] * 8


def test_votes():
    assert set(run("    y[tx] = T.warp_ballot(k[tx] == 0, width=16)\n")[2].tolist()) == {0x8421, 0x4210, 0x08}
    assert run("    y[tx] = T.uint64(T.tvm_warp_activemask())\n")[2].tolist() == [2**32 - 1] * 32 + [255] * 8
    body = (
        "    if T.warp_any(tx == 35):\n        k[tx] = 7\n    if T.warp_all(tx >= 16, width=16):\n        k[tx] = 8\n"
    )
    found = run(body)[1].tolist()
    assert found[:16] == [t % 5 for t in range(16)]
    assert found[16:] == [8] * 24


def test_a_sum_by_a_local_scalar_in_a_loop():
    body = """
    total = x[tx]
    step = T.int32(16)
    while step > 0:
        total = total + T.warp_shuffle_xor(total, step)
        step = step // 2
    if tx < 32:
        x[tx] = total
"""
    assert run(body)[0][:32].tolist() == [496] * 32


def test_the_text_is_a_binding_of_its_own():
    module = read("    x[tx] = x[tx] + T.warp_shuffle_down(x[tx], k[tx] + 1) * 2.0\n")
    bound = [print_node(node.value) for node in walk(module) if isinstance(node, Bind)]
    assert "warp_shuffle_down(x[tx], k[tx] + 1i32, 32i32)" in bound


def test_an_index_of_64_bits_becomes_a_lane():
    module = read("    x[tx] = T.warp_shuffle(x[tx], tx + 1)\n")
    bound = [print_node(node.value) for node in walk(module) if isinstance(node, Bind)]
    assert "warp_shuffle(x[tx], int32(tx + 1), 32i32)" in bound
    assert all(constant_value(node.value) is None for node in walk(module) if isinstance(node, Bind))


CASES = {
    "in a choice": """
    x[tx] = T.warp_shuffle(x[tx], 0) if tx < 8 else x[tx]
            ^^^^^^^^^^^^^^^^^^^^^^^^ GM0343 give its result a name first
""",
    "in a choice by its function": """
    x[tx] = T.if_then_else(tx < 8, x[tx], T.warp_shuffle(x[tx], 0))
                                          ^^^^^^^^^^^^^^^^^^^^^^^^ GM0343 give its result a name first
""",
    "second in a condition": """
    if tx < 8 and T.warp_any(x[tx] > 0):
                  ^^^^^^^^^^^^^^^^^^^^^ GM0343 give its result a name first
        x[tx] = 0
""",
    "in the condition of a loop": """
    while T.warp_any(x[tx] > 0):
          ^^^^^^^^^^^^^^^^^^^^^ GM0343 give its result a name first
        x[tx] = x[tx] - 1
""",
    "in a vectorized loop": """
    for i in T.vectorized(4):
        k[i] = T.warp_shuffle(k[i], 0)
               ^^^^^^^^^^^^^^^^^^^^^^^ GM0343 make the loop serial
""",
    "in a block": """
    with T.block("b"):
        v = T.axis.spatial(40, tx)
        k[v] = T.warp_shuffle(k[v], 0)
               ^^^^^^^^^^^^^^^^^^^^^^^ GM0343 write plain loops
""",
    "width": """
    x[tx] = T.warp_shuffle(x[tx], 0, width=24)
                                           ^^ GM0344 write 32
""",
    "width that is too large": """
    x[tx] = T.warp_shuffle(x[tx], 0, 128)
                                     ^^^ GM0344 write 32
""",
    "more than a warp": """
    x[tx] = T.tvm_warp_shuffle_up(0, x[tx], 1, 64, 32)
                                               ^^ GM0344 write 32
""",
    "vectors": """
    x[0:4] = T.warp_shuffle(x[0:4], 1)
                            ^^^^^^ GM0266 exchange lane by lane
""",
    "a lane that is a float": """
    x[tx] = T.warp_shuffle(x[tx], x[0])
                                  ^^^^ GM0266 convert it
""",
    "dropped": """
    T.warp_shuffle(x[tx], 0)
    ^^^^^^^^^^^^^^^^^^^^^^^^ GM0256 remove it
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    check_marked(HEADER + CASES[name].lstrip("\n"), lambda text: parse_source(text, "kernel.py"))


def test_a_constant_is_no_place():
    text = HEADER.replace("\n\n@", "\n\nALL = T.warp_all(True)\n\n@") + "    k[tx] = T.int32(ALL)\n"
    with pytest.raises(Exception, match="GM0343") as caught:
        parse_source(text, "kernel.py")
    assert caught.value.diagnostics[0].code == "GM0343"
