"""Show what a pack holds: its functions, the code for each target, what made it.

Reads the pack's manifest; --text also prints texts that the pack carries for people (IR, LLVM IR, assembly).
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gristmill.cli.output import add_json_option, size_text, write_json, write_table
from gristmill.errors import Diagnostic, UserError
from gristmill.pack import Function, Manifest, Member, PackReader, open_pack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pack", help="a .kpack file")
    parser.add_argument(
        "--text", action="append", metavar="KIND", help="print the texts of this kind or name; may be repeated"
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    with open_pack(options.pack) as pack:
        if options.json:
            content = {
                "pack": options.pack,
                "digest": pack.digest,
                "size": len(pack.data),
                **_manifest_json(pack.manifest),
            }
            if options.text:
                content["text"] = {member.name: pack.text(member) for member in _chosen(pack, options.text)}
            write_json(content)
        elif options.text:
            for member in _chosen(pack, options.text):
                sys.stdout.write(f"// {member.name}\n{pack.text(member).rstrip()}\n")
        else:
            _write(options.pack, pack)
    return 0


def _chosen(pack: PackReader, kinds: list[str]) -> list[Member]:
    found: list[Member] = []
    for kind in kinds:
        named = [member for member in pack.manifest.texts if kind in (member.kind, member.name)]
        if not named:
            known = sorted({member.kind for member in pack.manifest.texts})
            hint = f"it has {', '.join(f'`{name}`' for name in known)}" if known else "it has no texts"
            raise UserError(Diagnostic("GM0007", f"{pack.name} has no text `{kind}`", hint=hint))
        found += named
    return found


def _write(name: str, pack: PackReader) -> None:
    manifest = pack.manifest
    print(f"{name}: module `{manifest.module}` of project `{manifest.project}`, {size_text(len(pack.data))}")
    print(f"sha256 {pack.digest}")
    versions = manifest.versions
    print(
        f"container {versions.container}, host interface {versions.host_abi}, kernel records {versions.kernel_record}"
    )
    print()
    for function in manifest.functions:
        print(function.signature or function.name)
        if function.summary:
            print(f"    {function.summary}")
    print()
    write_table(
        ["code", "kind", "target", "host", "size", "entry points"],
        [
            [blob.name, blob.kind, blob.target, blob.host, size_text(blob.size), str(len(blob.entry_points))]
            for blob in manifest.blobs
        ],
        numbers=["size", "entry points"],
    )
    for blob in manifest.blobs:
        if blob.requirements:
            needs = ", ".join(f"{key} {value}" for key, value in sorted(blob.requirements.items()))
            print(f"{blob.name} needs {needs}")
    if manifest.texts:
        print()
        write_table(
            ["text", "kind", "target", "size"],
            [[text.name, text.kind, text.target, size_text(text.size)] for text in manifest.texts],
            numbers=["size"],
        )
    if manifest.provenance:
        print()
        for key, value in sorted(manifest.provenance.items()):
            print(f"{key}: {value}")


def _manifest_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "project": manifest.project,
        "module": manifest.module,
        "versions": {
            "container": manifest.versions.container,
            "host_abi": manifest.versions.host_abi,
            "kernel_record": manifest.versions.kernel_record,
        },
        "functions": [_function_json(function) for function in manifest.functions],
        "blobs": [_member_json(member) for member in manifest.blobs],
        "texts": [_member_json(member) for member in manifest.texts],
        "provenance": dict(manifest.provenance),
    }


def _function_json(function: Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "signature": function.signature,
        "summary": function.summary,
        "parameters": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "dtype": parameter.dtype,
                "shape": list(parameter.shape),
                "written": parameter.written,
            }
            for parameter in function.parameters
        ],
    }


def _member_json(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "kind": member.kind,
        "target": member.target,
        "host": member.host,
        "offset": member.offset,
        "size": member.size,
        "sha256": member.sha256,
        "entry_points": list(member.entry_points),
        "requirements": dict(member.requirements),
        "kernels": [dict(record) for record in member.kernels],
    }
