"""Say of every function where it runs: on the host, on the device, or on both, where it becomes two functions.

Before (for a build for vulkan)::

    function @scale(x: float32[64])
      symbol "scale"
    {
      let factor: float32 = @square(3.0) as float32
      for t: int64 in 0 +: 64 thread on threadIdx.x {
        x[t] = @square(x[t]) as float32 * factor
      }
    }

    function @square(x: float32) -> float32 { return x * x }

After::

    function @scale(x: float32[64])
      symbol "scale"
      target "host"
    {
      let factor: float32 = @square_host(3.0) as float32
      for t: int64 in 0 +: 64 thread on threadIdx.x {
        x[t] = @square(x[t]) as float32 * factor
      }
    }

    function @square(x: float32) -> float32
      target "vulkan"
    { return x * x }

    function @square_host(x: float32) -> float32
      target "host"
    { return x * x }

Public functions are the host's, which launches what stands in loops over threads; what such code calls is the
device's. A private function that states the device as its target is a kernel for the host that calls it. Helpers that
nothing calls are left alone. A call in the extent of a loop over threads is the host's, for it is made before the
launch. Without any public function, those that nothing calls count as public.
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, Module
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import DeviceRegion, Launch
from gristmill.ir.target import Target
from gristmill.passes.function_names import FunctionNames
from gristmill.passes.manager import Pass
from gristmill_launch.copies import renewed_function, with_host_calls
from gristmill_launch.extent_calls import with_extent_calls_before
from gristmill_launch.sides import HOST, Calls, is_host
from gristmill_launch.written_kernels import check_written_kernels, is_kernel


@dataclass(frozen=True)
class BindTargets(Pass):
    """Say of every function whether host or device runs it; one for both becomes two."""

    target: Target | None = None
    """The device; None in a build for a host."""

    def run(self, module: Module) -> Module:
        """The module with a target on every function that is reached.

        Raises UserError: GM0442 for recursion on the device, GM0449 for a launch that a device would make, GM0658 for
        a function whose stated target does not fit where it is called, GM0669 for a kernel whose stated launch
        parameters are not those of its code.
        """
        if self.target is None:
            return module
        check_written_kernels(module)
        module = module.with_functions(with_extent_calls_before(function) for function in module.functions)
        return _Binding(module, self.target).run()


class _Binding:
    def __init__(self, module: Module, target: Target) -> None:
        self.module = module
        self.target = target
        self.functions = {function.name: function for function in module.functions}
        self.calls = {function.name: Calls.of(function) for function in module.functions}
        self.on_host: dict[str, Span | None] = {}
        self.on_device: dict[str, Span | None] = {}

    def run(self) -> Module:
        self.reach()
        self.check_device_functions()
        names = FunctionNames(self.module.functions)
        both = {name: names.new(f"{name}_host") for name in self.on_device if name in self.on_host}
        found: list[Function] = []
        for function in self.module.functions:
            if function.name in self.on_device:
                symbol = function.facts.symbol if is_kernel(function) else None
                found.append(_bound(function, self.device_of(function), symbol))
            if function.name in self.on_host:
                host = with_host_calls(function, both)
                if function.name in both:
                    host = renewed_function(host, both[function.name])
                found.append(_bound(host, HOST, host.facts.symbol))
            if function.name not in self.on_host and function.name not in self.on_device:
                found.append(function)
        return self.module.with_functions(found)

    def device_of(self, function: Function) -> Target:
        """The device that runs a function: the one that it states, which is of the build's kind, or the build's."""
        return self.target if function.facts.target is None or function.is_public else function.facts.target

    def states_device(self, function: Function) -> bool:
        """Whether a private function states that a device runs it."""
        target = function.facts.target
        return target is not None and not function.is_public and not is_host(target)

    def roots(self) -> list[Function]:
        plain = [function for function in self.module.functions if not is_kernel(function)]
        public = [function for function in plain if function.is_public]
        called = {name for calls in self.calls.values() for name in calls.all}
        return public or [
            function for function in plain if function.name not in called and not self.states_device(function)
        ]

    def reach(self) -> None:
        """Find what host and device reach, with the first call of it."""
        waiting: list[tuple[str, bool, Span | None]] = [(root.name, False, root.span) for root in self.roots()]
        kernels = [function for function in self.module.functions if is_kernel(function)]
        waiting += [(kernel.name, True, kernel.span) for kernel in kernels]
        while waiting:
            name, device, span = waiting.pop(0)
            function = self.functions.get(name)
            if function is None:
                continue
            device = device or self.states_device(function)
            self.check_stated(function, device, span)
            reached = self.on_device if device else self.on_host
            if name in reached:
                continue
            reached[name] = span
            calls = self.calls[name]
            inside = calls.all if device else calls.device
            for callee, call in calls.all.items():
                if callee in self.functions and is_kernel(self.functions[callee]):
                    raise self.called_kernel(self.functions[callee], call.span)
            waiting += [(callee, True, call.span) for callee, call in inside.items()]
            if not device:
                waiting += [(callee, False, call.span) for callee, call in calls.host.items()]

    def check_stated(self, function: Function, device: bool, span: Span | None) -> None:
        stated = function.facts.target
        if stated is None or function.is_public:
            return
        if device and is_host(stated):
            raise self.wrong_target(function, f"is for the host ({stated}), and code of the device calls it", span)
        if not is_host(stated) and stated.kind != self.target.kind:
            raise self.wrong_target(function, f"is for {stated}, and this is a build for {self.target}", span)

    def called_kernel(self, function: Function, span: Span | None) -> UserError:
        message = f"`{function.name}` has the calling convention of kernels, which are launched, not called"
        hint = "leave calling_conv and kernel_launch_params out, and state the device as its target"
        return UserError(Diagnostic("GM0658", message, place_of(span), label="called here", hint=hint))

    def wrong_target(self, function: Function, what: str, span: Span | None) -> UserError:
        hint = "leave the target out: a function runs where it is called"
        return UserError(
            Diagnostic("GM0658", f"`{function.name}` {what}", place_of(span), label="called here", hint=hint)
        )

    def check_device_functions(self) -> None:
        for name, span in self.on_device.items():
            function = self.functions[name]
            launch = next((node for node in walk(function.body) if isinstance(node, (DeviceRegion, Launch))), None)
            if launch is not None:
                message = f"code of the device calls `{name}`, which begins a launch"
                raise UserError(
                    Diagnostic(
                        "GM0449",
                        message,
                        place_of(span),
                        label="called here",
                        hint="a launch stands in code of the host",
                    )
                )
        self.check_recursion()

    def check_recursion(self) -> None:
        """Refuse device functions that reach themselves."""
        finished: set[str] = set()
        for root in self.on_device:
            path: list[str] = []
            work: list[tuple[str, bool]] = [(root, False)]
            while work:
                name, is_left = work.pop()
                if is_left:
                    finished.add(path.pop())
                elif name in path:
                    cycle = " -> ".join([*path[path.index(name) :], name])
                    message = f"`{name}` calls itself in code of a device: {cycle}"
                    place = place_of(self.on_device[name])
                    raise UserError(Diagnostic("GM0442", message, place, label="called here", hint="use a loop"))
                elif name not in finished:
                    path.append(name)
                    work.append((name, True))
                    work.extend((callee, False) for callee in self.calls[name].all if callee in self.functions)


def _bound(function: Function, target: Target, symbol: str | None) -> Function:
    if (function.facts.target, function.facts.symbol) == (target, symbol):
        return function
    return function.with_facts(target=target, symbol=symbol)
