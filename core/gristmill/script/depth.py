"""Room on the interpreter's stack for reading deeply nested (but bounded) kernels."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NESTING_AT_MOST = 256
"""Levels of expressions, and levels of statements, that a kernel may have."""

# Reading takes at most about 12 Python frames a level; expressions and statements nest independently.
_FRAMES = 2 * NESTING_AT_MOST * 12 + 1000


class _Room:
    """Counts who needs the raised limit, so that threads do not lower it under each other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = 0

    def enter(self) -> None:
        with self.lock:
            if self.users == 0:
                self.before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self.before, self.before + _FRAMES))
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                sys.setrecursionlimit(self.before)


_ROOM = _Room()


@contextmanager
def room_to_recurse() -> Iterator[None]:
    """Within it, code may recurse as deep as bounded nesting asks, whatever the caller's own depth."""
    _ROOM.enter()
    try:
        yield
    finally:
        _ROOM.leave()
