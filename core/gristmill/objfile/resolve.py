"""Decides what every symbol of several objects stands for.

The rules are those of the System V ABI, chapter 4: a strong definition beats a common one, that beats a weak one; of
equals among weak ones the first object wins; the most constraining visibility counts. Of COMDAT groups with one
signature the first is kept. A library of ours binds its own symbols inside: no other library can replace them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from gristmill.errors import Diagnostic, UserError
from gristmill.objfile import constants as elf
from gristmill.objfile.reader import ObjectFile, Symbol, malformed


class Strength(IntEnum):
    """How strongly a name is defined; the strongest definition wins."""

    NONE = 0
    WEAK = 1
    COMMON = 2
    STRONG = 3


@dataclass(eq=False, slots=True)
class Global:
    """One name that the objects share: who defines it, with what visibility, and whether someone must have it."""

    name: str
    strength: Strength = Strength.NONE
    owner: int = -1
    symbol: Symbol | None = None
    visibility: int = elf.STV_DEFAULT
    wanted: bool = False
    """Some object refers to it strongly."""
    asked_by: int = -1
    """The first object that refers to it without defining it."""
    common_size: int = 0
    common_alignment: int = 1

    @property
    def is_visible(self) -> bool:
        return self.visibility in (elf.STV_DEFAULT, elf.STV_PROTECTED)


@dataclass(slots=True)
class Resolution:
    """The names of a link, and the (object, section) pairs that lost against an equal COMDAT group."""

    names: dict[str, Global] = field(default_factory=dict)
    discarded: set[tuple[int, int]] = field(default_factory=set)


def resolve(objects: Sequence[ObjectFile]) -> Resolution:
    """Resolves the names of ``objects``.

    Raises ``UserError`` GM0704 naming every symbol with two strong definitions and both objects, GM0707 and GM0708 for
    thread-local symbols and for functions chosen by code that runs at load time.
    """
    found = Resolution(discarded=_discarded_groups(objects))
    duplicates: list[Diagnostic] = []
    for number, owner in enumerate(objects):
        for symbol in owner.symbols[1:]:
            _refuse_kind(owner, symbol)
            if symbol.binding == elf.STB_LOCAL:
                continue
            if not symbol.name:
                raise malformed(owner.name, f"global symbol {symbol.index} has no name")
            entry = found.names.get(symbol.name)
            if entry is None:
                entry = found.names[symbol.name] = Global(symbol.name)
            if symbol.visibility != elf.STV_DEFAULT:
                entry.visibility = min(entry.visibility or symbol.visibility, symbol.visibility)
            strength = _strength(symbol, (number, symbol.section) in found.discarded)
            if strength == Strength.NONE:
                entry.wanted = entry.wanted or symbol.binding == elf.STB_GLOBAL
                entry.asked_by = number if entry.asked_by < 0 else entry.asked_by
            elif strength == Strength.STRONG == entry.strength:
                duplicates.append(
                    Diagnostic(
                        "GM0704",
                        f"symbol `{symbol.name}` is defined twice: by {objects[entry.owner].name} and by {owner.name}",
                        hint="rename one of the two functions, or make one private to its module",
                    )
                )
            elif strength > entry.strength:
                entry.strength, entry.owner, entry.symbol = strength, number, symbol
            if strength == Strength.COMMON:
                # The value of a common symbol is its alignment.
                if symbol.value & (symbol.value - 1):
                    raise malformed(owner.name, f"common symbol `{symbol.name}` has alignment {symbol.value}")
                entry.common_size = max(entry.common_size, symbol.size)
                entry.common_alignment = max(entry.common_alignment, symbol.value)
    if duplicates:
        raise UserError(duplicates)
    return found


def _strength(symbol: Symbol, is_discarded: bool) -> Strength:
    if symbol.section == elf.SHN_UNDEF or is_discarded:
        return Strength.NONE
    if symbol.section == elf.SHN_COMMON:
        return Strength.COMMON
    return Strength.WEAK if symbol.binding == elf.STB_WEAK else Strength.STRONG


def _refuse_kind(owner: ObjectFile, symbol: Symbol) -> None:
    if symbol.binding > elf.STB_WEAK:
        raise UserError(
            Diagnostic(
                "GM0710",
                f"symbol `{symbol.name}` of {owner.name} has binding {symbol.binding}, which cannot be linked",
                hint="use local, global or weak symbols",
            )
        )
    if symbol.kind == elf.STT_TLS:
        raise UserError(
            Diagnostic(
                "GM0707",
                f"symbol `{symbol.name}` of {owner.name} is thread-local; packs have no thread-local storage",
                hint="pass per-thread data as an argument",
            )
        )
    if symbol.kind == elf.STT_GNU_IFUNC:
        raise UserError(
            Diagnostic(
                "GM0708",
                f"symbol `{symbol.name}` of {owner.name} is chosen by code that runs at load time (ifunc)",
                hint="build one variant per CPU; the loader chooses between variants of a pack",
            )
        )


def _discarded_groups(objects: Sequence[ObjectFile]) -> set[tuple[int, int]]:
    kept: set[str] = set()
    discarded: set[tuple[int, int]] = set()
    for number, owner in enumerate(objects):
        for section in owner.sections:
            if section.kind != elf.SHT_GROUP:
                continue
            if section.size < 4 or section.size % 4 or section.info >= len(owner.symbols):
                raise malformed(owner.name, f"section group {section.index}")
            flags, *members = struct.unpack(f"<{section.size // 4}I", section.data)
            if any(not 0 < member < len(owner.sections) for member in members):
                raise malformed(owner.name, f"section group {section.index} names a section that does not exist")
            signature = owner.symbols[section.info].name
            if flags & elf.GRP_COMDAT:
                if signature in kept:
                    discarded.update((number, member) for member in members)
                kept.add(signature)
    return discarded
