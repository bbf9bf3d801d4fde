"""The kernel language: ``from gristmill.script import tir as T, ir as I``.

Kernel files import ``tir`` and ``ir`` from here so that Python, linters and editors read them without complaint; what
the compiler makes of them it reads from the text (:func:`parse_source`, :func:`parse_file`, :func:`parse`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.script import ir as I
    from gristmill.script import ir as ir
    from gristmill.script import tir as T
    from gristmill.script import tir as tir
    from gristmill.script.parsing import ParsedSource, parse, parse_file, parse_source

__all__ = ["I", "ParsedSource", "T", "ir", "parse", "parse_file", "parse_source", "tir"]

_MODULES = {"tir": "tir", "T": "tir", "ir": "ir", "I": "ir"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that kernel files stay quick to import."""
    if name in _MODULES:
        found: Any = import_module(f"gristmill.script.{_MODULES[name]}")
    elif name in __all__:
        found = getattr(import_module("gristmill.script.parsing"), name)
    else:
        raise AttributeError(f"module 'gristmill.script' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
