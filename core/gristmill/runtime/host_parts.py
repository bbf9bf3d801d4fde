"""Placing the code of a device: its kernels, and the host functions that launch them, compiled or interpreted."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from gristmill.codegen.context_table import DEVICE_CODE, DEVICE_KIND, HOST_IR, HOST_IR_SUFFIX, KERNELS
from gristmill.errors import Diagnostic, UserError
from gristmill.pack import Member, PackReader
from gristmill.plugin.protocols import Device, HostCode, KernelCode, KernelDevice, LoadedCode
from gristmill.runtime.devices import Runtimes
from gristmill.runtime.kernel_records import kernel_records
from gristmill.runtime.variants import Refusal


def is_host_part(member: Member) -> bool:
    """Whether a code is host functions that launch the kernels of another code of the pack."""
    return DEVICE_KIND in member.requirements


def launches_kernels(device: Device) -> bool:
    """Whether kernels of the device are launched by host functions."""
    return hasattr(device, "native_launch")


def place_kernels(
    reader: PackReader, device: Device, member: Member, runtimes: Runtimes, externs: Mapping[str, int]
) -> tuple[dict[str, tuple[LoadedCode, str]], list[Refusal]]:
    """Load kernels onto a device, and the best host part for them that runs here.

    Returns loaded code and entry point for each function, and the host parts that do not run here. Raises UserError for
    a pack that lacks a kernel (GM0912) or whose host functions are damaged.
    """
    onto = cast(KernelDevice, device)
    records = kernel_records(member, reader.name)
    kernels = cast(KernelCode, device.load(reader.blob(member), member.entry_points, records, externs))
    fitting, refused = _host_parts(reader, member, runtimes)
    known = {record.name for record in records}
    if not fitting:
        return _interpreted(reader, member, kernels, known, onto, externs), refused
    part, host_device = fitting
    own = kernel_records(part, reader.name)
    host = cast(HostCode, host_device.load(reader.blob(part), part.entry_points, own, externs))
    names = [name for name in str(part.requirements.get(KERNELS, "")).split(",") if name]
    for name in names:
        if name not in known:
            raise _lacking(reader, member, name)
    from gristmill.runtime.host_functions import HostFunctions

    functions = HostFunctions(host, kernels, onto, names)
    return {record.name: (functions, record.entry) for record in own}, refused


def _host_parts(
    reader: PackReader, member: Member, runtimes: Runtimes
) -> tuple[tuple[Member, Any] | None, list[Refusal]]:
    """The host part for a device's code to take, with the device that runs it, and those that cannot run here."""
    fitting: list[tuple[int, Member, Any]] = []
    refused = []
    for part in reader.manifest.blobs:
        if not is_host_part(part) or member.sha256 not in str(part.requirements.get(DEVICE_CODE)).split(","):
            continue
        reasons = []
        for runtime in runtimes.all():
            if part.kind not in runtime.blob_kinds:
                continue
            found = runtime.probe()
            reason = found.reason or "it found none"
            if found.devices:
                reason = runtime.refusal(part.kind, part.target, part.host, part.requirements)
                if not reason:
                    features = str(part.requirements.get("cpu_features", "")).count(",")
                    fitting.append((features, part, runtimes.open(runtime, found.devices[0].index)))
                    break
            reasons.append(reason)
        else:
            refused.append(Refusal(part, "; ".join(reasons) or f"no installed runtime takes code of kind {part.kind}"))
    if not fitting:
        return None, refused
    # Of several the one that asks for most of the processor.
    _, best, device = max(fitting, key=lambda each: each[0])
    return (best, device), refused


def _interpreted(
    reader: PackReader,
    member: Member,
    kernels: KernelCode,
    known: AbstractSet[str],
    device: KernelDevice,
    externs: Mapping[str, int],
) -> dict[str, tuple[LoadedCode, str]]:
    """The host functions on the executor, from the text that stands in the pack beside the kernels, with these names."""
    stem = os.path.splitext(os.path.basename(member.name))[0]
    for text in reader.manifest.texts:
        if text.kind == HOST_IR and os.path.basename(text.name) == f"{stem}.{HOST_IR_SUFFIX}":
            from gristmill.runtime.host_interpreter import InterpretedHost

            host = InterpretedHost(reader.text(text), text.name, kernels, device, externs)
            for name in host.launched:
                if name not in known:
                    raise _lacking(reader, member, name)
            return {name: (host, function) for name, function in host.entries.items()}
    raise UserError(
        Diagnostic(
            "GM0912",
            f"{reader.name} has no host functions for the kernels of {member.target} that run here",
            hint="build the pack again: it should hold them as text too",
        )
    )


def _lacking(reader: PackReader, member: Member, kernel: str) -> UserError:
    return UserError(
        Diagnostic(
            "GM0912",
            f"{reader.name} has no kernel `{kernel}` in `{member.name}`, which its host functions launch",
            hint="build the pack again",
        )
    )
