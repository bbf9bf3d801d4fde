"""The builder: manifest, plan, compilation, packs, report.

``gristmill.build`` is this package and, as the public face has it, a function as well: ``gristmill.build("kernels.toml")``
is ``gristmill.build.build("kernels.toml")``. So the package itself can be called: Python binds the name ``build`` in
``gristmill`` to it as soon as anything imports one of its modules.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gristmill.build.driver import build, check
    from gristmill.build.report import BuildReport

__all__ = ["BuildReport", "build", "check"]


def __getattr__(name: str) -> Any:
    """Import the driver when it is first asked for: reading a manifest must not import the compiler."""
    if name in ("build", "check"):
        from gristmill.build import driver

        return getattr(driver, name)
    if name == "BuildReport":
        from gristmill.build.report import BuildReport

        return BuildReport
    raise AttributeError(f"module 'gristmill.build' has no attribute {name!r}")


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **keywords: Any) -> BuildReport:
        from gristmill.build.driver import build

        return build(*arguments, **keywords)


sys.modules[__name__].__class__ = _CallablePackage
