"""The tables of ``kernels.toml``, schema 1: which keys there are, what values they take, what they mean.

The keys of a target's table come from the installed target kinds: the core knows none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.build.manifest_fields import Field, MapOf, Table, TableList
from gristmill.build.manifest_positions import Path
from gristmill.build.manifest_shapes import (
    IDENTIFIER,
    NAME,
    REFUSED,
    Boolean,
    Float,
    Integer,
    ListOf,
    OneOf,
    Report,
    Shape,
    Text,
    listed,
    shown,
)
from gristmill.errors import PluginError, close_match
from gristmill.ir.target import Target, parse_target
from gristmill.passes.index_widths import AUTO, WIDTHS
from gristmill.plugin.protocols import KeyDescription, TargetKind
from gristmill.script.dialects import DIALECTS

SCHEMA = 1
DEFAULT_HOST = ("x86-64-v2",)

_NAME_RULE = "use letters, digits, `_` and `-`, begin with a letter, at most 64 characters"
_IDENTIFIER_RULE = "use letters, digits and `_`, and begin with a letter"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PASS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}(\.[A-Za-z_][A-Za-z0-9_-]{0,63}){0,7}")
_LIBRARY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")
_TARGET_RULE = 'write "kind", "kind:arch" or "kind:arch+feature", such as "cpu:x86-64-v3"'


@dataclass(frozen=True)
class SourcePath(Shape):
    """A path inside the project: relative, with forward slashes, without ``..``."""

    def expected(self) -> str:
        return "a path inside the project"

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, str):
            return self.refuse_type(value, path, what, report)
        parts = [part for part in value.split("/") if part not in ("", ".")]
        wrong = hint = ""
        if not parts or len(value) > 1024 or any(not character.isprintable() for character in value):
            wrong, hint = "is not the path of a file", 'write a path such as "kernels/blur.py"'
        elif "\\" in value:
            wrong, hint = "has a backslash", f"write it with forward slashes: {shown(value.replace(chr(92), '/'))}"
        elif value.startswith(("/", "~")) or re.match(r"[A-Za-z]:", value):
            wrong, hint = "is not relative to the project", "write it relative to the folder of kernels.toml"
        elif ".." in parts:
            wrong, hint = "leaves the project", "move the file into the folder of kernels.toml, or the manifest up"
        if wrong:
            report.at_value("GM0111", path, f"{what} is {shown(value)}, which {wrong}", hint=hint)
            return REFUSED
        return "/".join(parts)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


def _key_shape(key: KeyDescription) -> Shape:
    match key.type:
        case "string":
            return Text(choices=key.choices)
        case "integer":
            return Integer()
        case "number":
            return Float()
        case "boolean":
            return Boolean()
        case "strings":
            return ListOf(Text(choices=key.choices))
    raise PluginError(f"the target key `{key.name}` has the unknown type `{key.type}`")


def kind_table(kind: TargetKind) -> Table:
    """The table of a target of this kind: what every target has, then the kind's own keys."""
    own = tuple(Field(key.name, _key_shape(key), key.meaning) for key in kind.keys)
    return Table(f"target kind `{kind.name}`", (*_TARGET_FIELDS, *own), kind.summary, fills_defaults=False)


