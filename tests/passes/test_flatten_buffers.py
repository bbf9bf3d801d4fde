"""Several indices become one, in int64; what cannot be flat stays."""

from gristmill.ir.expr import CallPacked, Load
from gristmill.ir.functor import walk
from gristmill.ir.stmt import View
from gristmill.passes.flatten_buffers import FlattenBuffers
from gristmill.testing.pass_equivalence import check_pass, kernels


def test_indices_are_summed_by_strides():
    check_pass(
        FlattenBuffers(),
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>, n: int64) {
          view a: float32[n, 4] over p
          view b: float32[2, 2] strides [8, 2] offset 3 over p
          allocate t: int32[2, 3] in local
          for i: int32 in 0i32 +: 2i32 {
            a[i, 1] = b[1, i]
            t[i, 2] = 5i32
          }
        }
        """,
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>, n: int64) {
          view a: float32[n * 4] over p
          view b: float32[14] over p
          allocate t: int32[6] in local
          for i: int32 in 0i32 +: 2i32 {
            a[int64(i) * 4 + 1] = b[11 + int64(i) * 2]
            t[int64(i) * 3 + 2] = 5i32
          }
        }
        """,
    )


def test_scalars_flat_buffers_and_symbolic_strides_stay():
    module = kernels(
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>, n: int64, s: int64) {
          view a: float32[n] over p
          view b: float32[n, n] strides [s, 1] over p
          allocate t: float32[] in local
          t[] = a[0] + b[0, 1]
        }
        """
    )
    assert FlattenBuffers().run(module) is module


def test_a_buffer_passed_whole_keeps_its_shape():
    module = kernels(
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>) {
          view a: float32[4, 4] over p
          a[1, 1] = 0.0
          evaluate packed "show"(buffer(a))
        }
        """
    )
    (function,) = FlattenBuffers().run(module).functions
    views = [node.buffer for node in walk(function) if isinstance(node, View)]
    assert [view.rank for view in views] == [1, 2]
    (call,) = [node for node in walk(function) if isinstance(node, CallPacked)]
    assert call.args[0].buffer is views[1]


def test_vector_indices_stay_vectors():
    module = kernels(
        """
        gristmill ir 1

        function @f(p: ptr<float32, global>) -> float32x4 {
          view a: float32[4, 8] over p
          return a[2, ramp(4, 1, 4)]
        }
        """
    )
    (load,) = [node for node in walk(FlattenBuffers().run(module)) if isinstance(node, Load)]
    assert repr(load.indices[0]) == "ramp(20, 1, 4)"
