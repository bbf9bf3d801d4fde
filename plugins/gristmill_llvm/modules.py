"""A module to LLVM IR text."""

from __future__ import annotations

from functools import partial

from gristmill.ir.module import Module
from gristmill.passes.deep import run_deep
from gristmill_llvm.analysis import CallGraph
from gristmill_llvm.calls import define_extern_table
from gristmill_llvm.context import Generation, Signature
from gristmill_llvm.functions import define_function, signature_of
from gristmill_llvm.message_support import define_raise
from gristmill_llvm.profile import Profile
from gristmill_llvm.refusals import duplicate_symbol
from gristmill_llvm.support import define_support
from gristmill_llvm.writer import ModuleWriter


def module_text(module: Module, profile: Profile, name: str) -> str:
    """The LLVM IR of a module, before any optimisation. Raises nothing but Unsupported for a verified module."""
    _check_symbols(module, profile)
    graph = CallGraph.of(module)
    failing = graph.failing()
    signatures: dict[str, Signature] = {
        function.name: signature_of(function, profile, function.name in failing) for function in module.functions
    }
    writer = ModuleWriter(profile.triple, name, profile.attributes)
    externs = {extern.symbol: extern for extern in module.externs}
    generation = Generation(module, profile, writer, signatures, externs, graph.recursive)
    define_extern_table(generation)
    inlined = graph.always_inlined()
    for function in module.functions:
        run_deep(partial(define_function, generation, function, function.name in inlined), function)
    if generation.messages.most_parts:
        define_raise(writer, generation.messages)
        generation.messages.define(writer)
    define_support(writer, generation.support)
    return writer.text()


def _check_symbols(module: Module, profile: Profile) -> None:
    owners: dict[str, str] = {}
    for function in module.public:
        symbol = function.facts.symbol or ""
        if symbol in owners:
            raise duplicate_symbol(symbol, owners[symbol], function.name, profile.target, function.span)
        owners[symbol] = function.name
