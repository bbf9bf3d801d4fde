"""What the linker must know of a machine: its relocations, its call stubs, the names of its dynamic relocations.

A machine is data: one file beside this one (``x86_64.py``) makes one :class:`Machine`, and ``machines.py`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class Reach(Enum):
    """What a relocation wants the address of."""

    NOTHING = auto()
    """Nothing at all: the relocation is a mark without effect."""
    ADDRESS = auto()
    """The symbol, stored as an absolute word: the loader must add where the library lies."""
    DIRECT = auto()
    """The symbol, relative to the place: it must lie in the same library."""
    CALL = auto()
    """The symbol, relative to the place, to jump to: a stub may stand in for a symbol of another library."""
    TABLE = auto()
    """The slot of the global offset table that holds the symbol's address, relative to the place."""


Encode = Callable[[bytearray, int, int, int], None]
"""Writes a relocated field: (buffer, offset in it, target address with addend, address of the place).

Raises ``OverflowError`` with the value's description when the field cannot hold it.
"""

Relax = Callable[[bytearray, int, int], int | None]
"""Turns an access through the offset table into a direct one: (code, offset, addend) -> offset of the direct field.

None, with the code unchanged, where the instruction is not one that has a direct form.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """How relocations of one kind are linked."""

    name: str
    reach: Reach
    width: int
    """Bytes of the section from the relocation's offset on that are read and written."""
    encode: Encode
    relax: Relax | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: ``number`` is its ``e_machine``, ``page_size`` the largest page that its systems use."""

    number: int
    name: str
    page_size: int
    rules: Mapping[int, Rule]
    direct: Rule
    """The rule of a relaxed access."""
    relative: int
    """Dynamic relocation: word = where the library lies + addend."""
    glob_dat: int
    """Dynamic relocation: offset-table slot = address of the symbol."""
    symbolic: int
    """Dynamic relocation: word = address of the symbol + addend."""
    stub_size: int
    write_stub: Callable[[int, int], bytes]
    """The code of a call stub: (address of the stub, address of the offset-table slot) -> ``stub_size`` bytes."""
    code_fill: bytes
    """One instruction that pads code."""
    thread_local: Mapping[int, str] = field(default_factory=dict)
    """Kinds that belong to thread-local storage, which libraries of ours do not have."""
    position_dependent: Mapping[int, str] = field(default_factory=dict)
    """Kinds that only an executable at a fixed address can use."""
