"""Which devices are here, and opening them by name: ``cpu:0``, ``vulkan:1``."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from gristmill.errors import Diagnostic, MissingError, UserError
from gristmill.plugin.protocols import Device, Runtime
from gristmill.plugin.registry import Registry

if TYPE_CHECKING:
    from gristmill.plugin.artifacts import Scalar

_NAME = re.compile(r"(?P<runtime>[a-z0-9][a-z0-9._-]*)(?::(?P<index>\d{1,4}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device that is here, or a runtime that has none.

    ``name`` is what :func:`device` takes (a runtime without devices: its own name), ``title`` the device's name for
    people. ``reason`` says why there is none, and is empty for a device.
    """

    name: str
    title: str
    properties: Mapping[str, Scalar]
    reason: str = ""

    @property
    def is_here(self) -> bool:
        return not self.reason


class DeviceList(list[DeviceRow]):
    """A list of :class:`DeviceRow` that prints as a table."""

    def __repr__(self) -> str:
        width = max((len(row.name) for row in self), default=0)
        return "\n".join(f"{row.name:<{width}}  {row.title if row.is_here else f'none: {row.reason}'}" for row in self)


class Runtimes:
    """The runtimes of a registry, and the devices of theirs that were opened, each once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._opened: dict[tuple[str, int], Device] = {}
        self._lock = threading.Lock()

    def all(self) -> tuple[Runtime, ...]:
        """Every runtime that works, sorted by name."""
        return self.registry.runtimes()

    def devices(self) -> DeviceList:
        """Every device, and for each runtime without one the reason; broken plugins too."""
        rows = DeviceList()
        for runtime in self.all():
            found = runtime.probe()
            rows += [DeviceRow(f"{runtime.name}:{each.index}", each.name, each.properties) for each in found.devices]
            if not found.devices:
                rows.append(DeviceRow(runtime.name, "", {}, found.reason or "it names no device and no reason"))
        for problem in self.registry.problems("runtimes"):
            rows.append(DeviceRow(problem.origin.name, "", {}, problem.message))
        return rows

    def device(self, name: str) -> Device:
        """The device of that name; without a number the first one.

        Raises UserError (GM0904) for a text of another form, (GM1008) for a runtime that there is not; MissingError
        (GM0905) for a device that is not here, with the reason.
        """
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            raise UserError(
                Diagnostic("GM0904", f"{name!r} is no name of a device", hint="write runtime:number, as in `cpu:0`")
            )
        runtime = self.registry.runtime(match["runtime"])
        return self.open(runtime, int(match["index"] or 0))

    def open(self, runtime: Runtime, index: int) -> Device:
        """The device of a runtime, opened once; one that was closed or lost is opened anew.

        Raises MissingError (GM0905) if it is not here.
        """
        key = (runtime.name, index)
        opened = self._opened.get(key)
        if opened is not None and not getattr(opened, "is_usable", True):
            # Of two threads that see it only the first takes it away.
            with self._lock:
                if self._opened.get(key) is opened:
                    del self._opened[key]
            opened = None
        if opened is None:
            found = runtime.probe()
            if index not in {each.index for each in found.devices}:
                here = ", ".join(f"{runtime.name}:{each.index}" for each in found.devices)
                hint = f"there is {here}" if here else f"the {runtime.name} runtime has no device: {found.reason}"
                raise MissingError("GM0905", f"there is no device {runtime.name}:{index}", hint)
            # Of two threads that open at once one wins, and both get its device.
            return self._opened.setdefault(key, runtime.open(index))
        return opened


@cache
def this_process() -> Runtimes:
    """The runtimes of the installed plugins, for callers that bring none of their own."""
    return Runtimes(Registry.installed())


def device(name: str, *, runtimes: Runtimes | None = None) -> Device:
    """Open the device ``name``, as ``cpu:0`` or ``vulkan:0``; see :meth:`Runtimes.device` for the errors."""
    return (runtimes or this_process()).device(name)


def devices(*, runtimes: Runtimes | None = None) -> DeviceList:
    """What is here, and what is not and why."""
    return (runtimes or this_process()).devices()
