"""Modules of IR that packs keep as text: of kernels of the reference device, and of host functions to interpret."""

from __future__ import annotations

from gristmill.errors import Diagnostic, Note, UserError
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.verify import check


def module_of_pack(text: str, name: str) -> Module:
    """The module of a text, verified; ``name`` is what messages call the text.

    Raises UserError (GM0912) for a text that is no module: the pack is damaged then, and no kernel of the user is wrong,
    so what is wrong with the text is told in notes.
    """
    try:
        module = parse_module(text, name)
        check(module)
    except UserError as error:
        notes = tuple(Note(f"{found.code}: {found.message}", found.place) for found in error.diagnostics[:3])
        raise UserError(
            Diagnostic(
                "GM0912",
                f"the code `{name}` of the pack is damaged, or of another version of Gristmill",
                hint="build the pack again",
                notes=notes,
            )
        ) from None
    return module
