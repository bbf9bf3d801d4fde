"""The functions, in LLVM IR, that make the text of an error message and raise it.

They are the same for all modules, so they are an object of their own, compiled once a process and linked to each module
that raises anything. None is optimised (optnone): they run once, before an exception.
"""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.ir.packed_texts import DTYPE_TEXTS, KIND_TEXTS, OTHER_DTYPE_TEXT, OTHER_KIND_TEXT, VECTOR_DTYPE_TEXT
from gristmill_llvm.messages import MESSAGES, TEXTS, Form, MessageTable
from gristmill_llvm.writer import ModuleWriter

RAISE = "gristmill.raise"

_ROOM = 96
"""Bytes that the text of a value may take with its NUL; the longest is OTHER_KIND_TEXT with a number."""

_NO_KEY = -(1 << 31)
"""What ends a table of texts by number; the text beside it is for all other numbers."""

# A number in a text stands as one byte: 1 for all of the value, or a field of a dtype.
_HOLES = {"index": "\x01", "code": "\x02", "bits": "\x03", "lanes": "\x04"}

_COLD = "cold noinline optnone #0"

# %message: where it begins in %messages; %values: one i64 a value; %texts, %messages: the constants of the module.
_RAISE = """
define hidden void @{name}(i32 %message, ptr %values, ptr %texts, ptr %messages) {cold} {{
entry:
  %start = getelementptr i32, ptr %messages, i32 %message
  %kind.offset = load i32, ptr %start, align 4
  %kind = getelementptr i8, ptr %texts, i32 %kind.offset
  %count.at = getelementptr i32, ptr %start, i32 1
  %count = load i32, ptr %count.at, align 4
  %first = getelementptr i32, ptr %start, i32 2
  %parts = alloca ptr, i32 %count, align 8
  %room.bytes = mul i32 %count, {one}
  %room = alloca i8, i32 %room.bytes, align 1
  br label %next
next:
  %index = phi i32 [ 0, %entry ], [ %index.next, %keep ]
  %value.index = phi i32 [ 0, %entry ], [ %value.next, %keep ]
  %more = icmp slt i32 %index, %count
  br i1 %more, label %part, label %done
part:
  %part.at = getelementptr i32, ptr %first, i32 %index
  %number = load i32, ptr %part.at, align 4
  %constant = getelementptr i8, ptr %texts, i32 %number
  %is.text = icmp sge i32 %number, 0
  br i1 %is.text, label %keep, label %value
value:
  %value.at = getelementptr i64, ptr %values, i32 %value.index
  %value.given = load i64, ptr %value.at, align 8
  %room.index = mul i32 %value.index, {one}
  %room.at = getelementptr i8, ptr %room, i32 %room.index
  %end = call ptr @gristmill.show(ptr %room.at, i64 %value.given, i32 %number)
  store i8 0, ptr %end, align 1
  %value.after = add i32 %value.index, 1
  br label %keep
keep:
  %found = phi ptr [ %constant, %part ], [ %room.at, %value ]
  %value.next = phi i32 [ %value.index, %part ], [ %value.after, %value ]
  %keep.at = getelementptr ptr, ptr %parts, i32 %index
  store ptr %found, ptr %keep.at, align 8
  %index.next = add i32 %index, 1
  br label %next
done:
  call void @TVMFFIErrorSetRaisedFromCStrParts(ptr %kind, ptr %parts, i32 %count)
  ret void
}}"""

# The functions below write at %at and give the place after what they wrote.

_UNSIGNED = """
define internal ptr @gristmill.show.unsigned(ptr %at, i64 %value) {cold} {{
entry:
  %rest = udiv i64 %value, 10
  %is.last = icmp eq i64 %rest, 0
  br i1 %is.last, label %digit, label %before
before:
  %after = call ptr @gristmill.show.unsigned(ptr %at, i64 %rest)
  br label %digit
digit:
  %place = phi ptr [ %at, %entry ], [ %after, %before ]
  %last = urem i64 %value, 10
  %narrow = trunc i64 %last to i8
  %character = add i8 %narrow, 48
  store i8 %character, ptr %place, align 1
  %end = getelementptr i8, ptr %place, i64 1
  ret ptr %end
}}"""

_SIGNED = """
define internal ptr @gristmill.show.signed(ptr %at, i64 %value) {cold} {{
entry:
  %is.negative = icmp slt i64 %value, 0
  br i1 %is.negative, label %minus, label %digits
minus:
  store i8 45, ptr %at, align 1
  %after = getelementptr i8, ptr %at, i64 1
  %opposite = sub i64 0, %value
  br label %digits
digits:
  %place = phi ptr [ %at, %entry ], [ %after, %minus ]
  %magnitude = phi i64 [ %value, %entry ], [ %opposite, %minus ]
  %end = call ptr @gristmill.show.unsigned(ptr %place, i64 %magnitude)
  ret ptr %end
}}"""

