"""The bytes of the ZIP profile around the members: local headers, central directory, end record.

Source: PKWARE, .ZIP File Format Specification (APPNOTE.TXT) 6.3, sections 4.3.7, 4.3.12, 4.3.16, 4.4, 4.5. Everything here
follows from the members' names, sizes, checksums and places, so a reader checks these bytes by making them again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
CENTRAL: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
END: Final = struct.Struct("<4sHHHHIIH")
EXTRA: Final = struct.Struct("<HH")
CRC: Final = struct.Struct("<I")
CRC_OFFSET: Final = 14
"""Where a local header has the CRC of its member."""

LOCAL_MAGIC: Final = b"PK\x03\x04"
_CENTRAL_MAGIC: Final = b"PK\x01\x02"
_END_MAGIC: Final = b"PK\x05\x06"
_VERSION_NEEDED: Final = 10  # 1.0: nothing but stored files
_MADE_BY: Final = 3 << 8 | 30  # Unix, so that the mode below is read
_FIRST_DATE: Final = 1 << 5 | 1  # 1980-01-01, the first day that a ZIP can name
_MODE: Final = 0o100644 << 16
PADDING_ID: Final = 0xCAFE
"""The extra field that moves a member's bytes to their alignment; its contents are zeros."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One member of the container: where its local header and its bytes begin."""

    name: bytes
    header: int
    start: int
    size: int
    crc: int

    @property
    def end(self) -> int:
        return self.start + self.size


def first_member(name: bytes, size: int, crc: int) -> Placed:
    """The member at offset 0, which has no padding."""
    return Placed(name, 0, LOCAL.size + len(name), size, crc)


def next_start(end: int, name: bytes, alignment: int) -> int:
    """Where the bytes of a member begin whose local header is at ``end``."""
    least = end + LOCAL.size + len(name) + EXTRA.size
    return -(-least // alignment) * alignment


def local_header(member: Placed) -> bytes:
    """All that is between the end of the member before and this member's bytes."""
    padding = member.start - member.header - LOCAL.size - len(member.name)
    extra = EXTRA.pack(PADDING_ID, padding - EXTRA.size) + bytes(padding - EXTRA.size) if padding else b""
    fields = (0, 0, 0, _FIRST_DATE, member.crc, member.size, member.size, len(member.name), len(extra))
    return LOCAL.pack(LOCAL_MAGIC, _VERSION_NEEDED, *fields) + member.name + extra


def directory(members: Sequence[Placed]) -> bytes:
    """The central directory and the end record: all that follows the last member's bytes."""
    entries = [
        CENTRAL.pack(
            _CENTRAL_MAGIC,
            _MADE_BY,
            _VERSION_NEEDED,
            0,
            0,
            0,
            _FIRST_DATE,
            member.crc,
            member.size,
            member.size,
            len(member.name),
            0,
            0,
            0,
            0,
            _MODE,
            member.header,
        )
        + member.name
        for member in members
    ]
    body = b"".join(entries)
    count = len(members)
    return body + END.pack(_END_MAGIC, 0, 0, count, count, len(body), members[-1].end, 0)
