"""Listing devices, and opening them by name."""

from __future__ import annotations

import pytest

import gristmill
from gristmill.errors import MissingError, UserError
from gristmill.plugin.registry import Registry
from gristmill.runtime import Runtimes, device, devices, null


def test_the_list_says_what_is_here_and_what_is_not_and_why(runtimes: Runtimes) -> None:
    rows = {row.name: row for row in devices(runtimes=runtimes)}
    assert rows["null:0"].is_here
    assert rows["null:0"].title == "a device that computes nothing"
    assert rows["null:0"].properties == {"memory": "host"}
    assert rows["absent"].reason == "no driver is installed"
    assert rows["broken"].reason == (
        "[GM1012] plugin 'runtimes_of_tests' (runtimes_of_tests) failed: "
        "looking for devices raised OSError: the driver is on fire"
    )
    assert not rows["absent"].is_here
    printed = repr(devices(runtimes=runtimes)).splitlines()
    assert "absent    none: no driver is installed" in printed
    assert "null:0    a device that computes nothing" in printed


def test_a_broken_plugin_is_a_row() -> None:
    class Half:
        GRISTMILL_API_VERSION = 7

    (row,) = devices(runtimes=Runtimes(Registry.of([Half])))
    assert "is made for plugin API 7" in row.reason


def test_a_device_is_opened_once(runtimes: Runtimes) -> None:
    first = device("null:0", runtimes=runtimes)
    assert device("null", runtimes=runtimes) is first
    assert first.name == "null:0"
    assert first.properties() == {"memory": "host"}
    assert first.synchronize() is None


@pytest.mark.parametrize("name", ["", "null:x", "null:", ":0", "null:0:1", "null:99999", "a b"])
def test_a_text_that_is_no_device(runtimes: Runtimes, name: str) -> None:
    with pytest.raises(UserError, match="GM0904"):
        device(name, runtimes=runtimes)


def test_a_device_that_is_not_here(runtimes: Runtimes) -> None:
    with pytest.raises(MissingError, match=r"(?s)GM0905.*no device null:1.*there is null:0"):
        device("null:1", runtimes=runtimes)
    with pytest.raises(MissingError, match=r"(?s)no device absent:0.*no driver is installed"):
        device("absent:0", runtimes=runtimes)
    with pytest.raises(UserError, match="did you mean 'null'"):
        device("nul:0", runtimes=runtimes)


def test_the_null_runtime_refuses_numbers_that_it_does_not_list() -> None:
    with pytest.raises(MissingError, match="GM0905"):
        null.NullRuntime().open(1)


def test_the_face() -> None:
    assert gristmill.device is device
    assert gristmill.devices is devices
