"""How deep kernels may be nested."""

from __future__ import annotations

NESTING_AT_MOST = 256
"""Levels of expressions, and levels of statements, that a kernel may have."""

FRAMES = 2 * NESTING_AT_MOST * 12 + 1000
"""The Python frames that reading a kernel may take: at most about 12 a level; expressions and statements nest
independently."""
