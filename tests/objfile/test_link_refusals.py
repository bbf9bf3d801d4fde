"""What the linker refuses, and that it says which symbol of which object."""

from __future__ import annotations

import struct

import pytest

from gristmill.errors import UserError
from gristmill.objfile import link_shared, read_object

F = "define i32 @f() { ret i32 1 }"


def refused(objects, code, **options):
    settings = {"allowed_imports": ()} | options
    with pytest.raises(UserError) as caught:
        link_shared(objects, **settings)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {code}
    return caught.value


def with_section_field(data: bytes, name: str, field: str, value: int) -> bytes:
    """The object with one field of the header of its section ``name`` replaced."""
    number = next(section.index for section in read_object(data).sections if section.name == name)
    (table,) = struct.unpack_from("<Q", data, 40)
    place, layout = {"kind": (4, "<I"), "flags": (8, "<Q"), "size": (32, "<Q"), "alignment": (48, "<Q")}[field]
    patched = bytearray(data)
    struct.pack_into(layout, patched, table + number * 64 + place, value)
    return bytes(patched)


def test_undefined_symbols_are_all_named_with_who_asks(compile_ir):
    text = """
    declare i32 @{0}()
    define i32 @{1}() {{ %r = call i32 @{0}()
      ret i32 %r }}
    """
    objects = [compile_ir(text.format("memcpy", "one")), compile_ir(text.format("fmodf", "two"))]
    error = refused(objects, "GM0703", names=["blur.o", "sobel.o"], allowed_imports=["TVMFFIErrorSetRaisedFromCStr"])
    messages = [diagnostic.message for diagnostic in error.diagnostics]
    assert messages == [
        "symbol `memcpy` is asked for by blur.o and defined nowhere",
        "symbol `fmodf` is asked for by sobel.o and defined nowhere",
    ]
    assert "`TVMFFIErrorSetRaisedFromCStr`" in str(error)


def test_a_hidden_symbol_is_not_imported(compile_ir):
    text = "declare hidden i32 @g()\ndefine i32 @f() { %r = call i32 @g()\n ret i32 %r }"
    error = refused([compile_ir(text)], "GM0703", allowed_imports=["g"])
    assert "hidden" in str(error)


def test_two_strong_definitions(compile_ir):
    error = refused([compile_ir(F), compile_ir(F)], "GM0704", names=["a.o", "b.o"])
    assert "symbol `f` is defined twice: by a.o and by b.o" in str(error)


def test_an_unknown_relocation(compile_ir):
    data = compile_ir("declare i32 @g()\ndefine i32 @f() { %r = call i32 @g()\n ret i32 %r }")
    kind_of_call = struct.pack("<I", 4)
    section = next(s for s in read_object(data).sections if s.name == ".rela.text")
    at = data.index(bytes(section.data)) + 8
    assert data[at : at + 4] == kind_of_call
    error = refused([data[:at] + struct.pack("<I", 99) + data[at + 4 :]], "GM0705", allowed_imports=["g"])
    assert "relocation 99 of x86-64 against `g`" in str(error)
    assert "R_X86_64_PC32" in str(error)


@pytest.mark.parametrize("text", ["@x = external dso_local global i32", "@x = dso_local global i32 1"])
def test_code_for_a_fixed_address(compile_ir, text):
    use = "\ndefine i32 @f(i64 %i) { %p = getelementptr i32, ptr @x, i64 %i\n %v = load i32, ptr %p\n ret i32 %v }"
    error = refused([compile_ir(text + use, reloc="static")], "GM0706", allowed_imports=["x"])
    assert "R_X86_64_32S against" in str(error)
    assert "reloc=pic" in str(error)


def test_a_pointer_in_a_constant_section(compile_ir):
    data = compile_ir("@x = global i32 1\n@table = constant [1 x ptr] [ptr @x]", reloc="static")
    assert "stores the address of `x` in .rodata" in str(refused([data], "GM0706"))


def test_a_direct_reference_to_an_imported_symbol(compile_ir):
    text = "@x = external dso_local global i32\ndefine i32 @f() { %v = load i32, ptr @x\n ret i32 %v }"
    assert "imported symbol `x` by R_X86_64_PC32" in str(refused([compile_ir(text)], "GM0706", allowed_imports=["x"]))


