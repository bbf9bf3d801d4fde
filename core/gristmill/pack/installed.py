"""Packs that installed packages hold: ``imagekit:blur`` is ``_kernels/blur.kpack`` of the package ``imagekit``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from gristmill.errors import Diagnostic, UserError, close_match
from gristmill.pack.format import SUFFIX
from gristmill.pack.reader import PackReader, Source, open_pack

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

KERNEL_FOLDER = "_kernels"
"""The folder of a package that holds its packs."""
_PACKAGE_FORM = re.compile(r"(?P<package>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<module>[A-Za-z_][\w-]*)")


def find_pack(source: Source) -> PackReader:
    """Opens a pack as :func:`open_pack`, or, of a text such as ``imagekit:blur``, the pack of an installed package.

    Raises what ``open_pack`` raises, and ``UserError`` (GM0903) where the package or its pack is not there.
    """
    if isinstance(source, str) and not os.path.exists(source):
        match = _PACKAGE_FORM.fullmatch(source)
        if match is not None:
            return _open_in_package(match["package"], match["module"])
    return open_pack(source)


def _open_in_package(package: str, module: str) -> PackReader:
    from importlib.resources import files

    try:
        folder = files(package)
    except (ImportError, TypeError) as error:
        raise UserError(
            Diagnostic(
                "GM0903",
                f"the package {package!r} cannot be imported: {error}",
                hint="`package:module` names a pack of an installed package; for a file give its path",
            )
        ) from None
    pack = folder / KERNEL_FOLDER / f"{module}{SUFFIX}"
    if not pack.is_file():
        raise _no_such_pack(folder, package, module)
    name = f"{package}:{module}"
    if isinstance(pack, os.PathLike):
        return open_pack(pack, name)
    return open_pack(pack.read_bytes(), name)


def _no_such_pack(folder: Traversable, package: str, module: str) -> UserError:
    kernels = folder / KERNEL_FOLDER
    known = []
    if kernels.is_dir():
        known = sorted(each.name.removesuffix(SUFFIX) for each in kernels.iterdir() if each.name.endswith(SUFFIX))
    close = close_match(module, known)
    listed = f"it has {', '.join(known)}"
    if not known:
        listed = (
            f"packs stand in the folder {KERNEL_FOLDER} of the package: `gristmill build -o {package}/{KERNEL_FOLDER}`"
        )
    hint = f"did you mean `{package}:{close}`? ({listed})" if close else listed
    return UserError(Diagnostic("GM0903", f"the package {package!r} has no pack {module!r}", hint=hint))
