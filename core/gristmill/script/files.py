"""The files of a reading: what each defines at its top level. Values of constants are found only when they are used."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gristmill.script.source import Source
from gristmill.script.values import Value

Defining = ast.stmt | ast.expr | ast.alias


@dataclass(slots=True)
class Definition:
    """A name at the top level of a file (or of an ``ir_module`` class).

    ``kind``: ``constant`` (node is the assigned expression), ``function``, ``class``, ``import`` (a module or a name
    of one), ``unknown`` (assigned in a way that would have to be executed).
    """

    kind: str
    node: Defining
    module: str = ""
    """For imports: the module, without leading dots."""
    level: int = 0
    """For imports: how many leading dots."""
    name: str = ""
    """For imports: the name inside the module; empty for the module itself."""
    value: Value = None
    state: str = "new"
    """``new``, ``folding``, ``done`` or ``wrong``."""
    times: int = 1
    """How often the name is assigned at the top level."""


@dataclass(slots=True)
class File:
    """A source file that was read: text, tree, and definitions by name."""

    source: Source
    tree: ast.Module
    definitions: dict[str, Definition] = field(default_factory=dict)
    classes: dict[str, dict[str, Definition]] = field(default_factory=dict)
    """The definitions inside each class, by class name."""
    imports_everything: bool = False
    """Whether an ``import *`` may define any name."""

    @property
    def name(self) -> str:
        return self.source.file


def gather(file: File) -> None:
    """Fill in the definitions of a file from its tree."""
    _gather_body(file.tree.body, file.definitions, certain=True)
    for statement in file.tree.body:
        if isinstance(statement, ast.ClassDef):
            inside: dict[str, Definition] = {}
            _gather_body(statement.body, inside, certain=True)
            file.classes[statement.name] = inside


def _put(found: dict[str, Definition], name: str, definition: Definition) -> None:
    before = found.get(name)
    if before is not None:
        definition.times = before.times + 1
    found[name] = definition


def _gather_body(body: list[ast.stmt], found: dict[str, Definition], certain: bool) -> None:
    for statement in body:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _gather_target(target, value, found, certain)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                _put(found, name, Definition("constant" if certain else "unknown", value))
            case ast.AugAssign(target=ast.Name(id=name)):
                _put(found, name, Definition("unknown", statement))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                _put(found, name, Definition("function", statement))
            case ast.ClassDef(name=name):
                _put(found, name, Definition("class", statement))
            case ast.Import(names=names):
                for alias in names:
                    # `import a.b` binds `a`; `import a.b as c` binds `c` to a.b.
                    bound = alias.asname or alias.name.partition(".")[0]
                    module = alias.name if alias.asname else bound
                    _put(found, bound, Definition("import", alias, module=module))
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    if alias.name != "*":
                        definition = Definition("import", alias, module or "", level, alias.name)
                        _put(found, alias.asname or alias.name, definition)
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
                for inner in _blocks(statement):
                    _gather_body(inner, found, certain=False)
                if isinstance(statement, ast.For):
                    _gather_target(statement.target, statement, found, certain=False)
            case _:
                pass


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside a compound statement."""
    found = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(statement, "handlers", [])]
    return found


def _gather_target(target: ast.expr, value: ast.stmt | ast.expr, found: dict[str, Definition], certain: bool) -> None:
    kind = "constant" if certain else "unknown"
    if isinstance(target, ast.Name):
        _put(found, target.id, Definition(kind, value))
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        same = len(parts) == len(target.elts)
        for index, inner in enumerate(target.elts):
            _gather_target(inner, parts[index] if same else value, found, certain and same)
