"""Which names a member of a pack may have: names that mean one thing, inside of one folder, on every system."""

from __future__ import annotations

from collections.abc import Iterable

from gristmill.pack.format import LONGEST_NAME, MANIFEST_NAME

_NOT_ON_WINDOWS = frozenset('\\:*?"<>|')
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})


def name_fault(name: str) -> str:
    """What is wrong with a member's name, as the end of a sentence; an empty text if nothing is."""
    if not name or len(name) > LONGEST_NAME:
        return f"has {len(name)} characters; 1 to {LONGEST_NAME} are allowed"
    if not name.isascii() or not name.isprintable():
        return "has characters other than printable ASCII"
    if bad := sorted(_NOT_ON_WINDOWS.intersection(name)):
        return f"contains {' '.join(bad)}"
    if name.startswith("/"):
        return "is absolute"
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return f"has the part `{part}`"
        if part[-1] in ". " or part[0] == " ":
            return f"has the part `{part}`, which begins or ends with a blank or ends with a dot"
        if part.split(".")[0].lower() in _DEVICES:
            return f"has the part `{part}`, which is a device on Windows"
    if name.lower() == MANIFEST_NAME:
        return "is the manifest's own"
    return ""


def clash(names: Iterable[str]) -> str:
    """Says which two of the names cannot be in one folder on every system; an empty text if all can."""
    folded: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        lower = name.lower()
        if lower in folded:
            return f"`{name}` and `{folded[lower]}` are one name where case does not count"
        folded[lower] = name
        end = lower.find("/")
        while end >= 0:
            folders.setdefault(lower[:end], name)
            end = lower.find("/", end + 1)
    for lower, name in folded.items():
        if lower in folders:
            return f"`{name}` is a file, and a folder in `{folders[lower]}`"
    return ""
