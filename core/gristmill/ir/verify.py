"""The rules that IR keeps, checked. What has passed may be handed to any pass, to the executor and to code generators.

Values
    GM0410  operands of one operation, a binding and its value, the bounds of a range have one type
    GM0411  an operator gets a type that it takes (no ``%`` of floats, no ``not`` of numbers)
    GM0412  conditions are bool (scalar, but for Select)
    GM0413  constants are scalar, in the range of their type, and exactly representable
    GM0414  a call that gives no value is not used as one
    GM0415  vectors: lanes in range, made of scalars; shuffles within their lanes; conditions with the right lanes
    GM0416  casts keep the lanes, reinterpretations the width; neither takes a handle
    GM0417  as many indices (or ranges of a region) as dimensions
    GM0418  indices, sizes and extents are integers; only the last index may be a vector
    GM0419  what is stored has the type of the element
    GM0420  an operation gets operands in the number and of the types that it takes, and states its result rightly
    GM0450  exchanges between threads are the whole value of a binding, in no parallel or vectorized loop
    GM0452  tiles of matrices are touched by operations on matrices alone, which are statements of their own and fit the tiles
    GM0451  atomic operations are the whole value of a binding or statement, on an element of a type that has them
    GM0448  texts, addresses and whole buffers stand only where they may (arguments, pointer bindings)
Calls
    GM0421  the called function exists
    GM0422  arguments and result fit its parameters
    GM0423  kernels are launched, not called
    GM0447  an extern symbol is declared
Names
    GM0424  variables and buffers are used only where they are defined
    GM0425  each is defined once in a function
    GM0426  buffers: element type, sizes, strides, alignment; shared memory has a constant size
    GM0427  data and sources of views are pointers into the memory that the buffer says
Control
    GM0430  ``break`` and ``continue`` in loops; nothing leaves a loop whose iterations have no order
    GM0431  ``return`` gives what the function returns
    GM0432  loop variable, minimum and extent have one scalar integer type; hints are not negative
    GM0433  loops over threads name an axis, others none; nested ones over one axis have equal extents
    GM0434  vectorized loops have a constant extent
    GM0435  axes of blocks are scalar integers; buffers that stand for regions have their type and memory
    GM0445  assertions raise built-in exceptions, with messages of texts, integers and bools
    GM0446  the tree is made as the node classes say
Functions
    GM0440  names and exported symbols are unique and well formed
    GM0441  conventions: signature of the packed host interface; kernels return nothing and have launch parameters;
            public functions have scalar parameters and results; every symbolic size occurs in a parameter's shape;
            declarations are of kernels and have no code
    GM0442  no recursion in code of a device
    GM0443  a launch names a kernel and fits it
    GM0444  what belongs to the host is not in code of a device, and the other way round
    GM0449  what code of a device calls begins no launch
"""

from __future__ import annotations

import re

from gristmill.errors import Diagnostic, InternalError, UserError
from gristmill.ir.dtype import HANDLE, INT32, SCALARS, DType
from gristmill.ir.expr import CallFunction, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.span import Span, place_of
from gristmill.ir.stmt import Seq
from gristmill.ir.text_form import NAME
from gristmill.ir.verify_statements import StatementVerifier, variables_in

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def verify(module: Module) -> list[Diagnostic]:
    """All that is wrong with the module (the first hundred), empty if nothing is. Never raises for a made module."""
    return _ModuleVerifier(module).run()


def check(module: Module, *, after: str = "") -> None:
    """Raise if the module breaks a rule.

    ``after`` names the pass that made it: then it is an :class:`InternalError` that names the pass. Without, the
    module is the user's: a :class:`UserError` with all diagnostics.
    """
    found = verify(module)
    if not found:
        return
    if not after:
        raise UserError(found)
    first = found[0]
    error = InternalError(f"the result breaks rule {first.code}: {first.message}", pass_name=after, place=first.place)
    error.where.notes += [f"{other.code}: {other.message}" for other in found[1:]]
    raise error


