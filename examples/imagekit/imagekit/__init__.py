"""imagekit: a small package whose hot loops are Gristmill kernels.

>>> import imagekit                                          # doctest: +SKIP
>>> kit = imagekit.open("build/kernels")                     # doctest: +SKIP
>>> edges = kit.edges(imagekit.photograph())                 # doctest: +SKIP
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np

import gristmill

__all__ = ["ImageKit", "open", "photograph"]


def photograph() -> np.ndarray:
    """The picture that comes along (see data/README.md): RGBA bytes of shape (height, width, 4)."""
    from PIL import Image

    with files("imagekit").joinpath("data/chelsea.png").open("rb") as opened:
        return np.asarray(Image.open(opened).convert("RGBA")).copy()


def open(folder: str | Path) -> ImageKit:
    """The kernels built into a folder of packs."""
    return ImageKit(Path(folder))


class ImageKit:
    """Picture operations on NumPy arrays."""

    def __init__(self, folder: Path) -> None:
        self.filters = gristmill.load(folder / "filters.kpack")

    def grey(self, rgba: np.ndarray) -> np.ndarray:
        """Grey bytes of shape (height, width) from RGBA bytes of shape (height, width, 4)."""
        grey = np.empty(rgba.shape[:2], np.uint8)
        self.filters.grey(rgba, grey)
        return grey

    def blur(self, grey: np.ndarray) -> np.ndarray:
        """The picture with each value the mean of its neighbours, in float32."""
        rows = np.empty(grey.shape, np.float32)
        blurred = np.empty(grey.shape, np.float32)
        self.filters.blur_rows(grey.astype(np.float32), rows)
        self.filters.blur_columns(rows, blurred)
        return blurred

    def edges(self, rgba: np.ndarray) -> np.ndarray:
        """The magnitude of the gradient of the grey picture, in float32."""
        found = np.empty(rgba.shape[:2], np.float32)
        self.filters.sobel(self.grey(rgba).astype(np.float32), found)
        return found
