"""The example project computes what NumPy and the executor compute, on every target."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from gristmill.errors import MissingError
from gristmill.runtime import devices
from gristmill.testing import example_project
from gristmill.testing.demonstration import demonstrate, present_devices, relative_error


def test_demonstration(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    done = demonstrate(str(tmp_path))
    assert [row for row in done.rows if not row.ok] == []
    kernels = {row.kernel for row in done.rows}
    assert len(kernels) == 15
    assert {row.target for row in done.rows} >= {"cpu"}
    if "vulkan:0" in {row.name for row in devices()}:
        assert {row.kernel for row in done.rows if (row.target, row.device) == ("gpu", "vulkan:0")} == kernels
    from PIL import Image

    pictures = {name: np.asarray(Image.open(tmp_path / f"{name}.png")) for name in ("original", "blurred", "edges")}
    assert {picture.shape for picture in pictures.values()} == {(300, 451, 4)}
    # A blur keeps the mean and lessens the contrast; edges are dark but for outlines.
    assert abs(pictures["blurred"][..., :3].mean() - pictures["original"][..., :3].mean()) < 1
    assert pictures["blurred"][..., :3].std() < pictures["original"][..., :3].std()
    assert pictures["edges"][..., :3].mean() < pictures["original"][..., :3].mean()


def test_without_the_example_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_project, "_PLACES", (tmp_path / "nowhere",))
    with pytest.raises(MissingError) as caught:
        demonstrate(str(tmp_path))
    assert caught.value.code == "GM0020"


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingError) as caught:
        demonstrate(str(tmp_path))
    assert caught.value.code == "GM0021"
    assert "gristmill[demo]" in caught.value.diagnostic.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("result", "wanted", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([float("nan"), 2.0], [1.0, 2.0], float("inf")),
        ([float("nan"), 2.0], [float("nan"), 2.0], 0.0),
        ([0.5], [0.0], 0.5),
        ([], [], 0.0),
    ],
)
def test_relative_error(result: list[float], wanted: list[float], error: float) -> None:
    assert relative_error(np.array(result), np.array(wanted)) == error


def test_the_reference_device_takes_part_only_if_it_is_named() -> None:
    pytest.importorskip("gristmill_cpu")
    here, _ = present_devices(None)
    assert "cpu:0" in here
    assert "reference:0" not in here
    assert present_devices(["reference:0"]) == (["reference:0"], [])
