"""Asserts of kernels that failed: the memory that kernels report to, and the exceptions made of what stands there.

Words of 32 bits, as the records of kernels with asserts have it: the number of the assert (from 1 on; 0: none failed), the
block along x, y, z, the thread along x, y, z, one that is unused, and the values of the message, two words each.
"""

from __future__ import annotations

import builtins
import ctypes
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill_vulkan.kernels import Kernel
    from gristmill_vulkan.memory import Allocation, Memory

REPORT_BYTES = 256
_WORDS = REPORT_BYTES // 4
_FIRST_VALUE = 8
_VALUE_KINDS = ("signed", "unsigned", "bool")


@dataclass(frozen=True, slots=True)
class AssertText:
    """What is told of an assert: the class of the exception, the texts and kinds of values of its message, its place."""

    kind: str
    message: tuple[str | tuple[str], ...]
    place: str


def assert_texts(data: object) -> tuple[AssertText, ...]:
    """The asserts that a record tells of. Raises ValueError for what is no such list: it comes from a file."""
    if data is None:
        return ()
    found = json.loads(data) if isinstance(data, str) else None
    if not isinstance(found, list):
        raise ValueError("no list of asserts")
    return tuple(map(_text, found))


def _text(found: object) -> AssertText:
    if not isinstance(found, list) or len(found) != 3:
        raise ValueError("an assert of other than three parts")
    kind, message, place = found
    if not isinstance(kind, str) or not isinstance(place, str) or not isinstance(message, list):
        raise ValueError("an assert with parts of other types")
    return AssertText(kind, tuple(map(_part, message)), place)


def _part(found: object) -> str | tuple[str]:
    if isinstance(found, str):
        return found
    if isinstance(found, list) and len(found) == 1 and found[0] in _VALUE_KINDS:
        return (str(found[0]),)
    raise ValueError("a message with something else than texts and values")


class Reports:
    """The memory that the kernels of a device with asserts report to. ``lock`` is the device's."""

    def __init__(self, memory: Memory, lock: AbstractContextManager[Any]) -> None:
        self._memory = memory
        self._lock = lock
        self._watched: dict[Kernel, Allocation] = {}

    @property
    def count(self) -> int:
        """How many kernels there are with asserts."""
        return len(self._watched)

    def watch(self, kernel: Kernel) -> None:
        """Give a kernel with asserts memory to report to, and look at it from now on. Raises DeviceMemoryError."""
        with self._lock:
            memory = self._memory.allocate(REPORT_BYTES, staging=True)
            assert memory.mapped
            ctypes.memset(memory.mapped, 0, REPORT_BYTES)
            self._watched[kernel] = memory
            kernel.report_address = memory.address

    def destroy(self, kernel: Kernel) -> None:
        """Destroy a kernel that nothing uses any more, and what it had. With the lock."""
        kernel.destroy()
        memory = self._watched.pop(kernel, None)
        if memory is not None:
            self._memory.release(memory)

    def raise_failure(self) -> None:
        """Raise what an assert says that has failed in work that is done; each failure is told once."""
        if not self._watched:
            return
        with self._lock:
            failure = self._failure()
        if failure is not None:
            raise failure

    def _failure(self) -> Exception | None:
        for kernel, memory in self._watched.items():
            words = (ctypes.c_uint32 * _WORDS).from_address(memory.mapped)
            if words[0]:
                told = list(words)
                ctypes.memset(memory.mapped, 0, REPORT_BYTES)
                return _exception(kernel.record.name, kernel.form.asserts, told)
        return None


def _exception(kernel: str, texts: Sequence[AssertText], words: Sequence[int]) -> Exception:
    if words[0] > len(texts):
        return RuntimeError(f"an assert of {kernel} failed")
    text = texts[words[0] - 1]
    parts: list[str] = []
    place = _FIRST_VALUE
    for part in text.message:
        if isinstance(part, str):
            parts.append(part)
        elif place + 1 < len(words):
            parts.append(_shown(part[0], words[place] | words[place + 1] << 32))
            place += 2
    found: Any = getattr(builtins, text.kind, None)
    error: Exception
    if isinstance(found, type) and issubclass(found, Exception):
        error = found("".join(parts))
    else:
        error = RuntimeError("".join(parts))
    axes = [
        f"{name}.{axis} = {words[start + number]}"
        for start, name in ((1, "blockIdx"), (4, "threadIdx"))
        for number, axis in enumerate("xyz")
    ]
    where = f" at {text.place}" if text.place else ""
    error.add_note(f"an assert{where} failed in the kernel {kernel}, {', '.join(axes)}")
    return error


def _shown(kind: str, value: int) -> str:
    if kind == "bool":
        return str(bool(value))
    return str(value - (1 << 64) if kind == "signed" and value >> 63 else value)
