"""``kernels.toml``: read whole, checked whole, given as frozen values that know their places.

>>> manifest = load_manifest("kernels.toml", kinds)                       # doctest: +SKIP
>>> [module.name for module in manifest.modules]                          # doctest: +SKIP
['blur']

All mistakes of a manifest come in one :class:`~gristmill.errors.UserError`, in the order of the text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gristmill.build.manifest_positions import Path, SourceText
from gristmill.build.manifest_shapes import REFUSED, Report, listed
from gristmill.build.manifest_tables import SCHEMA, manifest_table
from gristmill.build.manifest_text import read_document, read_text
from gristmill.errors import Diagnostic, Note, Place, UserError, close_match
from gristmill.ir.target import Target
from gristmill.passes.index_widths import AUTO
from gristmill.plugin.protocols import TargetKind

MOST_DIAGNOSTICS = 100

Parameter = bool | int | float | str | tuple[int | float, ...]


@dataclass(frozen=True)
class _Located:
    """A part of the manifest: knows the text it comes from and its path in it."""

    source_text: SourceText = field(repr=False, compare=False)
    path: Path = field(repr=False, compare=False)

    @property
    def place(self) -> Place:
        """Where this part begins (a table's header, a target's value)."""
        return self.source_text.value_place(self.path)

    def place_of(self, *path: str | int) -> Place:
        """The place of a value in this part, as ``module.place_of("functions", 0)``; of the part where it is absent."""
        return self.source_text.value_place((*self.path, *path))

    def key_place_of(self, *path: str | int) -> Place:
        """The place of a key in this part, as ``module.key_place_of("params", "RADIUS")``."""
        return self.source_text.key_place((*self.path, *path))


@dataclass(frozen=True)
class ProjectTable(_Located):
    """``[project]``: its name, and the machines that host parts are compiled for."""

    name: str
    host: tuple[str, ...]


@dataclass(frozen=True)
class TargetEntry(_Located):
    """One line of ``[targets]``.

    ``target`` is as written, not yet resolved by its kind (:func:`gristmill.build.manifest_kinds.resolve_targets`).
    """

    name: str
    target: Target


@dataclass(frozen=True)
class BuildOptions:
    """Options of the code generators: ``opt_level`` from 0 to 3; ``fast_math`` lets floats be reassociated; ``texts``
    are the kinds of text that packs keep besides the IR; ``indices`` is what kernels of devices compute indices in."""

    opt_level: int = 3
    fast_math: bool = False
    texts: tuple[str, ...] = ()
    indices: str = AUTO


@dataclass(frozen=True)
class ModuleTargetEntry(_Located):
    """``[module.target.NAME]``: what is different for one target. ``None`` where nothing is said."""

    target: str
    functions: tuple[str, ...] | None
    params: Mapping[str, Parameter]
    passes: tuple[str, ...] | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class ModuleSettings:
    """What holds for one module on one target, after the overrides. ``functions`` is None for every public one."""

    functions: tuple[str, ...] | None
    params: Mapping[str, Parameter]
    passes: tuple[str, ...]
    options: BuildOptions


@dataclass(frozen=True)
class ModuleEntry(_Located):
    """``[[module]]``: one pack. ``source`` is relative to the project, with forward slashes; ``targets`` are names."""

    name: str
    source: str
    functions: tuple[str, ...] | None
    targets: tuple[str, ...]
    params: Mapping[str, Parameter]
    dialect: str
    passes: tuple[str, ...]
    options: BuildOptions
    extern: Mapping[str, str]
    overrides: Mapping[str, ModuleTargetEntry]

    def settings(self, target: str) -> ModuleSettings:
        """The module's settings for the target of that name: params and options merge, functions and passes replace."""
        override = self.overrides.get(target)
        if override is None:
            return ModuleSettings(self.functions, self.params, self.passes, self.options)
        return ModuleSettings(
            self.functions if override.functions is None else override.functions,
            {**self.params, **override.params},
            self.passes if override.passes is None else override.passes,
            replace(self.options, **override.options),
        )


