"""Error codes: each has a page, a place that raises it, and a test; the examples of pages do what the pages say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from gristmill.build.manifest import Manifest, missing_sources, parse_manifest
from gristmill.build.manifest_kinds import resolve_targets, unknown_texts
from gristmill.codegen import reference as reference_generator
from gristmill.errors import UserError
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import TargetKind
from gristmill.plugin.registry import Registry
from gristmill.runtime import reference as reference_runtime

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "core" / "gristmill" / "explain"
SOURCES = [
    path
    for folder in ("core", "plugins", "targets")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__pycache__" not in path.parts
]
TESTS = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)]
CODE = re.compile(r"GM\d{4}")


def codes_raised() -> dict[str, list[str]]:
    """Each code that is a whole string literal in our sources, with the files that have it."""
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.setdefault(node.value, []).append(path.relative_to(ROOT).as_posix())
    return found


RAISED = codes_raised()
PAGE_OF = {path.stem: path for path in sorted(PAGES.glob("*.md"))}


def test_there_are_codes() -> None:
    assert len(RAISED) > 25
    assert "core/gristmill/build/manifest_shapes.py" in RAISED["GM0104"]


def test_every_code_has_a_page() -> None:
    assert sorted(RAISED.keys() - PAGE_OF.keys()) == []


def test_every_page_has_a_code() -> None:
    assert sorted(PAGE_OF.keys() - RAISED.keys()) == []


def test_every_code_is_tested() -> None:
    tested = {code for path in TESTS for code in CODE.findall(path.read_text(encoding="utf-8"))}
    assert sorted(RAISED.keys() - tested) == []


@pytest.mark.parametrize("page", PAGE_OF.values(), ids=PAGE_OF)
def test_form_of_a_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    assert re.fullmatch(rf"# {page.stem}: \S.*[^.]", first)
    parts = re.fullmatch(r"\n(.*?)\n## Wrong\n(.*?)\n## Right\n(.*)", rest, re.DOTALL)
    assert parts is not None, "what it means, ## Wrong, ## Right"
    meaning, wrong, right = parts.groups()
    assert len(meaning.split()) >= 8
    assert wrong.strip()
    assert right.strip()
    assert wrong.strip() != right.strip()
    assert text.count("```") % 2 == 0
    assert all(len(line) <= 130 for line in text.splitlines())


def kind(name: str) -> TargetKind:
    def resolve(target: Target) -> Target:
        if target.arch not in {"", "x86-64-v3"}:
            raise ValueError(f"there is no processor `{target.arch}`")
        return target

    return TargetKind(
        name, "A kind.", "none", ("none",), resolve, lambda target: Capabilities(), texts=("llvm-ir", "assembly")
    )


REGISTRY = Registry.of([reference_generator, reference_runtime])
KINDS = {"cpu": kind("cpu"), "reference": REGISTRY.target_kind("reference")}


def codes_of_manifest(text: str, folder: Path) -> list[str]:
    try:
        manifest: Manifest = parse_manifest(text, str(folder / "kernels.toml"), KINDS)
        resolve_targets(manifest, KINDS, REGISTRY)
        return [found.code for found in (*missing_sources(manifest), *unknown_texts(manifest, KINDS))]
    except UserError as error:
        return [found.code for found in error.diagnostics]


MANIFEST_PAGES = {
    code: page for code, page in PAGE_OF.items() if code.startswith("GM01") and "```toml" in page.read_text()
}


@pytest.mark.parametrize("code", MANIFEST_PAGES)
def test_examples_of_manifests(code: str, tmp_path: Path) -> None:
    """The wrong example has that mistake and no other, the right one none."""
    (tmp_path / "kernels").mkdir()
    for name in ("blur.py", "sharpen.py"):
        (tmp_path / "kernels" / name).touch()
    wrong, right = re.findall(r"```toml\n(.*?)```", MANIFEST_PAGES[code].read_text(encoding="utf-8"), re.DOTALL)
    assert codes_of_manifest(wrong, tmp_path) == [code]
    assert codes_of_manifest(right, tmp_path) == []
