"""The documents: what they show is run, what they list is complete, where they link there is something."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gristmill import knobs
from gristmill.build.manifest import parse_manifest
from gristmill.build.manifest_fields import MapOf, Table, TableList
from gristmill.build.manifest_tables import kind_table, manifest_table
from gristmill.cli import COMMANDS
from gristmill.errors import UserError
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import TargetKind
from gristmill_spirv.target import target_kind as vulkan_kind

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
CPU, REFERENCE = (
    TargetKind(name, "", "none", ("none",), lambda target: target, lambda target: Capabilities())
    for name in ("cpu", "reference")
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line that begins with `gristmill` or `python`, with this interpreter, in the folder."""
    first, *words = command.split()
    start = {"gristmill": [sys.executable, "-m", "gristmill"], "python": [sys.executable]}[first]
    environment = {**os.environ, "GRISTMILL_CACHE_DIR": str(folder / "cache"), "NO_COLOR": "1"}
    return subprocess.run(
        [*start, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_two_commands() -> None:
    """The README's two commands set everything up themselves, and continuous integration runs the second as it stands."""
    demo, test = [block.strip() for block in blocks(README, "sh")]
    for command in (demo, test):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
        assert "\n" not in command
    assert demo.endswith("gristmill demo")
    assert test.endswith("tox")
    assert f"\n{test}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.fixture
def tour(tmp_path: Path) -> Path:
    """The project of the README's tour."""
    kernel, _ = blocks(README, "python")
    (manifest,) = blocks(README, "toml")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "blur.py").write_text(kernel)
    (tmp_path / "kernels.toml").write_text(manifest)
    return tmp_path


def test_tour(tour: Path) -> None:
    (console,) = blocks(README, "console")
    for line in console.splitlines():
        assert line.startswith("$ gristmill ")
        done = run(line.removeprefix("$ "), tour)
        assert done.returncode == 0, done.stderr
    _, use = blocks(README, "python")
    (tour / "use.py").write_text(use + 'np.savez("result.npz", image=image, out=out)\n')
    done = run("python use.py", tour)
    assert done.returncode == 0, done.stderr
    with np.load(tour / "result.npz") as arrays:
        image, out = arrays["image"], arrays["out"]
    padded = np.pad(image, ((0, 0), (3, 3)), mode="edge").astype(np.float64)
    expected = sum(padded[:, shift : shift + image.shape[1]] for shift in range(7)) / 7
    assert np.max(np.abs(out - expected)) < 1e-5


def test_packs_page(tour: Path) -> None:
    """The page on using packs: its commands and examples, in the tour's project and a package beside it."""
    text = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
    (package,) = [tomllib.loads(block) for block in blocks(text, "toml")]
    name = package["project"]["name"]
    (tour / "src" / name).mkdir(parents=True)
    (tour / "src" / name / "__init__.py").write_text("")
    for line in ["gristmill build", *"".join(blocks(text, "sh")).splitlines()]:
        done = run(line, tour)
        assert done.returncode == 0, done.stderr
    for pattern in package["tool"]["setuptools"]["package-data"][name]:
        assert [path.name for path in (tour / "src" / name).glob(pattern)] == ["blur.kpack"]
    examples = blocks(text, "python")
    (tour / "use.py").write_text(f"import sys\nsys.path.insert(0, 'src')\n{''.join(examples)}")
    done = run("python use.py", tour)
    assert done.returncode == 0, done.stderr
    (refusal,) = blocks(text, "text")
    assert refusal in done.stdout
    (signature,) = re.findall(r"^# (blur_rows.*)$", text, re.MULTILINE)
    assert f"{signature}\n" in done.stdout


def test_arrays_that_the_packs_page_says_are_refused(tour: Path) -> None:
    import gristmill

    gristmill.build(tour)
    pack = gristmill.load(tour / "build" / "kernels" / "blur.kpack")
    image = np.zeros((4, 6), np.float32)
    refused: list[tuple[np.ndarray, type[Exception], np.ndarray]] = [
        (image[:, ::2], ValueError, np.ascontiguousarray(image[:, ::2])),
        (image.T, ValueError, np.ascontiguousarray(image.T)),
        (image.astype(np.float64), TypeError, image.astype(np.float64).astype(np.float32)),
        (np.broadcast_to(np.float32(0), (4, 6)), BufferError, np.broadcast_to(np.float32(0), (4, 6)).copy()),
        (image.astype(">f4"), BufferError, image.astype(">f4").astype(np.dtype(">f4").newbyteorder("="))),
    ]
    for array, error, mended in refused:
        with pytest.raises(error):
            pack.blur_rows(array, np.empty(array.shape, np.float32))
        assert pack.blur_rows(mended, np.empty(mended.shape, np.float32)) is None


@pytest.mark.parametrize("name", ["README.md", "docs/errors.md"])
def test_shown_error_is_the_real_one(name: str) -> None:
    (manifest,) = blocks(README, "toml")
    (shown,) = blocks((ROOT / name).read_text(encoding="utf-8"), "text")
    with pytest.raises(UserError) as caught:
        parse_manifest(manifest + 'tragets = ["cpu"]\n', "kernels.toml", {"cpu": CPU})
    assert str(caught.value) == shown.rstrip()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_manifests(path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8"), "toml"):
        if "[tool." in block:
            continue  # a pyproject.toml
        parse_manifest(block, name_of(path), {"cpu": CPU, "reference": REFERENCE, "vulkan": vulkan_kind()})


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=name_of)
def test_commands_in_pages(path: Path, tmp_path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8"), "console"):
        for line in block.splitlines():
            if line.startswith("$ "):
                done = run(line.removeprefix("$ "), tmp_path)
                assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_inside_the_repository(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## gristmill (\w+)\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE))
    assert list(sections) == list(COMMANDS)
    for name, section in sections.items():
        parser = argparse.ArgumentParser(add_help=False)
        import_module(f"gristmill.cli.{name}").add_arguments(parser)
        shown = set(re.findall(r"`(--?[a-z][a-z-]*)", section))
        assert shown == {option for action in parser._actions for option in action.option_strings}, name
        for action in parser._actions:
            assert action.help is None or action.help in section, f"{name}: {action.dest}"
    for knob in knobs.ALL:
        assert f"| `{knob.name}` | {knob.meaning} |" in text


def test_every_key_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)

    def keys(shape: object) -> list[str]:
        if isinstance(shape, MapOf | TableList):
            return keys(shape.element)
        if not isinstance(shape, Table):
            return []
        return [name for entry in shape.fields for name in (entry.name, *keys(entry.shape))]

    known = {*keys(manifest_table({})), *kind_table(CPU).names()}
    assert set(shown) == known


def test_plugin_of_the_plugins_page(tour: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's plugin, installed as it says, offers a pass under the name that the manifest's page chooses it by."""
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    (example,) = blocks(text, "python")
    (entry_points,) = re.findall(r'^\[project.entry-points."(.*)"\]\n(\w+) = "(.*)"$', text, re.MULTILINE)
    group, name, module = entry_points
    packages = tmp_path / "packages"
    source = packages / f"{module.replace('.', '/')}.py"
    source.parent.mkdir(parents=True)
    source.write_text(example)
    metadata = packages / "acme-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")
    monkeypatch.setenv("PYTHONPATH", str(packages))
    chosen = re.search(r'`"(acme\.\w+)"`', (ROOT / "docs" / "manifest.md").read_text(encoding="utf-8"))
    assert chosen is not None
    manifest = (tour / "kernels.toml").read_text()
    (tour / "kernels.toml").write_text(f'{manifest}passes = ["{chosen[1]}"]\n')
    for command in ("gristmill plugins --check", "gristmill build"):
        done = run(command, tour)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "acme_kernels.plugin" in run("gristmill plugins --check", tour).stdout
    done = run("gristmill build --no-plugin acme", tour)
    assert done.returncode == 1
    assert "GM0602" in done.stderr


def test_ranges_of_codes_agree() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    errors = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    ranges = set(re.findall(r"GM\d\d(?=xx)", contributing))
    assert ranges == set(re.findall(r"^\| (GM\d\d)(?:, (?:GM\d\d))? \|", errors, re.MULTILINE)) | {"GM03"}
    used = {path.stem[:4] for path in (ROOT / "core" / "gristmill" / "explain").glob("GM*.md")}
    assert used <= ranges


def test_environments_of_tox_are_in_contributing() -> None:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini", encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = [name.strip() for name in parser["tox"]["env_list"].split(",")]
    assert all(f"`{name}`" in contributing for name in listed)
    assert parser.getboolean("tox", "skip_missing_interpreters")
