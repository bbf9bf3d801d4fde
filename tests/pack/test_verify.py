"""The full check finds every byte that is not as it must be, and every second meaning of a file."""

from __future__ import annotations

import zlib

import pytest

from gristmill.errors import UserError
from gristmill.pack import container, open_pack, verify_pack


def reading(data):
    """What the loader sees: manifest and members; None if it refuses."""
    try:
        with open_pack(data) as reader:
            return reader.manifest, {m.name: bytes(reader.blob(m)) for m in reader.manifest.members}
    except UserError:
        return None


def codes(data):
    return {diagnostic.code for diagnostic in verify_pack(data)}


def test_every_bit_of_a_pack(sample):
    expected = reading(sample.data)
    for place in range(len(sample.data)):
        changed = bytearray(sample.data)
        changed[place] ^= 1 << place % 8
        data = bytes(changed)
        assert codes(data), f"a flipped bit at {place} went unseen by the full check"
        seen = reading(data)
        assert seen is None or seen == expected, f"a flipped bit at {place} changed what is loaded"


def test_every_length_of_a_pack(sample):
    expected = reading(sample.data)
    for length in range(len(sample.data)):
        assert codes(sample.data[:length]), length
        seen = reading(sample.data[:length])
        assert seen is None or seen == expected


def test_bytes_after_the_end(sample):
    (found,) = verify_pack(sample.data + b"\0")
    assert found.code == "GM0810"
    assert "other bytes after its end" in found.message


def test_bytes_before_the_start(sample):
    assert codes(b"#!/bin/sh\n" + sample.data) == {"GM0801"}


def test_a_second_directory_with_another_pack(sample, forge):
    # Tools that believe the last end record would see another file behind the first one.
    other = forge({"schema": 1, "host_abi": 1, "kernel_record": 1, "project": "evil", "module": "m"})
    assert codes(sample.data + other) == {"GM0810"}


def test_a_directory_that_names_another_member(sample):
    central = sample.data.index(b"PK\x01\x02")
    changed = sample.data[:central] + sample.data[central:].replace(b"code/cpu.so", b"code/cpu.sO")
    assert codes(changed) == {"GM0810"}


def test_a_directory_that_leaves_a_member_out(sample):
    with open_pack(sample.data) as reader:
        members, manifest_end = reader.manifest.members, reader.manifest_end
    text = sample.data[43:manifest_end]
    placed = [container.first_member(b"manifest.json", len(text), zlib.crc32(text))]
    for member in members:
        content = sample.data[member.offset : member.offset + member.size]
        placed.append(
            container.Placed(member.name.encode(), placed[-1].end, member.offset, member.size, zlib.crc32(content))
        )
    body = sample.data[: placed[-1].end]
    assert body + container.directory(placed) == sample.data
    assert codes(body + container.directory([*placed[:2], *placed[3:]])) == {"GM0810"}
    assert codes(body + container.directory(placed[:1])) == {"GM0810"}
    assert codes(body) == {"GM0810"}


def test_a_member_that_the_manifest_does_not_list(sample, record_of, with_record):
    record = record_of(sample.data)
    del record["texts"][0]
    (found,) = verify_pack(with_record(sample.data, record))
    assert (found.code, "does not agree" in found.message) == ("GM0810", True)
    record = record_of(sample.data)
    del record["blobs"][1]
    assert "GM0807" in codes(with_record(sample.data, record))


def test_stray_bytes_in_front_of_a_member(forge):
    import hashlib

    content = b"abc"
    entry = {"name": "a", "kind": "spirv", "size": 3, "sha256": hashlib.sha256(content).hexdigest(), "offset": 4096}
    record = {"schema": 1, "host_abi": 1, "kernel_record": 1, "project": "p", "module": "m", "blobs": [entry]}
    data = forge(record, (("a", 4096, content),))
    (found,) = verify_pack(data)
    assert (found.code, "stray bytes before member `a`" in found.message) == ("GM0810", True)


@pytest.mark.parametrize("where", ["local", "central"])
def test_a_wrong_crc(sample, where):
    start = sample.data.index(b"PK\x03\x04", 4) + 14 if where == "local" else sample.data.rindex(b"PK\x01\x02") + 16
    changed = bytearray(sample.data)
    changed[start] ^= 1
    assert codes(bytes(changed)) == {"GM0809" if where == "local" else "GM0810"}


def test_all_faults_are_reported(sample):
    changed = bytearray(sample.data)
    for content in sample.contents.values():
        changed[sample.data.index(content)] ^= 1
    found = [diagnostic.code for diagnostic in verify_pack(bytes(changed))]
    assert found.count("GM0808") == 3
