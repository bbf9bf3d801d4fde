"""Code for a device: its kernels, and the host functions that launch them for each machine of ``[project] host``.

The passes up to the host interface run once, with the device's capabilities, and split kernels from host code. Then
the two go their own ways: kernels through the rest of the pipeline for the device, host code through it for each
machine. The host code is kept as text too: where none of the compiled parts fits, the executor runs that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill.build.generation import Generated, Settings, code_of, lower, with_arguments, with_fast_math
from gristmill.codegen.context_table import DEVICE_CODE, DEVICE_KIND, HOST_IR
from gristmill.codegen.kernel_records import kernels_of
from gristmill.errors import Unsupported
from gristmill.ir.module import Module
from gristmill.ir.printer import print_module
from gristmill.ir.target import Target
from gristmill.passes.part_by_target import part_by_target
from gristmill.passes.pipeline import phase_names
from gristmill.plugin.artifacts import Blob, Scalar
from gristmill.plugin.protocols import TargetKind

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry

LAST_COMMON_PHASE = "host"
_NATIVE = "native"
HOST_BLOB_KIND = "elf-shared"
KNOWN_HOSTS = ("x86-64-v2", "aarch64")
"""Machines that a manifest may name whether or not there is a code generator for them."""


def generate_for_device(
    module: Module, target: Target, kind: TargetKind, registry: Registry, settings: Settings
) -> Generated:
    """The kernels, then the host parts. A machine that there is no code for is left out, with a note."""
    names = phase_names()
    common = names[: names.index(LAST_COMMON_PHASE) + 1]
    rest = names[len(common) :]
    split = lower(
        with_fast_math(module, settings.fast_math), kind, target, registry, settings, phases=common, dump="common"
    )
    parts = part_by_target(split)
    device = lower(parts.device, kind, target, registry, settings, phases=rest, dump="device")
    kernels = code_of(device, kind, target, registry, settings)
    _check_same_kernels(kernels, device, kind, registry)
    codes = ",".join(hashlib.sha256(blob.data).hexdigest() for blob in kernels)
    ties: dict[str, Scalar] = {DEVICE_KIND: kind.name, DEVICE_CODE: codes}
    host_text = (HOST_IR, print_module(parts.host))
    found = [replace(blob, texts=(*blob.texts, host_text)) for blob in kernels]
    notes = []
    for host in settings.hosts:
        resolved = host_target(host, registry)
        if resolved is None:
            notes.append(f"there is no code generator for the host {host}: there the executor runs the host code")
            continue
        host_kind, host_machine = resolved
        # Passes that the user chose are for the kernels.
        own = replace(settings, passes=())
        try:
            lowered = lower(parts.host, host_kind, host_machine, registry, own, phases=rest, dump=f"host-{host}")
            blobs = code_of(lowered, host_kind, host_machine, registry, own)
        except Unsupported as refused:
            why = refused.diagnostics[0].message
            notes.append(f"no host part for {host}, so the executor runs the host code there: {why}")
            continue
        found += with_arguments([_tied(blob, str(target), ties) for blob in blobs], module)
    return Generated(tuple(found), tuple(notes))


def _check_same_kernels(blobs: Sequence[Blob], module: Module, kind: TargetKind, registry: Registry) -> None:
    """Each blob has all kernels of the module: one of them is loaded, whichever fits the device best."""
    wanted = {function.name for function in kernels_of(module)}
    for blob in blobs:
        found = {record.name for record in blob.kernels}
        if lacking := sorted(wanted - found):
            what = f"made a blob of kind {blob.kind!r} without the kernel {lacking[0]!r}; each blob has all kernels"
            raise registry.fault("code_generators", kind.generator, what)


def _tied(blob: Blob, target: str, ties: Mapping[str, Scalar]) -> Blob:
    """Host code that says whose kernels it launches."""
    return replace(blob, target=target, requirements={**blob.requirements, **ties})


def unknown_hosts(hosts: Sequence[str], registry: Registry) -> list[int]:
    """The places of names that no installed target kind makes host code for, and that are no known machine's either."""
    return [
        place for place, host in enumerate(hosts) if host not in KNOWN_HOSTS and host_target(host, registry) is None
    ]


def host_names(registry: Registry) -> list[str]:
    """The machines that host parts can be compiled for."""
    kinds = [kind for kind in registry.target_kinds() if HOST_BLOB_KIND in kind.blob_kinds]
    return [name for kind in kinds for name in kind.architectures if name != _NATIVE]


def host_target(host: str, registry: Registry) -> tuple[TargetKind, Target] | None:
    """The target kind that makes host code for a machine, and the resolved target; None if no kind does.

    ``native`` is no name of a machine here: a pack must not depend on where it was built.
    """
    if host == _NATIVE:
        return None
    for kind in registry.target_kinds():
        if HOST_BLOB_KIND not in kind.blob_kinds:
            continue
        try:
            return kind, kind.resolve(Target(kind.name, host))
        except ValueError:
            continue
    return None
