"""Make a kernel of every device region, and launch it where the region stood.

Before::

    function @scale<n: int64>(x: float32[n], factor: float32)
      symbol "scale"
      target "host"
    {
      device_region "vulkan" {
        for b: int64 in 0 +: (n + 63) // 64 thread on blockIdx.x {
          for t: int64 in 0 +: 64 thread on threadIdx.x {
            if b * 64 + t < n {
              x[b * 64 + t] = x[b * 64 + t] * factor
            }
          }
        }
      }
    }

After::

    function @scale<n: int64>(x: float32[n], factor: float32)
      symbol "scale"
      target "host"
    {
      launch @scale_kernel(x_data, factor, n) over blockIdx.x = (n + 63) // 64, threadIdx.x = 64
    }

    function @scale_kernel(x_data: ptr<float32, global>, factor: float32, n: int64)
      symbol "scale_kernel"
      convention kernel
      target "vulkan"
      launch (blockIdx.x, threadIdx.x)
    {
      view x: float32[n] over x_data
      for b: int64 in 0 +: (n + 63) // 64 thread on blockIdx.x {
        ...
      }
    }

Requires: device regions in plain functions only (:mod:`gristmill_launch.annotate_device_regions`). Ensures: no device
region is left; kernels return nothing, and stand after the function that launches them, in the order of the launches.
The host evaluates extents, so what they use of the region's bindings is put in its place. Shared and local memory that
is declared around a region is the kernel's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Function, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import DeviceRegion, For, LoopKind
from gristmill.passes.function_names import FunctionNames
from gristmill.passes.manager import Pass
from gristmill_launch.outlining import outline
from gristmill_launch.own_memory import HostMemory, without_unused


@dataclass(frozen=True)
class SplitHostDevice(Pass):
    """Make a kernel of every device region, and launch it where the region stood."""

    def run(self, module: Module) -> Module:
        """The module with a kernel for each region.

        Raises UserError: GM0646 for a launch in a vectorized loop, GM0652-GM0657 for others that cannot be, at the
        place in the user's kernel.
        """
        names = FunctionNames(module.functions)
        found: list[Function] = []
        for function in module.functions:
            if any(isinstance(node, DeviceRegion) for node in walk(function.body)):
                splitting = _Splitting(function, names)
                found.append(function.with_body(without_unused(splitting.visit(function.body))))
                found += splitting.kernels
            else:
                found.append(function)
        return module.with_functions(found)


class _Splitting(Mutator):
    def __init__(self, function: Function, names: FunctionNames) -> None:
        super().__init__()
        self.function = function
        self.memory = HostMemory.of(function)
        self.names = names
        self.kernels: list[Function] = []
        self.lanes: For | None = None

    def visit_For(self, node: For) -> Any:
        outer = self.lanes
        if node.kind is LoopKind.VECTORIZED:
            self.lanes = node
        found = self.generic(node)
        self.lanes = outer
        return found

    def visit_DeviceRegion(self, node: DeviceRegion) -> Any:
        if self.lanes is not None:
            raise _in_lanes(node, self.lanes)
        stem = self.function.facts.symbol or self.function.name
        outlined = outline(self.function, node, self.memory, self.names.new(f"{stem}_kernel"))
        self.kernels.append(outlined.kernel)
        return outlined.launch


def _in_lanes(region: DeviceRegion, loop: For) -> UserError:
    return UserError(
        Diagnostic(
            "GM0646",
            f"this begins a launch inside of the vectorized loop over `{loop.var.name}`",
            place_of(region.span),
            label="a launch",
            hint="make the loop around it serial",
            notes=(Note("the vectorized loop is here", place_of(loop.span)),),
        )
    )
