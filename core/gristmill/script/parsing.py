"""Reading kernel sources: the functions that the rest of Gristmill calls."""

from __future__ import annotations

import inspect
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.errors import Place
from gristmill.ir.module import Module
from gristmill.recursion import room_for
from gristmill.script.depth import FRAMES
from gristmill.script.dialects import DIALECTS
from gristmill.script.imports import OutsideProject
from gristmill.script.problems import Mistake, Reported, mistake
from gristmill.script.project import ParamValue, Project, ResolveImport
from gristmill.script.reader import SOURCE_BYTES_AT_MOST, decode


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """What was read: the module, the text of every file by its name, and the files that were imported."""

    module: Module
    sources: dict[str, str]
    imported: tuple[str, ...]


def parse_source(
    text: str,
    file: str,
    *,
    dialect: str = "gristmill",
    params: Mapping[str, ParamValue] | None = None,
    functions: Sequence[str] | None = None,
    resolve_import: ResolveImport | None = None,
    externs: Mapping[str, str] | None = None,
) -> ParsedSource:
    """Read kernels from a text; nothing of it is executed.

    ``params`` override constants of the file by name; ``functions`` names the public functions to take (default: all);
    ``resolve_import(module, level, importing_file)`` gives the (file, text) of an imported module, or None;
    ``externs`` are the C symbols that may be called, with their libraries.

    Raises UserError with every mistake found (codes GM02xx and GM03xx), ValueError for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"the dialect is one of {', '.join(DIALECTS)}, not {dialect!r}")
    project = Project(dialect, dict(params or {}), dict(externs or {}), resolve_import, main=file)
    with room_for(FRAMES):
        try:
            read = project.read(file, text)
            module = project.module(read, functions)
        except (Mistake, Reported) as problem:
            project.problems.add(problem)
            raise project.problems.error() from None
    imported = tuple(name for name in project.files if name != file)
    return ParsedSource(module, dict(project.problems.sources), imported)


def parse_file(
    path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str],
    dialect: str = "gristmill",
    params: Mapping[str, ParamValue] | None = None,
    functions: Sequence[str] | None = None,
    externs: Mapping[str, str] | None = None,
) -> ParsedSource:
    """Read kernels from a file; imports are followed to files inside ``root`` only. As :func:`parse_source`."""
    top = Path(root).resolve()
    name = os.fspath(path)

    def resolve(module: str, level: int, importing: str) -> tuple[str, str] | None:
        return _resolve(top, module, level, importing)

    try:
        text = _read(Path(path))
    except Mistake as problem:
        from gristmill.errors import UserError

        raise UserError(problem.diagnostic) from None
    return parse_source(
        text,
        name,
        dialect=dialect,
        params=params,
        functions=functions,
        resolve_import=resolve,
        externs=externs,
    )


def _read(path: Path) -> str:
    name = str(path)
    try:
        if path.stat().st_size > SOURCE_BYTES_AT_MOST:
            with path.open("rb") as opened:
                return decode(opened.read(SOURCE_BYTES_AT_MOST + 1), name)
        return decode(path.read_bytes(), name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise mistake(
            "GM0205",
            Place(name, 1, 1, 1, 1),
            f"the file {name} cannot be read: {reason}",
            hint="check the path of the source in kernels.toml",
        ) from None


def _resolve(top: Path, module: str, level: int, importing: str) -> tuple[str, str] | None:
    """The file of a module: beside the importing file for relative imports, under the root for others."""
    parts = module.split(".") if module else []
    if level:
        base = Path(importing).resolve().parent
        for _ in range(level - 1):
            base = base.parent
    else:
        base = top
    for candidate in (
        base.joinpath(*parts).with_suffix(".py") if parts else None,
        base.joinpath(*parts, "__init__.py"),
    ):
        if candidate is None or not candidate.is_file():
            continue
        # Resolved, so that neither dots nor links lead out of the project.
        real = candidate.resolve()
        if not real.is_relative_to(top):
            raise OutsideProject(str(candidate))
        shown = os.path.relpath(real, Path(importing).resolve().parent)
        name = os.path.normpath(os.path.join(os.path.dirname(importing), shown))
        return name, _read(real)
    if level and not base.is_relative_to(top):
        raise OutsideProject(str(base))
    return None


def parse(source: str | Callable[..., Any] | type, **options: Any) -> Module:
    """The IR module of a text, or of a Python function or class written in the kernel language.

    Of a function the whole file that it stands in is read, so that its constants and helpers are known, and it alone is
    taken. ``options`` are those of :func:`parse_source`. Raises UserError.
    """
    if isinstance(source, str):
        return parse_source(textwrap.dedent(source), options.pop("file", "<kernel>"), **options).module
    kernel = getattr(source, "__wrapped__", source)
    file = inspect.getsourcefile(kernel) or "<kernel>"
    text, _ = inspect.findsource(kernel)
    name = kernel.__name__
    if not isinstance(kernel, type) and "<locals>" not in kernel.__qualname__:
        return parse_source("".join(text), file, functions=[name], **options).module
    lines, first = inspect.getsourcelines(kernel)
    # Blank lines before it keep the line numbers of the file.
    header = "from gristmill.script import tir as T, ir as I"
    cut = textwrap.dedent("".join(lines))
    padding = "\n" * max(first - 2, 0)
    return parse_source(f"{header}\n{padding}{cut}" if first > 1 else f"{header}; {cut}", file, **options).module
