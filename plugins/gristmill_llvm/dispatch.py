"""The dispatching function that host parts export; its table is that of :mod:`gristmill.codegen.dispatch_table`."""

from __future__ import annotations

from gristmill.codegen import dispatch_table as table
from gristmill.codegen.packed_interface import ANY_BYTES, ANY_VALUE_OFFSET, OBJECT_HEADER_BYTES
from gristmill.ir.host_interface import TypeIndex
from gristmill_llvm.packed import TENSOR_DEVICE_TYPE

DISPATCH = f"""
define dso_local i32 @{table.DISPATCH_SYMBOL}(ptr %self, ptr %args, i32 %count, ptr %result) #0 {{
entry:
  %wide = sext i32 %count to i64
  br label %next
next:
  %place = phi i64 [ 0, %entry ], [ %following, %skip ]
  %more = icmp slt i64 %place, %wide
  br i1 %more, label %look, label %choose
look:
  %distance = mul i64 %place, {ANY_BYTES}
  %any = getelementptr i8, ptr %args, i64 %distance
  %kind = load i32, ptr %any, align 8
  %bare = icmp eq i32 %kind, {TypeIndex.DLTENSOR:d}
  %object = icmp eq i32 %kind, {TypeIndex.TENSOR:d}
  %array = or i1 %bare, %object
  br i1 %array, label %found, label %skip
skip:
  %following = add i64 %place, 1
  br label %next
found:
  %value = getelementptr i8, ptr %any, i64 {ANY_VALUE_OFFSET}
  %held = load ptr, ptr %value, align 8
  %inside = getelementptr i8, ptr %held, i64 {OBJECT_HEADER_BYTES}
  %tensor = select i1 %bare, ptr %held, ptr %inside
  %type.place = getelementptr i8, ptr %tensor, i64 {TENSOR_DEVICE_TYPE}
  %type.narrow = load i32, ptr %type.place, align 4
  %type = sext i32 %type.narrow to i64
  %entries = load i64, ptr %self, align 8
  br label %try
try:
  %number = phi i64 [ 0, %found ], [ %number.next, %other ]
  %left = icmp ult i64 %number, %entries
  br i1 %left, label %compare, label %choose
compare:
  %entry.distance = mul i64 %number, {table.ENTRY_BYTES}
  %entry.offset = add i64 %entry.distance, {table.ENTRIES}
  %entry.place = getelementptr i8, ptr %self, i64 %entry.offset
  %entry.type = load i64, ptr %entry.place, align 8
  %same = icmp eq i64 %entry.type, %type
  %chosen.offset = add i64 %entry.offset, 8
  br i1 %same, label %choose, label %other
other:
  %number.next = add i64 %number, 1
  br label %try
choose:
  %offset = phi i64 [ {table.WITHOUT_ARRAYS}, %next ], [ {table.UNKNOWN}, %try ], [ %chosen.offset, %compare ]
  %code.place = getelementptr i8, ptr %self, i64 %offset
  %code = load ptr, ptr %code.place, align 8
  %own.place = getelementptr i8, ptr %code.place, i64 8
  %own = load ptr, ptr %own.place, align 8
  %status = tail call i32 %code(ptr %own, ptr %args, i32 %count, ptr %result)
  ret i32 %status
}}"""
