"""The target kind `vulkan`: what names and tables of targets resolve to, and what is said of those that cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gristmill.build import build
from gristmill.build.driver import Plan
from gristmill.errors import UserError
from gristmill.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT64
from gristmill.ir.target import Target, parse_target
from gristmill.plugin.artifacts import Scalar
from gristmill.runtime import devices
from gristmill_spirv.target import capabilities, from_device, profile_of, resolve, target_kind
from gristmill_vulkan.runtime import VulkanRuntime

MANIFEST = """schema = 1
[project]
name = "p"
[targets]
gpu = {target}
[[module]]
name = "m"
source = "m.py"
"""
SOURCE = """from gristmill.script import tir as T


@T.prim_func
def double(x: T.Buffer((100,), "float32")):
    for i in range(100):
        x[i] = x[i] * T.float32(2)
"""


def project(folder: Path, target: str) -> Path:
    (folder / "m.py").write_text(SOURCE)
    (folder / "kernels.toml").write_text(MANIFEST.format(target=target))
    return folder / "kernels.toml"


def target_of(folder: Path, target: str) -> Target:
    """What a manifest's target is resolved to."""
    return Plan.of(project(folder, target), None, None, None).jobs[0].target


def resolved(text: str, **options: Scalar) -> Target:
    found = parse_target(text)
    return resolve(Target(found.kind, found.arch, found.features, tuple(sorted(options.items()))))