class _ModuleVerifier:
    """Rules of the module as a whole, and of what functions say beside their bodies."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.diagnostics: list[Diagnostic] = []

    def report(self, code: str, message: str, node: Node | None, hint: str = "") -> None:
        span: Span | None = getattr(node, "span", None)
        self.diagnostics.append(Diagnostic(code, message, place_of(span), hint=hint))

    def run(self) -> list[Diagnostic]:
        names: set[str] = set()
        symbols: set[str] = set()
        device_calls: dict[str, Span | None] = {}
        launching: set[str] = set()
        for function in self.module.functions:
            if not isinstance(function, Function):
                self.report("GM0446", f"a function is expected, not {type(function).__name__}", None)
                return self.diagnostics
            self.names(function, names, symbols)
            self.signature(function)
            verifier = StatementVerifier(self.module, function, self.diagnostics)
            verifier.run()
            device_calls.update(verifier.device_calls)
            if verifier.begins_launch:
                launching.add(function.name)
        if all(found.code != "GM0446" for found in self.diagnostics):
            self.recursion(device_calls)
            self.launches(device_calls, launching)
        return self.diagnostics

    def names(self, function: Function, names: set[str], symbols: set[str]) -> None:
        if NAME.fullmatch(function.name) is None:
            self.report("GM0440", f"{function.name!r} cannot be the name of a function", function)
        if function.name in names:
            self.report("GM0440", f"two functions are named `{function.name}`", function)
        names.add(function.name)
        symbol = function.facts.symbol
        if symbol is None:
            return
        if _SYMBOL.fullmatch(symbol) is None:
            self.report("GM0440", f"{symbol!r} cannot be an exported symbol", function)
        if symbol in symbols:
            self.report("GM0440", f"two functions export the symbol `{symbol}`", function)
        symbols.add(symbol)

    def signature(self, function: Function) -> None:
        facts, name = function.facts, function.name
        for param in function.params:
            if not isinstance(param, (Var, Buffer)):
                self.report("GM0446", f"a parameter of `{name}` is a {type(param).__name__}", function)
            elif isinstance(param, Var) and not _is_value(param.type, vectors=not function.is_public):
                self.report("GM0441", f"the parameter `{param.name}` of `{name}` cannot be {param.type}", param)
        returns = function.returns
        if not (returns.is_void or _is_value(returns, vectors=not function.is_public)):
            self.report("GM0441", f"`{name}` cannot return {returns}", function)
        self.sizes(function)
        if facts.convention is CallingConvention.PACKED_HOST:
            given = [param.type if isinstance(param, Var) else None for param in function.params]
            if given != [HANDLE, HANDLE, INT32, HANDLE] or returns != INT32 or function.sizes:
                wanted = "(self: handle, args: handle, count: int32, result: handle) -> int32"
                self.report("GM0441", f"`{name}` of the packed host interface is not {wanted}", function)
        is_kernel = facts.convention is CallingConvention.DEVICE_KERNEL
        if is_kernel and function.returns_value:
            self.report("GM0441", f"the kernel `{name}` returns {returns}; kernels return nothing", function)
        if is_kernel != (facts.launch is not None):
            which = "has no" if is_kernel else "is no kernel and has"
            self.report("GM0441", f"`{name}` {which} launch parameters", function)
        if facts.launch is not None and len(set(facts.launch.axes)) < len(facts.launch.axes):
            self.report("GM0441", f"the launch parameters of `{name}` name an axis twice", function)
        if facts.declaration and not is_kernel:
            self.report("GM0441", f"`{name}` is declared and is no kernel", function)
        if facts.declaration and not (isinstance(function.body, Seq) and not function.body.body):
            hint = "a declaration says how a kernel is launched whose code is in another part"
            self.report("GM0441", f"`{name}` is declared and has code", function, hint)

    def sizes(self, function: Function) -> None:
        stated = variables_in(param for param in function.params if isinstance(param, Buffer))
        for size in function.sizes:
            if not size.type.is_integer or size.type.is_vector:
                self.report("GM0441", f"the size `{size.name}` of `{function.name}` is {size.type}", size)
            if size not in stated:
                message = f"the size `{size.name}` of `{function.name}` occurs in the shape of no parameter"
                self.report("GM0441", message, size)

    def recursion(self, device_calls: dict[str, Span | None]) -> None:
        """Functions that code of a device reaches must not reach themselves."""
        calls = {function.name: _callees(function) for function in self.module.functions}
        finished: set[str] = set()
        for root, span in device_calls.items():
            path: list[str] = []
            work: list[tuple[str, bool]] = [(root, False)]
            while work:
                name, is_left = work.pop()
                if is_left:
                    path.pop()
                    finished.add(name)
                elif name in path:
                    cycle = " -> ".join([*path[path.index(name) :], name])
                    message = f"`{name}` calls itself in code of a device: {cycle}"
                    self.diagnostics.append(Diagnostic("GM0442", message, place_of(span), hint="use a loop"))
                    return
                elif name not in finished:
                    path.append(name)
                    work.append((name, True))
                    work.extend((callee, False) for callee in calls.get(name, ()))

    def launches(self, device_calls: dict[str, Span | None], launching: set[str]) -> None:
        """Functions that code of a device reaches must not launch anything."""
        if not launching:
            return
        by_name = {function.name: function for function in self.module.functions}
        for root, span in device_calls.items():
            seen = {root}
            work = [root]
            while work:
                name = work.pop()
                if name in launching:
                    message = f"code of a device calls `{root}`, and `{name}` begins a launch"
                    hint = "a launch stands in code of the host"
                    self.diagnostics.append(Diagnostic("GM0449", message, place_of(span), hint=hint))
                    break
                more = _callees(by_name[name]) if name in by_name else ()
                work += [callee for callee in more if callee not in seen]
                seen.update(more)


def _callees(function: Function) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.function for node in walk(function.body) if isinstance(node, CallFunction)))


def _is_value(dtype: DType, vectors: bool) -> bool:
    """Whether a parameter or result may have this type."""
    return dtype.is_handle or (dtype.element in SCALARS and (vectors or not dtype.is_vector))
