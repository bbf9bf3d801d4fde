"""Check packs in full: structure, hashes, and that every way of reading the file gives the same members.

Of SPIR-V, the outside of each module is checked too: header, lengths of instructions, entry point. A pack that passes has
the bytes that its manifest names. That says nothing about what its code does: code of a pack runs with the rights of the
process that calls it.
"""

from __future__ import annotations

import argparse
import sys

from gristmill.cli.output import add_json_option, write_json
from gristmill.errors import EXIT_DONE, EXIT_USER, Diagnostic, UserError, wants_color
from gristmill.objfile.spirv import module_fault
from gristmill.pack import find_pack, verify_pack
from gristmill.runtime.kernel_records import kernel_records


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "packs", nargs="+", metavar="pack", help="a .kpack file, or PACKAGE:MODULE of an installed package"
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    found = {name: verify_pack(name) or _code_faults(name) for name in options.packs}
    if options.json:
        packs = [
            {"pack": name, "ok": not faults, "diagnostics": [fault.as_json() for fault in faults]}
            for name, faults in found.items()
        ]
        write_json({"packs": packs})
    else:
        for name, faults in found.items():
            print(f"{name}: {'refused' if faults else 'ok'}", flush=True)
            for fault in faults:
                print(fault.render(color=wants_color(sys.stderr)), file=sys.stderr)
    return EXIT_USER if any(found.values()) else EXIT_DONE


def _code_faults(name: str) -> list[Diagnostic]:
    """What is wrong with the code of a pack whose bytes are those that it names."""
    faults: list[Diagnostic] = []
    with find_pack(name) as pack:
        for member in (member for member in pack.manifest.blobs if member.kind == "spirv"):
            data = bytes(pack.blob(member))
            try:
                records = kernel_records(member, name)
            except UserError as error:
                faults += error.diagnostics
                continue
            for record in records:
                start, size = (record.extra.get(key) for key in ("code_start", "code_bytes"))
                code = data[start : start + size] if isinstance(start, int) and isinstance(size, int) else b""
                if fault := module_fault(code, record.entry):
                    what = f"the SPIR-V of the kernel `{record.name}` in `{member.name}` of {name} {fault}"
                    faults.append(Diagnostic("GM0716", what, hint="build the pack again"))
    return faults
