"""Linked libraries are loaded and run; their tables are read by binutils."""

from __future__ import annotations

import ctypes
import struct

import pytest

from gristmill.objfile import EM_X86_64, check_shared, describe, link_shared

MAIN = """
@counter = global i64 5
@room = global [1000 x i32] zeroinitializer, align 64
@shared_room = common global i64 0, align 16
@table = constant [4 x ptr] [ptr @twice, ptr @far, ptr getelementptr (i8, ptr @room, i64 16), ptr @fallback]
@lanes = private constant [8 x float] [float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0,
  float 8.0], align 32
declare i32 @far(i32)
define weak i32 @fallback(i32 %x) { ret i32 -1 }
define internal i32 @local(i32 %x) noinline {
  %r = mul i32 %x, %x
  ret i32 %r
}
define hidden i32 @concealed(i32 %x) noinline {
  %r = add i32 %x, 1000
  ret i32 %r
}
define i32 @twice(i32 %x) {
  %r = add i32 %x, %x
  ret i32 %r
}
define i32 @calls(i32 %x) {
  %a = call i32 @local(i32 %x)
  %b = call i32 @far(i32 %a)
  %c = call i32 @concealed(i32 %b)
  ret i32 %c
}
define i32 @by_table(i32 %which, i32 %x) {
  %place = getelementptr [4 x ptr], ptr @table, i32 0, i32 %which
  %function = load ptr, ptr %place
  %r = call i32 %function(i32 %x)
  ret i32 %r
}
define i64 @count() {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  ret i64 %new
}
define ptr @room_at_16() {
  %place = getelementptr [4 x ptr], ptr @table, i32 0, i32 2
  %r = load ptr, ptr %place
  ret ptr %r
}
define i32 @room_is_zero() {
  br label %loop
loop:
  %i = phi i64 [0, %0], [%j, %loop]
  %sum = phi i32 [0, %0], [%sum2, %loop]
  %place = getelementptr i32, ptr @room, i64 %i
  %v = load volatile i32, ptr %place
  %sum2 = or i32 %sum, %v
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, 1000
  br i1 %more, label %loop, label %end
end:
  ret i32 %sum2
}
define void @scale(ptr %data) {
  %v = load <8 x float>, ptr %data, align 4
  %k = load volatile <8 x float>, ptr @lanes, align 32
  %r = fmul <8 x float> %v, %k
  store <8 x float> %r, ptr %data, align 4
  ret void
}
define i64 @get_shared_room() {
  %v = load i64, ptr @shared_room
  ret i64 %v
}
define i32 @choose(i32 %x) {
  switch i32 %x, label %other [
    i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
    i32 4, label %e
  ]
a:
  %ra = call i32 @far(i32 100)
  ret i32 %ra
b:
  %rb = call i32 @local(i32 7)
  ret i32 %rb
c:
  %rc = call i32 @concealed(i32 1)
  ret i32 %rc
d:
  %rd = call i32 @fallback(i32 1)
  ret i32 %rd
e:
  %re = call i32 @twice(i32 4)
  ret i32 %re
other:
  ret i32 0
}
"""

OTHER = """
@shared_room = common global i64 0, align 8
declare i32 @twice(i32)
define internal i32 @local(i32 %x) noinline {
  %r = add i32 %x, 3
  ret i32 %r
}
define i32 @far(i32 %x) {
  %a = call i32 @local(i32 %x)
  %b = call i32 @twice(i32 %a)
  ret i32 %b
}
define i32 @fallback(i32 %x) {
  ret i32 77
}
define void @set_shared_room(i64 %x) {
  store i64 %x, ptr @shared_room
  ret void
}
"""


@pytest.fixture(scope="module")
def two_objects(compile_ir):
    return [compile_ir(MAIN), compile_ir(OTHER)]


@pytest.fixture(scope="module")
def library(two_objects, open_library):
    return open_library(link_shared(two_objects, allowed_imports=()))


