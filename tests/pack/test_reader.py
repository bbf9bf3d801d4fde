"""Every refusal of the reader, with its code and its reason."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import subprocess
import sys
import zipfile

import pytest

from gristmill.errors import UserError
from gristmill.pack import format as form
from gristmill.pack import open_pack, save


def read_all(source):
    with open_pack(source) as reader:
        return [bytes(reader.blob(member)) for member in reader.manifest.members]


def refused(source, code):
    with pytest.raises(UserError) as caught:
        read_all(source)
    assert caught.value.code == code, str(caught.value)
    return str(caught.value)


def minimal(**changes):
    return {"schema": 1, "host_abi": 1, "kernel_record": 1, "project": "p", "module": "m"} | changes


def blob(name, offset, content=b"abc", **changes):
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name, "kind": "spirv", "offset": offset, "size": len(content), "sha256": digest} | changes


def test_paths_bytes_and_views_are_the_same(sample, tmp_path):
    path = tmp_path / "x.kpack"
    save(path, sample.data)
    sources = [path, str(path), sample.data, bytearray(sample.data), memoryview(sample.data)]
    manifests = []
    for source in sources:
        with open_pack(source) as reader:
            manifests.append(reader.manifest)
            assert reader.text("text/blur.ir") == "# @blur_rows: 3 × 3\n"
            assert reader.digest == hashlib.sha256(sample.data).hexdigest()
    assert all(manifest == manifests[0] for manifest in manifests)


def test_packs_in_a_zipped_package(sample, tmp_path):
    package = tmp_path / "package.zip"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("zippedkernels/__init__.py", "")
        archive.writestr("zippedkernels/blur.kpack", sample.data)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import importlib.resources as r\n"
        "from gristmill.pack import open_pack\n"
        "data = (r.files('zippedkernels') / 'blur.kpack').read_bytes()\n"
        "print(open_pack(data).manifest.module)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(package)], capture_output=True, text=True, check=True)
    assert ended.stdout == "blur\n"


def test_views_outlive_the_reader(sample, tmp_path):
    path = tmp_path / "x.kpack"
    save(path, sample.data)
    with open_pack(path) as reader:
        view = reader.blob("code/cpu.so")
    assert bytes(view) == sample.contents["code/cpu.so"]
    assert view.readonly


def test_opening_imports_little(sample, tmp_path):
    path = tmp_path / "x.kpack"
    save(path, sample.data)
    script = (
        "import sys; before = set(sys.modules)\n"
        "from gristmill.pack import open_pack\n"
        "reader = open_pack(sys.argv[1]); reader.blob('code/cpu.so')\n"
        "print(*sorted(set(sys.modules) - before))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('gristmill.')))"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    loaded, ours = (set(line.split()) for line in ended.stdout.splitlines())
    heavy = {"zipfile", "llvmlite", "numpy", "pluggy", "tvm_ffi", "tomli", "importlib.metadata", "tempfile", "pickle"}
    assert not loaded & heavy
    below = ("gristmill.pack", "gristmill.errors", "gristmill.files", "gristmill.version")
    assert all(name.startswith(below) for name in ours)


def test_files_that_cannot_be_opened(tmp_path):
    assert "No such file" in refused(tmp_path / "none.kpack", "GM0811")
    assert "cannot be opened" in refused("null\0character", "GM0811")
    assert "it is a folder" in refused(tmp_path, "GM0801")
    (tmp_path / "empty.kpack").write_bytes(b"")
    assert "is empty" in refused(tmp_path / "empty.kpack", "GM0801")


def test_files_that_are_no_packs(sample):
    assert "the file is empty" in refused(b"", "GM0801")
    assert "does not begin as a ZIP file" in refused(b"\x7fELF" + sample.data, "GM0801")
    assert "ends after 20 bytes" in refused(sample.data[:20], "GM0801")
    assert "first member is not `manifest.json`" in refused(sample.data.replace(b"manifest", b"Manifest"), "GM0801")


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [(6, 1, "encrypted"), (6, 8, "ZIP flags 0x8"), (8, 8, "compressed (method 8)"), (28, 4, "4 bytes of extra fields")],
)
def test_members_that_are_not_stored(sample, place, value, says):
    changed = bytearray(sample.data)
    changed[place] = value
    assert says in refused(bytes(changed), "GM0802")
    if place != 28:
        second = sample.data.index(b"PK\x03\x04", 4)
        changed = bytearray(sample.data)
        changed[second + place] = value
        message = refused(bytes(changed), "GM0802")
        assert "member `code/cpu.so` of the pack" in message
        assert says in message


def test_a_zip_bomb_is_not_unpacked(tmp_path, sample, forge):
    path = tmp_path / "bomb.kpack"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b" " * 50_000_000)
    assert "compressed" in refused(path, "GM0802")
    huge = forge(minimal(blobs=[blob("a", 4096, size=2**40)]), (("a", 4096, b"abc"),))
    assert "the file at" in refused(huge, "GM0806")
    sizes = bytearray(sample.data)
    sizes[18:26] = b"\xff" * 8
    assert "ZIP64" in refused(bytes(sizes), "GM0802")


def test_an_over_long_manifest(forge):
    long = forge(b" " * (form.LARGEST_MANIFEST + 1))
    assert f"at most {form.LARGEST_MANIFEST} are read" in refused(long, "GM0806")
    deep = forge(b'{"schema":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
    assert "nested too deeply" in refused(deep, "GM0803")


def test_a_manifest_with_a_wrong_checksum(sample):
    changed = sample.data.replace(b'"blur"', b'"blue"', 1)
    assert "wrong checksum" in refused(changed, "GM0809")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not the JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff{}", "not the JSON"),
        (b'{"schema": 1, "schema": 1}', "one key twice"),
        (b'{"schema": NaN}', "NaN"),
        (b'{"schema": 1e999}', "too large"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "not the JSON"),
    ],
)
def test_text_that_is_no_manifest(forge, text, says):
    assert says in refused(forge(text), "GM0803")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"project": None}, "`project` is not a text"),
        ({"project": "\x1b[31m"}, "`project` has characters that cannot be printed"),
        ({"blobs": {}}, "`blobs` is not a list"),
        ({"blobs": [1]}, "`blobs[0]` is not an object"),
        ({"blobs": [{}]}, "`blobs[0].sha256` is missing"),
        ({"blobs": [blob("a", 4096, sha256="XY")]}, "`blobs[0].sha256` is not 64"),
        ({"blobs": [blob("a", True)]}, "`blobs[0].offset` is not an integer"),
        ({"blobs": [blob("a", -1)]}, "`blobs[0].offset` is -1"),
        ({"blobs": [blob("a", 2**70)]}, "out of range"),
        ({"blobs": [blob("a", 64, requirements={"x": []})]}, "`blobs[0].requirements.x` is not a printable text"),
        ({"blobs": [blob("a", 64, kernels=[3])]}, "`blobs[0].kernels` is not a list of objects"),
        ({"blobs": [blob("a", 64, entry_points="f")]}, "`blobs[0].entry_points` is not a list"),
        ({"texts": [blob("a", 64, entry_points=[1])]}, "`texts[0].entry_points` is not a list of printable texts"),
        ({"functions": [{"name": "f"}]}, "`functions[0].signature` is missing"),
        (
            {
                "functions": [
                    {"name": "f", "signature": "", "parameters": [{"name": "a", "kind": "x", "dtype": "int8"}]}
                ]
            },
            "`functions[0].parameters[0].kind` is `x`",
        ),
        ({"functions": [{"name": "f", "signature": ""}] * 2}, "describes one function twice"),
        ({"provenance": {"x": None}}, "`provenance.x`"),
    ],
)
def test_manifests_with_wrong_fields(forge, changes, says):
    assert says in refused(forge(minimal(**changes)), "GM0803")


def test_fields_that_are_missing(forge):
    for key in ("schema", "host_abi", "kernel_record", "project", "module"):
        record = minimal()
        del record[key]
        assert f"`{key}` is missing" in refused(forge(record), "GM0803")


def test_more_members_than_are_read(forge, monkeypatch):
    monkeypatch.setattr(form, "MOST_MEMBERS", 3)
    many = [blob(f"a{n}", 64) for n in range(4)]
    assert "has 4 entries; at most 3" in refused(forge(minimal(blobs=many)), "GM0803")
    assert "more than 3 members" in refused(forge(minimal(blobs=many[:2], texts=many[2:])), "GM0803")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": 2}, "container schema is 2"),
        ({"schema": 0}, "container schema is 0"),
        ({"min_reader": 2}, "asks for reader 2"),
        ({"requires": ["telepathy"]}, "requires `telepathy`"),
        ({"host_abi": 2}, "host interface has version 2"),
        ({"kernel_record": 2}, "kernel records have version 2"),
        ({"kernel_record": 0}, "kernel records have version 0"),
        ({"schema": 2, "blobs": "of another shape"}, "container schema is 2"),
    ],
)
def test_packs_of_another_version(forge, changes, says):
    assert says in refused(forge(minimal(**changes)), "GM0804")


def test_unknown_keys_are_ignored(forge):
    data = forge(minimal(blobs=[blob("a", 4096, colour="red")], weather={"today": "rain"}), (("a", 4096, b"abc"),))
    with open_pack(data) as reader:
        assert bytes(reader.blob("a")) == b"abc"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../up",
        "a/../../b",
        "a/./b",
        "a\\b",
        "..\\up",
        "C:/x",
        "",
        "a//b",
        "a/",
        "a\0b",
        "new\nline",
        "caf\u00e9",
        "x" * 256,
        "Manifest.JSON",
        "nul",
        "a/CON.txt",
        "dot.",
        "a /b",
    ],
)
def test_names_that_lead_elsewhere(forge, name):
    record = minimal(blobs=[blob(name, 4096)])
    code = "GM0803" if name in ("a\0b",) else "GM0805"
    refused(forge(record), code)


@pytest.mark.parametrize("pair", [("a", "a"), ("a", "A"), ("a/b", "A/B"), ("a", "a/b")])
def test_names_that_are_one(forge, pair):
    assert "unsafe member names" in refused(forge(minimal(blobs=[blob(n, 4096) for n in pair])), "GM0805")
    across = minimal(blobs=[blob(pair[0], 4096)], texts=[blob(pair[1], 8192)])
    refused(forge(across), "GM0805")


def test_members_at_impossible_places(forge):
    members = (("a", 4096, b"abc"), ("b", 8192, b"abc"))
    good = [blob("a", 4096), blob("b", 8192)]
    with open_pack(forge(minimal(blobs=good), members)) as reader:
        assert bytes(reader.blob("b")) == b"abc"
    for blobs, says in [
        ([blob("a", 4097), good[1]], "no multiple of 64"),
        ([blob("a", 4096 + 64, kind="hsaco"), good[1]], "no multiple of 4096"),
        ([blob("a", 0), good[1]], "`manifest.json` lies there"),
        ([good[0], blob("b", 4096)], "`a` lies there"),
        ([blob("a", 8192), blob("b", 4096)], "`a` lies there"),
        ([blob("a", 4096, size=4090), good[1]], "`a` lies there"),
        ([good[0], blob("b", 2**20)], "too far behind"),
        ([good[0], blob("b", 8192, size=5000)], "ends at 13192"),
        ([good[1], good[0]], "not listed in the order"),
    ]:
        assert says in refused(forge(minimal(blobs=blobs), members), "GM0806")


def test_reordered_members(forge):
    members = (("b", 4096, b"abc"), ("a", 8192, b"xyz"))
    record = minimal(blobs=[blob("a", 8192, b"xyz"), blob("b", 4096)])
    refused(forge(record, members), "GM0806")


def test_local_headers_that_contradict_the_manifest(sample, forge):
    members = (("a", 4096, b"abc"), ("c", 8192, b"abc"))
    renamed = forge(minimal(blobs=[blob("a", 4096), blob("b", 8192)]), members)
    assert "local header of `b` in the pack gives another name" in refused(renamed, "GM0807")
    shorter = forge(minimal(blobs=[blob("a", 4096, b"ab")]), (("a", 4096, b"abc"),))
    assert "gives 3 bytes, the manifest 2" in refused(shorter, "GM0807")
    moved = forge(minimal(blobs=[blob("a", 4096 + 64, b"c" * 150)]), (("a", 4096, b"c" * 150), ("b", 8192, b"")))
    assert "puts the bytes at 4096, the manifest at 4160" in refused(moved, "GM0807")
    second = sample.data.index(b"PK\x03\x04", 4)
    changed = bytearray(sample.data)
    changed[second + 2] = 9
    assert "is not at offset" in refused(bytes(changed), "GM0807")


def test_bytes_that_are_not_those_of_the_manifest(sample):
    changed = sample.data.replace(sample.contents["code/gpu.spv"], b"\x03\x02\x23\x06" * 9)
    with open_pack(changed) as reader:
        assert bytes(reader.blob("code/cpu.so")) == sample.contents["code/cpu.so"]
        with pytest.raises(UserError) as caught:
            reader.blob("code/gpu.spv")
    assert caught.value.code == "GM0808"


def test_members_that_are_not_there(sample):
    with open_pack(sample.data) as reader, pytest.raises(UserError) as caught:
        reader.blob("code/cpu.os")
    assert caught.value.code == "GM0812"
    assert "there is `code/cpu.so`" in str(caught.value)


def test_a_text_that_is_none(forge):
    data = forge(minimal(texts=[blob("a", 4096, b"\xff", kind="assembly")]), (("a", 4096, b"\xff"),))
    with open_pack(data) as reader, pytest.raises(UserError, match="not UTF-8"):
        reader.text("a")


def test_the_reader_never_uses_the_central_directory(sample):
    start = sample.data.index(b"PK\x01\x02")
    with open_pack(sample.data[:start]) as reader:
        assert {m.name: bytes(reader.blob(m)) for m in reader.manifest.members} == sample.contents


def test_the_manifest_is_readable_by_any_json_reader(sample, record_of):
    record = record_of(sample.data)
    assert record["schema"] == 1
    assert [entry["name"] for entry in record["blobs"]] == ["code/cpu.so", "code/gpu.spv"]
    assert json.dumps(record)


def test_our_version_numbers_are_those_of_the_plugin_contract():
    from gristmill.plugin import artifacts

    assert form.HOST_ABI_VERSION == artifacts.HOST_ABI_VERSION
    assert form.KERNEL_RECORD_VERSION == artifacts.KERNEL_RECORD_VERSION


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_plain_file_is_not_opened(make, tmp_path):
    make(tmp_path / "x.kpack")
    with pytest.raises(UserError, match="it is no plain file") as caught:
        open_pack(tmp_path / "x.kpack")
    assert caught.value.code == "GM0801"


@pytest.mark.parametrize("kept", [0, 10, 100, 3000])
def test_a_file_that_is_cut_off_while_it_is_open(kept, sample, tmp_path):
    path = tmp_path / "x.kpack"
    path.write_bytes(sample.data)
    with open_pack(path) as reader:
        os.truncate(path, kept)
        for member in reader.manifest.members:
            if member.offset + member.size <= kept:
                assert bytes(reader.blob(member)) == sample.contents[member.name]
                continue
            with pytest.raises(UserError, match="shorter since it was opened") as caught:
                reader.blob(member)
            assert caught.value.code == "GM0811"
        with pytest.raises(UserError, match="shorter since it was opened"):
            reader.whole()
        with pytest.raises(UserError, match="shorter since it was opened"):
            _ = reader.digest


def test_bytes_that_were_handed_out_do_not_change(sample, tmp_path):
    path = tmp_path / "x.kpack"
    path.write_bytes(sample.data)
    with open_pack(path) as reader:
        member = reader.manifest.members[0]
        found = reader.blob(member)
        with path.open("r+b") as file:
            file.write(bytes(len(sample.data)))
        assert bytes(found) == sample.contents[member.name], "what was checked is what is used"
        with pytest.raises(UserError):
            reader.blob(member)
    buffer = bytearray(sample.data)
    with open_pack(buffer) as reader:
        buffer[:] = bytes(len(buffer))
        assert bytes(reader.blob(member)) == sample.contents[member.name]


def test_a_file_is_let_go(sample, tmp_path):
    path = tmp_path / "x.kpack"
    path.write_bytes(sample.data)

    def opened():
        return [name for name in os.listdir("/proc/self/fd") if _linked(name) == str(path)]

    with open_pack(path):
        assert len(opened()) == 1
    assert opened() == []
    reader = open_pack(path)
    assert reader.size == len(sample.data)
    del reader
    assert opened() == []
    path.write_bytes(b"no pack")
    refused(path, "GM0801")
    gc.collect()
    assert opened() == []


def _linked(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
