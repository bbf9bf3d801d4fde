"""Targets that take from a device of this machine what they leave open: ``from_device = 0`` in a target's table.

The only other thing that a build reads of its machine is the processor, for ``cpu:native``. Everything else is the same
wherever it is built.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill.build.manifest import Manifest, TargetEntry
from gristmill.errors import Diagnostic
from gristmill.ir.target import Target
from gristmill.plugin.protocols import FROM_DEVICE, DeviceDescription, Runtime, TargetKind

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


def names_device(target: Target, kind: TargetKind) -> bool:
    """Whether a target as written takes anything from a device."""
    return kind.from_device is not None and FROM_DEVICE.name in dict(target.options)


def completed_from_device(entry: TargetEntry, kind: TargetKind, manifest: Manifest, registry: Registry) -> Target:
    """The target that a manifest's entry names, completed from the device that it names; the key itself is gone.

    The device is one of a runtime that takes code of the kind. Raises UserError (GM0121), with what each such runtime
    has, where it is not on this machine: there is no default in its place. Raises what the kind raises.
    """
    assert kind.from_device is not None
    options = dict(entry.target.options)
    index = int(options.pop(FROM_DEVICE.name))
    runtimes = [runtime for runtime in registry.runtimes() if set(runtime.blob_kinds) & set(kind.blob_kinds)]
    found = _device(runtimes, index)
    if found is None:
        raise manifest.error(_no_device(entry, kind, runtimes, index))
    open_parts = replace(entry.target, options=tuple(sorted(options.items())))
    return kind.from_device(open_parts, found.properties)


def _device(runtimes: list[Runtime], index: int) -> DeviceDescription | None:
    for runtime in runtimes:
        for device in runtime.probe().devices:
            if device.index == index:
                return device
    return None


def _no_device(entry: TargetEntry, kind: TargetKind, runtimes: list[Runtime], index: int) -> Diagnostic:
    here = []
    for runtime in runtimes:
        found = runtime.probe()
        devices = ", ".join(f"{runtime.name}:{device.index}" for device in found.devices)
        here.append(f"there is {devices}" if devices else f"the {runtime.name} runtime has none: {found.reason}")
    return Diagnostic(
        "GM0121",
        f"target `{entry.name}` is to be as device {index} of this machine, and there is none of that number for "
        f"{kind.name} code",
        entry.place_of(FROM_DEVICE.name),
        label="no such device",
        hint="; ".join(here) or f"no installed runtime takes {kind.name} code; write what the target has as keys",
    )
