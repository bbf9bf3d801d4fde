"""Descriptions of tables, and how a parsed document is checked against them.

A :class:`Table` lists the :class:`Field` entries it may have, each with its shape
(:mod:`gristmill.build.manifest_shapes`). The tables of ``kernels.toml`` are in :mod:`gristmill.build.manifest_tables`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gristmill.build.manifest_positions import Path
from gristmill.build.manifest_shapes import IDENTIFIER, REFUSED, Report, Shape, listed, shown
from gristmill.errors import suggestion


@dataclass(frozen=True)
class MapOf(Shape):
    """A table whose keys the user chooses; each key is in ``pattern``, each value has the one shape."""

    element: Shape
    noun: str
    key_noun: str
    pattern: re.Pattern[str] = IDENTIFIER
    key_rule: str = "use letters, digits and `_`, and begin with a letter"
    unique_without_case: bool = False
    least: int = 0
    most: int = 10_000

    def expected(self) -> str:
        return self.noun

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, dict):
            return self.refuse_type(value, path, what, report)
        if len(value) < self.least:
            report.at_value("GM0117", path, f"{what} is empty", hint="add one")
        if len(value) > self.most:
            report.at_key("GM0114", path, f"{what} has {len(value)} entries; the most is {self.most}", hint="split it")
            return REFUSED
        kept: dict[str, Any] = {}
        folded: dict[str, str] = {}
        for key, inner in value.items():
            inner_path = (*path, key)
            if not self.pattern.fullmatch(key):
                report.at_key("GM0106", inner_path, f"{shown(key)} is not {self.key_noun}", hint=self.key_rule)
            elif self.unique_without_case and key.casefold() in folded:
                other = folded[key.casefold()]
                message = f"`{key}` and `{other}` differ only in case"
                report.at_key("GM0107", inner_path, message, hint="rename one", first=(*path, other))
            folded.setdefault(key.casefold(), key)
            kept[key] = self.element.check(inner, inner_path, f"`{key}` in {what}", report)
        return kept

    def schema(self) -> dict[str, Any]:
        pattern = f"^(?:{self.pattern.pattern})$"
        found: dict[str, Any] = {"type": "object", "patternProperties": {pattern: self.element.schema()}}
        return found | {"additionalProperties": False, "minProperties": self.least}


@dataclass(frozen=True)
class Field:
    """One key of a table.

    ``default`` is what the result holds where the key is absent; a ``required`` key has none. ``doc`` is one sentence
    for the reference and the editor. ``example`` is a value as it is written in TOML, for the hint of a missing key.
    """

    name: str
    shape: Shape
    doc: str
    default: Any = None
    required: bool = False
    example: str = ""


@dataclass(frozen=True)
class Table(Shape):
    """A table with known keys. Any other key is an error.

    The result of a check has every known key; what was refused or lacks is ``REFUSED`` in it.
    """

    title: str
    fields: tuple[Field, ...]
    doc: str = ""
    fills_defaults: bool = True
    """Whether absent keys take their defaults; where not, the result holds only what is written (an override)."""
    named_by: str = ""
    """The key whose value tells this table from its like in messages (`name` of a module)."""

    def expected(self) -> str:
        return "a table"

    def names(self) -> list[str]:
        return [entry.name for entry in self.fields]

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, dict):
            return self.refuse_type(value, path, what, report)
        title = self.title
        if self.named_by and isinstance(value.get(self.named_by), str):
            title = f"{title} `{value[self.named_by][:64]}`"
        self._refuse_unknown(value, path, title, report)
        kept: dict[str, Any] = {}
        for entry in self.fields:
            if entry.name in value:
                inner = f"`{entry.name}` in {title}" if path else f"`{entry.name}`"
                kept[entry.name] = entry.shape.check(value[entry.name], (*path, entry.name), inner, report)
            elif entry.required:
                hint = f"add {entry.example}" if entry.example else f"add `{entry.name}`: {entry.doc}"
                report.at_value("GM0103", path, f"{title} lacks the key `{entry.name}`", hint=hint)
                kept[entry.name] = REFUSED
            elif self.fills_defaults:
                kept[entry.name] = entry.default
        return kept

    def _refuse_unknown(self, value: dict[str, Any], path: Path, title: str, report: Report) -> None:
        known = self.names()
        for key in value:
            if key not in known:
                hint = suggestion(key, known, f"its keys are {listed(known)}")
                message = f"unknown key {listed([key[:64]])} in {title}"
                report.at_key("GM0102", (*path, key), message, hint=hint, label="not a key here")

    def schema(self) -> dict[str, Any]:
        properties = {}
        for entry in self.fields:
            properties[entry.name] = entry.shape.schema() | {"description": entry.doc}
            if isinstance(entry.default, bool | int | float | str):
                properties[entry.name]["default"] = entry.default
        found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.doc:
            found["description"] = self.doc
        required = [entry.name for entry in self.fields if entry.required]
        if required:
            found["required"] = required
        return found


@dataclass(frozen=True)
class TableList(Shape):
    """A list of tables, written ``[[name]]``."""

    element: Table
    header: str
    least: int = 1
    most: int = 10_000

    def expected(self) -> str:
        return f"a list of tables, each begun with {self.header}"

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, list):
            return self.refuse_type(value, path, what, report, hint=f"write {self.header}, with double brackets")
        if len(value) < self.least:
            report.at_value("GM0117", path, f"{what} is empty", hint=f"add a {self.header}")
            return REFUSED
        if len(value) > self.most:
            message = f"{what} has {len(value)} tables; the most is {self.most}"
            report.at_key("GM0114", path, message, hint="split the project")
            return REFUSED
        return [
            self.element.check(inner, (*path, index), f"{self.header}", report) for index, inner in enumerate(value)
        ]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.element.schema(), "minItems": self.least}