@dataclass(frozen=True)
class Manifest(_Located):
    """A checked manifest. ``file`` is its path as given."""

    schema: int
    project: ProjectTable
    targets: tuple[TargetEntry, ...]
    modules: tuple[ModuleEntry, ...]

    @property
    def file(self) -> str:
        return self.source_text.file

    @property
    def folder(self) -> str:
        """The project's folder, which all paths are relative to."""
        return os.path.dirname(os.path.abspath(self.file))

    @cached_property
    def targets_by_name(self) -> dict[str, TargetEntry]:
        return {target.name: target for target in self.targets}

    def error(self, *diagnostics: Diagnostic) -> UserError:
        """An error that points into this manifest."""
        return UserError(diagnostics, {self.file: self.source_text.text})

    def source_path(self, module: ModuleEntry) -> str:
        """The absolute path of the module's source."""
        return os.path.join(self.folder, *module.source.split("/"))


def load_manifest(path: str | os.PathLike[str], kinds: Mapping[str, TargetKind]) -> Manifest:
    """Read and check the manifest at ``path`` (a file, or a folder that has a ``kernels.toml``).

    ``kinds`` are the installed target kinds by name. Raises UserError with all that is wrong.
    """
    file, text = read_text(path)
    return parse_manifest(text, file, kinds)


def parse_manifest(text: str, file: str, kinds: Mapping[str, TargetKind]) -> Manifest:
    """Check the text of a manifest; ``file`` is the name for messages. See :func:`load_manifest`."""
    source = SourceText(file, text)
    document = read_document(source)
    report = Report(source)
    _check_schema(document, report)
    checked = manifest_table(kinds).check(document, (), "the manifest", report)
    _check_names(checked, report)
    if report.diagnostics:
        raise _error(report)
    return _manifest(checked, source)


def missing_sources(manifest: Manifest) -> list[Diagnostic]:
    """A diagnostic for each module whose source is not there; asked when a build is planned."""
    found = []
    for module in manifest.modules:
        path = manifest.source_path(module)
        if not (wrong := _unusable(path)):
            continue
        near = _similar_file(path)
        hint = "write the path relative to the folder of kernels.toml"
        if near:
            hint = f'did you mean "{os.path.join(os.path.dirname(module.source), near)}"?'
        message = f"the source of module `{module.name}`, `{module.source}`, {wrong}"
        found.append(Diagnostic("GM0116", message, module.place_of("source"), hint=hint))
    return found


