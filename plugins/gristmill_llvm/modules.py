"""A module to LLVM IR text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gristmill.ir.module import Module
from gristmill.passes.deep import run_deep
from gristmill_llvm.analysis import CallGraph
from gristmill_llvm.calls import define_extern_table
from gristmill_llvm.context import Generation, Signature
from gristmill_llvm.dispatch import DISPATCH
from gristmill_llvm.functions import define_function, signature_of
from gristmill_llvm.launches import launched_kernels, takes_table
from gristmill_llvm.message_support import RAISE
from gristmill_llvm.profile import Profile
from gristmill_llvm.refusals import duplicate_symbol
from gristmill_llvm.support import define_support
from gristmill_llvm.writer import ModuleWriter

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ModuleText:
    """The LLVM IR of a module, and whether it needs the object that raises errors."""

    text: str
    raises: bool


def module_text(module: Module, profile: Profile, name: str) -> ModuleText:
    """The LLVM IR of a module, before any optimisation. Raises nothing but Unsupported for a verified module."""
    kernels = launched_kernels(module)
    launching = frozenset(function.name for function in module.functions if takes_table(function)) if kernels else _NONE
    module = module.with_functions(function for function in module.functions if not function.facts.declaration)
    _check_symbols(module, profile)
    graph = CallGraph.of(module)
    failing = graph.failing()
    signatures: dict[str, Signature] = {
        function.name: signature_of(function, profile, function.name in failing) for function in module.functions
    }
    writer = ModuleWriter(profile.triple, name, profile.attributes)
    externs = {extern.symbol: extern for extern in module.externs}
    generation = Generation(module, profile, writer, signatures, externs, graph.stack_budgets)
    generation.kernels, generation.launching = kernels, launching
    define_extern_table(generation)
    inlined = graph.always_inlined()
    for function in module.functions:
        run_deep(partial(define_function, generation, function, function.name in inlined), function)
    if generation.messages:
        generation.messages.define(writer)
        writer.declare(RAISE, "hidden void", "i32, ptr, ptr, ptr")
    define_support(writer, generation.support)
    if kernels:
        writer.functions.append(DISPATCH)
    return ModuleText(writer.text(), bool(generation.messages))


def _check_symbols(module: Module, profile: Profile) -> None:
    owners: dict[str, str] = {}
    for function in module.public:
        symbol = function.facts.symbol or ""
        if symbol in owners:
            raise duplicate_symbol(symbol, owners[symbol], function.name, profile.target, function.span)
        owners[symbol] = function.name
