"""The lock of a device: for Python's threads, and for machine code that records launches without asking them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gristmill_vulkan.interrupts import HeldInterrupt, hold_interrupts

if TYPE_CHECKING:
    from types import TracebackType

    from gristmill_vulkan.native_recording import NativeRecording


class DeviceLock:
    """A reentrant lock. Whoever has it has the state that is shared with machine code too, if there is any.

    Ctrl-C waits until the lock is given back.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._held: HeldInterrupt | None = None
        self.shared: NativeRecording | None = None

    def share(self, shared: NativeRecording) -> None:
        """From now on the lock guards this state as well."""
        with self._lock:
            assert self._depth == 0, "the lock is held"
            self.shared = shared
            shared.give()

    def __enter__(self) -> None:
        held = hold_interrupts()
        try:
            self._lock.acquire()
            try:
                if self._depth == 0 and self.shared is not None:
                    self.shared.take()
            except BaseException:
                self._lock.release()
                raise
        except BaseException:
            if held is not None:
                held.let_go()
            raise
        if self._depth == 0:
            self._held = held
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._depth -= 1
        held: HeldInterrupt | None = None
        try:
            if self._depth == 0:
                held, self._held = self._held, None
                if self.shared is not None:
                    self.shared.give()
        finally:
            self._lock.release()
            if held is not None:
                held.let_go()


class Users:
    """Threads that use what a device is made of without holding its lock."""

    def __init__(self, lock: DeviceLock) -> None:
        self._lock = lock
        self._users: set[object] = set()

    @property
    def are_there(self) -> bool:
        return bool(self._users)

    @contextmanager
    def one_more(self, check: Callable[[], None]) -> Iterator[None]:
        """Count one meanwhile, unless ``check`` raises."""
        user = object()
        try:
            with self._lock:
                check()
                self._users.add(user)
            # An interrupt may come wherever the lock is not held, so also here.
            yield
        finally:
            with self._lock:
                self._users.discard(user)
