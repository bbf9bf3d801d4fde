"""The example project computes what NumPy and the executor compute, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.testing.demonstration import demonstrate


def test_demonstration(tmp_path) -> None:
    pytest.importorskip("PIL")
    done = demonstrate(str(tmp_path))
    assert [row for row in done.rows if not row.ok] == []
    kernels = {row.kernel for row in done.rows}
    assert len(kernels) == 15
    assert {row.target for row in done.rows} >= {"cpu"}
    from PIL import Image

    pictures = {name: np.asarray(Image.open(tmp_path / f"{name}.png")) for name in ("original", "blurred", "edges")}
    assert {picture.shape for picture in pictures.values()} == {(300, 451, 4)}
    # A blur keeps the mean and lessens the contrast; edges are dark but for outlines.
    assert abs(pictures["blurred"][..., :3].mean() - pictures["original"][..., :3].mean()) < 1
    assert pictures["blurred"][..., :3].std() < pictures["original"][..., :3].std()
    assert pictures["edges"][..., :3].mean() < pictures["original"][..., :3].mean()