@dataclass(frozen=True)
class TargetShape(Shape):
    """A target: a string ``kind:arch+feature``, or a table with ``kind`` and that kind's keys.

    A check gives a :class:`~gristmill.ir.target.Target`; the keys of a table become its options.
    """

    kinds: Mapping[str, TargetKind]

    def expected(self) -> str:
        return "a target string or a table with `kind`"

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if isinstance(value, str):
            try:
                target = parse_target(value)
            except ValueError:
                report.at_value("GM0110", path, f"{shown(value)} is not a target", hint=_TARGET_RULE)
                return REFUSED
            return target if self.knows(target.kind, path, report) else REFUSED
        if not isinstance(value, dict):
            return self.refuse_type(value, path, what, report, hint=_TARGET_RULE)
        kind = value.get("kind")
        if kind is None:
            # The other keys can't be judged without it.
            hint = f'add kind = "...", one of {listed(sorted(self.kinds))}'
            report.at_value("GM0103", path, f"{what} lacks the key `kind`", hint=hint)
            return REFUSED
        kind = Text(noun="a target kind's name").check(kind, (*path, "kind"), f"`kind` in {what}", report)
        if kind is REFUSED or not self.knows(kind, (*path, "kind"), report):
            return REFUSED
        keys = kind_table(self.kinds[kind]).check(value, path, what, report)
        if REFUSED in keys.values():
            return REFUSED
        options = {name: key for name, key in keys.items() if name not in {"kind", "arch", "features"}}
        return Target(
            kind,
            keys.get("arch", ""),
            keys.get("features", ()),
            tuple((name, ",".join(key) if isinstance(key, tuple) else key) for name, key in sorted(options.items())),
        )

    def knows(self, kind: str, path: Path, report: Report) -> bool:
        if kind in self.kinds:
            return True
        near = close_match(kind, list(self.kinds))
        if near:
            hint = f"did you mean `{near}`?"
        else:
            hint = f"the installed kinds are {listed(sorted(self.kinds))}; `gristmill targets` shows them"
        report.at_value("GM0109", path, f"there is no target kind `{kind[:64]}`", hint=hint)
        return False

    def schema(self) -> dict[str, Any]:
        tables = []
        for name, kind in sorted(self.kinds.items()):
            found = kind_table(kind).schema()
            found["properties"]["kind"] = {"type": "string", "enum": [name]}
            tables.append(found)
        return {"anyOf": [{"type": "string"}, *tables]}


_TARGET_WORD = Text(
    pattern=re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?"),
    noun="the name of an architecture or a feature",
    rule="use letters, digits, `.`, `_` and `-`",
)
_TARGET_FIELDS = (
    Field("kind", Text(), "The kind of target; what comes before the colon in a target string.", required=True),
    Field("arch", _TARGET_WORD, "The architecture; what comes after the colon in a target string."),
    Field("features", ListOf(_TARGET_WORD), "Features, each as after a `+` in a target string."),
)
_FUNCTION = Text(pattern=IDENTIFIER, noun="a function's name", rule=_IDENTIFIER_RULE)
_NUMBERS = ListOf(
    OneOf(((int, Integer()), (float, Float())), "a number"), noun="a list of numbers", most=65_536, unique=False
)
_PARAMETER = OneOf(
    ((bool, Boolean()), (int, Integer()), (float, Float()), (str, Text(longest=65_536)), (list, _NUMBERS)),
    "a number, a boolean, a string or a list of numbers",
)
_PARAMETERS = MapOf(_PARAMETER, noun="a table of values", key_noun="the name of a constant")
_PASSES = ListOf(
    Text(pattern=_PASS_NAME, noun="a pass's name", rule='write it as the plugin does, such as "acme.prefetch"'),
    noun="a list of pass names",
)
_OPTION_FIELDS = (
    Field("opt_level", Integer(0, 3), "How hard the code generator tries, from 0 to 3.", default=3),
    Field("fast_math", Boolean(), "Let floats be contracted and reassociated; results may differ.", default=False),
    Field(
        "texts",
        ListOf(Text(noun="a kind of text", rule='write it as `gristmill targets` does, such as "assembly"')),
        "Texts for people that packs keep besides the IR, such as `assembly`.",
        default=(),
    ),
    Field(
        "indices",
        Text(choices=WIDTHS),
        "What kernels of devices compute indices in: 64 bits (`wide`), 32 (`narrow`), either as it fits (`both`).",
        default=AUTO,
    ),
)

OVERRIDES = Table(
    "[module.target.NAME]",
    (
        Field("functions", ListOf(_FUNCTION, noun="a list of function names", least=1), "Functions for this target."),
        Field("params", _PARAMETERS, "Constants for this target, over those of the module."),
        Field("passes", _PASSES, "Passes for this target, instead of those of the module."),
        Field(
            "options",
            Table("`options`", _OPTION_FIELDS, fills_defaults=False),
            "Options for this target, over those of the module.",
        ),
    ),
    "What is different for one target.",
    fills_defaults=False,
)

