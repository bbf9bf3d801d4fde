"""Checks a pack in full: that every way of reading it gives the same members and the same bytes.

A ZIP file says most things twice, and tools differ in which they believe. Here the local headers, the paddings and the
central directory are made again from the manifest and the members' bytes, and compared byte by byte, so nothing can be
hidden between, before or after members, and no tool can see another pack than the loader.
"""

from __future__ import annotations

import zlib

from gristmill.errors import Diagnostic, UserError
from gristmill.pack import container
from gristmill.pack.format import MANIFEST_NAME
from gristmill.pack.installed import find_pack
from gristmill.pack.reader import PackReader, Source, open_pack

_HINT = "another ZIP tool would read another pack from this file; build it again or fetch it again"


def verify_pack(source: Source, name: str = "") -> list[Diagnostic]:
    """All that is wrong with a pack; an empty list if nothing is. ``imagekit:blur`` names one of an installed package.

    Besides the refusals of ``open_pack`` and ``PackReader.blob``: GM0809 for a wrong CRC, GM0810 where local headers, the
    central directory and the manifest do not agree exactly, or other bytes lie between or after the members.
    """
    try:
        with open_pack(source, name) if name else find_pack(source) as reader:
            return _faults(reader)
    except UserError as error:
        return list(error.diagnostics)


def _faults(reader: PackReader) -> list[Diagnostic]:
    read, size = reader.content.read, reader.size
    start = container.LOCAL.size + len(MANIFEST_NAME)
    end = reader.manifest_end
    checksum = zlib.crc32(read(start, end - start))
    placed = [container.first_member(MANIFEST_NAME.encode(), end - start, checksum)]
    found: list[Diagnostic] = []
    if read(0, start) != container.local_header(placed[0]):
        found.append(Diagnostic("GM0810", f"the local header of the manifest of {reader.name} is unusual", hint=_HINT))
    for member in reader.manifest.members:
        try:
            content = bytes(reader.blob(member))
        except UserError as error:
            found += error.diagnostics
            content = read(member.offset, member.size)
        name = member.name.encode()
        expected = container.Placed(name, placed[-1].end, member.offset, member.size, zlib.crc32(content))
        placed.append(expected)
        (crc,) = container.CRC.unpack(read(expected.header + container.CRC_OFFSET, container.CRC.size))
        if crc != expected.crc:
            found.append(Diagnostic("GM0809", f"member `{member.name}` of {reader.name} has a wrong CRC", hint=_HINT))
        elif expected.start != container.next_start(expected.header, name, member.alignment):
            what = f"there are stray bytes before member `{member.name}` of {reader.name}"
            found.append(Diagnostic("GM0810", what, hint=_HINT))
        elif read(expected.header, expected.start - expected.header) != container.local_header(expected):
            what = f"the local header of member `{member.name}` of {reader.name} is unusual"
            found.append(Diagnostic("GM0810", what, hint=_HINT))
    directory = container.directory(placed)
    rest = size - placed[-1].end
    agrees = read(placed[-1].end, min(rest, len(directory))) == directory
    if not agrees or rest > len(directory):
        what = "has other bytes after its end" if agrees else "does not agree with the manifest"
        found.append(Diagnostic("GM0810", f"the central directory of {reader.name} {what}", hint=_HINT))
    return found
