"""Gristmill: a build system for compute kernels.

The names below are the public face; each is imported when it is first used, so that ``import gristmill`` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gristmill.version import __version__

if TYPE_CHECKING:
    from gristmill.build import build
    from gristmill.runtime.devices import device, devices
    from gristmill.runtime.loading import load

__all__ = ["__version__", "build", "device", "devices", "load"]

_HOMES = {
    "build": "gristmill.build",
    "device": "gristmill.runtime",
    "devices": "gristmill.runtime",
    "load": "gristmill.runtime",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'gristmill' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(home)
    # `gristmill.build` names a package and a function: the package itself is both, for it can be called.
    found = module if home == f"gristmill.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
