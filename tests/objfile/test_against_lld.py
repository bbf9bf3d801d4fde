"""Our linker beside Debian's ``ld.lld``: same names, same bytes of code and data, same behaviour.

lld is told to put its sections where ours are, a constant distance further on, so that every relative distance is the
same and bytes can be compared. Only where a stub or an offset-table slot is reached may the bytes differ; there both must
end at the same symbol.
"""

from __future__ import annotations

import ctypes
import re
import struct

import pytest

from gristmill.objfile import link_shared, read_object

SHIFT = 0x100000
COMPARED = (".rodata", ".text", ".data.rel.ro", ".data")
PLACED = (*COMPARED, ".bss")

PROGRAMS = {
    "calls, constants, tables": [
        """
        @counter = global i64 5
        @room = global [100 x i32] zeroinitializer
        @table = constant [4 x ptr] [ptr @twice, ptr @square, ptr @far, ptr @abs]
        declare i32 @far(i32)
        declare i32 @abs(i32)
        define i32 @twice(i32 %x) { %r = add i32 %x, %x
          ret i32 %r }
        define internal i32 @square(i32 %x) noinline { %r = mul i32 %x, %x
          ret i32 %r }
        define i32 @run(i32 %x) { %a = call i32 @square(i32 %x)
          %b = call i32 @far(i32 %a)
          %c = call i32 @abs(i32 %b)
          %p = load volatile i64, ptr @counter
          %q = trunc i64 %p to i32
          %d = add i32 %c, %q
          %e = load volatile i32, ptr @room
          %f = add i32 %d, %e
          ret i32 %f }
        """,
        """
        @numbers = constant [3 x double] [double 1.5, double 2.5, double 3.5]
        declare i32 @twice(i32)
        define i32 @far(i32 %x) { %a = call i32 @twice(i32 %x)
          %v = load volatile double, ptr @numbers
          %w = fptosi double %v to i32
          %r = sub i32 %w, %a
          ret i32 %r }
        """,
    ],
    "vectors and switches": [
        """
        define <8 x float> @scale(<8 x float> %x) {
          %r = fmul <8 x float> %x, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0>
          ret <8 x float> %r }
        define double @half(double %x) { %r = fmul double %x, 5.0e-1
          ret double %r }
        define i32 @run(i32 %x) {
          switch i32 %x, label %other [ i32 0, label %a
            i32 1, label %b
            i32 2, label %c
            i32 3, label %d
            i32 4, label %e ]
        a: %ra = call i32 @one(i32 100)
          ret i32 %ra
        b: %rb = call i32 @two(i32 7)
          ret i32 %rb
        c: %rc = call i32 @one(i32 1)
          ret i32 %rc
        d: %rd = call i32 @two(i32 1)
          ret i32 %rd
        e: %re = call i32 @one(i32 4)
          ret i32 %re
        other: ret i32 0 }
        define internal i32 @one(i32 %x) noinline { %r = add i32 %x, 17
          ret i32 %r }
        define internal i32 @two(i32 %x) noinline { %r = xor i32 %x, 170
          ret i32 %r }
        """
    ],
    "imports through the offset table": [
        """
        declare i32 @abs(i32) nonlazybind
        declare extern_weak i32 @surely_absent(i32) nonlazybind
        define i32 @inner(i32 %x) noinline { %r = sub i32 0, %x
          ret i32 %r }
        define i32 @run(i32 %x) {
          %here = icmp ne ptr @surely_absent, null
          %a = call i32 @abs(i32 %x)
          %b = call i32 @inner(i32 %a) nonlazybind
          %c = zext i1 %here to i32
          %d = add i32 %b, %c
          ret i32 %d }
        define i32 @tail(i32 %x) { %r = tail call i32 @inner(i32 %x) nonlazybind
          ret i32 %r }
        """
    ],
}


