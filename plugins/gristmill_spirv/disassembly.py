"""SPIR-V modules as text, in the form that the disassembler of SPIRV-Tools writes with plain numbers for ids."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from gristmill.plugin.artifacts import KernelRecord
from gristmill_spirv.builder import MAGIC
from gristmill_spirv.enumerants import Op
from gristmill_spirv.glsl450 import GLSL450
from gristmill_spirv.instructions import ENUMERANTS, OPERANDS, brought_by, word_of


def text_of_blob(data: bytes, kernels: Sequence[KernelRecord]) -> str:
    """The text of all kernels of a blob. Raises ValueError for what is no blob of this generator."""
    parts = []
    for record in kernels:
        start, size = int(record.extra.get("code_start", 0)), int(record.extra.get("code_bytes", 0))
        parts.append(f"; kernel {record.name}\n{disassemble(data[start : start + size])}")
    return "\n".join(parts)


def disassemble(data: bytes) -> str:
    """A module as text, one instruction a line. Raises ValueError for what is no module that this package writes."""
    if len(data) < 20 or len(data) % 4:
        raise ValueError("this is no SPIR-V: it is not made of words, or has no header")
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if words[0] != MAGIC:
        raise ValueError(f"this is no SPIR-V: it begins with {words[0]:#010x}")
    lines = [f"; SPIR-V {words[1] >> 16}.{words[1] >> 8 & 0xFF}, ids below {words[3]}"]
    lines += _Module().lines(words[5:])
    return "\n".join(lines) + "\n"


class _Module:
    """What must be remembered of a module to show constants: the types of numbers."""

    def __init__(self) -> None:
        self.types: dict[int, tuple[Op, int, bool]] = {}

    def lines(self, words: Sequence[int]) -> Iterator[str]:
        place = 0
        while place < len(words):
            count, number = words[place] >> 16, words[place] & 0xFFFF
            if not count or place + count > len(words):
                raise ValueError(f"an instruction of {count} words stands where {len(words) - place} are left")
            try:
                op = Op(number)
            except ValueError:
                raise ValueError(f"instruction {number} is none that this package writes") from None
            yield self.line(op, list(words[place + 1 : place + count]))
            place += count

    def line(self, op: Op, words: list[int]) -> str:
        if op in (Op.TypeInt, Op.TypeFloat):
            self.types[words[0]] = (op, words[1], len(words) > 2 and bool(words[2]))
        wanted = list(OPERANDS[op])
        result, shown = "", [f"Op{op.name.removesuffix('_')}"]
        type_ = 0
        if wanted[:1] == ["t"]:
            type_ = words.pop(0)
            shown.append(f"%{type_}")
            del wanted[0]
        if wanted[:1] == ["r"]:
            result = f"%{words.pop(0)} = "
            del wanted[0]
        while words:
            shown.append(self.operand(wanted, words, type_))
        return result + " ".join(shown)

    def operand(self, wanted: list[str], words: list[int], type_: int) -> str:
        """The next operand, taken from the words."""
        kind = wanted[0] if wanted else "i"
        if wanted and not kind.endswith("*"):
            del wanted[0]
        kind = kind.rstrip("*?")
        if kind == "s":
            return _text(words)
        if kind == "v":
            return self.constant(words, type_)
        number = words.pop(0)
        if kind == "i":
            return f"%{number}"
        if kind == "n":
            return str(number)
        if kind == "GLSL450":
            return GLSL450(number).name
        if kind == "Op":
            return Op(number).name
        assert kind in ENUMERANTS
        wanted[:0] = brought_by(kind, number)
        return word_of(kind, number)

    def constant(self, words: list[int], type_: int) -> str:
        op, bits, signed = self.types.get(type_, (Op.TypeInt, 32 * len(words), False))
        value = sum(word << 32 * place for place, word in enumerate(words))
        words.clear()
        if op is Op.TypeFloat:
            return _float(value, bits)
        width = max(bits, 32)
        return str(value - (1 << width) if signed and value >> (width - 1) else value)


def _text(words: list[int]) -> str:
    """A text from its words, which are taken."""
    data = b""
    while words:
        data += struct.pack("<I", words.pop(0))
        if data.endswith(b"\0"):
            break
    text = data.rstrip(b"\0").decode("utf-8", "replace")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_FORMS = {16: ("<H", "<e", 5), 32: ("<I", "<f", 9), 64: ("<Q", "<d", 17)}
"""By width: how the bits and the value are packed, and how many digits tell all values apart."""
_FRACTION = {16: 10, 32: 23, 64: 52}


def _float(value: int, bits: int) -> str:
    """A float in decimal digits; infinities, NaNs and denormals in hexadecimal."""
    integer, number, digits = _FORMS[bits]
    (found,) = struct.unpack(number, struct.pack(integer, value))
    fraction = _FRACTION[bits]
    least = 2.0 ** (2 - (1 << (bits - fraction - 2)))
    if math.isfinite(found) and (found == 0 or abs(found) >= least):
        return f"{found:.{digits}g}"
    sign = "-" if value >> (bits - 1) else ""
    rest = value & ((1 << fraction) - 1)
    exponent = (1 << (bits - fraction - 2)) if not math.isfinite(found) else int(math.log2(least))
    if math.isfinite(found):
        shift = fraction + 1 - rest.bit_length()
        rest, exponent = rest << shift & ((1 << fraction) - 1), exponent - shift
    nibbles = -(-fraction // 4)
    shown = f"{rest << (nibbles * 4 - fraction):0{nibbles}x}".rstrip("0")
    return f"{sign}0x1{'.' if shown else ''}{shown}p{exponent:+d}"
