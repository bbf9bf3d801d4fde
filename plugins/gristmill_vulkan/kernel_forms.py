"""How a kernel of a blob gets its arguments, as its record says it. Records come from files: all of it is checked."""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.errors import Diagnostic, UserError
from gristmill.plugin.artifacts import KernelRecord
from gristmill_vulkan.asserts import AssertText, assert_texts

_FORMS = ("push", "uniform", "address", "address_block")
_SLOT_FORMS = ("address", "offset", "i32", "i64", "f32", "f64")
_NUMBERS = ("code_start", "code_bytes", "block_bytes", "dynamic_element", "subgroup")
_LARGEST_BLOCK = 1 << 16
_LARGEST_SUBGROUP = 128
"""Vulkan specification, VkPhysicalDeviceSubgroupSizeControlProperties."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where an argument stands in the block of parameters, in bytes, and in which form."""

    offset: int
    form: str

    @property
    def size(self) -> int:
        return 8 if self.form in ("address", "i64", "f64") else 4


@dataclass(frozen=True, slots=True)
class KernelForm:
    """What the ``extra`` of a kernel's record says, checked: it comes from a file."""

    start: int
    size: int
    arguments: str
    slots: tuple[Slot, ...]
    block_bytes: int
    dynamic_element: int
    subgroup: int = 0
    """How many threads every subgroup must have; 0: any number."""
    asserts: tuple[AssertText, ...] = ()
    """The asserts that the kernel reports."""

    @property
    def is_bound(self) -> bool:
        """Whether arrays are bound as storage buffers."""
        return self.arguments in ("push", "uniform")

    @property
    def buffers(self) -> int:
        """How many storage buffers are bound."""
        return sum(slot.form == "offset" for slot in self.slots)

    @property
    def descriptors(self) -> int:
        """How many buffers are bound, of both kinds."""
        return self.buffers + (self.arguments == "uniform")

    @property
    def push_bytes(self) -> int:
        """How many bytes of push constants there are."""
        return {"uniform": 0, "address_block": 8}.get(self.arguments, self.block_bytes)


def kernel_form(record: KernelRecord, data_size: int) -> KernelForm:
    """Read a record. Raises UserError (GM0914) for one that is malformed."""
    extra = record.extra
    numbers = [extra.get(name, 0) for name in _NUMBERS]
    if not all(type(number) is int and 0 <= number < 1 << 31 for number in numbers):
        raise _malformed(record, "has a number that is none")
    start, size, block_bytes, dynamic_element, subgroup = (int(number) for number in numbers)
    if start % 4 or size % 4 or size < 20 or start + size > data_size:
        raise _malformed(record, "says that its code lies where there is none")
    arguments = extra.get("arguments")
    if arguments not in _FORMS:
        raise _malformed(record, f"passes arguments as `{arguments}`, which this version does not know")
    slots = tuple(_slot(record, text) for text in str(extra.get("layout", "")).split(",") if text)
    if len(slots) != len(record.arguments):
        raise _malformed(record, f"has {len(slots)} places for {len(record.arguments)} arguments")
    if block_bytes > _LARGEST_BLOCK or any(slot.offset + slot.size > block_bytes for slot in slots):
        raise _malformed(record, "has a place outside of its block of parameters")
    if dynamic_element not in (0, 4) or (dynamic_element and not record.dynamic_shared):
        raise _malformed(record, f"has dynamic shared elements of {dynamic_element} bytes")
    if subgroup & (subgroup - 1) or subgroup > _LARGEST_SUBGROUP:
        raise _malformed(record, f"has subgroups of {subgroup} threads")
    if any(
        (slot.form == ("offset" if arguments in ("push", "uniform") else "address")) != (argument.kind == "buffer")
        for slot, argument in zip(slots, record.arguments, strict=True)
    ):
        raise _malformed(record, "passes an array in a form that is not for arrays")
    try:
        asserts = assert_texts(extra.get("asserts"))
    except ValueError as error:
        raise _malformed(record, f"has asserts that it does not tell of as it should: {error}") from None
    return KernelForm(start, size, str(arguments), slots, -(-block_bytes // 4) * 4, dynamic_element, subgroup, asserts)


def _slot(record: KernelRecord, text: str) -> Slot:
    offset, _, form = text.partition(":")
    if form not in _SLOT_FORMS or not offset.isascii() or not offset.isdigit() or len(offset) > 6 or int(offset) % 4:
        raise _malformed(record, f"has the place `{text[:40]}`")
    return Slot(int(offset), form)


def _malformed(record: KernelRecord, what: str) -> UserError:
    return UserError(Diagnostic("GM0914", f"the record of `{record.name}` {what}", hint="build the pack again"))
