"""What is said of shared objects, ours and lld's, and what is refused."""

from __future__ import annotations

import struct

import pytest

from gristmill.errors import UserError
from gristmill.objfile import EM_AARCH64, EM_X86_64, check_shared, describe, link_shared

F = "define i32 @f() { ret i32 1 }"


@pytest.fixture(scope="module")
def library(compile_ir):
    text = """
    declare i32 @abs(i32)
    define i32 @f(i32 %x) { %r = call i32 @abs(i32 %x)
      ret i32 %r }
    @table = constant [1 x ptr] [ptr @f]
    """
    return link_shared([compile_ir(text)], allowed_imports=["abs"])


def refused(data, code, machine=EM_X86_64, allowed=("abs",)):
    with pytest.raises(UserError) as caught:
        check_shared(data, machine, allowed)
    assert caught.value.code == code
    return str(caught.value)


def dynamic_at(data: bytes) -> int:
    (count,) = struct.unpack_from("<H", data, 56)
    programs = [struct.unpack_from("<IIQ", data, 64 + 56 * n) for n in range(count)]
    return next(offset for kind, _, offset in programs if kind == 2)


def with_dynamic_tag(data: bytes, old: int, new: int) -> bytes:
    """One tag of the dynamic section replaced by another."""
    patched, at = bytearray(data), dynamic_at(data)
    while struct.unpack_from("<Q", patched, at)[0] != old:
        at += 16
    struct.pack_into("<Q", patched, at, new)
    return bytes(patched)


def with_segment_flags(data: bytes, number: int, flags: int) -> bytes:
    patched = bytearray(data)
    struct.pack_into("<I", patched, 64 + 56 * number + 4, flags)
    return bytes(patched)


def test_what_lld_makes_is_described_too(compile_ir, ld_lld):
    objects = [
        compile_ir("declare i32 @abs(i32)\n" + F + "\ndefine i32 @g() { %r = call i32 @abs(i32 1)\n ret i32 %r }")
    ]
    for style in ("sysv", "gnu", "both"):
        found = check_shared(ld_lld(objects, f"--hash-style={style}", "-soname", "libx.so"), EM_X86_64, ["abs"])
        assert (sorted(found.exports), found.imports, found.soname) == (["f", "g"], ("abs",), "libx.so")
        assert (found.machine_name, found.needed) == ("x86-64", ())


def test_other_machines_are_described(compile_ir, ld_lld):
    arm = ld_lld([compile_ir(F, triple="aarch64-unknown-linux-gnu", cpu="generic")])
    assert describe(arm).machine_name == "aarch64"
    assert check_shared(arm, EM_AARCH64, ()).exports == ("f",)
    assert "is for aarch64, but x86-64 is needed" in refused(arm, "GM0714")


def test_other_libraries_are_refused(compile_ir, ld_lld, tmp_path):
    (tmp_path / "libm.so").write_bytes(ld_lld([compile_ir("define i32 @g() { ret i32 1 }")], "-soname", "libm.so.6"))
    object_ = compile_ir(F)
    data = ld_lld([object_], str(tmp_path / "libm.so"))
    assert describe(data).needed == ("libm.so.6",)
    assert "DT_NEEDED `libm.so.6`" in refused(data, "GM0711")
    assert "DT_RUNPATH `/tmp/mine`" in refused(ld_lld([object_], "-rpath", "/tmp/mine"), "GM0711")
    assert "DT_AUXILIARY `a.so`" in refused(ld_lld([object_], "-f", "a.so"), "GM0711")


def test_code_at_load_time_is_refused(compile_ir, ld_lld):
    constructor = """
    @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @f, ptr null }]
    define void @f() { ret void }
    """
    object_ = compile_ir(constructor).replace(b".ctors", b".ctors")
    assert "DT_INIT" in refused(ld_lld([object_, compile_ir("define void @_init() { ret void }")]), "GM0712")
    chosen = "@f = ifunc i32 (), ptr @pick\ndefine internal ptr @pick() { ret ptr @g }\ndefine internal i32 @g() { ret i32 1 }"
    user = "\ndefine i32 @h() { %r = call i32 @f()\n ret i32 %r }"
    said = refused(ld_lld([compile_ir(chosen + user)]), "GM0712")
    assert "an IRELATIVE relocation" in said
    assert "an ifunc symbol" in said


@pytest.mark.parametrize("tag", [25, 26, 32, 12, 13])
def test_each_tag_that_runs_code_is_refused(library, tag):
    assert "would run code when it is loaded: DT_" in refused(with_dynamic_tag(library, 0x6FFFFFF9, tag), "GM0712")


def test_writable_code_is_refused(library, compile_ir, ld_lld):
    assert "writable and executable" in refused(with_segment_flags(library, 1, 7), "GM0713")
    stack = next(n for n in range(10) if struct.unpack_from("<I", library, 64 + 56 * n)[0] == 0x6474E551)
    assert "executable stack" in refused(with_segment_flags(library, stack, 7), "GM0713")
    assert "text relocations" in refused(with_dynamic_tag(library, 0x6FFFFFF9, 22), "GM0713")
    object_ = compile_ir("@x = global i32 1\n@table = constant [1 x ptr] [ptr @x]", reloc="static")
    assert "text relocations" in refused(ld_lld([object_], "-z", "notext"), "GM0713")


def test_imports_are_those_listed(library):
    assert check_shared(library, EM_X86_64, ["abs"]).imports == ("abs",)
    assert "imports `abs`, which it may not" in refused(library, "GM0715", allowed=())


def test_files_that_are_no_shared_object(compile_ir, library):
    assert "it is a relocatable object" in refused(compile_ir(F), "GM0702")
    assert "not an ELF file" in refused(b"\x7fELG" + library[4:], "GM0702")
    assert "class 1" in refused(library[:4] + b"\1" + library[5:], "GM0702")
    assert "ends at" in refused(library[:700], "GM0701")


def test_segments_on_one_page_are_refused(library):
    patched = bytearray(library)
    struct.pack_into("<Q", patched, 64 + 56 + 16, 0)
    struct.pack_into("<Q", patched, 64 + 56 + 48, 1)
    assert "lies on a page of the one before it" in refused(bytes(patched), "GM0701")


def test_it_reads_what_the_loader_reads_and_not_the_section_headers(library):
    blinded = bytearray(library)
    struct.pack_into("<Q", blinded, 40, 0)
    struct.pack_into("<HHH", blinded, 58, 0, 0, 0)
    assert describe(bytes(blinded)) == describe(library)
