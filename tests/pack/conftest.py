"""What the tests of ``pack`` share: a small pack with one member of each sort, and a way to write packs that lie."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gristmill.pack import Function, Manifest, Member, Parameter, container, write_pack

CONTENTS = {
    "code/cpu.so": b"\x7fELF" + bytes(range(256)) * 3,
    "code/gpu.spv": b"\x03\x02\x23\x07" * 9,
    "text/blur.ir": "# @blur_rows: 3 × 3\n".encode(),
}


@dataclass
class Sample:
    """A pack as its maker knows it: the manifest before writing, the members' bytes, the file."""

    manifest: Manifest
    contents: dict[str, bytes]
    data: bytes


@pytest.fixture(scope="session")
def sample() -> Sample:
    parameters = (
        Parameter("src", "buffer", "float32", ("h", "w")),
        Parameter("dst", "buffer", "float32", ("h", "w - 2"), written=True),
        Parameter("gain", "scalar", "float32"),
    )
    manifest = Manifest(
        project="imagekit",
        module="blur",
        functions=(Function("blur_rows", "blur_rows(src: Buffer(...))", parameters, "Blurs.\nIn rows."),),
        blobs=(
            Member(
                "code/cpu.so",
                "elf-shared",
                "cpu:x86-64-v3",
                "x86_64-unknown-linux-gnu",
                ("__tvm_ffi_blur_rows",),
                {"cpu_features": "avx2,fma", "level": 3, "portable": True, "cost": 0.5},
                ({"name": "blur_rows", "block": [32, 8, 1], "extra": {"release_gil": False}},),
            ),
            Member("code/gpu.spv", "spirv", "vulkan:1.2", entry_points=("main",)),
        ),
        texts=(Member("text/blur.ir", "ir-text"),),
        provenance={"gristmill": "0.1.0", "llvm": "22.1"},
    )
    return Sample(manifest, CONTENTS, write_pack(manifest, CONTENTS))


@pytest.fixture(scope="session")
def forge() -> Callable[..., bytes]:
    """Makes packs whose manifest is any JSON: (record or bytes, members as (name, start, content)) -> the file.

    Headers, checksums and directory are right for what is given; sizes and hashes in the record are the caller's.
    """

    def make(record: object, members: tuple[tuple[str, int, bytes], ...] = ()) -> bytes:
        text = record if isinstance(record, bytes) else json.dumps(record).encode()
        placed = [container.first_member(b"manifest.json", len(text), zlib.crc32(text))]
        parts = [container.local_header(placed[0]), text]
        for name, start, content in members:
            entry = container.Placed(name.encode(), placed[-1].end, start, len(content), zlib.crc32(content))
            placed.append(entry)
            parts += [container.local_header(entry), content]
        return b"".join([*parts, container.directory(placed)])

    return make


@pytest.fixture(scope="session")
def record_of() -> Callable[[bytes], dict]:
    """The manifest of a pack as JSON."""

    def read(data: bytes) -> dict:
        size = int.from_bytes(data[22:26], "little")
        return json.loads(data[43 : 43 + size])

    return read


@pytest.fixture(scope="session")
def with_record() -> Callable[[bytes, object], bytes]:
    """The pack with another manifest of the same length (blanks fill it up), checksums mended."""

    def replace(data: bytes, record: object) -> bytes:
        size = int.from_bytes(data[22:26], "little")
        text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(text) <= size, "the new manifest must not be longer"
        text = text.ljust(size)
        changed = bytearray(data)
        changed[43 : 43 + size] = text
        crc = zlib.crc32(text).to_bytes(4, "little")
        changed[14:18] = crc
        central = data.index(b"PK\x01\x02")
        changed[central + 16 : central + 20] = crc
        return bytes(changed)

    return replace
