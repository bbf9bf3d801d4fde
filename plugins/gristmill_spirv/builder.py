"""Building one SPIR-V module: ids, interned types and constants, the sections in their order, and the words at the end.

No package on PyPI writes SPIR-V from Python; this is the part that knows its binary form (SPIR-V specification, sections
2.3 "Physical Layout of a SPIR-V Module and Instruction" and 2.4 "Logical Layout of a Module"), and nothing of kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from gristmill_spirv.enumerants import Capability, Decoration, MemoryModel, Op, StorageClass

MAGIC: Final = 0x07230203
GENERATOR: Final = 0
"""Word of the header that names the tool; 0 is for tools that Khronos has not registered."""
_LONGEST_INSTRUCTION: Final = 0xFFFF
_LONGEST_NAME: Final = 240
"""Bytes: the validation layer takes entry points of less than 256, and names in instructions are for people."""


class Section(IntEnum):
    """The parts of a module, in the order of section 2.4 of the specification."""

    CAPABILITIES = 0
    EXTENSIONS = 1
    IMPORTS = 2
    MEMORY_MODEL = 3
    ENTRY_POINTS = 4
    EXECUTION_MODES = 5
    STRINGS = 6
    NAMES = 7
    ANNOTATIONS = 8
    GLOBALS = 9
    FUNCTIONS = 10


def short_name(name: str) -> str:
    """A name, or as much of its beginning as instructions and drivers take."""
    return name.encode()[:_LONGEST_NAME].decode(errors="ignore")


def text_words(text: str) -> list[int]:
    """A literal string: UTF-8, ended by a zero byte, filled up with zeros to whole words."""
    data = text.encode()
    data += b"\0" * (4 - len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


class ModuleBuilder:
    """One module while it is built. Types and constants that are asked for twice are the same id."""

    def __init__(self, version: tuple[int, int], memory_model: MemoryModel = MemoryModel.GLSL450) -> None:
        self.version = version
        self.memory_model = memory_model
        self._sections: tuple[list[int], ...] = tuple([] for _ in Section)
        self.float_widths: set[int] = set()
        """The widths of the float types that the module has."""
        self._bound = 1
        self._capabilities: set[Capability] = set()
        self._extensions: set[str] = set()
        self._interned: dict[tuple[int, ...], int] = {}
        self._imports: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._decorated: set[tuple[int, ...]] = set()

    # Words

    @property
    def bound(self) -> int:
        """The id that :meth:`new_id` gives next; all others are less."""
        return self._bound

    def new_id(self) -> int:
        """An id that nothing has yet."""
        found = self._bound
        self._bound += 1
        return found

    def write(self, section: Section, op: Op, operands: Sequence[int] = ()) -> None:
        """Append an instruction. Raises OverflowError for one of more than 65535 words."""
        count = len(operands) + 1
        if count > _LONGEST_INSTRUCTION:
            raise OverflowError(f"{op.name} with {count} words")
        words = self._sections[section]
        words.append(count << 16 | op)
        words.extend(operands)

    def extend(self, section: Section, words: Iterable[int]) -> None:
        """Append instructions that are words already."""
        self._sections[section].extend(words)

    def data(self) -> bytes:
        """The finished module, little-endian."""
        words = [MAGIC, self.version[0] << 16 | self.version[1] << 8, GENERATOR, self._bound, 0]
        for section in self._sections:
            words += section
        return struct.pack(f"<{len(words)}I", *words)

    # What a module declares once

    def has_capability(self, capability: Capability) -> bool:
        """Whether a capability is declared."""
        return capability in self._capabilities

    def capability(self, capability: Capability) -> None:
        """Declare a capability."""
        if capability not in self._capabilities:
            self._capabilities.add(capability)
            self.write(Section.CAPABILITIES, Op.Capability, (capability,))

    def extension(self, name: str) -> None:
        """Declare an extension of SPIR-V by its name, as ``SPV_KHR_16bit_storage``."""
        if name not in self._extensions:
            self._extensions.add(name)
            self.write(Section.EXTENSIONS, Op.Extension, text_words(name))

    def instructions(self, name: str) -> int:
        """The id of an extended instruction set, as ``GLSL.std.450``."""
        if name not in self._imports:
            found = self._imports[name] = self.new_id()
            self.write(Section.IMPORTS, Op.ExtInstImport, (found, *text_words(name)))
        return self._imports[name]

    def string(self, text: str) -> int:
        """The id of an OpString, for OpLine."""
        if text not in self._strings:
            found = self._strings[text] = self.new_id()
            self.write(Section.STRINGS, Op.String, (found, *text_words(text)))
        return self._strings[text]

    def name(self, target: int, text: str) -> None:
        """Say what an id is called in the source."""
        self.write(Section.NAMES, Op.Name, (target, *text_words(short_name(text))))

    def name_member(self, target: int, member: int, text: str) -> None:
        """Say what a member of a structure is called in the source."""
        self.write(Section.NAMES, Op.MemberName, (target, member, *text_words(short_name(text))))

    def decorate(self, target: int, decoration: Decoration, *operands: int) -> None:
        """Decorate an id, once."""
        key = (target, decoration, *operands)
        if key not in self._decorated:
            self._decorated.add(key)
            self.write(Section.ANNOTATIONS, Op.Decorate, key)

    def decorate_member(self, target: int, member: int, decoration: Decoration, *operands: int) -> None:
        """Decorate a member of a structure, once."""
        key = (target, member, decoration, *operands)
        if (-1, *key) not in self._decorated:
            self._decorated.add((-1, *key))
            self.write(Section.ANNOTATIONS, Op.MemberDecorate, key)

    # Types

    def interned(self, op: Op, *operands: int) -> int:
        """The id of a type without a body of its own (see :meth:`fresh` for structures and arrays with a layout)."""
        key = (op, *operands)
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = self.fresh(op, *operands)
        return found

    def fresh(self, op: Op, *operands: int) -> int:
        """A new type, also where one with the same operands exists: for types that are decorated."""
        found = self.new_id()
        self.write(Section.GLOBALS, op, (found, *operands))
        return found

    def type_void(self) -> int:
        return self.interned(Op.TypeVoid)

    def type_bool(self) -> int:
        return self.interned(Op.TypeBool)

    def type_int(self, bits: int, signed: bool) -> int:
        """An integer type; 8, 16 and 64 bits declare their capability."""
        if bits == 8:
            self.capability(Capability.Int8)
        elif bits == 16:
            self.capability(Capability.Int16)
        elif bits == 64:
            self.capability(Capability.Int64)
        return self.interned(Op.TypeInt, bits, int(signed))

    def type_float(self, bits: int) -> int:
        """A float type; 16 and 64 bits declare their capability."""
        if bits == 16:
            self.capability(Capability.Float16)
        elif bits == 64:
            self.capability(Capability.Float64)
        self.float_widths.add(bits)
        return self.interned(Op.TypeFloat, bits)

    def vector(self, element: int, lanes: int) -> int:
        return self.interned(Op.TypeVector, element, lanes)

    def pointer(self, storage: StorageClass, pointee: int) -> int:
        return self.interned(Op.TypePointer, storage, pointee)

    def function_type(self, returns: int, params: Sequence[int]) -> int:
        return self.interned(Op.TypeFunction, returns, *params)

    # Constants

    def constant(self, type_: int, words: Sequence[int]) -> int:
        """A constant of a number type, from the words of its literal (low word first; narrow ones sign-extended)."""
        key = (Op.Constant, type_, *words)
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = self.new_id()
            self.write(Section.GLOBALS, Op.Constant, (type_, found, *words))
        return found

    def constant_bool(self, value: bool) -> int:
        op = Op.ConstantTrue if value else Op.ConstantFalse
        found = self._interned.get((op,))
        if found is None:
            found = self._interned[(op,)] = self.new_id()
            self.write(Section.GLOBALS, op, (self.type_bool(), found))
        return found

    def constant_int(self, value: int, bits: int, signed: bool) -> int:
        """An integer constant; ``value`` is reduced modulo 2**bits."""
        type_ = self.type_int(bits, signed)
        value &= (1 << bits) - 1
        if bits < 32 and signed and value >> (bits - 1):
            value |= (0xFFFFFFFF << bits) & 0xFFFFFFFF
        words = (value & 0xFFFFFFFF, value >> 32) if bits == 64 else (value,)
        return self.constant(type_, words)

    def spec_constant(self, type_: int, default: int, number: int) -> int:
        """A 32-bit specialisation constant of that SpecId."""
        found = self.new_id()
        self.write(Section.GLOBALS, Op.SpecConstant, (type_, found, default))
        self.decorate(found, Decoration.SpecId, number)
        return found

    def variable(self, type_: int, storage: StorageClass) -> int:
        """A variable outside of functions; ``type_`` is a pointer type of the same storage class."""
        found = self.new_id()
        self.write(Section.GLOBALS, Op.Variable, (type_, found, storage))
        return found