def _unusable(path: str) -> str:
    """Why a path is no source file, to be read after "the source"; an empty text if it is one."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except OSError as error:
        return f"can't be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return "is a folder"
    return "" if stat.S_ISREG(mode) else "is no plain file"


def _similar_file(path: str) -> str:
    """The name of the source beside ``path`` that was probably meant, or an empty text."""
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder) as entries:
            beside = [other.name for other in entries if other.name.endswith(".py") and other.is_file()]
    except OSError:
        return ""
    near = close_match(name, sorted(beside))
    return "" if near == name else near


def _check_schema(document: dict[str, Any], report: Report) -> None:
    schema = document.get("schema")
    if isinstance(schema, int) and not isinstance(schema, bool) and schema != SCHEMA:
        hint = f"write schema = {SCHEMA}"
        if schema > SCHEMA:
            hint += ", or install a newer gristmill"
        report.at_value("GM0113", ("schema",), "this gristmill does not know that schema of kernels.toml", hint=hint)


def _check_names(checked: dict[str, Any], report: Report) -> None:
    """What no table can see alone: names that are used twice, and names of targets that are not there."""
    modules = checked["module"] if isinstance(checked["module"], list) else []
    targets = list(checked["targets"]) if isinstance(checked["targets"], dict) else None
    folded: dict[str, int] = {}
    for index, module in enumerate(modules):
        if module is REFUSED:
            continue
        path: Path = ("module", index)
        name = module["name"]
        if name is not REFUSED:
            first = folded.setdefault(name.casefold(), index)
            if first != index:
                other = modules[first]["name"]
                same = f"there is a module `{other}` already"
                message = same if other == name else f"modules `{other}` and `{name}` differ only in case"
                report.at_value("GM0107", (*path, "name"), message, hint="rename one", first=("module", first, "name"))
        if targets is not None:
            _check_target_names(module, path, targets, report)


def _check_target_names(module: dict[str, Any], path: Path, targets: list[str], report: Report) -> None:
    def hint_for(name: str) -> str:
        near = close_match(name, targets)
        if near:
            return f"did you mean `{near}`?"
        return f"the targets are {listed(targets)}" if targets else f"add {name} to [targets]"

    named = module["targets"]
    if isinstance(named, tuple):
        # The list that was checked leaves out what was refused, so positions are those of the written one.
        for name in named:
            if name not in targets:
                index = _written_index(report, path, name, named)
                report.at_value(
                    "GM0108", (*path, "targets", index), f"there is no target `{name[:64]}`", hint=hint_for(name)
                )
    overrides = module["target"]
    if isinstance(overrides, dict):
        for name in overrides:
            if name not in targets:
                report.at_key(
                    "GM0108", (*path, "target", name), f"there is no target `{name[:64]}`", hint=hint_for(name)
                )
            elif isinstance(named, tuple) and name not in named:
                message = f"the module is not built for target `{name}`"
                report.at_key("GM0108", (*path, "target", name), message, hint=f"add `{name}` to its `targets`")


def _written_index(report: Report, path: Path, name: str, named: tuple[str, ...]) -> int:
    """Where the name stands in the list as it is written, which may have further elements that were refused."""
    import tomli

    for index in range(len(named) + len(report.diagnostics) + 1):
        span = report.source.spans.get((*path, "targets", index))
        if span is not None:
            written = tomli.loads("value = " + report.source.text[span.start : span.end])["value"]
            if written == name:
                return index
    return named.index(name)


def _error(report: Report) -> UserError:
    ordered = sorted(
        report.diagnostics, key=lambda found: (found.place.line, found.place.column) if found.place else (0, 0)
    )
    if len(ordered) > MOST_DIAGNOSTICS:
        more = Note(f"there are {len(ordered) - MOST_DIAGNOSTICS} more mistakes like these")
        ordered = ordered[:MOST_DIAGNOSTICS]
        ordered[-1] = replace(ordered[-1], notes=(*ordered[-1].notes, more))
    return UserError(ordered, {report.source.file: report.source.text})


def _manifest(checked: dict[str, Any], source: SourceText) -> Manifest:
    project = checked["project"]
    targets = tuple(TargetEntry(source, ("targets", name), name, target) for name, target in checked["targets"].items())
    names = tuple(target.name for target in targets)
    return Manifest(
        source,
        (),
        checked["schema"],
        ProjectTable(source, ("project",), project["name"], project["host"]),
        targets,
        tuple(_module(module, source, ("module", index), names) for index, module in enumerate(checked["module"])),
    )


def _module(module: dict[str, Any], source: SourceText, path: Path, targets: tuple[str, ...]) -> ModuleEntry:
    return ModuleEntry(
        source,
        path,
        module["name"],
        module["source"],
        module["functions"],
        targets if module["targets"] is None else module["targets"],
        module["params"],
        module["dialect"],
        module["passes"],
        BuildOptions() if module["options"] is None else BuildOptions(**module["options"]),
        module["extern"],
        {
            name: ModuleTargetEntry(
                source,
                (*path, "target", name),
                name,
                override.get("functions"),
                override.get("params", {}),
                override.get("passes"),
                override.get("options", {}),
            )
            for name, override in module["target"].items()
        },
    )
