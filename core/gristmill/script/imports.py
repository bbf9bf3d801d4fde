"""Imports: which are followed to files of the project, and which no kernel can have."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gristmill.script.context import Context
from gristmill.script.files import File
from gristmill.script.lookup import import_value
from gristmill.script.problems import Mistake, Reported

if TYPE_CHECKING:
    from gristmill.script.project import Project


class OutsideProject(Exception):
    """Raised by a ``resolve_import`` for a file outside of the project; the text is its path."""


def check_imports(project: Project, file: File) -> None:
    """Refuse imports that no dialect or no kernel can have, also where nothing uses them."""
    context = Context(project, file, None)
    for node in file.tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        try:
            _check_import(project, context, node)
        except Mistake as problem:
            project.problems.add(problem)


def _check_import(project: Project, context: Context, node: ast.Import | ast.ImportFrom) -> None:
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    level = 0 if isinstance(node, ast.Import) else node.level
    is_tvm = level == 0 and any(module.split(".")[0] == "tvm" for module in modules)
    if is_tvm and project.dialect != "tvmscript":
        raise context.mistake(
            "GM0209",
            node,
            "the file is written in TVM's dialect, and is read as Gristmill's",
            label="imports tvm",
            hint='write `from gristmill.script import tir as T, ir as I`, or set `dialect = "tvmscript"` '
            "in the [[module]] of kernels.toml",
        )
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        context.file.imports_everything = True
        raise context.mistake(
            "GM0213",
            node,
            "an import of everything (`*`) hides where names come from",
            label="imports everything",
            hint="import what is used by name, as in `from gristmill.script import tir as T`",
        )
    if isinstance(node, ast.ImportFrom) and (level or (node.module or "").startswith("gristmill.script")):
        for alias in node.names:
            definition = context.file.definitions.get(alias.asname or alias.name)
            if definition is not None and definition.node is alias:
                import_value(context, definition, alias.asname or alias.name)


def imported_file(
    project: Project, context: Context, node: ast.alias, module: str, level: int, inner: str
) -> tuple[File, str] | None:
    """The file that an import means and the name wanted from it ("" for the file itself); None if it is foreign."""
    if project.resolve_import is None and level == 0:
        return None
    importing = context.file.name
    found = _resolve(project, context, node, module, level, importing) if module else None
    if found is not None:
        return _imported(project, *found), inner
    if inner:
        # `from . import constants`, `from .package import constants`.
        dotted = f"{module}.{inner}" if module else inner
        found = _resolve(project, context, node, dotted, level, importing)
        if found is not None:
            return _imported(project, *found), ""
    if level == 0:
        return None
    dots = "." * level
    raise context.mistake(
        "GM0210",
        node,
        f"there is no file for `{dots}{module or inner}` beside {importing}",
        label="not found",
        hint=f"make the file {(module or inner).replace('.', '/')}.py, or mend the import",
    )


def _resolve(
    project: Project, context: Context, node: ast.alias, module: str, level: int, importing: str
) -> tuple[str, str] | None:
    if project.resolve_import is None:
        return None
    try:
        return project.resolve_import(module, level, importing)
    except OutsideProject as error:
        raise context.mistake(
            "GM0212",
            node,
            f"the import leads out of the project: {error}",
            label="outside of the project",
            hint="move the file into the project",
        ) from None


def _imported(project: Project, name: str, text: str) -> File:
    try:
        return project.read(name, text)
    except Mistake as problem:
        project.problems.add(problem)
        raise Reported from None
