"""The lock of a device: for Python's threads, and for machine code that records launches without asking them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from gristmill_vulkan.native_recording import NativeRecording


class DeviceLock:
    """A reentrant lock. Whoever has it has the state that is shared with machine code too, if there is any."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self.shared: NativeRecording | None = None

    def share(self, shared: NativeRecording) -> None:
        """From now on the lock guards this state as well."""
        with self._lock:
            assert self._depth == 0, "the lock is held"
            self.shared = shared
            shared.give()

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            if self._depth == 0 and self.shared is not None:
                self.shared.take()
            self._depth += 1
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self.shared is not None:
                self.shared.give()
        finally:
            self._lock.release()
