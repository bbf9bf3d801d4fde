"""The bytes of a pack, read piece by piece: from memory, or from an open file.

A file is read and not mapped: what is handed out is a copy, so what was checked is what is used, and a file that is
cut off while it is open gives an error (a mapping would give the process a bus error).
"""

from __future__ import annotations

import contextlib
import os
import stat
import weakref

from gristmill.errors import Diagnostic, UserError

_PIECE = 1 << 20


class Content:
    """``size`` bytes that never change, as far as anybody can promise."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, start: int, size: int) -> bytes:
        """``size`` bytes from ``start`` on, which the caller knows to be there."""
        return self._data[start : start + size]

    def pieces(self) -> list[bytes]:
        """All bytes, in pieces of a moderate size."""
        return [self._data]

    def close(self) -> None:
        """Let go of the bytes; nothing can be read any more."""
        self._data = b""


class FileContent(Content):
    """The bytes of a file, which stays open until :meth:`close` or until nobody has this object any more."""

    def __init__(self, path: str, name: str) -> None:
        """``name`` is what messages call the file. Raises OSError, ValueError for a path with a null character."""
        # Not to wait for a writer, should it be a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._finalizer = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self.name = name
        found = os.fstat(descriptor)
        self.is_plain = stat.S_ISREG(found.st_mode)
        self.size = found.st_size if self.is_plain else 0

    def read(self, start: int, size: int) -> bytes:
        """As :meth:`Content.read`. Raises UserError (GM0811) where the file has changed or cannot be read."""
        found = bytearray()
        while len(found) < size:
            try:
                piece = os.pread(self._descriptor, size - len(found), start + len(found))
            except OSError as error:
                raise self._unreadable(error.strerror or str(error)) from None
            if not piece:
                raise self._unreadable("it has become shorter since it was opened")
            found += piece
        return bytes(found)

    def pieces(self) -> list[bytes]:
        """As :meth:`Content.pieces`, with the errors of :meth:`read`."""
        return [self.read(start, min(_PIECE, self.size - start)) for start in range(0, self.size, _PIECE)]

    def close(self) -> None:
        # The number may be somebody else's by now, in a process that closes all its descriptors.
        with contextlib.suppress(OSError):
            self._finalizer()
        self._descriptor = -1

    def _unreadable(self, why: str) -> UserError:
        hint = "fetch it or build it again; packs are replaced, not written over"
        return UserError(Diagnostic("GM0811", f"{self.name} cannot be read: {why}", hint=hint))
