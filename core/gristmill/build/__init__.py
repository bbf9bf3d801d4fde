"""From ``kernels.toml`` to packs: manifest, plan, cache, executor, report.

``gristmill.build`` is this package and, as the public face has it, a function as well: ``gristmill.build("kernels.toml")``
is ``gristmill.build.build("kernels.toml")``. The package itself is callable because an import of any module in it binds
the name ``build`` in ``gristmill`` to the package.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.build.driver import build

__all__ = ["build"]


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        from gristmill.build.driver import build

        return build(*arguments, **keywords)


def __getattr__(name: str) -> Any:
    """Import the builder when it is first asked for (PEP 562): reading a manifest must not cost a compiler."""
    if name != "build":
        raise AttributeError(f"module 'gristmill.build' has no attribute {name!r}")
    from gristmill.build.driver import build

    globals()["build"] = build
    return build


sys.modules[__name__].__class__ = _CallablePackage
