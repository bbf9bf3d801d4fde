"""Functions that generated code calls and that are part of its object: memory.

They are LLVM IR written here; a module gets those that it calls. Nothing of them comes from libc.
"""

from __future__ import annotations

from gristmill_llvm.writer import ModuleWriter

ALLOCATE = "gristmill.allocate"
RELEASE = "gristmill.release"

# System calls of Linux on x86-64 (man 2 syscall): the number in rax, which returns the result; rcx and r11 are lost.
# mmap is 9, munmap 11; PROT_READ | PROT_WRITE is 3, MAP_PRIVATE | MAP_ANONYMOUS is 0x22. Errors are -4095 .. -1.
_ALLOCATE_X86_64 = """
define internal ptr @gristmill.allocate(i64 %size) noinline #0 {
entry:
  %address = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},{rdx},{r10},{r8},{r9},~{rcx},~{r11},~{memory}"\
(i64 9, i64 0, i64 %size, i64 3, i64 34, i64 -1, i64 0)
  %wrong = icmp ugt i64 %address, -4096
  %pointer = inttoptr i64 %address to ptr
  %found = select i1 %wrong, ptr null, ptr %pointer
  ret ptr %found
}"""
_RELEASE_X86_64 = """
define internal void @gristmill.release(ptr %pointer, i64 %size) noinline #0 {
entry:
  %address = ptrtoint ptr %pointer to i64
  %ignored = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}"\
(i64 11, i64 %address, i64 %size)
  ret void
}"""


def define_support(writer: ModuleWriter, names: set[str]) -> None:
    """Add the support functions of these names."""
    if ALLOCATE in names:
        writer.functions.append(_ALLOCATE_X86_64)
    if RELEASE in names:
        writer.functions.append(_RELEASE_X86_64)
