"""Show what a pack holds: its functions, the code for each target, its kernels, what made it.

Reads the pack's manifest. --text prints texts for people: those that the pack keeps, and others (llvm-ir, assembly,
spirv-assembly) made of its code or again from its IR, where the plugin of the target is installed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gristmill.cli.output import add_json_option, size_text, write_json, write_table
from gristmill.cli.selection import add_plugin_option, registry_of
from gristmill.errors import Diagnostic, UserError
from gristmill.pack import Manifest, PackReader, find_pack

if TYPE_CHECKING:
    from gristmill.build.texts import MadeText


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pack", help="a .kpack file, or PACKAGE:MODULE of an installed package")
    parser.add_argument(
        "--text", action="append", metavar="KIND", help="print the texts of this kind or name; may be repeated"
    )
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    with find_pack(options.pack) as pack:
        if options.json:
            content = {
                "pack": options.pack,
                "digest": pack.digest,
                "size": pack.size,
                **_manifest_json(pack.manifest),
            }
            if options.text:
                shown = [text for kind in options.text for text in _texts(pack, kind, options)]
                content["text"] = {text.name: text.content for text in shown}
                content["made"] = [text.name for text in shown if text.made]
            write_json(content)
        elif options.text:
            for kind in options.text:
                for text in _texts(pack, kind, options):
                    note = f" ({text.made})" if text.made else ""
                    sys.stdout.write(f"// {text.name}{note}\n{text.content.rstrip()}\n")
        else:
            _write(options.pack, pack)
    return 0


@dataclass(frozen=True)
class _Text:
    """A text to show; ``made`` says how it came about where the pack does not keep it."""

    name: str
    content: str
    made: str = ""


def _texts(pack: PackReader, kind: str, options: argparse.Namespace) -> list[_Text]:
    """The texts of a kind or a name: those that the pack keeps, or else what is made again from its IR."""
    kept = [member for member in pack.manifest.texts if kind in (member.kind, member.name)]
    if kept:
        return [_Text(member.name, pack.text(member)) for member in kept]
    from gristmill.build.texts import make_texts

    made = make_texts(pack, kind, registry_of(options))
    if made:
        return [_Text(text.name, text.text, _how_made(text)) for text in made]
    known = sorted({member.kind for member in pack.manifest.texts})
    hint = f"it has {', '.join(f'`{name}`' for name in known)}" if known else "it has no texts"
    raise UserError(Diagnostic("GM0007", f"{pack.name} has no text `{kind}`", hint=hint))


def _how_made(text: MadeText) -> str:
    if text.of_code:
        return "made of the code in the pack"
    if text.same_code:
        return "made again from the IR; the code is that of the pack"
    return "made again from the IR; this gristmill makes other code of it than the pack has"


def _write(name: str, pack: PackReader) -> None:
    manifest = pack.manifest
    print(f"{name}: module `{manifest.module}` of project `{manifest.project}`, {size_text(pack.size)}")
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
    _write_kernels(manifest)
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


def _write_kernels(manifest: Manifest) -> None:
    """The kernels that are launched: how arguments reach them, threads of a block, shared memory."""
    rows = []
    for blob in manifest.blobs:
        for record in blob.kernels:
            axes = record.get("axes")
            if not isinstance(axes, list) or not axes:
                continue
            extra, block = record.get("extra"), record.get("block")
            form = extra.get("arguments", "") if isinstance(extra, dict) else ""
            sizes = [str(size or "?") for size in block] if isinstance(block, list) else []
            dynamic = " + dynamic" if record.get("dynamic_shared") else ""
            shared = f"{record.get('shared_bytes', 0)} B{dynamic}"
            rows.append([str(record.get("name", "")), blob.name, str(form), " x ".join(sizes), shared])
    if rows:
        print()
        write_table(["kernel", "code", "arguments", "block", "shared"], rows)


def _manifest_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "project": manifest.project,
        "module": manifest.module,
        "versions": asdict(manifest.versions),
        "functions": [asdict(function) for function in manifest.functions],
        "blobs": [asdict(member) for member in manifest.blobs],
        "texts": [asdict(member) for member in manifest.texts],
        "provenance": dict(manifest.provenance),
    }
