"""What shapes the values of a manifest have: texts, numbers, lists; and the report that collects what is wrong.

A shape knows how to check a value, how to say what it expects, and how to write itself as JSON Schema. Everything that
is wrong is reported, not only the first thing. Tables are in :mod:`gristmill.build.manifest_fields`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gristmill.build.manifest_positions import Path, SourceText
from gristmill.errors import Diagnostic, Note, suggestion

REFUSED: Any = object()
"""What a shape's check gives back for a value that it has reported."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")

INT64_LEAST, UINT64_MOST = -(2**63), 2**64 - 1


class Report:
    """Collects what is wrong with one document, each with its place."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    def at_value(
        self, code: str, path: Path, message: str, *, hint: str = "", label: str = "", first: Path = ()
    ) -> None:
        """Point at the value; ``first`` is the path of an earlier one that it conflicts with."""
        self._add(code, path, message, hint, label, first, key=False)

    def at_key(self, code: str, path: Path, message: str, *, hint: str = "", label: str = "", first: Path = ()) -> None:
        """Point at the key."""
        self._add(code, path, message, hint, label, first, key=True)

    def _add(self, code: str, path: Path, message: str, hint: str, label: str, first: Path, key: bool) -> None:
        find = self.source.key_place if key else self.source.value_place
        notes = (Note("the first one is here", find(first)),) if first else ()
        self.diagnostics.append(Diagnostic(code, message, find(path), label, hint, notes))


def type_name(value: Any) -> str:
    """What kind of value it is, in TOML's words."""
    match value:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a float"
        case str():
            return "a string"
        case dict():
            return "a table"
        case list():
            return "a list"
        case datetime.datetime() | datetime.date() | datetime.time():
            return "a date or time"
    return type(value).__name__


def shown(value: Any) -> str:
    """A value as the user would write it, cut where it is long."""
    match value:
        case bool():
            text = "true" if value else "false"
        case str():
            text = '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case int():
            # Python refuses to print integers of several thousand digits.
            text = str(value) if abs(value) < 10**40 else "that number"
        case list():
            text = "[" + ", ".join(shown(inner) for inner in value[:8]) + (", ..." if len(value) > 8 else "") + "]"
        case dict():
            text = "{ ... }"
        case _:
            text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def listed(words: Iterable[str]) -> str:
    """``a``, ``b`` and ``c`` in back quotes, for the end of a sentence."""
    quoted = [f"`{word}`" for word in words]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}" if quoted else "none"