class Image:
    """A shared object as readelf describes it: sections, dynamic symbols, dynamic relocations."""

    def __init__(self, data: bytes, readelf) -> None:
        self.data = data
        self.sections: dict[str, tuple[int, int, int]] = {}
        for line in readelf(data, "-SW").splitlines():
            if found := re.match(r"\s+\[\s*\d+\] (\S+)\s+\S+\s+([0-9a-f]{16}) ([0-9a-f]+) ([0-9a-f]+)", line):
                address, offset, size = (int(number, 16) for number in found.groups()[1:])
                self.sections[found[1]] = (address, offset, size)
        self.exports: dict[str, str] = {}
        self.imports: dict[str, str] = {}
        for line in readelf(data, "--dyn-syms", "-W").splitlines():
            if found := re.match(r"\s+\d+: [0-9a-f]+\s+(\d+) (\S+)\s+(\S+)\s+(\S+)\s+(\S+) (\S+)$", line):
                size, kind, binding, visibility, section, name = found.groups()
                if section == "UND":
                    self.imports[name] = binding
                else:
                    self.exports[name] = f"{size} {kind} {binding} {visibility}"
        self.relocations: dict[int, tuple[str, str]] = {}
        for line in readelf(data, "-rW").splitlines():
            if found := re.match(r"([0-9a-f]{16})  [0-9a-f]{16} (R_X86_64_\S+)\s+(.*)$", line):
                self.relocations[int(found[1], 16)] = (found[2], found[3].split(maxsplit=1)[-1])

    def content(self, name: str) -> bytes:
        _, offset, size = self.sections[name]
        return self.data[offset : offset + size]

    def word(self, address: int) -> bytes:
        start, offset, _ = next(s for s in self.sections.values() if s[0] and s[0] <= address < s[0] + s[2])
        return self.data[offset + address - start : offset + address - start + 8]

    def import_of_slot(self, address: int) -> str:
        kind, what = self.relocations[address]
        assert kind in ("R_X86_64_GLOB_DAT", "R_X86_64_JUMP_SLOT")
        return what.split(" + ")[0]

    def import_of_stub(self, address: int) -> str:
        code = self.word(address)
        assert code[:2] == b"\xff\x25", "the stub begins with jmp *slot(%rip)"
        return self.import_of_slot(address + 6 + struct.unpack("<i", code[2:6])[0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_names_same_bytes_same_behaviour(name, compile_ir, ld_lld, readelf, open_library):
    objects = [compile_ir(text) for text in PROGRAMS[name]]
    imports = ["abs", "surely_absent"]
    ours = Image(link_shared(objects, allowed_imports=imports), readelf)
    starts = [f"--section-start={part}={ours.sections[part][0] + SHIFT:#x}" for part in PLACED if part in ours.sections]
    # lld cannot protect sections whose places are given; how memory is protected is compared elsewhere.
    theirs = Image(ld_lld(objects, "-z", "norelro", *starts), readelf)

    assert ours.exports == theirs.exports
    assert ours.imports == theirs.imports
    reached = 0
    for part in COMPARED:
        assert (part in ours.sections) == (part in theirs.sections)
        if part not in ours.sections:
            continue
        assert theirs.sections[part][0] == ours.sections[part][0] + SHIFT
        mine, other = bytearray(ours.content(part)), bytearray(theirs.content(part))
        if part == ".text":
            reached = compare_imports(objects, ours, theirs, mine, other)
        assert mine == other, part
    assert reached > 0 or not ours.imports
    # Pointers in data: the same places, filled with the same symbols or the same, shifted, addresses.
    assert data_words(ours, SHIFT) == data_words(theirs, 0)

    mine, other = open_library(ours.data), open_library(theirs.data)
    assert [mine.run(x) for x in range(-3, 7)] == [other.run(x) for x in range(-3, 7)]


def compare_imports(objects: list[bytes], ours: Image, theirs: Image, mine: bytearray, other: bytearray) -> int:
    """Blanks the fields that reach stubs and slots, after comparing what they reach; says how many there were."""
    count = start = 0
    for data in objects:
        read = read_object(data)
        text = next(section for section in read.sections if section.name == ".text")
        start = -(-start // text.alignment) * text.alignment
        for relocation in read.relocations.get(text.index, ()):
            symbol = read.symbols[relocation.symbol].name
            if symbol not in ours.imports:
                continue
            place = start + relocation.offset
            ends = []
            for image, code in ((ours, mine), (theirs, other)):
                (distance,) = struct.unpack_from("<i", code, place)
                target = image.sections[".text"][0] + place + distance - relocation.addend
                ends.append(image.import_of_stub(target) if relocation.kind == 4 else image.import_of_slot(target))
                code[place : place + 4] = bytes(4)
            assert ends == [symbol, symbol]
            count += 1
        start += text.size
    return count


def data_words(image: Image, shift: int) -> dict[int, tuple[str, str | int]]:
    found: dict[int, tuple[str, str | int]] = {}
    for address, (kind, what) in image.relocations.items():
        if kind == "R_X86_64_RELATIVE":
            found[address + shift] = (kind, int(what, 16) + shift)
        elif kind == "R_X86_64_64":
            found[address + shift] = (kind, what)
    return found


def test_common_symbols_and_weak_definitions_behave_alike(compile_ir, ld_lld, open_library):
    objects = [
        compile_ir("@c = common global i32 0\ndefine weak i32 @w() { ret i32 1 }\ndefine ptr @get() { ret ptr @c }"),
        compile_ir("@c = common global [9 x i64] zeroinitializer, align 64\ndefine i32 @w() { ret i32 2 }"),
    ]
    for data in (link_shared(objects, allowed_imports=()), ld_lld(objects)):
        library = open_library(data)
        library.get.restype = ctypes.c_void_p
        assert library.w() == 2
        assert library.get() % 64 == 0
        assert list((ctypes.c_int64 * 9).from_address(library.get())) == [0] * 9
