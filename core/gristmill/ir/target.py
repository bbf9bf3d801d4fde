"""The identity of a target: ``kind[:arch][+feature...]``, as ``cpu:x86-64-v3`` or ``amdgpu:gfx942``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?"
_TARGET = re.compile(rf"(?P<kind>{_WORD})(?::(?P<arch>{_WORD}))?(?P<features>(?:\+{_WORD})*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """What machine code is made for, compared by value.

    The kind belongs to a plugin, which also knows what arch, features and ``options`` (keys of its manifest table
    beyond the target string, sorted by name) mean. Core never looks into them.
    """

    kind: str
    arch: str = ""
    features: tuple[str, ...] = ()
    options: tuple[tuple[str, str | int | float | bool], ...] = ()

    def __str__(self) -> str:
        arch = f":{self.arch}" if self.arch else ""
        return self.kind + arch + "".join(f"+{feature}" for feature in self.features)


def parse_target(text: str) -> Target:
    """The target that ``text`` names. Raises ValueError with the expected form for any other text."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not of the form kind[:arch][+feature...], as in 'cpu:x86-64-v3'")
    features = tuple(match["features"].split("+")[1:])
    return Target(match["kind"], match["arch"] or "", features)
