"""An assert that fails in one thread of a launch: the report names the text and the thread, however host code runs."""

import numpy as np
import pytest

from gristmill.interp import AssertionFailed, Executor
from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.pass_equivalence import kernels

TEXT = """
@T.prim_func(private=True)
def checked(x: T.Buffer((64,), "float32"), i: T.int64) -> T.float32:
    s = T.alloc_shared((32,), "float32")
    s[i % 32] = x[i]
    assert s[i % 32] < 40.0, ("ValueError", ["element ", i, " is too great"])
    return s[31 - i % 32]

@T.prim_func
def main(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            y[b * 32 + t] = checked(x, b * 32 + t)
"""


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("interpreted", [False, True])
def test_the_report_names_the_text_and_the_thread(optimization: int, interpreted: bool) -> None:
    module = kernels(TEXT)
    backend = ReferenceBackend(optimization=optimization, interpreted=interpreted)
    good = [np.minimum(np.arange(64, dtype="float32"), 39), np.zeros(64, "float32")]
    backend(module, "main", good)
    assert np.array_equal(good[1].reshape(2, 32), good[0].reshape(2, 32)[:, ::-1])
    with pytest.raises(AssertionFailed) as caught:
        backend(module, "main", [np.arange(64, dtype="float32"), np.zeros(64, "float32")])
    assert (caught.value.kind, caught.value.message) == ("ValueError", "element 40 is too great")
    assert "element 40 is too great" in str(caught.value)
    assert "blockIdx.x = 1, threadIdx.x = 8" in str(caught.value)


def test_the_executor_says_the_same_of_the_program_as_written() -> None:
    module = kernels(TEXT.replace("    return s[31", "    T.syncthreads()\n    return s[31"))
    with pytest.raises(AssertionFailed) as caught:
        Executor(module).call("main", [np.arange(64, dtype="float32"), np.zeros(64, "float32")])
    assert "element 40 is too great" in str(caught.value)
    assert "blockIdx.x = 1, threadIdx.x = 8" in str(caught.value)