# %text: an offset in the texts of this object; the bytes of _HOLES in it stand for numbers from %value.
_TEXT = """
define internal ptr @gristmill.show.text(ptr %at, i64 %value, i32 %text) {cold} {{
entry:
  %start = getelementptr i8, ptr {texts}, i32 %text
  br label %next
next:
  %from = phi ptr [ %start, %entry ], [ %from.next, %copy ], [ %from.next, %number ]
  %to = phi ptr [ %at, %entry ], [ %to.next, %copy ], [ %to.after, %number ]
  %character = load i8, ptr %from, align 1
  %from.next = getelementptr i8, ptr %from, i64 1
  switch i8 %character, label %copy [ i8 0, label %done  i8 1, label %number  i8 2, label %code
                                      i8 3, label %bits  i8 4, label %lanes ]
copy:
  store i8 %character, ptr %to, align 1
  %to.next = getelementptr i8, ptr %to, i64 1
  br label %next
code:
  %code.value = and i64 %value, 255
  br label %number
bits:
  %bits.shifted = lshr i64 %value, 8
  %bits.value = and i64 %bits.shifted, 255
  br label %number
lanes:
  %lanes.shifted = lshr i64 %value, 16
  %lanes.value = and i64 %lanes.shifted, 65535
  br label %number
number:
  %shown = phi i64 [ %value, %next ], [ %code.value, %code ], [ %bits.value, %bits ], [ %lanes.value, %lanes ]
  %to.after = call ptr @gristmill.show.signed(ptr %to, i64 %shown)
  br label %next
done:
  ret ptr %to
}}"""

# %table: where pairs (key, offset of a text) begin in the numbers of this object.
_FIND = """
define internal i32 @gristmill.find.text(i32 %table, i64 %key) {cold} {{
entry:
  %start = getelementptr i32, ptr {messages}, i32 %table
  %narrow = trunc i64 %key to i32
  br label %next
next:
  %at = phi ptr [ %start, %entry ], [ %at.next, %other ]
  %known = load i32, ptr %at, align 4
  %at.next = getelementptr i32, ptr %at, i32 2
  %is.it = icmp eq i32 %known, %narrow
  br i1 %is.it, label %found, label %other
other:
  %is.last = icmp eq i32 %known, {no_key}
  br i1 %is.last, label %found, label %next
found:
  %text.at = getelementptr i32, ptr %at, i32 1
  %text = load i32, ptr %text.at, align 4
  ret i32 %text
}}"""

_SHOW = """
define internal ptr @gristmill.show(ptr %at, i64 %value, i32 %form) {cold} {{
entry:
  switch i32 %form, label %unsigned [ i32 {signed_form}, label %signed  i32 {bool_form}, label %bool
                                      i32 {kind_form}, label %kind  i32 {dtype_form}, label %dtype ]
unsigned:
  %unsigned.end = call ptr @gristmill.show.unsigned(ptr %at, i64 %value)
  ret ptr %unsigned.end
signed:
  %signed.end = call ptr @gristmill.show.signed(ptr %at, i64 %value)
  ret ptr %signed.end
bool:
  %truth = icmp ne i64 %value, 0
  %word = select i1 %truth, i32 {true}, i32 {false}
  br label %text
kind:
  %kind.text = call i32 @gristmill.find.text(i32 {kinds}, i64 %value)
  br label %text
dtype:
  %code = and i64 %value, 255
  %code.text = call i32 @gristmill.find.text(i32 {dtypes}, i64 %code)
  %lanes.shifted = lshr i64 %value, 16
  %lanes = and i64 %lanes.shifted, 65535
  %is.scalar = icmp eq i64 %lanes, 1
  %dtype.text = select i1 %is.scalar, i32 %code.text, i32 {vector}
  br label %text
text:
  %chosen = phi i32 [ %word, %bool ], [ %kind.text, %kind ], [ %dtype.text, %dtype ]
  %text.end = call ptr @gristmill.show.text(ptr %at, i64 %value, i32 %chosen)
  ret ptr %text.end
}}"""


def support_text(triple: str) -> str:
    """The LLVM IR of a module that defines :data:`RAISE`, for any machine of a triple."""
    writer = ModuleWriter(triple, "messages", 'nounwind "no-builtins"')
    writer.declare("TVMFFIErrorSetRaisedFromCStrParts", "void", "ptr, ptr, i32")
    table = MessageTable()
    holes = {
        "name": RAISE,
        "cold": _COLD,
        "texts": TEXTS,
        "messages": MESSAGES,
        "one": _ROOM,
        "no_key": _NO_KEY,
        **{f"{form.name.lower()}_form": int(form) for form in Form},
        "true": table.text("True"),
        "false": table.text("False"),
        "kinds": _texts_by_number(table, KIND_TEXTS, OTHER_KIND_TEXT),
        "dtypes": _texts_by_number(table, DTYPE_TEXTS, OTHER_DTYPE_TEXT),
        "vector": table.text(_with_holes(VECTOR_DTYPE_TEXT)),
    }
    writer.functions += [text.format(**holes) for text in (_UNSIGNED, _SIGNED, _TEXT, _FIND, _SHOW, _RAISE)]
    table.define(writer)
    return writer.text()


def _texts_by_number(table: MessageTable, texts: Mapping[int, str], other: str) -> int:
    numbers = []
    for key, text in (*texts.items(), (_NO_KEY, other)):
        numbers += [key, table.text(_with_holes(text))]
    return table.numbers(numbers)


def _with_holes(text: str) -> str:
    return text.format(**_HOLES)
