"""Finding the example projects that come with Gristmill, and copying them to where they may be built."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

from gristmill.errors import MissingError

NAME = "imagekit"
"""The project that is shown first: plain loops, for every machine."""
_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = (
    _PACKAGE / "examples",
    # A source checkout, installed editable: core/gristmill is beside examples.
    _PACKAGE.parents[1] / "examples",
)


def example_project(name: str = NAME) -> Path:
    """The folder of an example project. Raises MissingError (GM0020) where an installation lacks it."""
    for place in _PLACES:
        if (place / name / "kernels.toml").is_file():
            return place / name
    raise MissingError("GM0020", "the example project is not installed", "install gristmill from its wheel or checkout")


def copy_project(destination: Path) -> Path:
    """Copy the example project to ``destination``; files of an earlier copy are replaced. Returns the folder."""
    ignored = shutil.ignore_patterns("build", "__pycache__", "*.pyc")
    shutil.copytree(example_project(), destination, ignore=ignored, dirs_exist_ok=True)
    return destination


def import_from(project: Path, name: str, package: str = NAME) -> ModuleType:
    """A module of the project's Python package by file, without putting it on the import path."""
    file = project / package / f"{name}.py"
    specification = importlib.util.spec_from_file_location(f"_gristmill_example_{package}_{name}", file)
    if specification is None or specification.loader is None:
        raise MissingError("GM0020", f"the example project has no module {file}")
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up while they are made.
    import sys

    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module
