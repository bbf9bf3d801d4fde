"""The text form of passes: ``unroll_loops{limit=8},simplify``, read and printed back.

A pass is a frozen dataclass, so its text is its name and those fields that differ from their defaults. Values are
integers, floats, ``true`` and ``false``, words, targets, and lists of words joined by ``|``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any, get_type_hints

from gristmill.errors import Diagnostic, UserError, suggestion
from gristmill.ir.target import Target, parse_target
from gristmill.plugin.protocols import Pass, PassContext

Maker = Callable[..., Pass]
"""What makes a pass from its options: a pass class, or a function of no arguments for a pass of a plugin."""

_STEP = re.compile(r"\s*(?P<name>[A-Za-z_][\w.-]*)\s*(?:\{(?P<options>[^{}]*)\})?\s*(?P<rest>,|$)")
_OPTION = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>[^,]*?)\s*")


def print_pass(work: Pass) -> str:
    """The text of a pass: its name, and in braces the options that are not the default."""
    if not is_dataclass(work):
        return work.name
    shown = [
        f"{field.name}={_print_value(value)}"
        for field in fields(work)
        if (value := getattr(work, field.name)) != _default(field)
    ]
    return f"{work.name}{{{', '.join(shown)}}}" if shown else work.name


def parse_passes(text: str, known: Mapping[str, Maker], context: PassContext | None = None) -> tuple[Pass, ...]:
    """The passes that ``text`` names, in order.

    A core pass class is made from ``context`` where it depends on the target and one is given; stated options win.
    Raises UserError: GM0601 for text of another form, GM0602 for an unknown pass, GM0603 for an option that the pass
    does not have or a value of the wrong type.
    """
    found: list[Pass] = []
    position = 0
    while position < len(text) or not found:
        match = _STEP.match(text, position)
        if match is None or (match["rest"] == "," and match.end() == len(text)):
            raise UserError(
                Diagnostic(
                    "GM0601",
                    f"`{text[position:]}` is not a list of passes",
                    hint="write names with options in braces, as in `unroll_loops{limit=8},simplify`",
                )
            )
        found.append(_make(match["name"], match["options"] or "", known, context))
        position = match.end()
    return tuple(found)


def unknown_pass(name: str, known: Mapping[str, object] | tuple[str, ...]) -> UserError:
    """The error for a name that is none of the known passes."""
    names = sorted(known)
    listed = f"the passes are {', '.join(names)}" if names else "no installed plugin offers passes to choose"
    hint = suggestion(name, names, listed)
    return UserError(Diagnostic("GM0602", f"there is no pass named `{name}`", hint=hint))


def _make(name: str, options: str, known: Mapping[str, Maker], context: PassContext | None) -> Pass:
    maker = known.get(name)
    if maker is None:
        raise unknown_pass(name, known)
    stated = _parse_options(name, options)
    if not is_dataclass(maker):
        made = maker()
        if not stated:
            return made
        if not is_dataclass(made):
            raise _wrong_option(name, next(iter(stated)), "it takes no options here")
        return replace(made, **_values(name, stated, type(made)))
    values = _values(name, stated, maker)
    derived = maker.values_for(context) if context is not None and hasattr(maker, "values_for") else {}
    return maker(**{**derived, **values})


def _values(name: str, stated: Mapping[str, str], kind: Any) -> dict[str, Any]:
    """The values of the options that a text states for a pass class."""
    hints = get_type_hints(kind)
    own = {field.name: hints[field.name] for field in fields(kind)}
    for key in stated:
        if key not in own:
            takes = f"it takes {', '.join(own)}" if own else "it takes none"
            raise _wrong_option(name, key, takes)
    return {key: _parse_value(name, key, value, own[key]) for key, value in stated.items()}


def _parse_options(name: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        match = _OPTION.fullmatch(part)
        if match is None:
            raise UserError(
                Diagnostic(
                    "GM0601",
                    f"`{part.strip()}` is not an option of pass `{name}`",
                    hint=f"write `{name}{{key=value, ...}}`",
                )
            )
        found[match["key"]] = match["value"]
    return found


def _wrong_option(name: str, key: str, hint: str) -> UserError:
    return UserError(Diagnostic("GM0603", f"pass `{name}` has no option `{key}`", hint=hint))


def _parse_value(name: str, key: str, text: str, kind: Any) -> Any:
    if kind is bool and text in ("true", "false"):
        return text == "true"
    if kind is str:
        return text
    if kind == tuple[str, ...]:
        return tuple(word for word in text.split("|") if word)
    if kind is int or kind is float:
        try:
            return kind(text)
        except ValueError:
            pass
    if kind == (Target | None):
        try:
            return parse_target(text)
        except ValueError:
            kind = Target
    expected = "true or false" if kind is bool else f"a value of type {kind.__name__}"
    raise UserError(
        Diagnostic("GM0603", f"option `{key}` of pass `{name}` can't be `{text}`", hint=f"it takes {expected}")
    )


def _print_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "|".join(value)
    return str(value)


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default
