"""Who may import whom, and what every file must have. Read from the sources; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "gristmill"
PLUGINS = ROOT / "plugins"
TARGETS = ROOT / "targets"

LEAVES = {"errors", "files", "knobs", "objfile", "pack", "recursion", "version"}

# Part of core: the parts that it may import, beside itself and the leaves. A leaf imports errors, files and version alone.
MAY_IMPORT = {
    "ir": set(),
    "script": {"ir"},
    "arith": {"ir"},
    "interp": {"ir"},
    "mathlib": {"ir"},
    "plugin": {"ir"},
    "passes": {"ir", "arith", "mathlib", "plugin"},
    "schedule": {"ir", "arith", "mathlib", "plugin", "passes"},
    "codegen": {"ir", "plugin"},
    "runtime": {"plugin", "interp", "ir", "codegen"},
}
BELOW_BUILD = {*MAY_IMPORT}
MAY_IMPORT["build"] = BELOW_BUILD
MAY_IMPORT["cli"] = {*BELOW_BUILD, "build", "testing"}
MAY_IMPORT["testing"] = {*BELOW_BUILD, "build", "cli"}

LINES_AT_MOST = 400
# Longer files, each with the reason why it is not two. The number may fall; a file that needs more is to be split.
LONGER: dict[str, int] = {}


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


CORE_FILES = python_files(CORE)
PLUGIN_FILES = python_files(PLUGINS)
TARGET_FILES = python_files(TARGETS)
OURS = [*CORE_FILES, *PLUGIN_FILES, *TARGET_FILES]
DATA_PACKAGES = {path.parent.name for path in TARGETS.glob("*/__init__.py")}
PLUGIN_PACKAGES = {path.parent.name for path in PLUGINS.glob("*/__init__.py")} | DATA_PACKAGES


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, at whatever place in it, as dotted names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: imports are absolute"
            module = node.module or ""
            yield module
            for alias in node.names:
                yield f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            match node.args:
                case [ast.Constant(value=str(module)), *_]:
                    yield module


def part_of(path: Path) -> str:
    """The part of core that a file belongs to: its first folder, or its own name at the top."""
    relative = path.relative_to(CORE)
    return relative.parts[0].removesuffix(".py")


def test_there_are_files_to_check() -> None:
    assert len(CORE_FILES) > 20
    assert {
        "gristmill_llvm",
        "gristmill_spirv",
        "gristmill_cpu",
        "gristmill_vulkan",
        "gristmill_launch",
    } <= PLUGIN_PACKAGES
    assert {"core/gristmill/errors.py", "core/gristmill/cli/dispatch.py"} <= {name_of(path) for path in CORE_FILES}


def test_the_finder_sees_imports_everywhere(tmp_path: Path) -> None:
    source = "import a.b\nfrom c import d\ndef f():\n    from e.g import h\n    import_module('i.j')\n"
    (tmp_path / "x.py").write_text(source)
    assert set(imports(tmp_path / "x.py")) == {"a.b", "c", "c.d", "e.g", "e.g.h", "i.j"}


@pytest.mark.parametrize("path", CORE_FILES, ids=name_of)
def test_core_imports_downwards(path: Path) -> None:
    part = part_of(path)
    if part in {"__init__", "__main__"}:
        return
    assert part in MAY_IMPORT or part in LEAVES, f"{part} has no place in the order of imports"
    allowed = {"errors", "files", "version"} if part in LEAVES else {*MAY_IMPORT[part], *LEAVES}
    for module in imports(path):
        first, _, rest = module.partition(".")
        if first == "gristmill" and rest:
            imported = rest.partition(".")[0]
            known = imported in MAY_IMPORT or imported in LEAVES
            assert not known or imported == part or imported in allowed, f"{part} may not import gristmill.{imported}"


@pytest.mark.parametrize("path", CORE_FILES, ids=name_of)
def test_core_knows_no_plugin(path: Path) -> None:
    used = {module.partition(".")[0] for module in imports(path)}
    assert not used & PLUGIN_PACKAGES


@pytest.mark.parametrize("path", [*PLUGIN_FILES, *TARGET_FILES], ids=name_of)
def test_plugins_do_not_import_each_other(path: Path) -> None:
    """A package under `targets` is data, which every plugin may read; it imports nothing of ours itself."""
    top, own = path.relative_to(ROOT).parts[:2]
    used = {module.partition(".")[0] for module in imports(path)} & PLUGIN_PACKAGES
    assert used <= ({own, *DATA_PACKAGES} if top == "plugins" else {own})


@pytest.mark.parametrize("path", PLUGIN_FILES, ids=name_of)
def test_plugins_leave_the_face_alone(path: Path) -> None:
    """A plugin needs neither the builder nor the command line: those need it."""
    for module in imports(path):
        assert not module.startswith(("gristmill.cli", "gristmill.build.driver")), module


def test_the_executor_depends_on_nothing_that_it_checks() -> None:
    for path in python_files(CORE / "interp"):
        for module in imports(path):
            assert not module.startswith(("gristmill.passes", "gristmill.codegen", "gristmill.script")), name_of(path)


@pytest.mark.parametrize("path", [*OURS, *python_files(ROOT / "tests")], ids=name_of)
def test_every_file_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, "the file has no docstring"
    assert len(docstring.split()) >= 3


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_every_file_has_one_subject(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= LONGER.get(name_of(path), LINES_AT_MOST), f"{lines} lines: split it by subject"


def test_longer_files_are_there_and_are_longer() -> None:
    for name, most in LONGER.items():
        lines = (ROOT / name).read_text(encoding="utf-8").count("\n")
        assert LINES_AT_MOST < lines <= most, name


def test_no_file_is_named_after_being_useful() -> None:
    vague = {"utils", "util", "helpers", "helper", "misc", "common", "tools"}
    named = [name_of(path) for path in OURS if vague & {part.removesuffix(".py") for part in path.parts}]
    assert named == []


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_no_module_state_changes(path: Path) -> None:
    """No `global` statement: what changes lives in an object that somebody hands on."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Global)]
    assert lines == [], f"`global` in line {lines}"


# The one file that runs text, and why it may: every name in the text is numbered and every constant is a number that
# the writer printed itself or an entry of a table, so nothing that came from outside is in it (tests/interp/test_source.py).
RUNS_TEXT = {"core/gristmill/interp/program.py"}


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_nothing_untrusted_is_run(path: Path) -> None:
    """No pickle, eval or exec: packs, manifests and kernels come from anywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not {"pickle", "marshal", "shelve"} & {module.partition(".")[0] for module in imports(path)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and name_of(path) not in RUNS_TEXT:
            assert node.func.id not in {"eval", "exec"}, f"{node.func.id} in line {node.lineno}"
