"""Functions that generated code calls and that are part of its object: error messages, memory.

They are LLVM IR written here; a module gets those that it calls. Nothing of them comes from libc.
"""

from __future__ import annotations

from gristmill_llvm.writer import ModuleWriter

FORM_TEXT, FORM_SIGNED, FORM_UNSIGNED, FORM_BOOL = range(4)
"""What a part of an error message is: a constant text, or the next value in one of these forms."""

RAISE_ERROR = "gristmill.raise"
ALLOCATE = "gristmill.allocate"
RELEASE = "gristmill.release"
TENSOR_DATA_ALIGNMENT = 64

TVM_FFI_IMPORTS = (
    "TVMFFIBigIntFromByteArray",
    "TVMFFIErrorSetRaisedFromCStrParts",
    "TVMFFIFunctionCall",
    "TVMFFIFunctionGetGlobal",
    "TVMFFIObjectDecRef",
    "TVMFFITensorCreateUnsafeView",
    "TVMFFITensorFromDLPack",
)
"""Every symbol that an object may import: functions of the C API of apache-tvm-ffi (tvm/ffi/c_api.h)."""

_ROOM = 24  # "-9223372036854775808" or "18446744073709551615" with its NUL

# Not optimised (optnone): it runs once, before an exception, and would take as long to compile as a small kernel.
# %description: { ptr kind, i64 count, [count x { ptr text, i64 form }] }; %values: one i64 a value.
_RAISE = """
define internal void @gristmill.raise(ptr %description, ptr %values) cold noinline optnone #0 {{
entry:
  %parts = alloca [{parts} x ptr], align 8
  %room = alloca [{room} x i8], align 1
  %kind = load ptr, ptr %description, align 8
  %count.at = getelementptr inbounds i8, ptr %description, i64 8
  %count = load i64, ptr %count.at, align 8
  %entries = getelementptr inbounds i8, ptr %description, i64 16
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %index.next, %keep ]
  %value.index = phi i64 [ 0, %entry ], [ %value.next, %keep ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %part, label %done
part:
  %offset = shl i64 %index, 4
  %text.at = getelementptr inbounds i8, ptr %entries, i64 %offset
  %form.at = getelementptr inbounds i8, ptr %text.at, i64 8
  %form = load i64, ptr %form.at, align 8
  %is.text = icmp eq i64 %form, 0
  br i1 %is.text, label %text, label %value
text:
  %constant = load ptr, ptr %text.at, align 8
  br label %keep
value:
  %value.at = getelementptr inbounds i64, ptr %values, i64 %value.index
  %number = load i64, ptr %value.at, align 8
  %value.after = add i64 %value.index, 1
  %is.bool = icmp eq i64 %form, 3
  br i1 %is.bool, label %bool, label %decimal
bool:
  %truth = icmp ne i64 %number, 0
  %word = select i1 %truth, ptr {true}, ptr {false}
  br label %keep
decimal:
  %is.signed = icmp eq i64 %form, 1
  %is.below = icmp slt i64 %number, 0
  %negative = and i1 %is.signed, %is.below
  %opposite = sub i64 0, %number
  %magnitude = select i1 %negative, i64 %opposite, i64 %number
  %end.index = mul i64 %value.after, {one}
  %end = getelementptr i8, ptr %room, i64 %end.index
  %nul = getelementptr i8, ptr %end, i64 -1
  store i8 0, ptr %nul, align 1
  br label %digit
digit:
  %rest = phi i64 [ %magnitude, %decimal ], [ %quotient, %digit ]
  %behind = phi ptr [ %nul, %decimal ], [ %at, %digit ]
  %quotient = udiv i64 %rest, 10
  %digit.value = urem i64 %rest, 10
  %digit.narrow = trunc i64 %digit.value to i8
  %character = add i8 %digit.narrow, 48
  %at = getelementptr i8, ptr %behind, i64 -1
  store i8 %character, ptr %at, align 1
  %last = icmp eq i64 %quotient, 0
  br i1 %last, label %sign, label %digit
sign:
  %before = getelementptr i8, ptr %at, i64 -1
  br i1 %negative, label %minus, label %keep
minus:
  store i8 45, ptr %before, align 1
  br label %keep
keep:
  %found = phi ptr [ %constant, %text ], [ %word, %bool ], [ %at, %sign ], [ %before, %minus ]
  %value.next = phi i64 [ %value.index, %text ], [ %value.after, %bool ], [ %value.after, %sign ], [ %value.after, %minus ]
  %keep.at = getelementptr inbounds ptr, ptr %parts, i64 %index
  store ptr %found, ptr %keep.at, align 8
  %index.next = add i64 %index, 1
  br label %next
done:
  %count.narrow = trunc i64 %count to i32
  call void @TVMFFIErrorSetRaisedFromCStrParts(ptr %kind, ptr %parts, i32 %count.narrow)
  ret void
}}"""

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


def define_support(writer: ModuleWriter, names: set[str], message_parts: int) -> None:
    """Add the support functions of these names; ``message_parts`` is the most parts an error message has."""
    if RAISE_ERROR in names:
        writer.declare("TVMFFIErrorSetRaisedFromCStrParts", "void", "ptr, ptr, i32")
        writer.functions.append(
            _RAISE.format(
                parts=message_parts,
                room=_ROOM * message_parts,
                one=_ROOM,
                true=writer.string("True"),
                false=writer.string("False"),
            )
        )
    if ALLOCATE in names:
        writer.functions.append(_ALLOCATE_X86_64)
    if RELEASE in names:
        writer.functions.append(_RELEASE_X86_64)
