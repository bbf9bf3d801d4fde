"""Shared objects that exist only in memory, opened with the system's loader.

The bytes go into a memfd, which is opened as ``/proc/self/fd/N``. The loader knows libraries by that name: were the
descriptor closed and its number given to the next one, the loader would hand out the old library again. So the
descriptor stays open as long as the library does, and is closed after it. Where a number was reused all the same (a
process that closes all its descriptors, say), the loaded bytes are not those that were asked for; that is checked, and
a temporary file with a name of its own takes the memfd's place. So it does where there is no memfd or no ``/proc``.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import fcntl
import os
import struct
import tempfile
import weakref

from gristmill.errors import Diagnostic, UserError

# Program header and file header of ELF64 (System V ABI, chapter 5): the fields that are needed.
_HEADER = struct.Struct("<16sHHIQQQIHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_PT_LOAD = 1
_WRITABLE = 2
_RTLD_DI_LINKMAP = 2


class Library:
    """A shared object in this process. It is unloaded when the last reference to this object goes.

    Whoever calls its functions keeps a reference, also while a call runs.
    """

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        """``data`` must have passed :func:`gristmill.objfile.check_shared`. Raises UserError (GM0913)."""
        self.name = name
        self._library, descriptor = _open(data, name)
        # Not at exit: other objects may then still call into the library.
        weakref.finalize(self, _close, self._library._handle, descriptor, _identity(descriptor)).atexit = False

    def address(self, symbol: str) -> int:
        """The address of an exported symbol. Raises UserError (GM0913) if there is none."""
        try:
            found = ctypes.cast(self._library[symbol], ctypes.c_void_p).value
        except AttributeError:
            found = None
        if not found:
            raise _refused(self.name, f"it does not export `{symbol}`, which its pack names")
        return found


def _close(handle: int, descriptor: int, identity: tuple[int, int]) -> None:
    """Unload first, then let the name go; unless the number is somebody else's by now."""
    _ctypes.dlclose(handle)
    if descriptor >= 0 and _identity(descriptor) == identity:
        os.close(descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    """Which file a descriptor stands for; (0, 0) for none."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _open(data: bytes | memoryview, name: str) -> tuple[ctypes.CDLL, int]:
    """The opened library, and the descriptor to close after it (-1: none)."""
    descriptor = _memory_file(data, name)
    if descriptor >= 0:
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
            if _is_loaded_from(library._handle, data):
                return library, descriptor
            _ctypes.dlclose(library._handle)
        os.close(descriptor)
    return _open_temporary(data, name), -1


def _memory_file(data: bytes | memoryview, name: str) -> int:
    """A sealed memfd with these bytes; -1 where the system has none."""
    try:
        descriptor = os.memfd_create(name[:64].replace("/", "_"), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (AttributeError, OSError):
        return -1
    try:
        _write(descriptor, data)
        # What was checked is what is loaded: nobody can change the file any more.
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor


def _write(descriptor: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _open_temporary(data: bytes | memoryview, name: str) -> ctypes.CDLL:
    """The library from a temporary file that only this user can touch, and that is gone afterwards."""
    try:
        with tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
            path = os.path.join(folder, f"{os.path.basename(folder)}.so")
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
            try:
                _write(descriptor, data)
            finally:
                os.close(descriptor)
            return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise _refused(name, f"the system does not load it: {error}") from None


def _is_loaded_from(handle: int, data: bytes | memoryview) -> bool:
    """Whether the library behind a handle has the constant segments that are in ``data``."""
    base = _base_address(handle)
    view = memoryview(data)
    fields = _HEADER.unpack_from(view)
    program_offset, program_size, program_count = fields[5], fields[9], fields[10]
    for place in range(program_count):
        kind, flags, offset, address, _, size, _, _ = _PROGRAM.unpack_from(view, program_offset + place * program_size)
        if kind != _PT_LOAD or flags & _WRITABLE:
            continue
        if not _is_mapped(base + address, size):
            return False
        if ctypes.string_at(base + address, size) != view[offset : offset + size]:
            return False
    return True


def _is_mapped(address: int, size: int) -> bool:
    """Whether all of a range of memory can be read: the library may be another, shorter one."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as opened:
        for line in opened:
            limits, rights = line.split(" ", 2)[:2]
            start, _, end = limits.partition("-")
            if int(start, 16) <= address < int(end, 16):
                if "r" not in rights:
                    return False
                if address + size <= int(end, 16):
                    return True
                size -= int(end, 16) - address
                address = int(end, 16)
    return size <= 0


def _base_address(handle: int) -> int:
    """Where a library is: ``l_addr``, the first field of its ``struct link_map`` (link.h)."""
    found = ctypes.c_void_p()
    inquire = ctypes.CDLL(None).dlinfo
    if inquire(ctypes.c_void_p(handle), _RTLD_DI_LINKMAP, ctypes.byref(found)) != 0 or not found.value:
        raise OSError("the loader does not say where the library is")
    return ctypes.c_void_p.from_address(found.value).value or 0


def _refused(name: str, why: str) -> UserError:
    return UserError(Diagnostic("GM0913", f"{name} cannot be loaded: {why}", hint="build the pack again"))
