"""blockkit: operations on arrays whose kernels say themselves what each thread does.

>>> import blockkit                                                    # doctest: +SKIP
>>> kit = blockkit.open("build/kernels", device="vulkan:0")            # doctest: +SKIP
>>> product = kit.multiplied(left, right)                              # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gristmill

__all__ = ["BlockKit", "open"]


def open(folder: str | Path, device: str) -> BlockKit:
    """The kernels built into a folder of packs, on a device by its name."""
    return BlockKit(Path(folder), device)


class BlockKit:
    """Operations on NumPy arrays, which are copied to the device and back."""

    def __init__(self, folder: Path, device: str) -> None:
        self.device = gristmill.device(device)
        self.tiles = gristmill.load(folder / "tiles.kpack", device=device)
        self.collectives = gristmill.load(folder / "collectives.kpack", device=device)

    def multiplied(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product of two float32 matrices."""
        product = self.device.empty((left.shape[0], right.shape[1]), "float32")
        self.tiles.matmul(self.device.array(left), self.device.array(right), product)
        return product.numpy()

    def blurred(self, grey: np.ndarray) -> np.ndarray:
        """The picture with each value the mean of a square of its neighbours, in float32."""
        result = self.device.empty(grey.shape, "float32")
        self.tiles.blur(self.device.array(grey.astype(np.float32)), result)
        return result.numpy()

    def total(self, values: np.ndarray) -> float:
        """The sum of float32 values of shape (n,)."""
        result = self.device.empty((1,), "float32")
        self.collectives.total(self.device.array(values), result)
        return float(result.numpy()[0])
