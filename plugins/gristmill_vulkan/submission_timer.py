"""The thread that submits what a program has recorded and then left: nobody launches, reads or waits any more.

It is started with the first batch of a device, and sleeps where nothing is recorded. A batch that begins wakes it; then it
sleeps until the batch is due, however often another has begun meanwhile: it wakes at most once in that time, and a launch
that machine code records does nothing for it. It holds the device only while it looks, so that a device which nobody else
holds is closed.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import suppress

_LONGEST_END_SECONDS = 5.0


class SubmissionTimer:
    """The thread of one device. :meth:`arm` is called with the device's lock, :meth:`stop` without it."""

    def __init__(self, name: str, submit_late: Callable[[], float | None]) -> None:
        """``submit_late``, a method that is held weakly, submits what is due.

        It gives after how many seconds to call it again, or None if not before the next batch begins. It is called without
        the device's lock, and must not raise.
        """
        self._name = name
        self._submit_late = weakref.WeakMethod(submit_late)
        # Used as a flag that can be waited for: free where there is something to do. No other kind of lock does: one that is
        # made anew for each wait can be interrupted by the collection of garbage, which can close the device.
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: threading.Thread | None = None
        self._is_armed = False
        self._is_stopped = False

    @property
    def is_started(self) -> bool:
        return self._thread is not None

    def arm(self) -> None:
        """A batch has begun."""
        if self._is_armed or self._is_stopped:
            return
        self._is_armed = True
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=f"gristmill {self._name}", daemon=True)
            # Where there can be no more threads, the next launch, read or wait submits.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread
        self._signal()

    def disarm(self) -> None:
        """Nothing is to be done before the next batch begins. Called by ``submit_late``, with the device's lock."""
        self._is_armed = False

    def stop(self) -> None:
        """End the thread, and wait for its end, unless this is the thread itself."""
        self._is_stopped = True
        self._signal()
        self.join()

    def join(self) -> None:
        """Wait until the thread has ended, which must have been stopped."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LONGEST_END_SECONDS)

    def _signal(self) -> None:
        # Two threads may do this at once.
        with suppress(RuntimeError):
            self._wake.release()

    def _run(self) -> None:
        wait: float | None = None
        while True:
            self._wake.acquire(timeout=-1 if wait is None else wait)
            if self._is_stopped:
                return
            submit_late = self._submit_late()
            if submit_late is None:
                return
            wait = submit_late()
            # Where this was the last to hold the device, it is closed here, which stops the thread.
            del submit_late