def test_a_distance_that_does_not_fit(compile_ir):
    data = compile_ir("@x = internal global i32 1\ndefine i32 @f() { %v = load volatile i32, ptr @x\n ret i32 %v }")
    section = next(s for s in read_object(data).sections if s.name == ".rela.text")
    at = data.index(bytes(section.data)) + 16
    error = refused([data[:at] + struct.pack("<q", 2**40) + data[at + 8 :]], "GM0706")
    assert "does not fit 32 bits" in str(error)


def test_thread_local_storage(compile_ir):
    defines = "@x = thread_local global i32 1\ndefine i32 @f() { %v = load i32, ptr @x\n ret i32 %v }"
    assert "symbol `x`" in str(refused([compile_ir(defines)], "GM0707"))
    asks = "@x = external thread_local global i32\ndefine i32 @f() { %v = load i32, ptr @x\n ret i32 %v }"
    assert "symbol `x`" in str(refused([compile_ir(asks)], "GM0707", allowed_imports=["x", "__tls_get_addr"]))


def test_constructors(compile_ir):
    text = """
    @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @f, ptr null }]
    define void @f() { ret void }
    """
    assert "would run when the library is loaded" in str(refused([compile_ir(text)], "GM0708"))
    assert "section .text" in str(refused([with_section_field(compile_ir(F), ".text", "kind", 14)], "GM0708"))


def test_functions_chosen_at_load_time(compile_ir):
    text = "@f = ifunc i32 (), ptr @pick\ndefine internal ptr @pick() { ret ptr @g }\ndefine internal i32 @g() { ret i32 1 }"
    assert "symbol `f`" in str(refused([compile_ir(text)], "GM0708"))


def test_an_export_that_is_not_there(compile_ir):
    objects = [compile_ir(F.replace("@f", "@blur_rows"))]
    assert "there is `blur_rows`" in str(refused(objects, "GM0709", exports=["blur_row"]))
    assert "no object defines it" in str(refused(objects, "GM0709", exports=["zzz"]))
    hidden = [compile_ir("define hidden i32 @f() { ret i32 1 }")]
    assert "defines it as hidden" in str(refused(hidden, "GM0709", exports=["f"]))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("flags", 7, "executable and writable"),
        ("flags", 0x806, "is of a kind"),
        ("kind", 9, "relocations without addends"),
        ("kind", 0x6FFF4700, "is of a kind"),
        ("alignment", 1 << 16, "too large"),
    ],
)
def test_sections_that_cannot_be_merged(compile_ir, field, value, says):
    assert says in str(refused([with_section_field(compile_ir(F), ".text", field, value)], "GM0710"))


def test_more_than_two_gigabytes(compile_ir):
    room = compile_ir("@room = global [2147483640 x i8] zeroinitializer")
    assert "too large" in str(refused([room], "GM0710"))
    half = "@{} = global [1500000000 x i8] zeroinitializer"
    assert "together" in str(refused([compile_ir(half.format("a")), compile_ir(half.format("b"))], "GM0710"))
    common = compile_ir("@room = common global [3000000000 x i8] zeroinitializer")
    assert "common symbol `room`" in str(refused([common], "GM0710"))


def test_a_reference_into_a_dropped_section(compile_ir):
    note = '@note = internal constant i32 1, section ".note.mine"'
    text = f"{note}\ndefine i32 @f() {{ %v = load volatile i32, ptr @note\n ret i32 %v }}"
    assert "section `.note.mine`, which is not linked" in str(refused([compile_ir(text)], "GM0710"))


def test_other_kinds_of_input(compile_ir):
    object_ = compile_ir(F)
    assert "not an ELF file" in str(refused([b"MZ" + object_], "GM0702"))
    assert "it is a shared object" in str(refused([link_shared([object_], allowed_imports=())], "GM0702"))
    assert "no object to link" in str(refused([], "GM0702"))
    arm = compile_ir(F, triple="aarch64-unknown-linux-gnu", cpu="generic")
    assert "is for aarch64, which this linker does not know" in str(refused([arm], "GM0702"))
    assert "object 2 of 2 is for aarch64, object 1 of 2 for x86-64" in str(refused([object_, arm], "GM0702"))
    assert "ends at" in str(refused([object_[:-1]], "GM0701"))
