"""The outside of a SPIR-V module: its header, the lengths of its instructions, its entry point.

What can be told without knowing what instructions mean (SPIR-V specification, "Physical Layout of a SPIR-V Module and
Instruction"): enough to keep files that are damaged from drivers, which trust what they are given. Whether a module is
valid is for Khronos' validator to say (``spirv-val``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

MAGIC = 0x07230203
HEADER_WORDS = 5
GREATEST_BOUND = 4_194_303
"""The greatest id that modules may have (SPIR-V specification, "Universal Limits")."""
GREATEST_MINOR_VERSION = 6
_ENTRY_POINT = 15
_FUNCTION, _FUNCTION_END = 54, 56
_GL_COMPUTE = 5


def module_fault(data: bytes, entry: str) -> str:
    """What is wrong with the outside of a module of one compute shader, in words after "the module"; empty if nothing.

    Words are little-endian, as all that Gristmill writes.
    """
    if len(data) % 4 or len(data) < 4 * HEADER_WORDS:
        return f"has {len(data)} bytes, which is no number of words, or too few"
    words = struct.unpack(f"<{len(data) // 4}I", data)
    magic, version, _, bound, schema = words[:HEADER_WORDS]
    major, minor = version >> 16 & 0xFF, version >> 8 & 0xFF
    if magic != MAGIC:
        return f"begins with {magic:#010x}, not with SPIR-V's {MAGIC:#010x}"
    if version & 0xFF0000FF or major != 1 or minor > GREATEST_MINOR_VERSION:
        return f"is of version {version:#010x}, which is none of SPIR-V 1.0 to 1.{GREATEST_MINOR_VERSION}"
    if not 0 < bound <= GREATEST_BOUND:
        return f"says that its ids are below {bound}"
    if schema:
        return f"has the instruction schema {schema}; there is only 0"
    entries = []
    is_in_function = False
    for at, opcode, operands in _instructions(words):
        if opcode < 0:
            return f"has an instruction in word {at} that goes beyond its end, or has no length"
        if opcode == _ENTRY_POINT:
            entries.append(operands)
        elif opcode == _FUNCTION:
            if is_in_function:
                return f"begins a function inside of another in word {at}"
            is_in_function = True
        elif opcode == _FUNCTION_END:
            is_in_function = False
    if is_in_function:
        return "ends inside of a function"
    if len(entries) != 1:
        return f"has {len(entries)} entry points"
    return _entry_fault(entries[0], entry, bound)


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Each instruction: where it begins, its number, its operands; the number -1 for one that cannot be."""
    at = HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        if not 0 < count <= len(words) - at:
            yield at, -1, ()
            return
        yield at, words[at] & 0xFFFF, words[at + 1 : at + count]
        at += count


def _entry_fault(operands: tuple[int, ...], entry: str, bound: int) -> str:
    if len(operands) < 3 or operands[0] != _GL_COMPUTE or not 0 < operands[1] < bound:
        return "has an entry point that is no compute shader"
    name = struct.pack(f"<{len(operands) - 2}I", *operands[2:]).partition(b"\0")[0]
    if name != entry.encode():
        return f"has the entry point {name[:80]!r}, not `{entry}`"
    return ""
