"""What is checked of a kernel's SPIR-V before the driver gets it."""

from __future__ import annotations

from gristmill.errors import Diagnostic, UserError
from gristmill.objfile.spirv import module_fault
from gristmill.plugin.artifacts import KernelRecord


def check_module(code: bytes, record: KernelRecord) -> None:
    """Raise UserError (GM0716) for a module that is damaged: drivers trust what they are given."""
    fault = module_fault(code, record.entry)
    if fault:
        hint = "the pack is damaged, or was not written by Gristmill; build it again"
        raise UserError(Diagnostic("GM0716", f"the SPIR-V of the kernel `{record.name}` {fault}", hint=hint))
