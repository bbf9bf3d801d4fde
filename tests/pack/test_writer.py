"""Packs are written one way only, every ZIP tool reads them, and files are replaced whole."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from gristmill.errors import InternalError, UserError
from gristmill.pack import Function, Manifest, Member, Versions, open_pack, save, verify_pack, write_pack


def test_what_is_written_is_read(sample):
    with open_pack(sample.data) as reader:
        for member in reader.manifest.members:
            content = bytes(reader.blob(member))
            assert content == sample.contents[member.name]
            assert member.sha256 == hashlib.sha256(content).hexdigest()
            assert member.size == len(content)
        unplaced = replace(
            reader.manifest,
            blobs=tuple(replace(m, offset=0, size=0, sha256="") for m in reader.manifest.blobs),
            texts=tuple(replace(m, offset=0, size=0, sha256="") for m in reader.manifest.texts),
        )
    assert unplaced == sample.manifest
    assert verify_pack(sample.data) == []


def test_the_same_input_gives_the_same_bytes(sample):
    shuffled = replace(sample.manifest, blobs=sample.manifest.blobs[::-1])
    assert write_pack(shuffled, dict(reversed(sample.contents.items()))) == sample.data
    script = (
        "import sys; from gristmill.pack import *; m = Manifest('p', 'm', blobs=(Member('b', 'spirv', requirements="
        "{'x': 1, 'a': 2}),)); sys.stdout.buffer.write(write_pack(m, {'b': b'123'}))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_the_manifest_is_first_and_code_is_aligned(sample):
    assert sample.data[:4] == b"PK\x03\x04"
    assert sample.data[30:43] == b"manifest.json"
    assert sample.data[43:44] == b"{"
    with open_pack(sample.data) as reader:
        elf, spirv = reader.manifest.blobs
        assert elf.offset % 4096 == 0
        assert spirv.offset % 64 == 0
        assert reader.manifest.texts[0].offset % 64 == 0
        assert sample.data[elf.offset : elf.offset + 4] == b"\x7fELF"


def test_python_reads_it_as_a_zip_file(sample):
    with zipfile.ZipFile(io.BytesIO(sample.data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", *sorted(sample.contents)]
        for name, content in sample.contents.items():
            assert archive.read(name) == content
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.external_attr >> 16 == 0o100644
            assert info.compress_type == zipfile.ZIP_STORED


def test_unzip_finds_no_fault(sample, tmp_path):
    tool = shutil.which("unzip")
    if tool is None:
        pytest.fail("this test compares with `unzip`, which is not here: apt-get install unzip", pytrace=False)
    path = tmp_path / "x.kpack"
    save(path, sample.data)
    ended = subprocess.run([tool, "-t", str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "No errors detected" in ended.stdout
    assert ended.stderr == ""


def test_the_manifest_grows_until_the_offsets_fit():
    for count in (0, 1, 9, 40, 300):
        names = [f"blob-{n}" for n in range(count)]
        manifest = Manifest("p", "m", blobs=tuple(Member(name, "spirv") for name in names))
        data = write_pack(manifest, {name: name.encode() * n for n, name in enumerate(names)})
        assert verify_pack(data) == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../b", "a\\b", "", "a//b", "C:x", "naïve", "manifest.json"])
def test_unsafe_names_are_not_written(name):
    with pytest.raises(UserError) as caught:
        write_pack(Manifest("p", "m", blobs=(Member(name, "spirv"),)), {name: b""})
    assert caught.value.code == "GM0805"


def test_names_that_clash_are_not_written():
    for pair in (("a", "A"), ("a", "a/b"), ("a", "a")):
        with pytest.raises(UserError, match="clash"):
            write_pack(Manifest("p", "m", blobs=tuple(Member(n, "spirv") for n in pair)), dict.fromkeys(pair, b""))


def test_more_than_the_container_holds_is_not_written():
    class Huge(bytes):
        def __len__(self) -> int:
            return 2**32

    with pytest.raises(UserError) as caught:
        write_pack(Manifest("p", "m", blobs=(Member("a", "spirv"),)), {"a": Huge()})
    assert caught.value.code == "GM0806"


def test_a_builder_that_contradicts_itself():
    manifest = Manifest("p", "m", blobs=(Member("a", "spirv"),))
    with pytest.raises(InternalError, match="without contents, or the other way round: a, b"):
        write_pack(manifest, {"b": b""})
    for wrong in (
        replace(manifest, versions=Versions(container=2)),
        replace(manifest, requires=("telepathy",)),
        replace(manifest, project="\x1b[31m"),
        replace(manifest, functions=(Function("f", "f()"), Function("f", "f()"))),
    ):
        with pytest.raises(InternalError, match="cannot be read"):
            write_pack(wrong, {"a": b""})


def test_saving_replaces_a_file_whole_and_only_if_it_changes(sample, tmp_path):
    path = tmp_path / "x.kpack"
    path.write_bytes(b"before")
    assert save(path, sample.data)
    stamp = path.stat().st_mtime_ns, path.stat().st_ino
    assert not save(path, sample.data)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == stamp
    with open_pack(path) as reader:
        assert save(path, b"after")
        assert bytes(reader.blob("text/blur.ir")) == sample.contents["text/blur.ir"], "an open pack keeps its bytes"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.kpack"]


def test_a_file_that_cannot_be_written_is_said(sample, tmp_path):
    with pytest.raises(UserError) as caught:
        save(tmp_path / "missing" / "x.kpack", sample.data)
    assert caught.value.code == "GM0811"
    (tmp_path / "folder.kpack").mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        save(tmp_path / "folder.kpack", sample.data)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.kpack"], "no temporary file is left"
