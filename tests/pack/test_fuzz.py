"""Damaged packs give a coded error or the same reading; packs made at random come back as they went in."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.errors import UserError
from gristmill.pack import Function, Manifest, Member, Parameter, open_pack, verify_pack, write_pack
from gristmill.pack.names import clash, name_fault


def reading(data):
    with open_pack(data) as reader:
        return reader.manifest, {m.name: bytes(reader.blob(m)) for m in reader.manifest.members}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bits, bytes and words changed, stretches cut out, doubled or swapped, the end cut off."""
    changed = bytearray(data)
    interesting = [n for n in range(len(data)) if data[n : n + 2] == b"PK"]
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        if not changed:
            break
        at = chance.randrange(len(changed))
        if chance.random() < 0.4:
            at = min(chance.choice(interesting) + chance.randrange(50), len(changed) - 1)
        elif chance.random() < 0.5:
            at = min(chance.randrange(1500), len(changed) - 1)
        length = chance.randrange(1, 40)
        match chance.randrange(7):
            case 0:
                changed[at] ^= 1 << chance.randrange(8)
            case 1:
                changed[at] = chance.choice(b'\x00\x01\xff09"{}[],:/.\\')
            case 2:
                changed[at : at + 4] = chance.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\1\0\0\0"))
            case 3:
                del changed[at : at + length]
            case 4:
                changed[at:at] = changed[at : at + length]
            case 5:
                other = chance.randrange(len(changed))
                changed[at : at + length], changed[other : other + length] = (
                    changed[other : other + length],
                    changed[at : at + length],
                )
            case 6 if chance.random() < 0.3:
                del changed[at:]
    return bytes(changed)


def test_damaged_packs(sample):
    start = 60_000
    print(f"seeds {start} to {start + 1999}")
    expected = reading(sample.data)
    seen: dict[str, int] = {}
    for seed in range(start, start + 2000):
        bad = damaged(sample.data, random.Random(seed))
        try:
            assert reading(bad) == expected, f"seed {seed}: the damaged pack was read otherwise"
            code = "same"
        except UserError as error:
            code = error.code
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        found = {diagnostic.code for diagnostic in verify_pack(bad)}
        assert (bad == sample.data) == (not found), f"seed {seed}"
        assert code == "same" or found, f"seed {seed}"
        assert all(each.startswith("GM08") for each in found | {code} - {"same"}), f"seed {seed}"
        seen[code] = seen.get(code, 0) + 1
    print(seen)
    assert len(seen) >= 6


def test_damaged_manifests_with_mended_checksums(sample, record_of, forge):
    """Damage that a checksum would hide from the checks behind it."""
    import json

    text = json.dumps(record_of(sample.data)).encode()
    with open_pack(sample.data) as reader:
        members = [(m.name, m.offset, sample.contents[m.name]) for m in reader.manifest.members]
    start = 80_000
    print(f"seeds {start} to {start + 1999}")
    seen: dict[str, int] = {}
    for seed in range(start, start + 2000):
        chance = random.Random(seed)
        changed = bytearray(text)
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(len(changed))
            match chance.randrange(4):
                case 0:
                    changed[at] = chance.randrange(256)
                case 1:
                    changed[at : at + 1] = chance.choice(
                        (b"0", b"9", b"-1", b"1e400", b"null", b"[]", b"{}", b'"', b"\\")
                    )
                case 2:
                    del changed[at : at + chance.randrange(1, 20)]
                case 3:
                    changed[at:at] = changed[at : at + chance.randrange(1, 60)]
        try:
            reading(forge(bytes(changed), tuple(members)))
            code = "read"
        except UserError as error:
            code = error.code
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        assert code == "read" or code.startswith("GM08"), f"seed {seed}"
        seen[code] = seen.get(code, 0) + 1
    print(seen)
    assert seen["GM0803"] > 200
    assert seen["read"] > 50
    assert len(seen) >= 5


WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=12)
PARTS = st.from_regex(r"[a-z0-9_+@=-]{1,8}(\.[a-z]{1,4})?", fullmatch=True)
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join).filter(lambda name: not name_fault(name))
SCALARS = st.one_of(
    WORDS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    st.one_of(st.none(), SCALARS), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)
PARAMETERS = st.builds(
    Parameter,
    WORDS,
    st.sampled_from(("buffer", "scalar")),
    WORDS,
    st.lists(WORDS, max_size=3).map(tuple),
    st.booleans(),
)
FUNCTIONS = st.builds(Function, WORDS, WORDS, st.lists(PARAMETERS, max_size=3).map(tuple), WORDS)
KINDS = st.sampled_from(("elf-shared", "hsaco", "spirv", "ir-text", "assembly"))


@st.composite
def packs(draw):
    names = draw(st.lists(NAMES, max_size=6).filter(lambda names: not clash(names)))
    members = sorted(
        (
            Member(
                name,
                draw(KINDS),
                draw(WORDS),
                draw(WORDS),
                draw(st.lists(WORDS, max_size=3).map(tuple)),
                draw(st.dictionaries(WORDS, SCALARS, max_size=3)),
                draw(st.lists(st.dictionaries(WORDS, JSON, max_size=3), max_size=2).map(tuple)),
            )
            for name in names
        ),
        key=lambda member: member.name,
    )
    split = draw(st.integers(0, len(members)))
    functions = draw(st.lists(FUNCTIONS, max_size=3, unique_by=lambda function: function.name).map(tuple))
    provenance = draw(st.dictionaries(WORDS, SCALARS, max_size=4))
    manifest = Manifest(draw(WORDS), draw(WORDS), functions, tuple(members[:split]), tuple(members[split:]), provenance)
    return manifest, {name: draw(st.binary(max_size=300)) for name in names}


@settings(max_examples=150, deadline=None)
@given(packs())
def test_what_goes_in_comes_out(pack):
    manifest, contents = pack
    data = write_pack(manifest, contents)
    assert verify_pack(data) == []
    found, read = reading(data)
    assert read == contents
    clean = [tuple(replace(m, offset=0, size=0, sha256="") for m in part) for part in (found.blobs, found.texts)]
    assert replace(found, blobs=clean[0], texts=clean[1]) == manifest
