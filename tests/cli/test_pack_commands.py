"""``inspect``, ``verify`` and ``export``: what they say of a good pack, and of a wrong one."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from gristmill.cli import main
from gristmill.pack import Function, Manifest, Member, Parameter, write_pack

Capture = pytest.CaptureFixture[str]
CODE = {"code/blur.v2.so": b"\x7fELF-two", "code/blur.v3.so": b"\x7fELF-three"}
TEXT = {"text/blur.v3.ll": b"define void @blur()\n"}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    manifest = Manifest(
        "imagekit",
        "blur",
        (
            Function(
                "blur", "blur(src: Buffer, n: int32)", (Parameter("src", "buffer", "float32", ("n",), True),), "Blurs."
            ),
        ),
        tuple(
            Member(
                name,
                "elf-shared",
                f"cpu:x86-64-{name.split('.')[1]}",
                "x86_64-unknown-linux-gnu",
                ("blur",),
                {"cpu_features": "avx2"},
            )
            for name in CODE
        ),
        (Member("text/blur.v3.ll", "llvm-ir", "cpu:x86-64-v3"),),
        {"gristmill": "0.1.0"},
    )
    path = tmp_path / "blur.kpack"
    path.write_bytes(write_pack(manifest, {**CODE, **TEXT}))
    return path


def test_inspect(pack: Path, capsys: Capture) -> None:
    assert main(["inspect", str(pack)]) == 0
    shown = capsys.readouterr().out
    assert "module `blur` of project `imagekit`" in shown
    assert "blur(src: Buffer, n: int32)\n    Blurs.\n" in shown
    assert "cpu:x86-64-v3" in shown
    assert "code/blur.v2.so needs cpu_features avx2" in shown
    assert hashlib.sha256(pack.read_bytes()).hexdigest() in shown


def test_inspect_and_export_of_an_installed_package(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = tmp_path / "kitforcommands" / "_kernels"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "blur.kpack").write_bytes(pack.read_bytes())
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["inspect", "kitforcommands:blur"]) == 0
    assert capsys.readouterr().out.startswith("kitforcommands:blur: module `blur` of project `imagekit`")
    out = tmp_path / "blur.so"
    assert main(["export", "kitforcommands:blur", "--member", "code/blur.v2.so", "-o", str(out)]) == 0
    assert out.read_bytes() == CODE["code/blur.v2.so"]
    capsys.readouterr()
    assert main(["verify", "kitforcommands:blur"]) == 0
    assert capsys.readouterr().out == "kitforcommands:blur: ok\n"
    for command in ("inspect", "verify"):
        assert main([command, "kitforcommands:blurr"]) == 1
        assert "did you mean `kitforcommands:blur`?" in capsys.readouterr().err
    sys.modules.pop("kitforcommands", None)


def test_inspect_as_json(pack: Path, capsys: Capture) -> None:
    assert main(["inspect", str(pack), "--json", "--text", "llvm-ir"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["module"], found["project"]) == (1, "blur", "imagekit")
    assert [blob["target"] for blob in found["blobs"]] == ["cpu:x86-64-v2", "cpu:x86-64-v3"]
    assert found["blobs"][0]["sha256"] == hashlib.sha256(CODE["code/blur.v2.so"]).hexdigest()
    assert found["functions"][0]["parameters"][0] == {
        "name": "src",
        "kind": "buffer",
        "dtype": "float32",
        "shape": ["n"],
        "written": True,
    }
    assert found["text"] == {"text/blur.v3.ll": "define void @blur()\n"}


def test_inspect_texts(pack: Path, capsys: Capture) -> None:
    assert main(["inspect", str(pack), "--text", "llvm-ir"]) == 0
    assert capsys.readouterr().out == "// text/blur.v3.ll\ndefine void @blur()\n"
    assert main(["inspect", str(pack), "--text", "assembly"]) == 1
    shown = capsys.readouterr().err
    assert "error[GM0007]" in shown
    assert "it has `llvm-ir`" in shown


def test_verify(pack: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["verify", str(pack)]) == 0
    assert capsys.readouterr().out == f"{pack}: ok\n"
    damaged = tmp_path / "damaged.kpack"
    content = bytearray(pack.read_bytes())
    content[content.index(b"ELF-two")] ^= 1
    damaged.write_bytes(content)
    assert main(["verify", str(pack), str(damaged)]) == 1
    captured = capsys.readouterr()
    assert captured.out == f"{pack}: ok\n{damaged}: refused\n"
    assert "GM0808" in captured.err
    assert main(["verify", str(pack), str(damaged), "--json"]) == 1
    good, bad = json.loads(capsys.readouterr().out)["packs"]
    assert (good["ok"], good["diagnostics"], bad["ok"]) == (True, [], False)
    assert bad["diagnostics"][0]["code"] == "GM0808"


def test_what_is_no_pack(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "x.kpack").write_text("no pack")
    for command in (["inspect"], ["verify"], ["export", "-o", str(tmp_path / "out")]):
        assert main([command[0], str(tmp_path / "x.kpack"), *command[1:]]) == 1
        assert "GM0801" in capsys.readouterr().err
        assert main([command[0], str(tmp_path / "absent.kpack"), *command[1:]]) == 1
        shown = capsys.readouterr().err
        assert "GM0811" in shown
        assert "`gristmill build` writes packs to build/kernels/NAME.kpack" in shown
    assert not (tmp_path / "out").exists()


def test_export(pack: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "blur.so"
    assert main(["export", str(pack), "-t", "cpu:x86-64-v3", "-o", str(out)]) == 0
    assert out.read_bytes() == CODE["code/blur.v3.so"]
    assert out.stat().st_mode & 0o777 == 0o644
    assert f"wrote {out}: `code/blur.v3.so`" in capsys.readouterr().out
    assert main(["export", str(pack), "--member", "code/blur.v2.so", "-o", str(out)]) == 1
    assert "GM0004" in capsys.readouterr().err
    assert main(["export", str(pack), "--member", "code/blur.v2.so", "-o", str(out), "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["member"] == "code/blur.v2.so"
    assert out.read_bytes() == CODE["code/blur.v2.so"]
    assert main(["export", str(pack), "-k", "llvm-ir", "-o", str(tmp_path / "blur.ll")]) == 0
    assert (tmp_path / "blur.ll").read_bytes() == TEXT["text/blur.v3.ll"]
    assert sorted(os.listdir(tmp_path)) == ["blur.kpack", "blur.ll", "blur.so"]


@pytest.mark.parametrize("selection", [[], ["-k", "elf-shared"], ["-t", "cpu:x86-64-v4"], ["-k", "spirv"]])
def test_export_of_several_or_none(selection: list[str], pack: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["export", str(pack), *selection, "-o", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().err
    assert "error[GM0008]" in shown
    assert "name one with --member: `code/blur.v2.so`" in shown
    assert not (tmp_path / "out").exists()


def test_export_where_nothing_can_be_written(pack: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "absent" / "blur.so"
    assert main(["export", str(pack), "-t", "cpu:x86-64-v3", "-o", str(out)]) == 1
    assert "GM0006" in capsys.readouterr().err
