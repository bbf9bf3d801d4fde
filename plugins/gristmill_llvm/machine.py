"""Runs LLVM: text in, object file (and assembly for people) out."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from gristmill_llvm.message_support import support_text
from gristmill_llvm.profile import Profile
from gristmill_llvm.remarks import without_remarks

LOOP_HINTS = '!{!"llvm.loop.'
"""What a module's text has only if a loop has hints."""


@cache
def _llvm() -> Any:
    """llvmlite's binding, with the targets registered; imported only when code is generated."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    return llvm


def assembles_for(triple: str) -> bool:
    """Whether inline assembly for a triple can be compiled here: LLVM's binding registers only the own machine's parser."""
    host = str(_llvm().get_process_triple())
    return triple.partition("-")[0] == host.partition("-")[0]


def host_cpu_name() -> str:
    """What LLVM calls the CPU that this process runs on."""
    return str(_llvm().get_host_cpu_name())


@dataclass(frozen=True, slots=True)
class Compiled:
    """An object file, and its assembly if that was asked for."""

    object_file: bytes
    assembly: str = ""


@cache
def message_object(triple: str) -> bytes:
    """The object file with the functions that raise errors, for all machines of a triple."""
    llvm = _llvm()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=0, reloc="pic", codemodel="default")
    parsed = llvm.parse_assembly(support_text(triple), llvm.create_context())
    parsed.verify()
    return bytes(machine.emit_object(parsed))


def compile_text(text: str, profile: Profile, optimization: int, assembly: bool) -> Compiled:
    """Parse, verify, optimise and emit a module.

    Raises RuntimeError if LLVM finds the text wrong, which is a fault of this generator.
    """
    llvm = _llvm()
    machine = llvm.Target.from_triple(profile.triple).create_target_machine(
        cpu=profile.cpu,
        features=",".join(f"+{name}" for name in profile.features),
        opt=optimization,
        reloc="pic",
        codemodel="default",
    )
    parsed = llvm.parse_assembly(text, llvm.create_context())
    parsed.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=optimization)
    tuning.loop_vectorization = tuning.slp_vectorization = optimization >= 2
    passes = llvm.create_pass_builder(machine, tuning)
    with without_remarks() if LOOP_HINTS in text else nullcontext():
        passes.getModulePassManager().run(parsed, passes)
    if not assembly:
        return Compiled(machine.emit_object(parsed))
    # Emission changes the module, so each form gets a copy of its own.
    copy = parsed.as_bitcode()
    emitted = machine.emit_object(parsed)
    return Compiled(emitted, machine.emit_assembly(llvm.parse_bitcode(copy, llvm.create_context())))
