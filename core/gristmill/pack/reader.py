"""Opens packs, trusting nothing: a file from anywhere gives a pack or a ``UserError`` that says what is wrong.

Opening reads the manifest alone. The bytes of a member are read when they are asked for, and handed out only after their
place, their local header and their SHA-256 have been checked. The hash proves that the bytes are those the pack's
manifest names, not that they are harmless: machine code runs with the rights of the process that calls it.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from types import TracebackType

from gristmill.errors import Diagnostic, UserError, close_match
from gristmill.pack import container
from gristmill.pack.codec import decode
from gristmill.pack.content import Content, FileContent
from gristmill.pack.format import LARGEST_MANIFEST, LARGEST_PACK, MANIFEST_NAME, Manifest, Member
from gristmill.pack.names import clash, name_fault

Source = str | os.PathLike[str] | bytes | bytearray | memoryview

_BUILD_AGAIN = "the file is damaged or was tampered with; build it again or fetch it again"


def open_pack(source: Source, name: str = "") -> PackReader:
    """Opens a pack: a path, or the bytes of a pack (from a zipped package, say).

    ``name`` is what messages call it. Raises ``UserError``: GM0801 not a pack; GM0802 not stored as packs are (compressed,
    encrypted ...); GM0803, GM0804 the manifest is malformed or too new; GM0805 a member's name is unsafe; GM0806 a
    member's place is impossible; GM0809 the manifest's checksum is wrong; GM0811 the file cannot be opened.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        # A copy of what the caller may change: hashes are checked but once.
        return PackReader(Content(bytes(source)), name or "the pack")
    path = os.fspath(source)
    named = name or path
    try:
        content = FileContent(path, named)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "check the path; `gristmill build` writes packs to build/kernels/NAME.kpack"
        raise UserError(Diagnostic("GM0811", f"{named} cannot be opened: {what}", hint=hint)) from None
    if not content.is_plain:
        raise _no_pack(named, "it is a folder" if os.path.isdir(path) else "it is no plain file")
    return PackReader(content, named)


