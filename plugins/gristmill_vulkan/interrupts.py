"""Ctrl-C where something has to be done as a whole.

Python raises KeyboardInterrupt in the main thread between any two of its instructions, so also between those that give a
command buffer to the driver and note that the driver has it. In such places the handler of SIGINT waits until they are
over. Those are short; what waits for a device stands outside of them, and is interrupted at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

try:
    # The functions that those of `signal` wrap. The wrappers look for every handler among an enumeration's members, which
    # takes longer than a launch, and this is done for each lock of a device.
    _signals: Any = import_module("_signal")
except ImportError:
    _signals = signal
_SIGINT = int(signal.SIGINT)


class HeldInterrupt:
    """The handler of SIGINT meanwhile: it only takes note."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self._told = handler
        self._is_due = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._is_due = True

    def let_go(self) -> None:
        """Put the handler back that was there before; what it missed it is told now, so this may raise."""
        told = self._told
        handler: object = _signals.getsignal(_SIGINT)
        if handler is self:
            _signals.signal(_SIGINT, told)
        if self._is_due:
            told(signal.SIGINT, None)


def hold_interrupts() -> HeldInterrupt | None:
    """Hold SIGINT until :meth:`HeldInterrupt.let_go`; None where it raises nothing here, or is held already."""
    # Only the main thread is interrupted.
    if threading.get_ident() != threading.main_thread().ident:
        return None
    handler = _signals.getsignal(_SIGINT)
    if not callable(handler) or isinstance(handler, HeldInterrupt):
        return None
    held = HeldInterrupt(handler)
    try:
        _signals.signal(_SIGINT, held)
    except ValueError:
        # The main thread of an interpreter beside the first one.
        return None
    return held


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Hold SIGINT for what is done in here."""
    held = hold_interrupts()
    try:
        yield
    finally:
        if held is not None:
            held.let_go()
