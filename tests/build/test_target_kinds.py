"""The installed target kinds: their names, what they resolve to, their data files, the devices that their code is for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import gristmill_targets
from gristmill.build.device_parts import HOST_BLOB_KIND, KNOWN_HOSTS, host_names, host_target
from gristmill.ir.host_interface import OWN_DEVICE_TYPES
from gristmill.ir.target import Target, parse_target
from gristmill.plugin.protocols import FROM_DEVICE
from gristmill.plugin.registry import Registry
from gristmill.plugin.target_data import target_table

REGISTRY = Registry.installed()
KINDS = {kind.name: kind for kind in REGISTRY.target_kinds()}
DATA = sorted(Path(gristmill_targets.__file__).parent.glob("*.toml"))
CPU_DEVICE_TYPE = 1
"""``kDLCPU`` of dlpack.h."""
LAST_OF_DLPACK = 255
"""DLPack numbers devices from 1 up; numbers of our own are far beyond."""


@pytest.mark.parametrize("name", KINDS)
def test_a_resolved_target_stays_and_its_name_says_which_it_is(name: str) -> None:
    kind = KINDS[name]
    for arch in ("", *kind.architectures):
        if arch == "native":
            continue
        found = kind.resolve(Target(name, arch))
        assert kind.resolve(found) == found
        assert kind.resolve(parse_target(str(found))) == found
        assert found.arch == arch or not arch


@pytest.mark.parametrize("name", KINDS)
def test_device_types(name: str) -> None:
    kind = KINDS[name]
    is_device = kind.capabilities(kind.resolve(Target(name))).is_device
    assert is_device == (kind.device_type != CPU_DEVICE_TYPE)
    if kind.device_type > LAST_OF_DLPACK:
        assert OWN_DEVICE_TYPES[kind.device_type] == name


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_that_a_device_completes_has_the_key_for_it(name: str) -> None:
    kind = KINDS[name]
    assert (FROM_DEVICE in kind.keys) == (kind.from_device is not None)


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_data_files(path: Path) -> None:
    with path.open("rb") as opened:
        assert target_table(path.stem) == tomllib.load(opened)
    assert path.stem in KINDS


def test_hosts() -> None:
    """What a manifest may name as a host: machines that there is host code for, and those that there will be."""
    assert "native" not in host_names(REGISTRY)
    for host in host_names(REGISTRY):
        found = host_target(host, REGISTRY)
        assert found is not None
        kind, target = found
        assert HOST_BLOB_KIND in kind.blob_kinds
        assert target.arch == host
    assert host_target("native", REGISTRY) is None
    assert host_target("no-such-machine", REGISTRY) is None
    assert "x86-64-v2" in KNOWN_HOSTS
