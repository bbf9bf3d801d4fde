"""The dispatch table: one function that goes by the device of its arrays to the code for that device.

A host part exports :data:`DISPATCH_SYMBOL`, a function of the packed interface whose ``self`` is::

    struct Entry { int32_t (*code)(void* self, const TVMFFIAny*, int32_t, TVMFFIAny*); void* self; };
    struct DispatchTable {
      uint64_t count;
      Entry without_arrays;                             // for calls without any array
      Entry unknown;                                    // for a device of which there is no entry
      struct { int64_t device_type; Entry entry; } entries[count];
    };

The first array among the arguments decides. What is called gets the arguments as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DISPATCH_SYMBOL: Final = "__gristmill_dispatch"

COUNT: Final = 0
WITHOUT_ARRAYS: Final = 8
UNKNOWN: Final = 24
ENTRIES: Final = 40
"""Offsets in bytes, on machines with 64-bit pointers."""
ENTRY_BYTES: Final = 24

Entry = tuple[int, int]
"""The addresses of code and of its ``self``."""


def dispatch_words(entries: Mapping[int, Entry], without_arrays: Entry, unknown: Entry) -> list[int]:
    """The table as 64-bit words; ``entries`` maps DLPack device types."""
    found = [len(entries), *without_arrays, *unknown]
    for device_type, entry in entries.items():
        found += [device_type, *entry]
    return found
