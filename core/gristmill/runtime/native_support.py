"""Native support code: small shared objects that runtimes load to do without Python what would be slow in it.

An installed Gristmill has them as files, in ``gristmill/native/MACHINE/NAME.so``. One that runs from its sources has a
plugin make them at first use (the hook ``gristmill_native_support``), and keeps them in the cache folder. Where there is
none, or none that fits, :func:`find_support` says why, and the runtime does the same in Python.

The objects import nothing, and are never unloaded.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from gristmill import files, knobs
from gristmill.errors import GristmillError
from gristmill.objfile import EM_AARCH64, EM_X86_64, check_shared
from gristmill.plugin.protocols import NativeSupport

FOLDER = "native"
"""Of the objects, in the package and in the cache folder."""
_MACHINES = {"x86_64": EM_X86_64, "aarch64": EM_AARCH64}


@dataclass(frozen=True, slots=True)
class NoSupport:
    """There is no such code here, for this reason (a clause)."""

    reason: str


class SupportCode:
    """A support object in this process, from the file ``origin`` (empty where it could not be written to one)."""

    def __init__(self, library: ctypes.CDLL, origin: str) -> None:
        self._library = library
        self.origin = origin

    def address(self, symbol: str) -> int:
        """Where an exported function or datum is. Raises ValueError for one that there is not."""
        return ctypes.addressof(ctypes.c_char.in_dll(self._library, symbol))

    def text(self, symbol: str) -> str:
        """An exported text, which ends with a NUL."""
        return ctypes.string_at(self.address(symbol)).decode()


def find_support(name: str, package: Path = Path(__file__).parent.parent) -> SupportCode | NoSupport:
    """The support object of that name for this machine, or why there is none. ``package`` has the installed files."""
    if not knobs.NATIVE.value():
        return NoSupport("GRISTMILL_NATIVE switches it off")
    machine = os.uname().machine if hasattr(os, "uname") else "unknown"
    if sys.platform != "linux" or machine not in _MACHINES or sys.maxsize < 1 << 32:
        return NoSupport(f"there is none for {sys.platform} on {machine}")
    installed = package / FOLDER / machine / f"{name}.so"
    try:
        if installed.is_file():
            return _opened(installed)
        return _made(name, machine)
    except (GristmillError, ImportError, OSError) as error:
        return NoSupport(" ".join(str(error).split()))


def _opened(path: Path) -> SupportCode:
    return SupportCode(ctypes.CDLL(str(path)), str(path))


def _made(name: str, machine: str) -> SupportCode | NoSupport:
    """The object from the cache folder, made if it is not there. Raises GristmillError, ImportError, OSError."""
    from gristmill.plugin.registry import Registry

    support = Registry.installed().native_support(name)
    if machine not in support.machines:
        return NoSupport(f"there is none for {machine}")
    path = Path(knobs.cache_folder()) / FOLDER / support.identity(machine)[:40] / f"{name}.so"
    if _is_sound(path, machine):
        return _opened(path)
    data = _built(support, machine)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may do so at once: each puts the same bytes there, whole.
        files.replace_file(path, data, follow_links=False)
    except OSError:
        return _opened_from_memory(data, name)
    return _opened(path)


def _built(support: NativeSupport, machine: str) -> bytes:
    data = support.build(machine)
    check_shared(data, _MACHINES[machine], (), support.name)
    return data


def _is_sound(path: Path, machine: str) -> bool:
    """Whether a file of the cache folder may be loaded: whole, for this machine, and put there by this user."""
    try:
        if path.stat().st_uid != os.getuid():
            return False
        check_shared(path.read_bytes(), _MACHINES[machine], (), path.name)
    except (OSError, GristmillError):
        return False
    return True


def _opened_from_memory(data: bytes, name: str) -> SupportCode:
    """Where no file can be written. The descriptor stays open, for the loader knows libraries by its number."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    return SupportCode(ctypes.CDLL(f"/proc/self/fd/{descriptor}"), "")