class PackReader:
    """An open pack: ``manifest``, and the bytes of its members on demand. A context manager.

    ``content`` is the whole file, unchecked but for the manifest, whose bytes end at ``manifest_end``.
    """

    def __init__(self, content: Content, name: str) -> None:
        self.name = name
        self.content = content
        self.manifest_end = 0
        self.manifest = self._read_manifest()
        self._members = self.manifest.members
        self._headers = self._check_places()
        self._by_name = {member.name: member for member in self._members}

    def __enter__(self) -> PackReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets the file go. Bytes handed out before stay valid."""
        self.content.close()

    @property
    def size(self) -> int:
        """The size of the whole pack in bytes."""
        return self.content.size

    def whole(self) -> bytes:
        """The whole pack, unchecked. Raises ``UserError`` GM0811 where the file has changed."""
        return b"".join(self.content.pieces())

    @property
    def digest(self) -> str:
        """The SHA-256 of the whole pack in hexadecimal: its identity."""
        found = hashlib.sha256()
        for piece in self.content.pieces():
            found.update(piece)
        return found.hexdigest()

    def member(self, name: str) -> Member:
        """The blob or text of this name. Raises ``UserError`` GM0812 if there is none."""
        if name in self._by_name:
            return self._by_name[name]
        close = close_match(name, list(self._by_name))
        hint = f"there is `{close}`" if close else "`gristmill inspect` lists what is in a pack"
        raise UserError(Diagnostic("GM0812", f"{self.name} has no member `{name}`", hint=hint))

    def blob(self, entry: Member | str) -> memoryview:
        """The bytes of a member, after checking its local header and its hash.

        Raises ``UserError`` GM0802 or GM0807 for a local header that is not as packs have it or contradicts the manifest,
        GM0808 for bytes that are not those of the manifest, GM0811 for a file that was cut off, GM0812 for a member that
        is not of this pack.
        """
        member = self.member(entry if isinstance(entry, str) else entry.name)
        self._check_header(member)
        content = self.content.read(member.offset, member.size)
        if hashlib.sha256(content).hexdigest() != member.sha256:
            raise UserError(
                Diagnostic(
                    "GM0808",
                    f"member `{member.name}` of {self.name} does not have the SHA-256 that the manifest gives",
                    hint=_BUILD_AGAIN,
                )
            )
        return memoryview(content)

    def text(self, entry: Member | str) -> str:
        """The text of a member, checked as ``blob`` does. Raises ``UserError`` GM0803 if it is not UTF-8."""
        member = self.member(entry if isinstance(entry, str) else entry.name)
        try:
            return bytes(self.blob(member)).decode()
        except UnicodeDecodeError:
            raise UserError(
                Diagnostic("GM0803", f"member `{member.name}` of {self.name} is not UTF-8 text", hint=_BUILD_AGAIN)
            ) from None

    def _read_manifest(self) -> Manifest:
        length, expected = self.content.size, MANIFEST_NAME.encode()
        if length == 0:
            raise _no_pack(self.name, "the file is empty")
        start = container.LOCAL.size + len(expected)
        header = self.content.read(0, min(start, length))
        if header[:4] != container.LOCAL_MAGIC:
            raise _no_pack(self.name, "it does not begin as a ZIP file does")
        if length > LARGEST_PACK:
            raise _no_pack(self.name, f"it has {length} bytes; packs have less than 4 GiB")
        if length < start:
            raise _no_pack(self.name, f"it ends after {length} bytes")
        _, _, flags, method, _, _, crc, packed, size, name_length, extra = container.LOCAL.unpack_from(header)
        if name_length != len(expected) or header[container.LOCAL.size :] != expected:
            raise _no_pack(self.name, f"its first member is not `{MANIFEST_NAME}`")
        _check_stored(self.name, MANIFEST_NAME, flags, method, packed, size)
        if extra:
            raise _profile(self.name, MANIFEST_NAME, f"has {extra} bytes of extra fields")
        if size > LARGEST_MANIFEST:
            raise _place(self.name, MANIFEST_NAME, f"has {size} bytes; at most {LARGEST_MANIFEST} are read")
        if start + size > length:
            raise _place(self.name, MANIFEST_NAME, f"ends at {start + size}, the file at {length}")
        text = self.content.read(start, size)
        if zlib.crc32(text) != crc:
            raise UserError(
                Diagnostic("GM0809", f"the manifest of {self.name} has a wrong checksum", hint=_BUILD_AGAIN)
            )
        self.manifest_end = start + size
        return decode(text, self.name)

    def _check_places(self) -> dict[str, int]:
        """Checks names and places; gives the offset of each member's local header, by name."""
        for member in self._members:
            if fault := name_fault(member.name):
                raise _unsafe(self.name, f"the member name {member.name!r} {fault}")
        if problem := clash(member.name for member in self._members):
            raise _unsafe(self.name, problem)
        headers = {}
        end, before = self.manifest_end, MANIFEST_NAME
        for member in self._members:
            headers[member.name] = end
            least = end + container.LOCAL.size + len(member.name)
            if member.offset % member.alignment:
                raise _place(self.name, member.name, f"is at {member.offset}, no multiple of {member.alignment}")
            if member.offset < least:
                raise _place(self.name, member.name, f"is at {member.offset}, but `{before}` lies there, up to {end}")
            if member.offset - least > 0xFFFF:
                raise _place(self.name, member.name, f"is at {member.offset}, too far behind `{before}`")
            end, before = member.offset + member.size, member.name
            if end > self.content.size:
                raise _place(self.name, member.name, f"ends at {end}, the file at {self.content.size}")
        for listed in (self.manifest.blobs, self.manifest.texts):
            if list(listed) != sorted(listed, key=lambda member: member.name):
                raise _place(self.name, listed[0].name, "and others are not listed in the order of their names")
        return headers

    def _check_header(self, member: Member) -> None:
        """Checks that the local header says what the manifest says."""
        start, name = self._headers[member.name], member.name.encode()
        header = self.content.read(start, container.LOCAL.size + len(name))
        fields = container.LOCAL.unpack_from(header)
        magic, _, flags, method, _, _, _, packed, size, name_length, extra_length = fields
        if magic != container.LOCAL_MAGIC:
            raise _contradiction(self.name, member.name, f"is not at offset {start}, where the member before it ends")
        name_end = start + container.LOCAL.size + len(name)
        if name_length != len(name) or header[container.LOCAL.size :] != name:
            raise _contradiction(self.name, member.name, "gives another name")
        _check_stored(self.name, member.name, flags, method, packed, size)
        if size != member.size:
            raise _contradiction(self.name, member.name, f"gives {size} bytes, the manifest {member.size}")
        if name_end + extra_length != member.offset:
            raise _contradiction(
                self.name, member.name, f"puts the bytes at {name_end + extra_length}, the manifest at {member.offset}"
            )


def _check_stored(pack: str, member: str, flags: int, method: int, packed: int, size: int) -> None:
    if flags & 1:
        raise _profile(pack, member, "is encrypted")
    if method != 0:
        raise _profile(pack, member, f"is compressed (method {method})")
    if flags:
        raise _profile(pack, member, f"has ZIP flags {flags:#x}")
    if 0xFFFFFFFF in (packed, size):
        raise _profile(pack, member, "has ZIP64 sizes")
    if packed != size:
        raise _profile(pack, member, f"has {packed} bytes stored as {size}")


def _no_pack(pack: str, what: str) -> UserError:
    return UserError(Diagnostic("GM0801", f"{pack} is not a pack: {what}", hint="packs are made by `gristmill build`"))


def _profile(pack: str, member: str, what: str) -> UserError:
    hint = "members of a pack are stored as they are; do not repack it with a ZIP tool"
    return UserError(Diagnostic("GM0802", f"member `{member}` of {pack} {what}", hint=hint))


def _unsafe(pack: str, what: str) -> UserError:
    return UserError(Diagnostic("GM0805", f"{pack} has unsafe member names: {what}", hint=_BUILD_AGAIN))


def _place(pack: str, member: str, what: str) -> UserError:
    return UserError(Diagnostic("GM0806", f"member `{member}` of {pack} {what}", hint=_BUILD_AGAIN))


def _contradiction(pack: str, member: str, what: str) -> UserError:
    return UserError(Diagnostic("GM0807", f"the local header of `{member}` in {pack} {what}", hint=_BUILD_AGAIN))