def test_the_default() -> None:
    """What nearly every GPU has, and nothing else."""
    assert str(resolved("vulkan")) == "vulkan:1.1+int64+storage16+storage8"
    assert resolved("vulkan") == resolved("vulkan:1.1") == resolved("vulkan", version="1.1")


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ('{ kind = "vulkan", version = "1.2", float64 = true }', "vulkan:1.2+float64"),
        ('{ kind = "vulkan", arch = "1.2", features = ["float64"] }', "vulkan:1.2+float64"),
        ('{ kind = "vulkan", arch = "1.3", version = "1.3" }', "vulkan:1.3"),
        ('{ kind = "vulkan", storage8 = false }', "vulkan+no-storage8"),
        ('{ kind = "vulkan", features = ["no-int64"], int64 = false }', "vulkan+no-int64"),
        ('{ kind = "vulkan", float64 = false }', "vulkan"),
        ('{ kind = "vulkan", storage16 = true }', "vulkan+storage16"),
        ('{ kind = "vulkan", address = true, version = "1.4" }', "vulkan:1.4+address"),
    ],
)
def test_a_table_says_what_a_name_says(table: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    assert target_of(tmp_path, table) == target_of(tmp_path / "name", f'"{text}"')


@pytest.mark.parametrize("text", ["vulkan", "vulkan:1.2+address", "vulkan:1.3+float64+no-storage8", "vulkan+no-int64"])
def test_a_resolved_target_stays_and_its_name_says_all_of_it(text: str) -> None:
    found = resolved(text)
    assert resolve(found) == found
    assert resolve(parse_target(str(found))) == found


def test_what_is_switched_off_is_off() -> None:
    found = resolved("vulkan", int64=False)
    assert str(found) == "vulkan:1.1+no-int64+storage16+storage8"
    assert profile_of(found).features == {"storage16", "storage8"}
    assert capabilities(found).dtypes.isdisjoint({INT64, UINT64})


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("vulkan:1.0", {}, "Vulkan 1.0 is not known; known are 1.1, 1.2, 1.3, 1.4"),
        ("vulkan", {"version": "2"}, "Vulkan 2 is not known; known are 1.1, 1.2, 1.3, 1.4"),
        ("vulkan:1.1", {"version": "1.2"}, "it names Vulkan 1.1 and says version = 1.2"),
        ("vulkan+flota64", {}, "`flota64` is no feature of Vulkan targets; did you mean `float64`?"),
        ("vulkan+no-int46", {}, "`no-int46` is no feature of Vulkan targets; did you mean `int64`?"),
        ("vulkan+foo", {}, "`foo` is no feature of Vulkan targets; their features are address, "),
        ("vulkan+no-float64", {}, "`float64` is off unless a target says that it is on; leave `no-float64` out"),
        ("vulkan+float64", {"float64": False}, "it has `float64` on and off"),
        ("vulkan+int64+no-int64", {}, "it has `int64` on and off"),
        ("vulkan+address", {}, '`address` needs Vulkan 1.2 or later; write version = "1.2"'),
        ("vulkan:1.2+address", {"int64": False}, "`address` needs `int64`"),
        ("vulkan+atomic_float64_add", {}, "`atomic_float64_add` needs `float64`"),
        ("vulkan", {"atomic_shared_float64_add": True}, "`atomic_shared_float64_add` needs `float64`"),
        (
            "vulkan",
            {"max_push_constants_size": 6},
            "`max_push_constants_size` is 6; it is a multiple of 4 from 8 to 65536",
        ),
        (
            "vulkan",
            {"max_push_constants_size": 130},
            "`max_push_constants_size` is 130; it is a multiple of 4 from 8 to 65536",
        ),
        ("vulkan", {"max_shared_memory": 0}, "`max_shared_memory` is 0; the least is 1"),
        ("vulkan", {"max_grid_size_y": -2}, "`max_grid_size_y` is -2; the least is 1"),
    ],
)
def test_targets_that_cannot_be(text: str, options: dict[str, Scalar], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        resolved(text, **options)


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ('"vulkan:1.5"', "GM0119", "target `gpu` can't be built for: Vulkan 1.5 is not known"),
        ('{ kind = "vulkan", version = 1.2 }', "GM0104", "version"),
        ('{ kind = "vulkan", float64 = 1 }', "GM0104", "float64"),
        ('{ kind = "vulkan", flota64 = true }', "GM0102", "flota64"),
    ],
)
def test_they_are_refused_at_their_place(target: str, code: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        build(project(tmp_path, target))
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert message in found.message
    assert found.place is not None
    assert found.place.line == 5


def test_capabilities() -> None:
    plain, more = (
        capabilities(resolved("vulkan")),
        capabilities(resolved("vulkan:1.2+float64", max_shared_memory=32768)),
    )
    assert plain.is_device
    assert not plain.recursion
    assert (plain.max_threads_per_block, plain.max_shared_memory) == (256, 16384)
    assert (more.max_threads_per_block, more.max_shared_memory) == (256, 32768)
    assert FLOAT64 not in plain.dtypes
    assert FLOAT64 in more.dtypes
    assert {INT32, INT64, FLOAT32, FLOAT16, BFLOAT16} <= plain.dtypes
    assert "sqrt" in plain.native_operations
    assert plain.native_operations.isdisjoint({"exp", "sin", "pow", "fma", "fmod"})


def test_what_the_generator_is_told() -> None:
    profile = profile_of(resolved("vulkan:1.3+address", max_push_constants_size=256, max_shared_memory=48 * 1024))
    assert (profile.vulkan, profile.spirv) == ((1, 3), (1, 6))
    assert profile.uses_addresses
    assert (profile.push_constants_size, profile.shared_memory) == (256, 49152)
    assert profile_of(resolved("vulkan")).spirv == (1, 3)
    assert not profile_of(resolved("vulkan")).uses_addresses


# A device of the machine that builds ----------------------------------------------------------------------------------

LARGE: dict[str, Scalar] = {
    "vulkan": "1.3",
    "features": "address,float64,float_controls,float_controls64,int64,storage16,storage8,something_new",
    "max_push_constants_size": 256,
    "max_shared_memory": 49152,
    "max_threads_per_block": 1024,
    "colour": "green",
}


def test_a_device_fills_in_what_is_open() -> None:
    found = resolve(from_device(Target("vulkan"), LARGE))
    assert str(found) == "vulkan:1.3+address+float64+float_controls+float_controls64+int64+storage16+storage8"
    assert dict(found.options) == {
        "max_push_constants_size": 256,
        "max_shared_memory": 49152,
        "max_threads_per_block": 1024,
    }


def test_what_a_target_states_itself_is_not_taken_from_the_device() -> None:
    stated = Target("vulkan", "1.2", ("no-storage8",), (("address", False), ("max_shared_memory", 1000)))
    found = resolve(from_device(stated, LARGE))
    assert str(found) == "vulkan:1.2+float64+float_controls+float_controls64+int64+no-storage8+storage16"
    assert dict(found.options)["max_shared_memory"] == 1000


@pytest.mark.parametrize(
    ("target", "properties", "wanted"),
    [
        (Target("vulkan", "1.1"), {}, "vulkan:1.1+float64+float_controls+float_controls64+int64+storage16+storage8"),
        (
            Target("vulkan"),
            {"vulkan": "1.1"},
            "vulkan:1.1+float64+float_controls+float_controls64+int64+storage16+storage8",
        ),
        (
            Target("vulkan"),
            {"vulkan": "1.7"},
            "vulkan:1.4+address+float64+float_controls+float_controls64+int64+storage16+storage8",
        ),
        (Target("vulkan"), {"features": "address"}, "vulkan:1.3+no-float_controls+no-int64+no-storage16+no-storage8"),
        (
            Target("vulkan", options=(("int64", False),)),
            {},
            "vulkan:1.3+float64+float_controls+float_controls64+no-int64+storage16+storage8",
        ),
        (Target("vulkan"), {"vulkan": "?", "features": ""}, "vulkan:1.1+no-int64+no-storage16+no-storage8"),
    ],
)
def test_what_fits_together(target: Target, properties: dict[str, Scalar], wanted: str) -> None:
    """A device has what its version or its other features are too old or too few for: that is left out."""
    assert str(resolve(from_device(target, {**LARGE, **properties}))) == wanted


def test_the_device_of_this_machine(tmp_path: Path) -> None:
    (row,) = [row for row in devices() if row.name == "vulkan:0"]
    found = target_of(tmp_path, '{ kind = "vulkan", from_device = 0 }')
    assert found.arch == row.properties["vulkan"]
    options = dict(found.options)
    assert "from_device" not in options
    assert options["max_shared_memory"] == row.properties["max_shared_memory"]
    assert options["max_push_constants_size"] == row.properties["max_push_constants_size"]
    assert options["max_block_size_z"] == row.properties["max_block_size_z"]
    on = {feature for feature in found.features if not feature.startswith("no-")}
    assert on <= set(str(row.properties["features"]).split(","))


def test_no_build_looks_at_the_machine_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise AssertionError("the build has asked Vulkan")

    wanted = build(project(tmp_path, '"vulkan:1.2+address"')).pack("m").path.read_bytes()
    monkeypatch.setattr(VulkanRuntime, "probe", refused)
    (tmp_path / "again").mkdir()
    again = build(project(tmp_path / "again", '"vulkan:1.2+address"')).pack("m").path
    assert again.read_bytes() == wanted
    with pytest.raises(UserError, match="has asked Vulkan"):
        build(project(tmp_path / "again", '{ kind = "vulkan", from_device = 0 }'))


def test_a_device_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="to be as device 77 of this machine, and there is none") as caught:
        build(project(tmp_path, '{ kind = "vulkan", from_device = 77 }'))
    assert caught.value.code == "GM0121"


def test_the_description() -> None:
    kind = target_kind()
    assert (kind.name, kind.generator, kind.blob_kinds, kind.device_type) == ("vulkan", "spirv", ("spirv",), 7)
    assert all(key.meaning.endswith(".") for key in kind.keys)
    assert len({key.name for key in kind.keys}) == len(kind.keys)