def test_calls_within_and_between_objects(library):
    # local squares, far adds 3 (its own `local`) and doubles, concealed adds 1000
    assert library.calls(5) == (25 + 3) * 2 + 1000
    assert library.twice(21) == 42


def test_pointers_in_constant_tables(library):
    assert library.by_table(0, 8) == 16
    assert library.by_table(1, 8) == (8 + 3) * 2
    library.room_at_16.restype = ctypes.c_void_p
    room = ctypes.addressof(ctypes.c_int.in_dll(library, "room"))
    assert library.room_at_16() == room + 16
    assert room % 64 == 0


def test_a_strong_definition_replaces_a_weak_one(library):
    assert library.fallback(0) == 77
    assert library.by_table(3, 0) == 77


def test_the_first_of_two_weak_definitions_is_taken(compile_ir, open_library):
    def weak(value: int) -> bytes:
        return compile_ir(f"define weak i32 @chosen() {{ ret i32 {value} }}")

    first = open_library(link_shared([weak(1), weak(2)], allowed_imports=()))
    second = open_library(link_shared([weak(2), weak(1)], allowed_imports=()))
    assert (first.chosen(), second.chosen()) == (1, 2)


def test_of_equal_comdat_groups_one_is_kept(compile_ir, open_library, readelf):
    text = """
    $inline = comdat any
    @value = linkonce_odr constant i32 VALUE, comdat($inline)
    define linkonce_odr i32 @inline() comdat { %v = load volatile i32, ptr @value
      ret i32 %v }
    define i32 @CALLER() { %r = call i32 @inline()
      ret i32 %r }
    """
    objects = [compile_ir(text.replace("VALUE", v).replace("CALLER", c)) for v, c in (("7", "one"), ("8", "two"))]
    data = link_shared(objects, allowed_imports=())
    library = open_library(data)
    assert (library.one(), library.two(), library.inline()) == (7, 7, 7)
    # One copy of the group: two of them would give .rodata 8 bytes.
    assert sections_of(data)[".rodata"].size == 4


def test_data_can_be_written_and_bss_is_zero(library):
    library.count.restype = ctypes.c_int64
    assert [library.count(), library.count()] == [6, 7]
    assert ctypes.c_int64.in_dll(library, "counter").value == 7
    assert library.room_is_zero() == 0


def test_common_symbols_of_two_objects_are_one(library):
    library.get_shared_room.restype = ctypes.c_int64
    assert library.get_shared_room() == 0
    library.set_shared_room(ctypes.c_int64(-12345678901))
    assert library.get_shared_room() == -12345678901
    assert ctypes.addressof(ctypes.c_int64.in_dll(library, "shared_room")) % 16 == 0


def test_vector_constants_are_aligned(library):
    values = (ctypes.c_float * 8)(*[2.0] * 8)
    library.scale(values)
    assert list(values) == [2.0 * lane for lane in range(1, 9)]


def test_jump_tables(library):
    assert [library.choose(x) for x in range(6)] == [206, 49, 1001, 77, 8, 0]


def test_many_functions(compile_ir, open_library):
    count = 400
    text = "\n".join(
        f"define i32 @f{n}(i32 %x) noinline {{ %y = add i32 %x, {n}\n %r = call i32 @f{n + 1}(i32 %y)\n ret i32 %r }}"
        for n in range(count)
    )
    objects = [
        compile_ir(text + f"\ndeclare i32 @f{count}(i32)"),
        compile_ir(f"define i32 @f{count}(i32 %x) {{ ret i32 %x }}"),
    ]
    data = link_shared(objects, allowed_imports=())
    library = open_library(data)
    assert library.f0(1) == 1 + sum(range(count))
    assert all(getattr(library, f"f{n}") for n in range(count + 1)), "each name is found through the hash table"
    assert len(describe(data).exports) == count + 1


