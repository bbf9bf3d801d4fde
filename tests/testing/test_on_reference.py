"""The back end over the reference device: the same results compiled and interpreted, and errors as they are raised."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp import execute
from gristmill.script import parse_source
from gristmill.testing.on_device import flushes_denormals
from gristmill.testing.on_reference import ReferenceBackend, has_host_part

# Core's own tests run without the plugins.
pytest.importorskip("gristmill_llvm")
pytest.importorskip("gristmill_cpu")

SOURCE = """from gristmill.script import tir as T


@T.prim_func
def add(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "int32"), more: T.int32):
    for t in T.thread_binding(n, thread="threadIdx.x"):
        y[t] = x[t] + more
"""


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("optimization", [0, 3])
def test_results(interpreted: bool, optimization: int) -> None:
    module = parse_source(SOURCE, "add.py").module
    backend = ReferenceBackend(optimization=optimization, interpreted=interpreted)
    assert has_host_part(backend.generated(module)) is not interpreted
    x, y, wanted = np.arange(5, dtype=np.int32), np.zeros(5, np.int32), np.zeros(5, np.int32)
    assert backend(module, "add", [x, y, 7]) is None
    execute(module, "add", [x, wanted, 7])
    np.testing.assert_array_equal(y, wanted)
    with pytest.raises(UserError, match="GM0920"):
        backend(module, "add", [np.zeros(1025, np.int32), np.zeros(1025, np.int32), 7])


def test_denormals() -> None:
    backend = ReferenceBackend(interpreted=True)
    assert not flushes_denormals(backend)

    class Flushing(ReferenceBackend):
        def __call__(self, module, function, args):
            super().__call__(module, function, args)
            for arg in args:
                arg[np.abs(arg) < np.finfo(np.float32).tiny] = 0

    assert flushes_denormals(Flushing(interpreted=True))
