"""Exchanges between the threads of a block that run side by side: who gets what, once all of a group have come.

A thread that comes to an exchange gives an :class:`Exchange` to the scheduler of :mod:`gristmill.interp.threads` and
waits. Operations and groups: :data:`gristmill.ir.op.WARP`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a thread brings: where it stands, the operation and its width, the value, the lane operand (0 for votes)."""

    site: int
    operation: str
    width: int
    value: Any
    lane: int = 0


class EndedLane(Exception):
    """A lane is read whose thread has ended, so that it has no value."""

    def __init__(self, reader: int, source: int) -> None:
        super().__init__(reader, source)
        self.reader = reader
        self.source = source


Source = Callable[[int, Exchange], int]

_SOURCES: Mapping[str, Source] = {
    "warp_shuffle": lambda lane, brought: brought.lane % brought.width,
    "warp_shuffle_xor": lambda lane, brought: lane ^ brought.lane,
    "warp_shuffle_up": lambda lane, brought: lane - brought.lane,
    "warp_shuffle_down": lambda lane, brought: lane + brought.lane,
}
"""The lane that a lane reads."""


def exchanged(group: Sequence[Exchange | None]) -> list[Any]:
    """What each lane gets, given what each has brought (None: its thread has ended; it gets None).

    All have brought the same operation, from the same place. Raises EndedLane.
    """
    there = [brought for brought in group if brought is not None]
    operation = there[0].operation
    source = _SOURCES.get(operation)
    if source is not None:
        return [None if brought is None else _read(group, lane, brought, source) for lane, brought in enumerate(group)]
    vote: Any
    if operation == "warp_ballot":
        vote = sum(1 << lane for lane, brought in enumerate(group) if brought is not None and brought.value)
    else:
        vote = (any if operation == "warp_any" else all)(brought.value for brought in there)
    return [None if brought is None else vote for brought in group]


def _read(group: Sequence[Exchange | None], lane: int, brought: Exchange, source: Source) -> Any:
    place = source(lane, brought)
    if not 0 <= place < len(group):
        return brought.value
    found = group[place]
    if found is None:
        raise EndedLane(lane, place)
    return found.value


def alone(operation: str, text: str) -> str:
    """The text of what a thread gets that is alone in its group, from the text of its value."""
    return f"int({text})" if operation == "warp_ballot" else text
