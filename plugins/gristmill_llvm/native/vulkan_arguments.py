"""Packing the arguments of a launch: addresses to allocations, values into the block of parameters, arrays to be bound."""

from __future__ import annotations

# The state of the allocation that %address lies in or just behind; null if there is none. %hint: where it was last time.
FIND = """
define internal ptr @find(ptr %starts, ptr %states, i64 %count, i64 %address, ptr %hint) #0 {{
entry:
  %last.narrow = load i32, ptr %hint, align 4
  %last = zext i32 %last.narrow to i64
  %is.place = icmp ult i64 %last, %count
  br i1 %is.place, label %try, label %search
try:
  %tried.at = getelementptr i64, ptr %states, i64 %last
  %tried = load ptr, ptr %tried.at, align 8
  %tried.address = get %tried allocation.address
  %tried.size = get %tried allocation.size
  %tried.offset = sub i64 %address, %tried.address
  ; Just behind it another may begin, which the search prefers.
  %is.inside = icmp ult i64 %tried.offset, %tried.size
  br i1 %is.inside, label %hit, label %search
hit:
  ret ptr %tried
search:
  br label %next
next:
  %low = phi i64 [ 0, %search ], [ %low.next, %halve ]
  %high = phi i64 [ %count, %search ], [ %high.next, %halve ]
  %open = icmp ult i64 %low, %high
  br i1 %open, label %halve, label %found
halve:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %start.at = getelementptr i64, ptr %starts, i64 %middle
  %start = load i64, ptr %start.at, align 8
  %is.below = icmp ule i64 %start, %address
  %after = add i64 %middle, 1
  %low.next = select i1 %is.below, i64 %after, i64 %low
  %high.next = select i1 %is.below, i64 %high, i64 %middle
  br label %next
found:
  %none = icmp eq i64 %low, 0
  br i1 %none, label %unknown, label %check
check:
  %place = sub i64 %low, 1
  %state.at = getelementptr i64, ptr %states, i64 %place
  %state = load ptr, ptr %state.at, align 8
  %address.start = get %state allocation.address
  %size = get %state allocation.size
  %offset = sub i64 %address, %address.start
  %reaches = icmp ule i64 %offset, %size
  br i1 %reaches, label %known, label %unknown
known:
  %place.narrow = trunc i64 %place to i32
  store i32 %place.narrow, ptr %hint, align 4
  ret ptr %state
unknown:
  ret ptr null
}}"""

