"""Manifests that nobody would write: random damage, and values of every type in every place. Never a crash."""

from __future__ import annotations

import contextlib
import itertools
import random

from gristmill.build.manifest import parse_manifest
from gristmill.build.manifest_tables import MODULE, OVERRIDES
from gristmill.errors import UserError
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import KeyDescription, TargetKind

CPU = TargetKind(
    "cpu",
    "A processor.",
    "none",
    ("none",),
    lambda target: target,
    lambda target: Capabilities(),
    keys=(KeyDescription("version", "string", "Its version."),),
)
HEAD = 'schema = 1\n[project]\nname = "p"\n[targets]\ncpu = "cpu"\n'
WHOLE = """\
schema = 1
[project]
name = "imagekit"
host = ["x86-64-v2", "aarch64"]            # compiled host parts; the default
[targets]
cpu = "cpu:x86-64-v3"
gpu = { kind = "cpu", version = "1.2", arch = "x", features = ["a", "b"] }
[[module]]
name = "blur"
source = "kernels/blur.py"
functions = ["blur_rows", "blur_columns"]  # default: every public one
params = { RADIUS = 3, WEIGHTS = [1, 2.5], EXACT = true, MODE = "wrap", SCALE = 0.5 }
extern = { cblas_sdot = "libopenblas.so.0" }
[module.target.gpu]
params = { RADIUS = 4 }
passes = ["acme.prefetch"]
options = { fast_math = true }
"""
PIECES = [*"\"'[]{}=.\n#1\\é\t-", "true", "1979-05-27", '"""', "[[module]]\n", "kind", "\x00", "9" * 30]
VALUES = ["1", "-1.5", "true", '""', '"x"', "[]", "[1]", '["x"]', "{}", "{ a = 1 }", "[[]]", "[{}]", "inf", "07:32:00"]
SEED = 20250131


def damaged(source: random.Random) -> str:
    text = WHOLE
    for _ in range(source.randrange(1, 4)):
        start = source.randrange(len(text))
        end = min(len(text), start + source.choice([0, 0, 1, 5, 30]))
        text = text[:start] + source.choice([*PIECES, "", text[start:end] * 2]) + text[end:]
    return text


def complaint(text: str) -> UserError | None:
    try:
        parse_manifest(text, "kernels.toml", {"cpu": CPU})
    except UserError as error:
        return error
    return None


def test_damaged_manifests_are_read_or_refused() -> None:
    print("seed", SEED)
    source = random.Random(SEED)
    refusals = 0
    for _ in range(3000):
        text = damaged(source)
        error = complaint(text)
        if error is None:
            continue
        refusals += 1
        lines = text.split("\n")
        assert str(error)
        for found in error.diagnostics:
            assert found.code.startswith("GM01")
            assert found.place is not None
            assert 1 <= found.place.line <= len(lines)
            assert 1 <= found.place.column <= len(lines[found.place.line - 1]) + 2
    assert refusals > 1500


def test_values_of_every_type_in_every_place() -> None:
    assert complaint(WHOLE) is None
    top = ["schema", "project", "targets", "module", "project.name", "project.host", "targets.cpu", "targets.cpu.kind"]
    for key, value in itertools.product(top, VALUES):
        assert complaint(f"{key} = {value}\n") is not None
    inner = [field.name for field in MODULE.fields] + [f"target.cpu.{field.name}" for field in OVERRIDES.fields]
    for key, value in itertools.product([*inner, "target.cpu", "options.opt_level", "params.N", "extern.f"], VALUES):
        assert complaint(f"{HEAD}[[module]]\n{key} = {value}\n") is not None, "a name and a source are missing at least"
    for key, value in itertools.product(["kind", "arch", "features", "version", "other"], VALUES):
        with contextlib.suppress(UserError):
            parse_manifest(WHOLE.replace('arch = "x"', f"{key} = {value}"), "kernels.toml", {"cpu": CPU})
