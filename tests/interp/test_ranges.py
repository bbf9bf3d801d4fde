"""Where memory lies: the operations ``disjoint`` and ``aligned``."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import Executor, execute
from gristmill.interp.memory import Opaque
from gristmill.interp.ranges import aligned, disjoint
from gristmill.testing.placed import placed_module

ASK = """
function @ask(a: uint8[4] data p: ptr<uint8, global>, b: uint8[4], a_bytes: int64, b_bytes: int64) -> bool {
  return disjoint(p, a_bytes, &b[0], b_bytes) as bool
}
"""
OWN = """
function @own(a: uint8[4]) -> bool {
  allocate t: uint8[4] in local
  return disjoint(&a[0], 4, &t[0], 4) as bool and not disjoint(&t[0], 3, &t[2], 1) as bool
}
"""


ALIGNED = """
function @ask(a: uint8[1] data p: ptr<uint8, global>) -> bool {
  return aligned(p, 8) as bool
}
"""


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize(("a_bytes", "b_bytes"), [(4, 4), (1, 4), (4, 1), (0, 4), (4, 0), (-3, 4), (4, -1)])
def test_arrays_of_the_caller(start: int, a_bytes: int, b_bytes: int) -> None:
    whole = np.zeros(16, np.uint8)
    found = execute(placed_module(ASK)[0], "ask", [whole[4:8], whole[start : start + 4], a_bytes, b_bytes]).value
    first, second = set(range(4, 4 + a_bytes)), set(range(start, start + b_bytes))
    assert bool(found) is not bool(first & second)


def test_new_memory_is_apart_from_all_other() -> None:
    assert execute(placed_module(OWN)[0], "own", [np.zeros(4, np.uint8)]).value


def test_pointers_from_outside_are_taken_to_overlap() -> None:
    execution = Executor(placed_module(OWN)[0]).execution(None)
    assert not disjoint(execution, 0, Opaque(16), 4, Opaque(64), 4)
    assert disjoint(execution, 0, Opaque(16), 0, Opaque(16), 4)


@pytest.mark.parametrize("start", range(17))
def test_addresses_of_the_caller_are_multiples_or_not(start: int) -> None:
    part = np.zeros(32, np.uint8)[start : start + 1]
    assert bool(execute(placed_module(ALIGNED)[0], "ask", [part]).value) is (part.ctypes.data % 8 == 0)


def test_addresses_from_outside_are_multiples_or_not() -> None:
    execution = Executor(placed_module(OWN)[0]).execution(None)
    assert aligned(execution, 0, Opaque(48), 16)
    assert not aligned(execution, 0, Opaque(40), 16)
    assert not aligned(execution, 0, None, 16)
