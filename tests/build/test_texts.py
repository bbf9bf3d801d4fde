"""Texts for people: which a pack keeps, which are made again from its IR, and what is said where they cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gristmill
from gristmill.build.texts import make_texts
from gristmill.cli import main
from gristmill.errors import MissingError, UserError
from gristmill.pack import PackReader, open_pack
from gristmill.plugin.registry import Registry

pytest.importorskip("llvmlite")

Capture = pytest.CaptureFixture[str]

MANIFEST = """\
schema = 1
[project]
name = "sample"
[targets]
small = "cpu:x86-64-v2"
large = {{ kind = "cpu", arch = "x86-64-v3", tune = "znver3" }}
[[module]]
name = "scale"
source = "scale.py"
options = {{ {options} }}
[module.target.small.options]
fast_math = true
opt_level = 1
"""

SCALE = """\
from gristmill.script import tir as T


@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), total: T.Buffer((1,), "float32")):
    for i in range(n):
        total[0] = total[0] + x[i] * T.float32(3)
"""


def built(folder: Path, options: str = "", **more: object) -> Path:
    (folder / "kernels.toml").write_text(MANIFEST.format(options=options))
    (folder / "scale.py").write_text(SCALE)
    return gristmill.build(folder, **more).pack("scale").path  # type: ignore[arg-type]


def texts_of(pack: PackReader) -> dict[str, str]:
    return {member.name: pack.text(member) for member in pack.manifest.texts}


def test_a_pack_keeps_the_ir_and_the_texts_that_the_manifest_or_the_caller_asks_for(tmp_path: Path) -> None:
    ir = {"ir/large.gmir", "ir/small.gmir"}
    with open_pack(built(tmp_path)) as pack:
        assert set(texts_of(pack)) == ir
        codes = [bytes(pack.blob(blob)) for blob in pack.manifest.blobs]
    with open_pack(built(tmp_path, 'texts = ["assembly"]')) as pack:
        assert set(texts_of(pack)) == {*ir, "text/large.s", "text/small.s"}
        assert [bytes(pack.blob(blob)) for blob in pack.manifest.blobs] == codes
    with open_pack(built(tmp_path, texts=["llvm-ir"])) as pack:
        assert set(texts_of(pack)) == {*ir, "text/large.ll", "text/small.ll"}
        assert pack.text(pack.member("text/small.ll")).startswith("source_filename")


def test_texts_made_again_are_those_that_the_build_would_have_kept(tmp_path: Path) -> None:
    """With the target's own options, the optimisation and the fast mathematics of each target."""
    with open_pack(built(tmp_path, texts=["llvm-ir", "assembly"])) as pack:
        kept = {name: text for name, text in texts_of(pack).items() if name.startswith("text/")}
    assert kept["text/small.s"] != kept["text/large.s"]
    with open_pack(built(tmp_path)) as pack:
        made = [text for kind in ("llvm-ir", "assembly") for text in make_texts(pack, kind, Registry.installed())]
    assert {text.name: text.text for text in made} == kept
    assert all(text.same_code for text in made)


def test_inspect_says_what_it_made(tmp_path: Path, capsys: Capture) -> None:
    path = built(tmp_path)
    assert main(["inspect", str(path), "--text", "assembly"]) == 0
    shown = capsys.readouterr().out
    assert "// text/small.s (made again from the IR; the code is that of the pack)\n" in shown
    assert "__tvm_ffi_scale:" in shown
    assert main(["inspect", str(path), "--text", "ir-text"]) == 0
    assert "made again" not in capsys.readouterr().out


def test_where_nothing_can_be_made(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    path = built(tmp_path)
    with open_pack(path) as pack, pytest.raises(MissingError, match="GM0014") as caught:
        make_texts(pack, "assembly", Registry.of([]))
    assert "no installed plugin gives the target kind `cpu`" in str(caught.value)
    assert main(["inspect", str(path), "--text", "assembly", "--no-plugin", "cpu"]) == 3
    assert "error[GM0014]" in capsys.readouterr().err
    assert main(["inspect", str(path), "--text", "spirv"]) == 1
    assert "it has `ir-text`" in capsys.readouterr().err
    for name in [name for name in sys.modules if name.startswith(("llvmlite", "gristmill_llvm"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert main(["inspect", str(path), "--text", "assembly"]) == 3
    assert "llvmlite" in capsys.readouterr().err


def test_texts_that_no_target_gives(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        built(tmp_path, 'texts = ["llvm-ir", "asembly"]')
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint) == ("GM0120", "did you mean `assembly`?")
    assert found.place is not None
    assert found.place.line == 10
    with pytest.raises(UserError, match="no target gives the text `spirv`") as caught:
        built(tmp_path, texts=["spirv"])
    assert caught.value.code == "GM0120"
    assert not (tmp_path / "build").exists()
