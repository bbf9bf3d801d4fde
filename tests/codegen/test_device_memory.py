"""Which allocations of host code are made on the device."""

from __future__ import annotations

from gristmill.codegen.device_memory import device_allocations
from gristmill.ir.parser import parse_module

TEXT = """gristmill ir 1

function @run(n: int64, context: handle)
  symbol "run"
{
  allocate direct: float32[n] data direct_data: ptr<float32, global>
  launch @k(direct_data) over threadIdx.x = 4 context context
  allocate viewed: float32[n] data viewed_data: ptr<float32, global>
  view other: int32[n] data other_data: ptr<int32, global> from viewed_data
  let named: handle = other_data
  launch @k(named) over threadIdx.x = 4 context context
  allocate passed: float32[n] data passed_data: ptr<float32, global>
  evaluate @inner(passed_data, context)
  allocate helped: float32[n] data helped_data: ptr<float32, global>
  evaluate @helper(helped_data)
  allocate own: float32[] in local data own_data: ptr<float32, local>
  own[] = 1.0
}

function @inner(p: handle, context: handle)
{
  launch @k(p) over threadIdx.x = 4 context context
}

function @helper(p: handle)
{
}

function @k(p: handle)
  symbol "k"
  convention kernel
  target "reference"
  launch (threadIdx.x)
  declaration
{
}
"""


def test_what_reaches_a_kernel_is_on_the_device() -> None:
    module = parse_module(TEXT, "m.gmir")
    found = device_allocations(module.functions[0], frozenset({"run", "inner"}))
    assert sorted(var.name for var in found) == ["direct_data", "passed_data", "viewed_data"]
