"""Blocks become plain statements: axes, predicates, init, allocations, matched regions."""

import numpy as np
import pytest

from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome


def test_axes_become_names_and_init_a_condition():
    check_pass(
        LowerBlocks(),
        """
        @T.prim_func
        def f(a: T.Buffer((4, 8), "float32"), c: T.Buffer((4,), "float32")):
            for i, k in T.grid(4, 8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        c[vi] = T.float32(0)
                    c[vi] = c[vi] + a[vi, vk]
        """,
        """
        gristmill ir 1

        function @f(a: float32[4, 8], c: float32[4])
          symbol "f"
        {
          for i: int64 in 0 +: 4 {
            for k: int64 in 0 +: 8 {
              let vi: int64 = i
              let vk: int64 = k
              if vk == 0 {
                c[vi] = 0.0
              }
              c[vi] = c[vi] + a[vi, vk]
            }
          }
        }
        """,
    )


def test_a_predicate_guards_the_block():
    check_pass(
        LowerBlocks(),
        """
        @T.prim_func
        def f(a: T.Buffer((10,), "int32")):
            for i, j in T.grid(3, 4):
                with T.block("b"):
                    v = T.axis.spatial(10, i * 4 + j)
                    T.where(i * 4 + j < 10)
                    a[v] = 1
        """,
        """
        @T.prim_func
        def f(a: T.Buffer((10,), "int32")):
            for i, j in T.grid(3, 4):
                v = i * 4 + j
                if i * 4 + j < 10:
                    a[v] = 1
        """,
    )


def test_functions_without_blocks_come_back_as_they_are():
    module = kernels(
        """
        @T.prim_func
        def f(a: T.Buffer((10,), "int32")):
            for i in range(10):
                a[i] = 1
        """
    )
    assert LowerBlocks().run(module) is module


MATCHES = {
    "a region of two dimensions": """
        @T.prim_func
        def f(a: T.Buffer((8, 8), "int32"), b: T.Buffer((8, 8), "int32")):
            for i, j in T.grid(2, 2):
                with T.block("tile"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    from_ = T.match_buffer(a[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "int32")
                    to = T.match_buffer(b[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4], (4, 4), "int32")
                    for y, x in T.grid(4, 4):
                        to[y, x] = from_[x, y] * 3
        """,
    "a row": """
        @T.prim_func
        def f(a: T.Buffer((8, 8), "int32"), b: T.Buffer((8, 8), "int32")):
            for i in range(8):
                with T.block("row"):
                    vi = T.axis.spatial(8, i)
                    row = T.match_buffer(a[vi, 2:8], (6,), "int32")
                    for x in range(6):
                        b[vi, x] = row[x] + T.cast(x, "int32")
        """,
    "a match in a match, and memory of the block": """
        @T.prim_func
        def f(a: T.Buffer((8, 8), "int32"), b: T.Buffer((8, 8), "int32")):
            with T.block("outer"):
                tile = T.match_buffer(a[2:8, 1:7], (6, 6), "int32")
                with T.block("inner"):
                    part = T.match_buffer(tile[1:4, 2:5], (3, 3), "int32")
                    kept = T.alloc_buffer((3, 3), "int32")
                    for y, x in T.grid(3, 3):
                        kept[y, x] = part[y, x] - 7
                    for y, x in T.grid(3, 3):
                        b[y, x] = kept[x, y]
        """,
}


@pytest.mark.parametrize("text", MATCHES.values(), ids=MATCHES.keys())
def test_matched_buffers_reach_the_same_elements(text):
    before = kernels(text)
    after = LowerBlocks().run(before)
    args = [np.arange(64, dtype="int32").reshape(8, 8), np.zeros((8, 8), "int32")]
    assert same_outcome(outcome_of(before, "f", args), outcome_of(after, "f", args))
    assert np.any(outcome_of(after, "f", args)[2])
