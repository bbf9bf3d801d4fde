"""Parting: kernels and what they call go to the device, the rest stays, with declarations of kernels."""

from __future__ import annotations

from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module
from gristmill.ir.verify import check
from gristmill.passes.part_by_target import part_by_target

KERNEL_HEAD = """function @k(x: ptr<float32, global>)
  symbol "k"
  convention kernel
  target "reference"
  launch (threadIdx.x)
"""
KERNEL_BODY = """{
  view X: float32[4] over x
  for t: int64 in 0 +: 4 thread on threadIdx.x {
    X[t] = @both(X[t]) as float32 + @own(1.0) as float32
  }
}
"""
OWN = """function @own(v: float32) -> float32 {
  return v + 1.0
}
"""
BOTH = """function @both(v: float32) -> float32 {
  return v * 2.0
}
"""
HOST = """function @run(x: handle, v: float32, context: handle)
  symbol "run"
{
  let w: float32 = @both(v) as float32
  if w > 3.0 {
    launch @k(x) over threadIdx.x = 4 context context
  }
}
"""


def test_parts() -> None:
    texts = (KERNEL_HEAD + KERNEL_BODY, OWN, BOTH, HOST)
    module = parse_module("gristmill ir 1\n\n" + "\n".join(texts), "m.gmir")
    parts = part_by_target(module)
    check(parts.host)
    check(parts.device)
    assert print_module(parts.device) == "gristmill ir 1\n\n" + "\n".join((KERNEL_HEAD + KERNEL_BODY, OWN, BOTH))
    assert print_module(parts.host) == "gristmill ir 1\n\n" + "\n".join(
        (KERNEL_HEAD + "  declaration\n{\n}\n", BOTH, HOST)
    )


def test_a_module_without_public_functions_keeps_what_no_kernel_calls() -> None:
    module = parse_module("gristmill ir 1\n\n" + "\n".join((KERNEL_HEAD + "{\n}\n", BOTH)), "m.gmir")
    parts = part_by_target(module)
    assert [function.name for function in parts.host.functions] == ["k", "both"]
    assert [function.name for function in parts.device.functions] == ["k"]


def test_a_kernel_that_does_nothing_is_no_declaration() -> None:
    module = parse_module("gristmill ir 1\n\n" + KERNEL_HEAD + "{\n}\n", "m.gmir")
    parts = part_by_target(module)
    assert [function.facts.declaration for function in (*parts.host.functions, *parts.device.functions)] == [
        True,
        False,
    ]
