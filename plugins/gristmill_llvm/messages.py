"""The messages of a module's errors: two constants, one of texts and one of numbers, and how to show values.

A message is numbers (``i32``) in the constant :data:`MESSAGES`: where the name of its exception lies, how many parts it
has, then the parts. A part that is not negative is the offset of a text in :data:`TEXTS`; a negative one is the
:class:`Form` of the next value. So messages need no addresses, which the loader would have to fill in, and every text
is kept once. The functions that read them are in :mod:`gristmill_llvm.message_support`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from gristmill_llvm.writer import ModuleWriter

TEXTS = "@gristmill.texts"
MESSAGES = "@gristmill.messages"


class Form(IntEnum):
    """How the next value of a message is shown."""

    SIGNED = -1
    UNSIGNED = -2
    BOOL = -3
    KIND = -4
    """A type index of TVM FFI, as what a value of that kind is called."""
    DTYPE = -5
    """A dtype of DLPack, ``code | bits << 8 | lanes << 16``, as what it is called."""


class MessageTable:
    """Collects the messages while functions are written."""

    def __init__(self) -> None:
        self._texts = bytearray()
        self._offsets: dict[bytes, int] = {}
        self._numbers: list[int] = []
        self._starts: dict[tuple[int, ...], int] = {}

    def text(self, text: str) -> int:
        """The offset of a text, in UTF-8 with a NUL after it; equal texts are kept once."""
        # A NUL inside would end the text there.
        data = text.encode("utf-8", "surrogatepass") + b"\0"
        if data not in self._offsets:
            self._offsets[data] = len(self._texts)
            self._texts += data
        return self._offsets[data]

    def message(self, kind: str, parts: Sequence[str | Form]) -> int:
        """Where a message begins in the numbers; equal messages are kept once."""
        numbers = (
            self.text(kind),
            len(parts),
            *(self.text(part) if isinstance(part, str) else int(part) for part in parts),
        )
        if numbers not in self._starts:
            self._starts[numbers] = self.numbers(numbers)
        return self._starts[numbers]

    def numbers(self, numbers: Sequence[int]) -> int:
        """Add numbers; where they begin."""
        start = len(self._numbers)
        self._numbers += numbers
        return start

    def __bool__(self) -> bool:
        """Whether there is any message."""
        return bool(self._numbers)

    def define(self, writer: ModuleWriter) -> None:
        """Write the two constants into the module."""
        if not self._numbers:
            return
        writer.define_bytes(TEXTS, bytes(self._texts))
        numbers = ", ".join(f"i32 {number}" for number in self._numbers)
        definition = f"private unnamed_addr constant [{len(self._numbers)} x i32] [{numbers}], align 4"
        writer.define_global(MESSAGES, definition)
