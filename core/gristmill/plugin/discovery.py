"""Which plugins are installed, from the metadata of distributions alone: nothing of them is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

GROUP_PREFIX = "gristmill."


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a plugin comes from: what every message about it says, and what identifies it in a cache key.

    ``group`` is the entry-point group without ``gristmill.`` (empty for a plugin given as a module), ``value`` what the
    entry point names (``package.module`` or ``package.module:attribute``).
    """

    group: str
    name: str
    distribution: str
    version: str
    value: str

    def __str__(self) -> str:
        kind = {"targets": "target ", "passes": "pass ", "runtimes": "runtime "}.get(self.group, "")
        kind = kind or {"executors": "executor ", "commands": "command "}.get(self.group, "")
        if not self.distribution:
            return f"{kind}plugin {self.name!r} ({self.value})"
        return f"{kind}plugin {self.name!r} of {self.distribution} {self.version} ({self.value})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin that can be loaded: an entry point, or an object that was given directly."""

    origin: Origin
    given: Any = None
    """The plugin itself, where it was given and needs no import."""

    def goes_by(self, names: frozenset[str]) -> str:
        """Which of ``names`` this plugin goes by (its entry point's name, or its distribution's), else an empty text."""
        for own in (self.origin.name, self.origin.distribution):
            if own and normalized(own) in names:
                return own
        return ""


def normalized(name: str) -> str:
    """A name as PEP 503 compares them: lower case, with one ``-`` for any run of ``-``, ``_`` and ``.``."""
    import re

    return re.sub(r"[-_.]+", "-", name).lower()


class Installed:
    """Finds the installed plugins of a group; the metadata of all distributions is read once, when first asked."""

    def __init__(self) -> None:
        self._entries: Any = None
        self._distributions: dict[int, tuple[str, str]] = {}

    def __call__(self, group: str) -> tuple[Candidate, ...]:
        """The plugins in the entry-point group ``gristmill.<group>``, sorted by name, then distribution."""
        if self._entries is None:
            # 48 ms to import: only once plugins are really looked up.
            from importlib.metadata import entry_points

            self._entries = entry_points()
        found = [
            Candidate(Origin(group, entry.name, *self._name_and_version(entry.dist), entry.value))
            for entry in self._entries.select(group=GROUP_PREFIX + group)
        ]
        return tuple(sorted(found, key=lambda candidate: (candidate.origin.name, candidate.origin.distribution)))

    def _name_and_version(self, distribution: Any) -> tuple[str, str]:
        if distribution is None:
            return "", ""
        # By identity: the entries keep the distributions, and reading the metadata of one parses a whole file.
        key = id(distribution)
        if key not in self._distributions:
            metadata = distribution.metadata
            self._distributions[key] = str(metadata["Name"] or ""), str(metadata["Version"] or "")
        return self._distributions[key]


def given(modules: Sequence[ModuleType | Any]) -> tuple[Candidate, ...]:
    """Plugins given directly; each is asked for every hook that it implements."""
    found = []
    for module in modules:
        name = getattr(module, "__name__", type(module).__name__)
        found.append(Candidate(Origin("", name.rpartition(".")[2], "", "", name), module))
    return tuple(found)
