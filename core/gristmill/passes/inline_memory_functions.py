"""Put the body of functions that are given memory in the place of their calls in launches.

Before::

    function @swap(s: float32[64], t: int64) -> float32 {
      barrier shared
      return s[63 - t]
    }
    ...
    for t in thread(64, "threadIdx.x"):
        s[t] = x[t]
        y[t] = @swap(buffer(s), t) + 1.0

After::

    for t in thread(64, "threadIdx.x"):
        s[t] = x[t]
        barrier shared
        y[t] = s[63 - t] + 1.0

Functions that take buffers or pointers, allocate shared memory, wait at barriers, or call such functions, become part
of the launch: what follows sees all of its accesses to memory that threads share, of the very memory that is meant, and
all of its shared memory. Functions of scalars stay calls. So do calls in vectorised and parallel loops, and of functions
that call themselves or make launches, which are refused where code is parted.

A call in the midst of an expression is done before the statement; what is evaluated before it, and may change, gets a
name. Sizes of the function's buffers are those of the arguments; what is not provably so is asserted, as it is for
every call. The shared memory of a function is one instance a block, whatever calls it in the launch. An early
``return`` leaves the function alone, not the thread.

A private function that nothing calls any more is dropped.

Ensures: launches hold no calls of such functions, but for those named above. Needs blocks lowered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gristmill.ir.build import sequence
from gristmill.ir.expr import CallFunction
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import Allocate, Barrier, DeviceRegion, For, Launch, LoopKind, Stmt
from gristmill.passes.calls_in_place import CallsInPlace, Functions
from gristmill.passes.hoist_shared_memory import SHARED_SCOPES
from gristmill.passes.launch_regions import map_regions
from gristmill.passes.manager import Pass


@dataclass(frozen=True)
class InlineMemoryFunctions(Pass):
    """Put functions that are given memory in the place of their calls in launches."""

    def run(self, module: Module) -> Module:
        taken = memory_functions(module)
        if not taken:
            return module
        functions = Functions(taken, frozenset(function.name for function in module.functions))
        found = [_inlined(function, functions) for function in module.functions]
        changed = module.with_functions(found)
        return changed if changed is module else _without_unused(module, changed, taken)


def memory_functions(module: Module) -> dict[str, Function]:
    """The functions that other threads may notice: by their names, those that calls can be replaced by."""
    functions = {function.name: function for function in module.functions}
    calls = _calls(module)
    reached = {name: _reached(name, calls) for name in calls}
    launching = {function.name for function in module.functions if _launches(function)}
    touching = {function.name for function in module.functions if _touches_memory(function)}
    return {
        name: functions[name]
        for name, beyond in reached.items()
        if (name in touching or beyond & touching)
        and name not in beyond
        and name not in launching
        and not beyond & launching
        and functions[name].facts.convention is CallingConvention.PLAIN
        and functions[name].facts.target is None
    }


def _calls(module: Module) -> dict[str, set[str]]:
    return {
        function.name: {node.function for node in walk(function.body) if isinstance(node, CallFunction)}
        for function in module.functions
    }


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    """The functions that one calls, directly or through others."""
    found: set[str] = set()
    stack = list(calls[name])
    while stack:
        called = stack.pop()
        if called not in found:
            found.add(called)
            stack.extend(calls.get(called, ()))
    return found


def _launches(function: Function) -> bool:
    return any(
        isinstance(node, (DeviceRegion, Launch)) or (isinstance(node, For) and node.kind is LoopKind.THREAD)
        for node in walk(function.body)
    )


def _touches_memory(function: Function) -> bool:
    if any(isinstance(param, Buffer) or param.dtype.is_handle for param in function.params):
        return True
    return any(
        isinstance(node, Barrier) or (isinstance(node, Allocate) and node.buffer.scope in SHARED_SCOPES)
        for node in walk(function.body)
    )


def _inlined(function: Function, functions: Functions) -> Function:
    fast = function.facts.fast_math

    def change(region: Stmt) -> Stmt:
        nonlocal fast
        work = CallsInPlace(functions)
        found: Stmt = work.visit(region)
        fast = fast and all(called.facts.fast_math for called in work.done)
        if not work.shared:
            return found
        assert isinstance(found, For)
        memory = [Allocate(buffer, buffer.span) for buffer in work.shared.values()]
        return replace(found, body=sequence(*memory, found.body))

    found = map_regions(function, change)
    if fast is not function.facts.fast_math:
        # Fast math belongs to the code that asks for it; now there is code that does not.
        found = found.with_facts(fast_math=fast)
    return found


def _without_unused(before: Module, after: Module, taken: dict[str, Function]) -> Module:
    """The module without those private functions that calls in launches were the only ones to use."""

    def used(module: Module, names: Iterable[str]) -> set[str]:
        calls = _calls(module)
        return {name for root in names for name in (root, *_reached(root, calls))}

    roots = [function.name for function in before.functions if function.name not in taken or function.is_public]
    gone = used(before, roots) - used(after, roots)
    # What was not used before either stays, with all that it calls.
    gone -= used(after, (function.name for function in after.functions if function.name not in gone))
    return after.with_functions(function for function in after.functions if function.name not in gone)