class Shape:
    """What values a field may have."""

    def expected(self) -> str:
        """What is expected, to be read after "must be"."""
        raise NotImplementedError

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        """The value as it is kept, or ``REFUSED`` after reporting; ``what`` names it for the message."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """The shape as JSON Schema (draft 4 keywords only, which all editors know)."""
        raise NotImplementedError

    def refuse_type(self, value: Any, path: Path, what: str, report: Report, hint: str = "") -> Any:
        message = f"{what} must be {self.expected()}, not {type_name(value)}"
        report.at_value("GM0104", path, message, hint=hint, label=f"this is {type_name(value)}")
        return REFUSED


@dataclass(frozen=True)
class Text(Shape):
    """A string: one of ``choices`` where there are any, whole in ``pattern`` where there is one.

    ``noun`` says what the pattern means ("a C identifier"); ``code`` is what a string that doesn't fit is reported as.
    """

    choices: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    noun: str = "a string"
    rule: str = ""
    code: str = "GM0106"
    longest: int = 4096

    def expected(self) -> str:
        return self.noun

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, str):
            hint = f'write it in quotes: "{value}"' if isinstance(value, int | float) and len(shown(value)) < 30 else ""
            if isinstance(value, bool):
                hint = ""
            return self.refuse_type(value, path, what, report, hint)
        if self.choices and value not in self.choices:
            hint = suggestion(value, self.choices, f"choose one of {listed(self.choices)}")
            report.at_value("GM0105", path, f"{what} can't be {shown(value)}", hint=hint)
            return REFUSED
        if self.pattern is not None and not self.pattern.fullmatch(value):
            report.at_value(self.code, path, f"{what} is {shown(value)}, which is not {self.noun}", hint=self.rule)
            return REFUSED
        if len(value) > self.longest or "\0" in value:
            report.at_value("GM0105", path, f"{what} is too long or holds a null character", hint="shorten it")
            return REFUSED
        return value

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "string"}
        if self.choices:
            found["enum"] = list(self.choices)
        if self.pattern is not None:
            found["pattern"] = f"^(?:{self.pattern.pattern})$"
        return found


@dataclass(frozen=True)
class Integer(Shape):
    """An integer from ``least`` up to and with ``most``."""

    least: int = INT64_LEAST
    most: int = UINT64_MOST

    def expected(self) -> str:
        if (self.least, self.most) == (INT64_LEAST, UINT64_MOST):
            return "an integer"
        return f"an integer from {self.least} to {self.most}"

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            hint = ""
            if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,20}", value):
                hint = f"write it without quotes: {int(value)}"
            elif isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
                hint = f"write it without the point: {int(value)}"
            return self.refuse_type(value, path, what, report, hint)
        if not self.least <= value <= self.most:
            message = f"{what} is {shown(value)}, which is out of range"
            report.at_value("GM0105", path, message, hint=f"the least is {self.least}, the most is {self.most}")
            return REFUSED
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Float(Shape):
    """A float, or an integer that is taken as one."""

    def expected(self) -> str:
        return "a number"

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self.refuse_type(value, path, what, report)
        try:
            return float(value)
        except OverflowError:
            report.at_value("GM0105", path, f"{what} is too large for a float", hint="write it with an exponent")
            return REFUSED

    def schema(self) -> dict[str, Any]:
        return {"type": "number"}


@dataclass(frozen=True)
class Boolean(Shape):
    """``true`` or ``false``."""

    def expected(self) -> str:
        return "true or false"

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if isinstance(value, bool):
            return value
        hint = ""
        if isinstance(value, str) and value.lower() in {"true", "false", "yes", "no", "on", "off"}:
            hint = f"write {'true' if value.lower() in {'true', 'yes', 'on'} else 'false'} without quotes"
        elif value in (0, 1):
            hint = f"write {'true' if value else 'false'}"
        return self.refuse_type(value, path, what, report, hint)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class ListOf(Shape):
    """A list whose elements all have one shape; ``unique`` refuses an element given twice."""

    element: Shape
    noun: str = "a list of strings"
    least: int = 0
    most: int = 10_000
    unique: bool = True

    def expected(self) -> str:
        return self.noun

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        if not isinstance(value, list):
            hint = f"write a list: [{shown(value)}]" if isinstance(value, str | int | float) else ""
            return self.refuse_type(value, path, what, report, hint)
        if len(value) < self.least:
            report.at_value(
                "GM0117", path, f"{what} is empty", hint="leave the key out for the default, or name at least one"
            )
            return REFUSED
        if len(value) > self.most:
            report.at_key("GM0114", path, f"{what} has {len(value)} elements; the most is {self.most}", hint="split it")
            return REFUSED
        kept: list[Any] = []
        seen: dict[Any, int] = {}
        for index, inner in enumerate(value):
            checked = self.element.check(inner, (*path, index), f"an element of {what}", report)
            if checked is REFUSED:
                continue
            if self.unique and checked in seen:
                message = f"{shown(checked)} occurs twice in {what}"
                report.at_value("GM0107", (*path, index), message, hint="remove one", first=(*path, seen[checked]))
                continue
            if self.unique:
                seen[checked] = index
            kept.append(checked)
        return tuple(kept)

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "array", "items": self.element.schema(), "minItems": self.least}
        if self.unique:
            found["uniqueItems"] = True
        return found


@dataclass(frozen=True)
class OneOf(Shape):
    """A value of one of several shapes, told apart by its type alone."""

    shapes: tuple[tuple[type, Shape], ...]
    noun: str

    def expected(self) -> str:
        return self.noun

    def check(self, value: Any, path: Path, what: str, report: Report) -> Any:
        for kind, shape in self.shapes:
            if type(value) is kind:
                return shape.check(value, path, what, report)
        return self.refuse_type(value, path, what, report)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [shape.schema() for _, shape in self.shapes]}
