"""Writes packs: the same manifest and members give the same bytes; files are replaced whole or not at all."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping
from dataclasses import replace

from gristmill.errors import Diagnostic, InternalError, UserError
from gristmill.files import replace_file
from gristmill.pack import container
from gristmill.pack.codec import decode, encode
from gristmill.pack.format import LARGEST_MANIFEST, LARGEST_PACK, MANIFEST_NAME, Manifest, Member
from gristmill.pack.names import clash, name_fault


def write_pack(manifest: Manifest, contents: Mapping[str, bytes]) -> bytes:
    """The bytes of a pack. ``contents`` has the bytes of each blob and text that the manifest lists, by name.

    Offsets, sizes and hashes in ``manifest`` are replaced by the right ones. Raises ``UserError`` GM0805 for a name that a
    member may not have and GM0806 for more than 4 GiB, ``InternalError`` where manifest and contents do not match or the
    manifest is one that no reader would take.
    """
    members = manifest.members
    names = [member.name for member in members]
    for name in names:
        if fault := name_fault(name):
            raise UserError(Diagnostic("GM0805", f"the member name `{name}` of the pack {fault}", hint="rename it"))
    if problem := clash(names):
        raise UserError(Diagnostic("GM0805", f"two members of the pack clash: {problem}", hint="rename one of them"))
    if set(names) != set(contents):
        unmatched = ", ".join(sorted(set(names) ^ set(contents)))
        raise InternalError(f"members of the pack without contents, or the other way round: {unmatched}")
    total = sum(len(contents[name]) for name in names)
    if total + LARGEST_MANIFEST > LARGEST_PACK:
        raise UserError(
            Diagnostic("GM0806", f"the pack would have {total} bytes; 4 GiB are the limit", hint="split the module")
        )
    hashed = {
        member.name: replace(
            member, size=len(contents[member.name]), sha256=hashlib.sha256(contents[member.name]).hexdigest()
        )
        for member in members
    }
    text, placed = _place(manifest, hashed, contents)
    # What is written must be readable: a mistake of the caller is found here and not by a user.
    try:
        decode(text, "the new pack")
    except UserError as error:
        raise InternalError(
            f"the builder made a manifest that cannot be read: {error.diagnostics[0].message}"
        ) from error
    parts = [container.local_header(placed[0]), text]
    for entry in placed[1:]:
        parts += [container.local_header(entry), contents[entry.name.decode()]]
    parts.append(container.directory(placed))
    return b"".join(parts)


def _place(
    manifest: Manifest, members: Mapping[str, Member], contents: Mapping[str, bytes]
) -> tuple[bytes, list[container.Placed]]:
    """The manifest's text with the final offsets, and the place of every member."""
    checksums = {name: zlib.crc32(contents[name]) for name in members}
    reserved = 0
    while True:
        # The offsets depend on the manifest's length, and its length on their digits: it is laid out with room for what
        # it needed the last time, until it fits. Blanks, which JSON ignores, fill what is left.
        first = container.first_member(MANIFEST_NAME.encode(), reserved, 0)
        placed = [first]
        for name, member in members.items():
            end = placed[-1].end
            start = container.next_start(end, name.encode(), member.alignment)
            placed.append(container.Placed(name.encode(), end, start, member.size, checksums[name]))
        offsets = {entry.name.decode(): entry.start for entry in placed}
        text = encode(
            replace(
                manifest,
                blobs=_with_offsets(manifest.blobs, members, offsets),
                texts=_with_offsets(manifest.texts, members, offsets),
            )
        )
        if len(text) <= reserved:
            text = text.ljust(reserved)
            placed[0] = replace(first, crc=zlib.crc32(text))
            return text, placed
        reserved = len(text)


def _with_offsets(
    listed: tuple[Member, ...], members: Mapping[str, Member], offsets: Mapping[str, int]
) -> tuple[Member, ...]:
    found = [replace(members[member.name], offset=offsets[member.name]) for member in listed]
    return tuple(sorted(found, key=lambda member: member.name))


def save(path: str | os.PathLike[str], data: bytes) -> bool:
    """Writes ``data`` to ``path``, whole or not at all; a file that has these bytes already is left alone.

    Says whether the file was written. Raises ``UserError`` GM0811 where that is not possible.
    """
    target = os.fspath(path)
    try:
        if _has(target, data):
            return False
        replace_file(target, data, follow_links=True)
    except OSError as error:
        raise UserError(
            Diagnostic(
                "GM0811",
                f"{target} cannot be written: {error.strerror or error}",
                hint="check that the folder exists and that you may write to it",
            )
        ) from None
    return True


def _has(path: str, data: bytes) -> bool:
    """Whether the file has these bytes already. One that cannot be read may still be replaced."""
    try:
        if os.path.getsize(path) != len(data):
            return False
        with open(path, "rb") as file:
            return file.read() == data
    except OSError:
        return False
