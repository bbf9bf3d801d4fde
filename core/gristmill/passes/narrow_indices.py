"""Compute the indices of kernels in 32 bits where they fit: before each launch the host finds out whether they do.

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
      if reach <= 2147483647.0 and reach_1 <= 2147483647.0 and ... {
        launch @f_kernel(x_data, int32(n)) over (n)
      } else {
        launch @f_kernel_wide(x_data, n) over (n)
      }
    }
    function @f_kernel(x_data: handle, n: int32) {
      view x: float32[n] over x_data
      for b: int32 in 0 +: n thread on blockIdx.x { x[b * 2 % n] = 0.0 }
    }
    function @f_kernel_wide(x_data: handle, n: int64) { ... as it was ... }

Names, loops and scalar arguments of int64 become int32, and so does what is computed from them. That is exact where no
result leaves int32; :mod:`gristmill.passes.index_reach` says how far each may go, as expressions of the kernel's
arguments, which the host computes in float64 before each launch. An index itself may wrap on the way: it is within its
array, whose number of elements is among what is checked.

Functions that kernels call are copied for each call. What cannot be followed so (elements of int64 arrays, local scalars
of int64) stays int64. A kernel that always fits is made in 32 bits only, one in which nothing would become narrower in 64
bits only. With ``width`` "narrow", for devices without int64, there is no second kernel: the host refuses a launch that does
not fit, and the code generator says at its place what the device does not have.

Requires: kernels are split off; no blocks in them. Ensures: the buffers of narrow kernels are flat, as far as strides allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gristmill.ir.dtype import INT32, INT64
from gristmill.ir.expr import BinaryExpr, CallFunction, Cast, CompareExpr, Expr, Negate, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import For, LoopKind, Seq, Stmt, View
from gristmill.passes.flatten_buffers import flatten_buffers
from gristmill.passes.function_names import FunctionNames
from gristmill.passes.index_widths import AUTO, BOTH, NARROW, WIDE
from gristmill.passes.manager import Pass
from gristmill.passes.narrow_helpers import Helpers
from gristmill.passes.narrow_kernel import KernelNarrowing
from gristmill.passes.narrow_launches import Narrowed, with_choices
from gristmill.passes.renewal import renewed
from gristmill.plugin.protocols import PassContext

WIDE_SUFFIX = "_wide"
"""Of the name of a kernel in 64 bits, where there is one in 32 that has the plain name."""


@dataclass(frozen=True)
class NarrowIndices(Pass):
    """Compute the indices of kernels in 32 bits where the host finds, before a launch, that they fit."""

    width: str = NARROW
    """``narrow``: kernels in 32 bits, and launches that do not fit are refused; ``both``: kernels in 32 and in 64 bits, as
    far as there is a difference; ``wide``: kernels as they are."""
    target: str = "the device"
    """What messages call the device."""
    limit: int = INT32.maximum
    """The greatest index that counts as one of 32 bits; a smaller one has launches take the other kernel."""
    has_int64: bool = False

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        capabilities, options = context.capabilities, context.options
        has_int64 = INT64 in capabilities.dtypes
        asked = options.get("indices", AUTO)
        if not has_int64:
            asked = NARROW
        elif asked == AUTO:
            asked = BOTH if capabilities.slow_int64 else WIDE
        limit = int(options.get("index_limit", INT32.maximum))
        return {"width": asked, "target": str(context.target), "limit": limit, "has_int64": has_int64}

    def run(self, module: Module) -> Module:
        """The module with what ``width`` asks for. Raises ValueError for one that is none."""
        if self.width not in (NARROW, BOTH, WIDE):
            raise ValueError(f"the width of indices is {NARROW}, {BOTH} or {WIDE}, not {self.width!r}")
        kernels = [function for function in module.functions if _is_kernel(function)]
        if self.width == WIDE or not kernels:
            return module
        helpers = Helpers(module)
        names = FunctionNames(module.functions)
        costs = _Costs(module)
        narrowed: dict[str, Narrowed] = {}
        functions: list[Function] = []
        for function in module.functions:
            if not _is_kernel(function):
                functions.append(function)
                continue
            found = self.narrowed(function, helpers, costs)
            if found is None:
                functions.append(function)
                continue
            functions.append(found.kernel)
            if self.width == BOTH and not found.always_fits:
                name = names.new(f"{function.name}{WIDE_SUFFIX}")
                found = replace(found, wide=name)
                functions.append(replace(function, name=name).with_facts(symbol=name))
            narrowed[function.name] = found
        if not narrowed:
            return module
        refusal = f"indices would need more than 32 bits, and {self.target} has no int64"
        if self.has_int64:
            refusal = 'indices would need more than 32 bits, and the kernels were built with `indices = "narrow"`'
        checked = [
            function if _is_kernel(function) else with_choices(function, narrowed, refusal) for function in functions
        ]
        return module.with_functions((*checked, *helpers.copies))

    def narrowed(self, function: Function, helpers: Helpers, costs: _Costs) -> Narrowed | None:
        """The kernel in 32 bits; None where both are asked for, and this would be no better than the one in 64."""
        if self.width != BOTH:
            return narrow_kernel(function, helpers, self.limit)
        kept = len(helpers.copies)
        # The two have no names in common.
        params = tuple(replace(param) for param in function.params if isinstance(param, Var))
        body = renewed(function.body, dict(zip(_scalars(function), params, strict=True)))
        found = narrow_kernel(replace(function, params=params, body=body), helpers, self.limit)
        copies = {copy.name: copy for copy in helpers.copies[kept:]}
        if costs.of(found.kernel, copies) < costs.of(function):
            return found
        helpers.drop(kept)
        return None


def _is_kernel(function: Function) -> bool:
    return function.facts.convention is CallingConvention.DEVICE_KERNEL and not function.facts.declaration


def _scalars(function: Function) -> tuple[Var, ...]:
    params = tuple(param for param in function.params if isinstance(param, Var))
    assert len(params) == len(function.params), "kernels have no buffer parameters"
    return params


def narrow_kernel(function: Function, helpers: Helpers, limit: int = INT32.maximum) -> Narrowed:
    """A kernel with its index arithmetic in int32, and how far that reaches."""
    flat = flatten_buffers(function)
    params = _scalars(flat)
    narrowing = KernelNarrowing(_sizes(function), helpers, limit)
    new_params = tuple(narrowing.parameter(param) for param in params)
    body = narrowing.visit(flat.body)
    return Narrowed(replace(flat, params=new_params, body=body), params, narrowing.reaches)


def _sizes(function: Function) -> frozenset[Var]:
    """Parameters that are sizes of arrays, and so not negative.

    A part of a size may be negative (``0 - n``, ``n * m``), and so may a size in code that is not reached.
    """
    found: set[Var] = set()
    waiting: list[Stmt] = [function.body]
    while waiting:
        match waiting.pop():
            case Seq(body=body):
                waiting += body
            case For(kind=LoopKind.THREAD, body=body):
                waiting.append(body)
            case View(buffer=Buffer(shape=shape)):
                found.update(size for size in shape if isinstance(size, Var))
    return frozenset(found & set(_scalars(function)))


class _Costs:
    """How many operations of int64 there are in a function and in what it calls, each call counted."""

    def __init__(self, module: Module) -> None:
        self.functions = {function.name: function for function in module.functions}
        self.known: dict[str, int] = {}

    def of(self, function: Function, copies: Mapping[str, Function] | None = None) -> int:
        total = 0
        for node in walk(function.body):
            if isinstance(node, CallFunction):
                copy = (copies or {}).get(node.function)
                total += self.of_called(node.function) if copy is None else self.of(copy, copies)
            total += _is_wide(node)
        return total

    def of_called(self, name: str) -> int:
        if name not in self.known:
            # A call in a circle, which devices do not have, counts nothing.
            self.known[name] = 0
            found = self.functions.get(name)
            self.known[name] = 0 if found is None else self.of(found)
        return self.known[name]


def _is_wide(node: object) -> bool:
    """Whether a node takes an operation of int64."""
    operand: Expr | None = node if isinstance(node, (BinaryExpr, Cast, Negate)) else None
    if isinstance(node, CompareExpr):
        operand = node.a
    return operand is not None and operand.dtype.element == INT64
