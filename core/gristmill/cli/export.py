"""Take one member out of a pack and write it to a file: a shared object, a text.

Without --member, the pack must have just one piece of code for the target and kind that are named. The shared object
of a CPU target loads with tvm_ffi.load_module, without Gristmill.
"""

from __future__ import annotations

import argparse

from gristmill.cli.output import add_json_option, size_text, write_file, write_json
from gristmill.errors import Diagnostic, UserError
from gristmill.pack import Member, PackReader, find_pack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pack", help="a .kpack file, or PACKAGE:MODULE of an installed package")
    parser.add_argument(
        "-t", "--target", metavar="TARGET", help="code for this target, as `gristmill inspect` shows it"
    )
    parser.add_argument("-k", "--kind", help="code or text of this kind, such as elf-shared or llvm-ir")
    parser.add_argument("--member", metavar="NAME", help="the member of this name")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="overwrite the file if it is there")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    with find_pack(options.pack) as pack:
        member = pack.member(options.member) if options.member else _only(pack, options.target, options.kind)
        content = bytes(pack.blob(member))
    write_file(options.output, content, options.force)
    if options.json:
        write_json({"member": member.name, "kind": member.kind, "target": member.target, "written": options.output})
    else:
        print(f"wrote {options.output}: `{member.name}`, {member.kind} for {member.target}, {size_text(len(content))}")
    return 0


def _only(pack: PackReader, target: str | None, kind: str | None) -> Member:
    members = pack.manifest.members if kind else pack.manifest.blobs
    fitting = [found for found in members if target in (None, found.target) and kind in (None, found.kind)]
    if len(fitting) == 1:
        return fitting[0]
    wanted = " ".join(
        word for word in (f"of kind `{kind}`" if kind else "", f"for `{target}`" if target else "") if word
    )
    shown = ", ".join(f"`{found.name}`" for found in (fitting or members))
    what = "has several members" if fitting else "has no member"
    hint = f"name one with --member: {shown}" if shown else "the pack has no code"
    raise UserError(Diagnostic("GM0008", f"{pack.name} {what} {wanted}".rstrip(), hint=hint))
