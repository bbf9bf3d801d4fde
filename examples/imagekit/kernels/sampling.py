"""Helpers that the picture kernels share: they become functions inside each kernel's code."""

from gristmill.script import tir as T


@T.prim_func(private=True)
def clamped(index: T.int64, size: T.int64) -> T.int64:
    """The index moved into [0, size)."""
    return T.min(T.max(index, 0), size - 1)


@T.prim_func(private=True)
def quantized(value: T.float32, levels: T.int32) -> T.uint8:
    """A value in [0, 1] as a byte of one of ``levels`` evenly spaced greys."""
    if not value > 0.0:
        return T.uint8(0)
    if value >= 1.0:
        return T.uint8(255)
    steps = T.cast(levels - 1, "float32")
    return T.cast(T.round(value * steps) * (255.0 / steps), "uint8")
