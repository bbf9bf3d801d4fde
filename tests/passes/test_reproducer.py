"""Reproducer files: written by a failing pass, read back, and run again."""

import stat
from dataclasses import dataclass

import pytest

from gristmill.errors import InternalError, UserError
from gristmill.ir.equal import structural_equal
from gristmill.ir.expr import IntImm
from gristmill.ir.functor import walk
from gristmill.ir.target import Target
from gristmill.passes import reproducer
from gristmill.passes.manager import Pass, Pipeline, RunOptions
from gristmill.passes.simplify import Simplify
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext, PassEntry
from gristmill.testing.pass_equivalence import kernels, without_signatures

TEXT = """
@T.prim_func
def f(a: T.Buffer((8,), "int64")):
    a[0] = 1 + 41
"""


@dataclass(frozen=True)
class FailAt(Pass):
    """Fail where a constant is."""

    value: int = 0

    def run(self, module):
        for node in walk(module):
            if isinstance(node, IntImm) and node.value == self.value:
                raise ZeroDivisionError("as asked\nfor")
        return module


@dataclass(frozen=True)
class MakeWrong(Pass):
    """Make IR that is not well formed."""

    def run(self, module):
        return module.with_functions([*module.functions, *module.functions])


TARGET = Target("cpu", "x86-64-v3")
CONTEXT = PassContext(TARGET, Capabilities())
ENTRIES = [PassEntry("fail_at", "loops", lambda context: FailAt(42), "fail")]


def failed(tmp_path, *passes, **options):
    with pytest.raises(InternalError) as caught:
        Pipeline.of(passes, TARGET).run(kernels(TEXT), RunOptions(reproducers=tmp_path, **options))
    (path,) = tmp_path.iterdir()
    assert str(path) in str(caught.value)
    return path, caught.value


def test_it_is_for_who_wrote_it_and_follows_no_link(tmp_path):
    folder = tmp_path / "everybody's"
    folder.mkdir()
    path, _ = failed(folder, FailAt(42))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    path.unlink()
    path.symlink_to("../other")
    assert failed(folder, FailAt(42))[0] == path
    assert not path.is_symlink()
    assert path.read_text() == text
    assert [found.name for found in tmp_path.iterdir()] == [folder.name]


def test_it_holds_the_module_before_the_pass(tmp_path):
    path, error = failed(tmp_path, Simplify(), FailAt(42))
    found = reproducer.read(path)
    assert (found.failing, found.pipeline, found.target) == ("fail_at", "fail_at{value=42}", TARGET)
    assert found.error == "ZeroDivisionError: as asked for"
    assert error.where.place.line == 4
    before = Simplify().run(kernels(TEXT))
    again = kernels(found.ir)
    assert structural_equal(without_signatures(again), without_signatures(before))


def test_replaying_raises_the_same_fault(tmp_path):
    path, _ = failed(tmp_path, Simplify(), FailAt(42))
    text = path.read_text().replace("fail_at{value=42}", "fail_at")
    path.write_text(text)
    with pytest.raises(InternalError, match="as asked"):
        reproducer.replay(path, ENTRIES, CONTEXT)


def test_replaying_what_was_mended_gives_the_module(tmp_path):
    path, _ = failed(tmp_path, FailAt(42))
    path.write_text(path.read_text().replace("# pipeline: fail_at{value=42}", "# pipeline: simplify"))
    module = reproducer.replay(path)
    assert any(isinstance(node, IntImm) and node.value == 42 for node in walk(module))


def test_a_result_that_is_not_well_formed_is_a_fault_of_the_pass(tmp_path):
    path, error = failed(tmp_path, MakeWrong(), verify=True)
    assert error.where.pass_name == "make_wrong"
    assert "GM0440" in str(error)
    assert reproducer.read(path).pipeline == "make_wrong"


@pytest.mark.parametrize(
    "text", ["", "something else\n", "# gristmill reproducer\n", "# gristmill reproducer\n# target: ::\n# ir:\n"]
)
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "x.repro"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        reproducer.read(path)
    assert caught.value.code == "GM0605"


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="can't be read"):
        reproducer.read(tmp_path / "none.repro")
