"""Say in host functions what runs on the device, and on which: a loop over threads begins a region.

Before::

    function @scale(x: float32[64])
      symbol "scale"
      target "host"
    {
      for t: int64 in 0 +: 64 thread on threadIdx.x {
        x[t] = x[t] * 2.0
      }
    }

After::

    function @scale(x: float32[64])
      symbol "scale"
      target "host"
    {
      device_region "vulkan" {
        for t: int64 in 0 +: 64 thread on threadIdx.x {
          x[t] = x[t] * 2.0
        }
      }
    }

Requires: functions are bound to targets (:mod:`gristmill_launch.bind_targets`). Ensures: every loop over threads of a
host function is in a region. Regions that are there already stay as they are; functions of a device, and all of a
build for a host, are not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gristmill.errors import InternalError
from gristmill.ir.expr import Expr
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import DeviceRegion, For
from gristmill.ir.target import Target
from gristmill.passes.manager import Pass
from gristmill_launch.sides import is_host, is_thread_loop


@dataclass(frozen=True)
class AnnotateDeviceRegions(Pass):
    """Put what begins a launch in host functions into device regions."""

    target: Target | None = None
    """The device; None in a build for a host."""

    def run(self, module: Module) -> Module:
        if self.target is None:
            return module
        annotating = _Annotating(self.target)
        return module.with_functions(annotating.function(function) for function in module.functions)


class _Annotating(Mutator):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def function(self, function: Function) -> Function:
        """The function with its regions."""
        target = function.facts.target
        if target is None and function.is_public:
            raise InternalError(f"`{function.name}` is bound to no target", place=place_of(function.span))
        plain = function.facts.convention is CallingConvention.PLAIN
        if target is None or not is_host(target) or not plain or not any(map(is_thread_loop, walk(function.body))):
            return function
        return function.with_body(self.visit(function.body))

    def visit_Expr(self, node: Expr) -> Any:
        return node

    def visit_DeviceRegion(self, node: DeviceRegion) -> Any:
        return node

    def visit_For(self, node: For) -> Any:
        return DeviceRegion(node, self.target, node.span) if is_thread_loop(node) else self.generic(node)
