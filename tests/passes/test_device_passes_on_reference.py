"""What the device passes make, built, packed, loaded and launched: the same results, and races reported by the device."""

import numpy as np
import pytest

# Core's own tests run without the plugins.
pytest.importorskip("gristmill_launch")
pytest.importorskip("gristmill_llvm")
pytest.importorskip("gristmill_cpu")

from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.pass_equivalence import kernels

KERNELS = {
    "shared memory around the loops, barriers missing": (
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32")):
            s = T.alloc_buffer((64,), "float32", scope="shared")
            for b in T.thread_binding(n // 64, thread="blockIdx.x"):
                for t in T.thread_binding(64, thread="threadIdx.x"):
                    s[t] = x[b * 64 + t]
                    x[b * 64 + t] = s[63 - t]
        """,
        lambda: [np.arange(192, dtype="float32")],
        lambda args: args[0].reshape(3, 64)[:, ::-1].ravel(),
    ),
    "a reduction by 33 threads a row": (
        """
        @T.prim_func
        def f(x: T.Buffer(("n",), "float32"), a: T.Buffer(("n", 100), "float32")):
            for b in T.thread_binding(n, thread="blockIdx.x"):
                for t in T.thread_binding(33, thread="threadIdx.x"):
                    for k in range(4):
                        with T.block("sum"):
                            vi = T.axis.spatial(n, b)
                            vk = T.axis.reduce(100, k * 33 + t)
                            T.where(k * 33 + t < 100)
                            with T.init():
                                x[vi] = T.float32(0)
                            x[vi] = x[vi] + a[vi, vk]
        """,
        lambda: [np.ones(5, "float32"), np.arange(500, dtype="float32").reshape(5, 100)],
        lambda args: args[1].sum(1),
    ),
    "two dynamic buffers of two types, in two launches": (
        """
        @T.prim_func
        def f(x: T.Buffer((64,), "float32"), n: T.int64):
            a = T.alloc_buffer((n,), "int8", scope="shared.dyn")
            b = T.alloc_buffer((n,), "float64", scope="shared.dyn")
            for t in T.thread_binding(64, thread="threadIdx.x"):
                a[t] = T.int8(3)
                b[t] = T.cast(x[t], "float64")
                x[t] = T.cast(b[63 - t], "float32") + T.cast(a[63 - t], "float32")
            for t in T.thread_binding(64, thread="threadIdx.x"):
                a[63 - t] = T.int8(2)
                x[t] = x[t] * T.cast(a[t], "float32")
        """,
        lambda: [np.arange(64, dtype="float32"), 64],
        lambda args: (args[0][::-1] + 3) * 2,
    ),
}


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize(("text", "make", "expected"), KERNELS.values(), ids=KERNELS)
def test_on_the_reference_device(text, make, expected, interpreted):
    backend = ReferenceBackend(interpreted=interpreted)
    args = make()
    wanted = expected(make())
    backend(kernels(text), "f", args)
    assert np.array_equal(args[0], wanted)