IMPORTER = """
declare i32 @abs(i32)
declare i32 @labs(i32) nonlazybind
declare extern_weak i32 @surely_absent(i32)
@pointer = global ptr @abs
define i32 @through_stub(i32 %x) { %r = call i32 @abs(i32 %x)
  %s = add i32 %r, 1
  ret i32 %s }
define i32 @through_table(i32 %x) { %r = call i32 @labs(i32 %x)
  %s = add i32 %r, 2
  ret i32 %s }
define i32 @tail(i32 %x) { %r = tail call i32 @labs(i32 %x)
  ret i32 %r }
define i32 @through_pointer(i32 %x) { %f = load volatile ptr, ptr @pointer
  %r = call i32 %f(i32 %x)
  ret i32 %r }
define i32 @if_there(i32 %x) {
  %absent = icmp eq ptr @surely_absent, null
  br i1 %absent, label %no, label %yes
no:
  ret i32 -9
yes:
  %r = call i32 @surely_absent(i32 %x)
  ret i32 %r
}
"""


@pytest.mark.parametrize("allowed", [["abs", "labs"], ["abs", "labs", "surely_absent"]])
def test_imports_are_found_in_the_process(compile_ir, open_library, allowed):
    data = link_shared([compile_ir(IMPORTER)], allowed_imports=allowed)
    assert sorted(describe(data).imports) == allowed
    library = open_library(data)
    assert library.through_stub(-4) == 5
    assert library.through_table(-4) == 6
    assert library.tail(-4) == 4
    assert library.through_pointer(-4) == 4
    assert library.if_there(1) == -9


def test_an_import_that_the_process_lacks_is_refused_by_the_loader(compile_ir, open_library):
    object_ = compile_ir("declare void @gm_nowhere()\ndefine void @go() { call void @gm_nowhere()\n ret void }")
    data = link_shared([object_], allowed_imports=["gm_nowhere"])
    with pytest.raises(OSError, match="undefined symbol: gm_nowhere"):
        open_library(data)


def test_accesses_through_the_offset_table_become_direct(compile_ir, open_library, readelf):
    text = """
    @there = global i32 4
    define i32 @callee() noinline { ret i32 5 }
    define i32 @load() { %v = load i32, ptr @there
      ret i32 %v }
    define i32 @call() { %r = call i32 @callee() nonlazybind
      %s = add i32 %r, 1
      ret i32 %s }
    """
    data = link_shared([compile_ir(text)], allowed_imports=())
    assert ".got" not in sections_of(data)
    library = open_library(data)
    assert (library.load(), library.call()) == (4, 6)


def test_exports_are_all_visible_names_or_the_chosen_ones(two_objects, open_library):
    every = describe(link_shared(two_objects, allowed_imports=())).exports
    assert set(every) >= {"calls", "far", "twice", "counter", "room", "shared_room", "fallback"}
    assert not {"local", "concealed"} & set(every)
    data = link_shared(two_objects, exports=["calls", "by_table"], allowed_imports=())
    assert describe(data).exports == ("by_table", "calls")
    library = open_library(data)
    assert library.calls(5) == 1056
    with pytest.raises(AttributeError):
        _ = library.twice


def test_a_soname_is_kept(two_objects, readelf):
    data = link_shared(two_objects, allowed_imports=(), soname="libkernels.so")
    assert describe(data).soname == "libkernels.so"
    assert "Library soname: [libkernels.so]" in readelf(data, "-d")


def test_the_same_objects_give_the_same_bytes(two_objects):
    first = link_shared(two_objects, allowed_imports=["b", "a"], symbol_table=True)
    assert first == link_shared(two_objects, allowed_imports={"a", "b"}, symbol_table=True)


def test_what_is_linked_passes_our_own_check(two_objects):
    found = check_shared(link_shared(two_objects, allowed_imports=()), EM_X86_64, ())
    assert found.imports == () == found.needed
    assert [segment.flags for segment in found.segments if segment.kind == "LOAD"] == ["r--", "r-x", "rw-", "rw-"]
    assert [segment.flags for segment in found.segments if segment.kind == "GNU_STACK"] == ["rw-"]


