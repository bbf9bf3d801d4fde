"""What is wrong with a private function that nothing calls fails no build."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.script import parse_source
from gristmill.testing.on_reference import ReferenceBackend

UNUSED = {
    "host code that touches the device": """
    if s[0] > 0:
        for t in T.thread_binding(4, "threadIdx.x"):
            s[t] = 1
""",
    "a barrier that some threads come to": """
    for t in T.thread_binding(64, "threadIdx.x"):
        if t < 4:
            T.syncthreads()
""",
    "too many threads": """
    for t in T.thread_binding(4096, "threadIdx.x"):
        s[t] = 1
""",
}
TEXT = """from gristmill.script import tir as T

@T.prim_func(private=True)
def unused(s: T.Buffer((64,), "int32")):{body}

@T.prim_func
def f(x: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        x[t] = x[t] + 1
{call}
"""


@pytest.mark.parametrize("body", UNUSED.values(), ids=UNUSED)
def test_a_private_function_that_nothing_calls(body: str) -> None:
    x = np.arange(4, dtype=np.int32)
    backend = ReferenceBackend()
    backend(parse_source(TEXT.format(body=body, call=""), "kernel.py").module, "f", [x])
    assert list(x) == [1, 2, 3, 4]
    used = TEXT.replace("(4,)", "(64,)").format(body=body, call="    unused(x)")
    with pytest.raises(UserError):
        backend(parse_source(used, "kernel.py").module, "f", [np.zeros(64, np.int32)])
