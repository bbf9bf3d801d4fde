"""Turn calls from one target to another into what they are: launches of kernels, or calls of C symbols.

Before::

    function @main<n: int64>(x: float32[n])
      symbol "main"
      target "host"
    {
      evaluate @fill(buffer(x), 1.0)
    }

    function @fill<n: int64>(x: float32[n], value: float32)
      target "vulkan"
    {
      for t: int64 in 0 +: n thread on threadIdx.x {
        x[t] = value
      }
    }

After::

    function @main<n: int64>(x: float32[n])
      symbol "main"
      target "host"
    {
      evaluate @fill_host(buffer(x), 1.0)
    }

    function @fill_host<n: int64>(x: float32[n], value: float32)
      target "host"
    {
      launch @fill(x_data, value, n) over threadIdx.x = n
    }

    function @fill(x_data: ptr<float32, global>, value: float32, n: int64)
      symbol "fill"
      convention kernel
      target "vulkan"
      launch (threadIdx.x)
    {
      view x: float32[n] over x_data
      ...
    }

Calls within one target stay. Between two targets that the host's processor runs, a call becomes one of a C symbol.
Requires: every function that is called, or that calls, is bound to a target. Ensures: no call leads from one target to
another; host code touches no memory of the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gristmill.errors import Diagnostic, InternalError, Note, UserError
from gristmill.ir.build import const
from gristmill.ir.dtype import INT64, VOID
from gristmill.ir.expr import AddressOf, BufferRef, CallExtern, CallFunction, Expr
from gristmill.ir.functor import Mutator
from gristmill.ir.module import Extern, Function, FunctionFacts, Module
from gristmill.ir.span import place_of
from gristmill.ir.stmt import DeviceRegion
from gristmill.ir.target import Target
from gristmill.passes.function_names import FunctionNames
from gristmill.passes.manager import Pass
from gristmill_launch.copies import renewed_function, with_host_calls
from gristmill_launch.device_calls import check_device_calls
from gristmill_launch.host_memory import check_host_memory
from gristmill_launch.outlining import outline
from gristmill_launch.own_memory import HostMemory
from gristmill_launch.sides import HOST, Calls, is_host


@dataclass(frozen=True)
class LowerLaunches(Pass):
    """Turn calls from host to device into launches, and check that host code leaves the device's memory alone."""

    target: Target | None = None
    """The device; None in a build for a host, in which the targets that functions state mean nothing."""

    def run(self, module: Module) -> Module:
        """The module without calls between targets.

        Raises UserError: GM0652-GM0657 for launches that cannot be, GM0658 for a call that its target does not allow,
        GM0659 and GM0666 for host code that touches memory of the device, or hands it to functions of the host;
        GM0667 and GM0670 for what code of the device cannot call.
        """
        if self.target is None:
            return module
        lowered = _Lowering(module).run()
        check_host_memory(lowered)
        check_device_calls(lowered)
        return lowered


class _Lowering:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = {function.name: function for function in module.functions}
        self.names = FunctionNames(module.functions)
        self.launched: dict[str, str] = {}
        """Device functions that the host calls, with the host functions that launch them."""
        self.extern: dict[str, str] = {}
        """Functions of another target of the host's processor, with the symbols that they are called by."""
        self.called_on_device: set[str] = set()

    def run(self) -> Module:
        for caller, callee, call in self.calls():
            target = self.target_of(caller, callee, call)
            wanted = self.target_of(callee, caller, call)
            if target == wanted:
                if not is_host(wanted):
                    self.called_on_device.add(callee.name)
            elif not is_host(target):
                raise _not_callable(callee, f"is for {wanted}, and code for {target} calls it", call)
            elif is_host(wanted):
                self.extern[callee.name] = callee.facts.symbol or callee.name
            elif callee.name not in self.launched:
                if callee.returns != VOID:
                    raise _not_callable(callee, f"runs on the device, and its {callee.returns} cannot come back", call)
                self.launched[callee.name] = self.names.new(f"{callee.name}_host")
        if not self.launched and not self.extern:
            return self.module
        found: list[Function] = []
        for function in self.module.functions:
            found += self.lowered(function)
        symbols = {extern.symbol for extern in self.module.externs}
        externs = [
            Extern(symbol, str(self.functions[name].facts.target))
            for name, symbol in self.extern.items()
            if symbol not in symbols
        ]
        return replace(self.module, functions=tuple(found), externs=(*self.module.externs, *externs))

    def calls(self) -> Iterator[tuple[Function, Function, CallFunction]]:
        for function in self.module.functions:
            if function.facts.target is None:
                continue  # nothing reaches it
            for name, call in Calls.of(function).all.items():
                if name in self.functions:
                    yield function, self.functions[name], call

    def target_of(self, function: Function, other: Function, call: CallFunction) -> Target:
        if function.facts.target is None:
            message = f"`{function.name}` is bound to no target (beside `{other.name}`)"
            raise InternalError(message, place=place_of(call.span))
        return function.facts.target

    def lowered(self, function: Function) -> Iterator[Function]:
        target = function.facts.target
        if target is not None and is_host(target):
            function = with_host_calls(function, self.launched)
            crossing = {
                name: symbol for name, symbol in self.extern.items() if self.functions[name].facts.target != target
            }
            if crossing:
                function = function.with_body(_Externs(crossing).visit(function.body))
        if function.name in self.extern:
            function = function.with_facts(symbol=self.extern[function.name])
        if function.name not in self.launched:
            yield function
            return
        stays = function.name in self.called_on_device
        assert target is not None
        host = renewed_function(function, self.launched[function.name])
        region = DeviceRegion(host.body, target, function.span)
        facts = FunctionFacts(target=HOST, no_alias=function.facts.no_alias, fast_math=function.facts.fast_math)
        host = replace(host, body=region, facts=facts)
        name = self.names.new(f"{function.name}_kernel") if stays else function.name
        outlined = outline(host, region, HostMemory.of(host), name)
        yield host.with_body(outlined.launch)
        if stays:
            yield function
        kernel = outlined.kernel
        if function.facts.symbol is not None and not stays:
            kernel = replace(kernel, facts=replace(kernel.facts, symbol=function.facts.symbol))
        yield kernel


class _Externs(Mutator):
    """Calls by C symbols; arrays are passed as pointers to their first elements."""

    def __init__(self, symbols: dict[str, str]) -> None:
        super().__init__()
        self.symbols = symbols

    def visit_CallFunction(self, node: CallFunction) -> Any:
        node = self.generic(node)
        if node.function not in self.symbols:
            return node
        args = tuple(_first_element(arg) for arg in node.args)
        return CallExtern(self.symbols[node.function], args, node.type, node.span)


def _first_element(arg: Expr) -> Expr:
    if not isinstance(arg, BufferRef):
        return arg
    return AddressOf(arg.buffer, (const(0, INT64),) * arg.buffer.rank, arg.span)


def _not_callable(callee: Function, what: str, call: CallFunction) -> UserError:
    return UserError(
        Diagnostic(
            "GM0658",
            f"`{callee.name}` {what}",
            place_of(call.span),
            label="called here",
            hint="store results to an array; leave the target out for a function that runs where it is called",
            notes=(Note(f"`{callee.name}` is here", place_of(callee.span)),),
        )
    )
