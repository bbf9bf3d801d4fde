"""Helpers that kernels of several files share."""

from gristmill.script import tir as T


def clamp_index(i: T.int64, n: T.int64) -> T.int64:
    return min(max(i, 0), n - 1)


def saturate(v: T.float32) -> T.uint8:
    return T.uint8(min(max(round(v), 0), 255))