# Fills %block, %uses (allocations; bit 0 says whether they are written) and %infos (VkDescriptorBufferInfo: buffer,
# offset, range). The result is the number of uses and, from bit 16 on, that of infos; -1 where something is unusual.
PACK = """
define internal i32 @pack(ptr %device, ptr %kernel, ptr %args, i32 %arg.count, ptr %block, ptr %uses, ptr %infos) \
alwaysinline #0 {{
entry:
  %slots = get %kernel kernel.slots
  %starts = get %device device.starts
  %states = get %device device.states
  %count = get %device device.count
  br label %argument.next
argument.next:
  %argument = phi i32 [ 0, %entry ], [ %argument.after, %argument.done ]
  %use.count = phi i32 [ 0, %entry ], [ %use.count.after, %argument.done ]
  %info.count = phi i32 [ 0, %entry ], [ %info.count.after, %argument.done ]
  %argument.more = icmp slt i32 %argument, %arg.count
  br i1 %argument.more, label %argument.put, label %packed
argument.put:
  %slot.start = mul i32 %argument, {slot_bytes}
  %slot = getelementptr i8, ptr %slots, i32 %slot.start
  %any.start = mul i32 %argument, {any}
  %any = getelementptr i8, ptr %args, i32 %any.start
  %kind = load i32, ptr %any, align 8
  %value.at = getelementptr i8, ptr %any, i32 {value}
  %value = load i64, ptr %value.at, align 8
  %slot.offset = get %slot slot.offset
  %slot.form = get %slot slot.form
  %target = getelementptr i8, ptr %block, i32 %slot.offset
  %is.float = icmp eq i32 %kind, {float}
  %is.int.kind = icmp eq i32 %kind, {int}
  %is.bool = icmp eq i32 %kind, {bool}
  %is.int = or i1 %is.int.kind, %is.bool
  %is.pointer = icmp eq i32 %kind, {pointer}
  %truth = icmp ne i64 %value, 0
  %truth.wide = zext i1 %truth to i64
  %integer = select i1 %is.bool, i64 %truth.wide, i64 %value
  switch i32 %slot.form, label %refused [ i32 0, label %array  i32 1, label %array  i32 2, label %put.i32
                                          i32 3, label %put.i64  i32 4, label %put.f32  i32 5, label %put.f64 ]
put.i32:
  br i1 %is.int, label %put.i32.now, label %refused
put.i32.now:
  %narrow = trunc i64 %integer to i32
  store i32 %narrow, ptr %target, align 4
  br label %argument.done
put.i64:
  br i1 %is.int, label %put.i64.now, label %refused
put.i64.now:
  store i64 %integer, ptr %target, align 4
  br label %argument.done
put.f32:
  br i1 %is.float, label %put.f32.now, label %refused
put.f32.now:
  %double = bitcast i64 %value to double
  %single = fptrunc double %double to float
  store float %single, ptr %target, align 4
  br label %argument.done
put.f64:
  br i1 %is.float, label %put.f64.now, label %refused
put.f64.now:
  store i64 %value, ptr %target, align 4
  br label %argument.done
array:
  br i1 %is.pointer, label %array.find, label %refused
array.find:
  %is.null = icmp eq i64 %value, 0
  br i1 %is.null, label %array.nothing, label %array.search
array.nothing:
  %nothing = get %device device.nothing
  br label %array.put
array.search:
  %hint = getelementptr i8, ptr %slot, i32 12
  %found = call ptr @find(ptr %starts, ptr %states, i64 %count, i64 %value, ptr %hint)
  %is.unknown = icmp eq ptr %found, null
  br i1 %is.unknown, label %refused, label %array.use
array.use:
  %writes = get %slot slot.writes
  %writes.wide = zext i32 %writes to i64
  %found.bits = ptrtoint ptr %found to i64
  %use = or i64 %found.bits, %writes.wide
  %use.at = getelementptr i64, ptr %uses, i32 %use.count
  store i64 %use, ptr %use.at, align 8
  %use.count.more = add i32 %use.count, 1
  br label %array.put
array.put:
  %state = phi ptr [ %nothing, %array.nothing ], [ %found, %array.use ]
  %use.count.array = phi i32 [ %use.count, %array.nothing ], [ %use.count.more, %array.use ]
  %is.address = icmp eq i32 %slot.form, 0
  br i1 %is.address, label %array.address, label %array.bind
array.address:
  store i64 %value, ptr %target, align 4
  br label %argument.done
array.bind:
  ; What is bound begins at an aligned offset; how much later the array does stands in the block.
  %array.start = get %state allocation.address
  %array.size = get %state allocation.size
  %array.offset = get %state allocation.offset
  %array.buffer = get %state allocation.buffer
  %given.address = select i1 %is.null, i64 %array.start, i64 %value
  %inside = sub i64 %given.address, %array.start
  %alignment = get %device device.storage_alignment
  %alignment.less = sub i64 %alignment, 1
  %rest = and i64 %inside, %alignment.less
  %bound.start = sub i64 %inside, %rest
  %rest.narrow = trunc i64 %rest to i32
  store i32 %rest.narrow, ptr %target, align 4
  %after.start = sub i64 %array.size, %bound.start
  %rounded = add i64 %after.start, 3
  %words = and i64 %rounded, -4
  %has.words = icmp ugt i64 %words, 4
  %range = select i1 %has.words, i64 %words, i64 4
  %largest = get %device device.largest_range
  %binds = icmp ule i64 %range, %largest
  br i1 %binds, label %array.info, label %refused
array.info:
  %info = getelementptr [3 x i64], ptr %infos, i32 %info.count
  store i64 %array.buffer, ptr %info, align 8
  %bound.offset = add i64 %array.offset, %bound.start
  %info.offset = getelementptr i64, ptr %info, i64 1
  store i64 %bound.offset, ptr %info.offset, align 8
  %info.range = getelementptr i64, ptr %info, i64 2
  store i64 %range, ptr %info.range, align 8
  %info.count.more = add i32 %info.count, 1
  br label %argument.done
argument.done:
  %use.count.after = phi i32 [ %use.count, %put.i32.now ], [ %use.count, %put.i64.now ], [ %use.count, %put.f32.now ],
    [ %use.count, %put.f64.now ], [ %use.count.array, %array.address ], [ %use.count.array, %array.info ]
  %info.count.after = phi i32 [ %info.count, %put.i32.now ], [ %info.count, %put.i64.now ],
    [ %info.count, %put.f32.now ], [ %info.count, %put.f64.now ], [ %info.count, %array.address ],
    [ %info.count.more, %array.info ]
  %argument.after = add i32 %argument, 1
  br label %argument.next
packed:
  %infos.above = shl i32 %info.count, 16
  %counts = or i32 %infos.above, %use.count
  ret i32 %counts
refused:
  ret i32 -1
}}"""
