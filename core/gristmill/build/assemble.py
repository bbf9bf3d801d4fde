"""From compiled jobs to the bytes of a pack: manifest, blobs, and texts for people."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from gristmill.build.arguments import arguments_of
from gristmill.build.compile import Compiled
from gristmill.build.texts import IR_SUFFIX, IR_TEXT, options_entry, text_name
from gristmill.ir.expr import Var
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.printer import print_module, print_node
from gristmill.pack import format as pack_format
from gristmill.pack.writer import write_pack
from gristmill.plugin.artifacts import Blob, KernelRecord
from gristmill.version import __version__

_BLOB_SUFFIXES = {"elf-shared": "so", "hsaco": "hsaco", "spirv": "spv", "gmir": "gmir"}


def assemble(project: str, module: str, compiled: Sequence[Compiled]) -> bytes:
    """The pack of one module with the code for all its targets; the same input gives the same bytes."""
    blobs: list[pack_format.Member] = []
    texts: list[pack_format.Member] = []
    contents: dict[str, bytes] = {}
    for part in compiled:
        target_name = part.job.target_name
        name = f"ir/{target_name}.{IR_SUFFIX}"
        texts.append(pack_format.Member(name, IR_TEXT, str(part.job.target)))
        contents[name] = print_module(part.module).encode()
        for number, blob in enumerate(part.blobs):
            stem = target_name if len(part.blobs) == 1 else f"{target_name}-{number}"
            name = f"code/{stem}.{_BLOB_SUFFIXES.get(blob.kind, 'bin')}"
            blobs.append(_blob_member(name, blob))
            contents[name] = blob.data
            for kind, text in blob.texts:
                name = text_name(stem, kind)
                texts.append(pack_format.Member(name, kind, blob.target, blob.host))
                contents[name] = text.encode()
    manifest = pack_format.Manifest(
        project,
        module,
        _functions(part.module for part in compiled),
        tuple(blobs),
        tuple(texts),
        {
            "gristmill": __version__,
            "python": platform.python_implementation(),
            **dict(options_entry(part.job) for part in compiled),
        },
    )
    return write_pack(manifest, contents)


def _blob_member(name: str, blob: Blob) -> pack_format.Member:
    return pack_format.Member(
        name,
        blob.kind,
        blob.target,
        blob.host,
        blob.entry_points,
        dict(sorted(blob.requirements.items())),
        tuple(record_json(record) for record in blob.kernels),
    )


def record_json(record: KernelRecord) -> dict[str, Any]:
    """A kernel record as the JSON object that packs keep; :mod:`gristmill.runtime.kernel_records` reads it back."""
    found = asdict(record)
    found["arguments"] = [dict(argument) for argument in found["arguments"]]
    found["axes"] = list(record.axes)
    found["block"] = list(record.block)
    found["extra"] = dict(sorted(record.extra.items()))
    return found


def _functions(modules: Iterable[Module]) -> tuple[pack_format.Function, ...]:
    """Each public function once, in the order of the source; the first target that has it describes it."""
    found: dict[str, pack_format.Function] = {}
    for module in modules:
        for function in module.public:
            name = function.facts.symbol or function.name
            if name not in found:
                facts = function.facts
                parameters = _parameters(function, module)
                found[name] = pack_format.Function(name, facts.signature or name, parameters, facts.summary)
    return tuple(found.values())


def _parameters(function: Function, module: Module) -> tuple[pack_format.Parameter, ...]:
    return tuple(
        pack_format.Parameter(argument.name, argument.kind, argument.dtype, _shape(param), argument.written)
        for param, argument in zip(function.params, arguments_of(function, module), strict=True)
    )


def _shape(param: Var | Buffer) -> tuple[str, ...]:
    return tuple(print_node(size) for size in param.shape) if isinstance(param, Buffer) else ()
