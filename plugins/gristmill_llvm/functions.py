"""Functions: signatures, parameters, bodies."""

from __future__ import annotations

from gristmill.codegen.device_memory import device_allocations
from gristmill.ir.dtype import INT32, DType
from gristmill.ir.expr import Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, Scope
from gristmill.ir.module import CallingConvention, Function
from gristmill.ir.stmt import For, Store, While
from gristmill_llvm.context import FunctionContext, Generation, Signature
from gristmill_llvm.expressions import Expressions
from gristmill_llvm.profile import Profile
from gristmill_llvm.raising import finish_failure
from gristmill_llvm.refusals import refused_construct, refused_dtype
from gristmill_llvm.statements import Statements, give_back
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import FunctionWriter, quoted


def signature_of(function: Function, profile: Profile, fails: bool) -> Signature:
    """How the function is defined and called. Raises Unsupported for what the machine has no convention for."""
    facts = function.facts
    if facts.convention is CallingConvention.DEVICE_KERNEL and profile.is_host:
        remedy = "build it for a GPU target, or leave the thread bindings out"
        raise refused_construct(f"the kernel `{function.name}`", profile.target, remedy, function.span)
    # A prefix keeps private functions apart from C functions that LLVM knows, as memcpy.
    name = "@" + quoted(facts.symbol if facts.symbol is not None else f"function.{function.name}")
    parameters = tuple(_parameter_type(parameter, function, profile) for parameter in function.params)
    if facts.convention is CallingConvention.PACKED_HOST:
        return Signature(name, parameters, INT32, False)
    _check_dtype(function.returns, function, profile)
    return Signature(name, parameters, function.returns, fails)


def _check_dtype(dtype: DType, function: Function, profile: Profile) -> None:
    if dtype.is_float and dtype.bits < 32:
        raise refused_dtype(dtype, profile.target, function.span)


def _parameter_type(parameter: Var | Buffer, function: Function, profile: Profile) -> str:
    if isinstance(parameter, Buffer):
        remedy = "run core's pipeline first; it passes buffers by pointer"
        construct = f"the buffer parameter `{parameter.name}` of `{function.name}`"
        raise refused_construct(construct, profile.target, remedy, parameter.span or function.span)
    dtype = parameter.dtype
    _check_dtype(dtype, function, profile)
    if dtype.is_handle:
        return profile.pointer(parameter.pointer.scope if parameter.pointer else Scope.GLOBAL)
    return register_type(dtype)


def define_function(generation: Generation, function: Function, inline: bool) -> None:
    """Write the definition of a function into the module."""
    signature = generation.signatures[function.name]
    writer = FunctionWriter(generation.writer)
    context = FunctionContext(generation, function, signature, writer)
    if function.name in generation.launching:
        context.device_buffers = device_allocations(function, generation.launching)
    expressions, statements = Expressions(context), Statements(context)
    context.evaluate, context.execute = expressions.visit, statements.visit
    parameters = []
    for place, (parameter, text) in enumerate(zip(function.params, signature.parameters, strict=True)):
        assert isinstance(parameter, Var)
        context.values[parameter] = f"%p{place}"
        no_alias = function.facts.no_alias and parameter.pointer is not None
        parameters.append(f"{text} {'noalias ' if no_alias else ''}%p{place}")
    if signature.fails and not signature.returns.is_void:
        # The caller makes a slot for each call.
        parameters.append("ptr noalias %result")
    statements.visit(function.body)
    if not writer.terminated:
        give_back(context, None)
    finish_failure(context)
    linkage = "dso_local" if function.facts.symbol is not None else "internal"
    attributes = " alwaysinline" if inline else ""
    if _is_checks_and_a_call(function):
        # Building a small kernel takes nearly twice as long with these optimised, and calls gain nothing.
        attributes = " noinline optnone"
    head = f"define {linkage} {signature.result} {signature.name}({', '.join(parameters)}){attributes} #0"
    generation.writer.functions.append(writer.text(head))


def _is_checks_and_a_call(function: Function) -> bool:
    """Whether this is what lowering makes for a public function: it checks arguments and calls the plain function."""
    if function.facts.convention is not CallingConvention.PACKED_HOST:
        return False
    return not any(isinstance(node, (For, While, Store)) for node in walk(function.body))
