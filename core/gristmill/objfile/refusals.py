"""What the linker says when it cannot go on: undefined symbols, missing exports, relocations that it does not take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from gristmill.errors import Diagnostic, Note, UserError, close_match
from gristmill.objfile.machine import Machine
from gristmill.objfile.reader import ObjectFile, Relocation
from gristmill.objfile.resolve import Global


def undefined_symbol(entry: Global, objects: Sequence[ObjectFile], allowed: Collection[str]) -> Diagnostic:
    """What to say about a name that nobody defines and that may not be imported."""
    asking = objects[entry.asked_by].name if entry.asked_by >= 0 else "an object"
    if entry.name in allowed:
        return Diagnostic(
            "GM0703",
            f"symbol `{entry.name}` is asked for by {asking} as a hidden one, and no object of this link defines it",
            hint="a hidden symbol cannot come from outside: declare it with default visibility",
        )
    may = ", ".join(f"`{name}`" for name in sorted(allowed)[:8]) or "nothing"
    return Diagnostic(
        "GM0703",
        f"symbol `{entry.name}` is asked for by {asking} and defined nowhere",
        hint="define it in one of the objects, or declare it as an extern symbol with its library",
        notes=(Note(f"may be imported here: {may}{', ...' if len(allowed) > 8 else ''}"),),
    )


def missing_export(name: str, names: Mapping[str, Global], objects: Sequence[ObjectFile]) -> UserError:
    """The error for a name that is to be exported and cannot be."""
    entry = names.get(name)
    if entry is not None and entry.strength:
        return UserError(
            Diagnostic(
                "GM0709",
                f"`{name}` is to be exported, but {objects[entry.owner].name} defines it as hidden",
                hint="give the function default visibility, or take it off the exports",
            )
        )
    defined = [other.name for other in names.values() if other.strength and other.is_visible]
    close = close_match(name, defined)
    return UserError(
        Diagnostic(
            "GM0709",
            f"`{name}` is to be exported, but no object defines it",
            hint=f"there is `{close}`" if close else "define the function, or take it off the exports",
        )
    )


def refused_relocation(machine: Machine, owner: ObjectFile, section: int, relocation: Relocation) -> UserError:
    """The error for a relocation that no rule of the machine links."""
    shown = owner.symbols[relocation.symbol].name or "a section"
    at = f"{owner.name}, {owner.sections[section].name}+{relocation.offset:#x}"
    if name := machine.thread_local.get(relocation.kind):
        return UserError(
            Diagnostic(
                "GM0707",
                f"{at}: {name} reaches thread-local `{shown}`; packs have no thread-local storage",
                hint="pass per-thread data as an argument",
            )
        )
    if name := machine.position_dependent.get(relocation.kind):
        return UserError(
            Diagnostic(
                "GM0706",
                f"{at}: {name} against `{shown}` needs the library at a fixed address",
                hint="generate position-independent code (LLVM: reloc=pic)",
            )
        )
    return UserError(
        Diagnostic(
            "GM0705",
            f"{at}: relocation {relocation.kind} of {machine.name} against `{shown}` is not known",
            hint="known: " + ", ".join(rule.name for rule in machine.rules.values()),
        )
    )
