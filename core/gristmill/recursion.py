"""Room for recursion: the interpreter's limit of frames, raised while somebody needs it.

The limit is the process's own, and several threads may want room at once. Each adds what it needs and takes away the
same, so nobody lowers the limit under another, and what the limit was before stands again in the end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()


@contextmanager
def room_for(frames: int) -> Iterator[None]:
    """Within it, code may recurse so many Python frames deeper, whatever the caller's own depth."""
    with _LOCK:
        sys.setrecursionlimit(sys.getrecursionlimit() + frames)
    try:
        yield
    finally:
        with _LOCK:
            sys.setrecursionlimit(sys.getrecursionlimit() - frames)
