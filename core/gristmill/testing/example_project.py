"""Finding the example project that comes with Gristmill, and copying it to where it may be built."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

from gristmill.errors import MissingError

NAME = "imagekit"
_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = (
    _PACKAGE / "examples" / NAME,
    # A source checkout, installed editable: core/gristmill is beside examples.
    _PACKAGE.parents[1] / "examples" / NAME,
)


def example_project() -> Path:
    """The folder of the example project. Raises MissingError (GM0020) where an installation lacks it."""
    for place in _PLACES:
        if (place / "kernels.toml").is_file():
            return place
    raise MissingError("GM0020", "the example project is not installed", "install gristmill from its wheel or checkout")


def copy_project(destination: Path) -> Path:
    """Copy the example project to ``destination``; files of an earlier copy are replaced. Returns the folder."""
    ignored = shutil.ignore_patterns("build", "__pycache__", "*.pyc")
    shutil.copytree(example_project(), destination, ignore=ignored, dirs_exist_ok=True)
    return destination


def import_from(project: Path, name: str) -> ModuleType:
    """A module of the project's Python package by file, without putting it on the import path."""
    file = project / NAME / f"{name}.py"
    specification = importlib.util.spec_from_file_location(f"_gristmill_example_{name}", file)
    if specification is None or specification.loader is None:
        raise MissingError("GM0020", f"the example project has no module {file}")
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up while they are made.
    import sys

    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module
