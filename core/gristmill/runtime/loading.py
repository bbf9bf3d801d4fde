"""Loading packs: finding the file, choosing what runs here, loading it onto devices.

A pack holds machine code, which runs with the rights of the process that calls it: load packs only from where you would
install a package from. What is checked (structure, hashes, kinds of code, the machine, imports) keeps damaged and wrong
files out before any code is loaded, not malice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gristmill.errors import MissingError, PluginError
from gristmill.pack import Member, PackReader, find_pack
from gristmill.plugin.guarded import watched
from gristmill.plugin.protocols import Device, LoadedCode, Runtime
from gristmill.runtime.devices import Runtimes, this_process
from gristmill.runtime.externs import given_address
from gristmill.runtime.host_parts import launches_kernels, place_kernels
from gristmill.runtime.kernel_records import kernel_records
from gristmill.runtime.loaded_pack import LoadedPack, Placed
from gristmill.runtime.variants import Refusal, choose, fitting_device, nothing_fits


def load(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview,
    *,
    device: str | Device | None = None,
    target: str | None = None,
    runtimes: Runtimes | None = None,
    externs: Mapping[str, Any] | None = None,
) -> LoadedPack:
    """Load a pack: a path, the bytes of a pack, or ``"package:module"`` for a pack that an installed package holds.

    ``device`` loads it on that device alone; otherwise for every runtime here that takes some of its code, on its first
    device that runs some. Where a code lacks nothing but a device (no GPU, no driver), and no other runs, the pack is
    loaded all the same, and its functions say what is missing when they are called. ``target`` takes the code of that
    target (as ``"cpu:x86-64-v2"``) instead of the best that runs here. ``externs`` gives C functions that kernels call:
    symbol to address, or to a ctypes function, which must live as long as the pack's functions.

    Raises UserError: GM08xx for a damaged pack, GM0903 for a package or a module that is not there, GM0910 for an
    extern that is no function; MissingError: GM0901 if nothing of the pack can run here (with every variant and
    the reason), GM0905 for a device that is not here, GM0911 for a library that a kernel needs.
    """
    runtimes = runtimes or this_process()
    chosen: Device | None = runtimes.device(device) if isinstance(device, str) else device
    reader = find_pack(source)
    addresses = {symbol: given_address(symbol, given) for symbol, given in (externs or {}).items()}
    runtime_name = chosen.name.partition(":")[0] if chosen is not None else ""
    variants = choose(reader.manifest, runtimes, runtime_name, target or "")
    placed = []
    refused = list(variants.refused)
    faults: list[PluginError] = []
    for runtime, members in variants.usable:
        try:
            with watched(runtimes.registry.origin("runtimes", runtime.name), "choosing a device for code"):
                onto, fitting, others = _device_for(runtime, members, chosen, runtimes)
            refused += others
            if fitting:
                with watched(runtimes.registry.origin("runtimes", runtime.name), f"loading code on {onto.name}"):
                    placed.append(_place(reader, onto, fitting, runtimes, addresses, refused))
        except PluginError as fault:
            # A broken plugin stops no other.
            faults.append(fault)
            refused += [Refusal(member, fault.message) for member in members]
    if placed:
        return LoadedPack(reader, placed, refused)
    if faults:
        raise faults[0]

    def missing() -> MissingError:
        problems = [problem.message for problem in runtimes.registry.problems("runtimes")]
        return nothing_fits(reader.name, reader.manifest, refused, problems)

    if chosen is None and any(refusal.for_want_of_device for refusal in refused):
        return LoadedPack(reader, (), refused, missing)
    raise missing()


def _device_for(
    runtime: Runtime, members: tuple[Member, ...], chosen: Device | None, runtimes: Runtimes
) -> tuple[Device, tuple[Member, ...], tuple[Refusal, ...]]:
    """The device to load onto: the one that was asked for, or the first of the runtime that runs some of the code.

    With it the codes that it runs, and those that it does not; of several devices that run none, the first.
    """
    if chosen is not None:
        return chosen, *fitting_device(chosen, members)
    first: tuple[Device, tuple[Member, ...], tuple[Refusal, ...]] | None = None
    for described in runtime.probe().devices:
        device = runtimes.open(runtime, described.index)
        found = (device, *fitting_device(device, members))
        if found[1]:
            return found
        first = first or found
    if first is None:
        device = runtimes.open(runtime, 0)
        return device, *fitting_device(device, members)
    return first


def _place(
    reader: PackReader,
    device: Device,
    members: tuple[Member, ...],
    runtimes: Runtimes,
    externs: Mapping[str, int],
    refused: list[Refusal],
) -> Placed:
    """Load onto a device, for each function of the pack, the best code that has it; adds to ``refused``."""
    entries: dict[str, tuple[LoadedCode, str]] = {}
    targets = []
    public = {function.name for function in reader.manifest.functions}
    for member in members:
        if launches_kernels(device):
            if public and public <= entries.keys():
                # Kernels are not made for nothing.
                break
            found, not_here = place_kernels(reader, device, member, runtimes, externs)
            entries = {**found, **entries}
            targets.append(member.target)
            refused += not_here
            continue
        records = kernel_records(member, reader.name)
        wanted = [record for record in records if record.name not in entries]
        if not wanted:
            continue
        code = device.load(reader.blob(member), member.entry_points, records, externs)
        targets.append(member.target)
        for record in wanted:
            entries[record.name] = (code, record.entry)
    return Placed(device.name, device.device_type, entries, targets)