@pytest.mark.parametrize("symbol_table", [False, True])
def test_binutils_reads_all_of_it_without_a_warning(compile_ir, two_objects, readelf, symbol_table):
    data = link_shared(two_objects, allowed_imports=(), symbol_table=symbol_table)
    shown = readelf(data, "-aW")
    for expected in ("DYN (Shared object file)", "BIND_NOW", "GNU_RELRO", "R_X86_64_RELATIVE", "Histogram"):
        assert expected in shown
    assert "NEEDED" not in shown
    assert ("concealed" in shown) == symbol_table
    shown = readelf(link_shared([compile_ir(IMPORTER)], allowed_imports=["abs", "labs"]), "-aW")
    assert "R_X86_64_GLOB_DAT" in shown
    assert "R_X86_64_64 " in shown


def test_code_that_uses_no_data_makes_a_small_library(compile_ir, readelf, open_library):
    data = link_shared([compile_ir("define i32 @f() { ret i32 3 }")], allowed_imports=())
    readelf(data, "-aW")
    assert len(data) < 2048
    assert open_library(data).f() == 3


def test_a_library_with_zeroed_data_only(compile_ir, readelf, open_library):
    text = "@room = global [5000 x i64] zeroinitializer\ndefine ptr @f() { ret ptr @room }"
    data = link_shared([compile_ir(text)], allowed_imports=())
    readelf(data, "-aW")
    assert len(data) < 2048
    room = (ctypes.c_int64 * 5000).in_dll(open_library(data), "room")
    assert not any(room)
    room[4999] = 3
    assert room[4999] == 3


def test_protected_memory_is_read_only_after_loading(compile_ir, open_library):
    text = "@table = constant [1 x ptr] [ptr @f]\ndefine i32 @f() { ret i32 3 }"
    library = open_library(link_shared([compile_ir(text)], allowed_imports=()))
    address = ctypes.addressof(ctypes.c_void_p.in_dll(library, "table"))
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[:2] for line in maps]
    rights = [r for span, r in ranges if int(span.split("-")[0], 16) <= address < int(span.split("-")[1], 16)]
    assert rights == ["r--p"]


def test_the_loader_of_musl_reads_it_too(two_objects, compile_ir, run_with_musl):
    program = """
    #include <dlfcn.h>
    #include <stdio.h>
    int far_away(int x) { return x * 10; }
    int main(int count, char **words) {
        void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (!library) { puts(dlerror()); return 1; }
        int (*calls)(int) = dlsym(library, "calls"), (*by_table)(int, int) = dlsym(library, "by_table");
        int (*asks)(int) = dlsym(library, "asks"), *room = dlsym(library, "room");
        printf("%d %d %d %d\\n", calls(5), by_table(1, 8), asks(4), room[999]);
        printf("%d\\n", dlsym(library, "concealed") == 0);
        return 0;
    }
    """
    asks = "declare i32 @far_away(i32)\ndefine i32 @asks(i32 %x) { %r = call i32 @far_away(i32 %x)\n ret i32 %r }"
    data = link_shared([*two_objects, compile_ir(asks)], allowed_imports=["far_away"])
    assert run_with_musl(data, program) == "1056 22 40 0\n1\n"


class Part:
    """One row of a section table, read here by itself so that our own reader is not its own witness."""

    def __init__(self, data: bytes, record: tuple[int, ...]) -> None:
        _, self.kind, self.flags, self.address, self.offset, self.size, *_ = record
        self.content = data[self.offset : self.offset + self.size]


def sections_of(data: bytes) -> dict[str, Part]:
    (table,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    records = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * n) for n in range(count)]
    start = records[names][4]
    return {data[start + r[0] : data.index(b"\0", start + r[0])].decode(): Part(data, r) for r in records}
