"""Compute the indices of kernels in 32 bits, for devices without int64; the host checks first that they fit.

Before::

    function @f(x: float32[n]) {
      launch @f_kernel(x_data, n) over (n)
    }
    function @f_kernel(x_data: handle, n: int64) {
      view x: float32[n] over x_data
      for b: int64 in 0 +: n thread on blockIdx.x { x[b * 2 % n] = 0.0 }
    }

After::

    function @f(x: float32[n]) {
      reach = float64(n)
      reach_1 = (reach - 1.0) * 2.0
      assert n <= 0 or (reach <= 2147483647.0 and reach_1 <= 2147483647.0 and ...)
      launch @f_kernel(x_data, int32(n)) over (n)
    }
    function @f_kernel(x_data: handle, n: int32) {
      view x: float32[n] over x_data
      for b: int32 in 0 +: n thread on blockIdx.x { x[b * 2 % n] = 0.0 }
    }

Names, loops and scalar arguments of int64 become int32, and so does what is computed from them. That is exact where no
result leaves int32; :mod:`gristmill.passes.index_reach` says how far each may go, as expressions of the kernel's
arguments, which the host computes in float64 before each launch. An index itself may wrap on the way: it is within its
array, whose number of elements is among what is checked.

Functions that kernels call are copied for each call. What cannot be followed so (elements of int64 arrays, local scalars
of int64) stays int64, and the code generator says at its place that the device has none.

Requires: kernels are split off; no blocks in them. Ensures: the buffers of kernels are flat, as far as strides allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.build import cast, conjunction, disjunction, less_equal, sequence
from gristmill.ir.dtype import INT64
from gristmill.ir.expr import Expr, IntImm, Var
from gristmill.ir.functor import Mutator, substitute, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import Assert, Bind, Launch, Stmt
from gristmill.passes.flatten_buffers import flatten_buffers
from gristmill.passes.index_reach import Reaches
from gristmill.passes.manager import Pass
from gristmill.passes.narrow_helpers import Helpers
from gristmill.passes.narrow_kernel import KernelNarrowing
from gristmill.plugin.protocols import PassContext


@dataclass(frozen=True)
class NarrowIndices(Pass):
    """Compute the indices of kernels in 32 bits where the device has no int64, and check on the host that they fit."""

    needed: bool = True
    target: str = "the device"
    """What messages call the device."""

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        return {"needed": INT64 not in context.capabilities.dtypes, "target": str(context.target)}

    def run(self, module: Module) -> Module:
        if not self.needed:
            return module
        narrowed: dict[str, _Narrowed] = {}
        functions = []
        helpers = Helpers(module)
        for function in module.functions:
            if function.facts.convention is CallingConvention.DEVICE_KERNEL and not function.facts.declaration:
                narrowed[function.name] = found = narrow_kernel(function, helpers)
                functions.append(found.kernel)
            else:
                functions.append(function)
        if not narrowed:
            return module
        checked = [
            function if function.name in narrowed else _checked(function, narrowed, self.target)
            for function in functions
        ]
        return module.with_functions((*checked, *helpers.copies))


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """A kernel in 32 bits, its parameters as they were, and what must hold of them."""

    kernel: Function
    params: tuple[Var, ...]
    reaches: Reaches


def narrow_kernel(function: Function, helpers: Helpers) -> _Narrowed:
    """A kernel with its index arithmetic in int32, and how far that reaches."""
    flat = flatten_buffers(function)
    params = tuple(param for param in flat.params if isinstance(param, Var))
    assert len(params) == len(flat.params), "kernels have no buffer parameters"
    narrowing = KernelNarrowing(_sizes(flat), helpers)
    new_params = tuple(narrowing.parameter(param) for param in params)
    body = narrowing.visit(flat.body)
    return _Narrowed(replace(flat, params=new_params, body=body), params, narrowing.reaches)


def _sizes(function: Function) -> frozenset[Var]:
    """Variables that are sizes of arrays, and so not negative."""
    shapes = (size for node in walk(function.body) if isinstance(node, Buffer) for size in node.shape)
    return frozenset(part for size in shapes for part in walk(size) if isinstance(part, Var))


def _checked(function: Function, narrowed: Mapping[str, _Narrowed], target: str) -> Function:
    """A host function with a check before each launch."""
    if not any(isinstance(node, Launch) and node.kernel in narrowed for node in walk(function.body)):
        return function
    return function.with_body(_Checking(function, narrowed, target).visit(function.body))


class _Checking(Mutator):
    def __init__(self, function: Function, narrowed: Mapping[str, _Narrowed], target: str) -> None:
        super().__init__()
        self.function = function
        self.narrowed = narrowed
        self.target = target
        own = [param for param in function.params if isinstance(param, Var)]
        self.told = [var for var in (*function.sizes, *own) if var.dtype.is_integer]
        self.values: dict[Var, Expr] = {}

    def visit_Bind(self, node: Bind) -> Any:
        self.values[node.var] = node.value
        return node

    def visit_Launch(self, node: Launch) -> Any:
        found = self.narrowed.get(node.kernel)
        if found is None:
            return node
        before: list[Stmt] = []
        given: dict[Var, Expr] = {}
        args = []
        for param, new, arg in zip(found.params, found.kernel.params, node.args, strict=True):
            assert isinstance(new, Var)
            if param.dtype.is_handle or param.dtype.is_float:
                args.append(arg)
                continue
            if not isinstance(arg, (Var, IntImm)):
                named = Var(param.name, param.dtype)
                before.append(Bind(named, arg, node.span))
                arg = named
            given[param] = arg
            args.append(cast(arg, new.dtype))
        for var, value in found.reaches.names:
            given[var] = fresh = Var(var.name, var.dtype)
            before.append(Bind(fresh, substitute(value, given), node.span))
        fits = conjunction(substitute(condition, given) for condition in found.reaches.conditions)
        if not (isinstance(fits, IntImm) and fits.value == 1):
            condition = disjunction((*(less_equal(extent, 0) for extent in node.extents), fits))
            before.append(Assert(condition, "ValueError", self.message(node), node.span))
        return sequence(*before, replace(node, args=tuple(args)))

    def message(self, node: Launch) -> tuple[str | Expr, ...]:
        """What is told: the sizes and numbers that the launch depends on."""
        name = self.function.facts.symbol or self.function.name
        parts: list[str | Expr] = [f"{name}: indices would need more than 32 bits, and {self.target} has no int64"]
        for number, var in enumerate(self.behind((*node.args, *node.extents))):
            parts += [f"{', ' if number else '; '}`{var.name}` is ", var]
        return tuple(parts)

    def behind(self, values: Sequence[Expr]) -> list[Var]:
        """The sizes and scalars of the function that values come from, through the names between."""
        seen: set[Var] = set()
        waiting = list(values)
        while waiting:
            for part in walk(waiting.pop()):
                if isinstance(part, Var) and part not in seen:
                    seen.add(part)
                    if part in self.values:
                        waiting.append(self.values[part])
        return [var for var in self.told if var in seen]