MODULE = Table(
    "[[module]]",
    (
        Field(
            "name",
            Text(pattern=NAME, noun="a module's name", rule=_NAME_RULE),
            "The name of the module and of its pack.",
            required=True,
            example='name = "..."',
        ),
        Field(
            "source",
            SourcePath(),
            "The Python file with the kernels, relative to kernels.toml.",
            required=True,
            example='source = "kernels/....py"',
        ),
        Field(
            "functions",
            ListOf(_FUNCTION, noun="a list of function names", least=1),
            "The functions to build; every public one where absent.",
        ),
        Field(
            "targets",
            ListOf(Text(noun="a target's name"), noun="a list of target names", least=1),
            "The targets to build for, by name; all where absent.",
        ),
        Field("params", _PARAMETERS, "Values for module-level constants of the source.", default={}),
        Field("dialect", Text(choices=DIALECTS), "How the source is spelled.", default=DIALECTS[0]),
        Field("passes", _PASSES, "Optional passes of plugins to run, by name, in this order.", default=()),
        Field("options", Table("`options`", _OPTION_FIELDS), "Options of the code generators."),
        Field(
            "extern",
            MapOf(
                Text(
                    pattern=_LIBRARY,
                    noun="a library's file name",
                    rule='write the plain file name, such as "libm.so.6"',
                    code="GM0118",
                ),
                noun="a table of symbol = library",
                key_noun="a C symbol",
            ),
            "Foreign symbols that kernels may call, each with the library that has it.",
            default={},
        ),
        Field(
            "target",
            MapOf(OVERRIDES, noun="a table", key_noun="a target's name", pattern=NAME, key_rule=_NAME_RULE),
            "What is different for one target: [module.target.NAME].",
            default={},
        ),
    ),
    "One pack: a source, its functions, and the targets they are built for.",
    named_by="name",
)


def manifest_table(kinds: Mapping[str, TargetKind]) -> Table:
    """The whole document, for these target kinds. Which hosts there is code for is asked when a build is planned."""
    host = Text(pattern=_WORD, noun="a host's name", rule='write a name such as "x86-64-v2"')
    project = Table(
        "[project]",
        (
            Field(
                "name",
                Text(pattern=NAME, noun="a project's name", rule=_NAME_RULE),
                "The project's name.",
                required=True,
                example='name = "..."',
            ),
            Field(
                "host",
                ListOf(host, noun="a list of host names", least=1),
                "The machines that the host parts are compiled for.",
                default=DEFAULT_HOST,
            ),
        ),
        "What holds for the whole project.",
    )
    targets = MapOf(
        TargetShape(kinds),
        noun="a table of name = target",
        key_noun="a target's name",
        pattern=NAME,
        key_rule=_NAME_RULE,
        unique_without_case=True,
        least=1,
    )
    return Table(
        "the manifest",
        (
            Field(
                "schema",
                Integer(),
                "The number of the manifest's format.",
                required=True,
                example=f"schema = {SCHEMA} as the first line",
            ),
            Field("project", project, project.doc, required=True, example='a table: [project] with name = "..."'),
            Field(
                "targets",
                targets,
                "The machines to build for: name = target string, or a table.",
                required=True,
                example='a table: [targets] with, for example, cpu = "cpu:x86-64-v3"',
            ),
            Field(
                "module",
                TableList(MODULE, "[[module]]"),
                MODULE.doc,
                required=True,
                example="a table: [[module]] with name and source",
            ),
        ),
        "kernels.toml: the kernels of a project and the machines they are built for.",
    )


def manifest_schema(kinds: Mapping[str, TargetKind]) -> dict[str, Any]:
    """JSON Schema of ``kernels.toml`` for editors, with the tables of these target kinds."""
    found = manifest_table(kinds).schema()
    found["properties"]["schema"] = {"type": "integer", "enum": [SCHEMA]}
    return {"$schema": "http://json-schema.org/draft-04/schema#", "title": "kernels.toml", **found}
