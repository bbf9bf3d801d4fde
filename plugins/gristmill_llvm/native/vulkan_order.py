"""Which launches wait for which: a barrier where an allocation needs one, by epochs, and the note of what is used.

An allocation says in which epoch, counted in barriers, it was last read and last written. The rule is the runtime's own
(``hazards.py`` of the runtime), and both keep it in the same fields.
"""

from __future__ import annotations

ORDER = """
define internal void @order(ptr %device, ptr %commands, ptr %uses, i32 %use.count) alwaysinline #0 {{
entry:
  %epoch = get %device device.epoch
  %number = get %device device.number
  br label %need.next
need.next:
  %need = phi i32 [ 0, %entry ], [ %need.after, %need.not ]
  %need.more = icmp slt i32 %need, %use.count
  br i1 %need.more, label %need.check, label %note
need.check:
  %need.at = getelementptr i64, ptr %uses, i32 %need
  %need.use = load i64, ptr %need.at, align 8
  %need.bits = and i64 %need.use, -2
  %need.state = inttoptr i64 %need.bits to ptr
  %need.writes = trunc i64 %need.use to i1
  %read.epoch = get %need.state allocation.read_epoch
  %write.epoch = get %need.state allocation.write_epoch
  %was.written = icmp eq i64 %write.epoch, %epoch
  %was.read = icmp eq i64 %read.epoch, %epoch
  %conflict = and i1 %was.read, %need.writes
  %must.wait = or i1 %was.written, %conflict
  br i1 %must.wait, label %barrier, label %need.not
need.not:
  %need.after = add i32 %need, 1
  br label %need.next
barrier:
  %stages = get %device device.stages
  %memory.barrier = get %device device.memory_barrier
  %pipeline.barrier = get %device device.pipeline_barrier
  call void %pipeline.barrier(ptr %commands, i32 %stages, i32 %stages, i32 0, i32 1, ptr %memory.barrier, i32 0, \
ptr null, i32 0, ptr null)
  ; All that is recorded from here on are launches, until the runtime says something else.
  %launch.barrier = get %device device.launch_barrier
  put {launches}, %device device.stages
  put %launch.barrier, %device device.memory_barrier
  %epoch.next = add i64 %epoch, 1
  put %epoch.next, %device device.epoch
  br label %note
note:
  %epoch.now = phi i64 [ %epoch, %need.next ], [ %epoch.next, %barrier ]
  br label %note.next
note.next:
  %noted = phi i32 [ 0, %note ], [ %noted.after, %note.done ]
  %note.more = icmp slt i32 %noted, %use.count
  br i1 %note.more, label %note.put, label %done
note.put:
  %noted.at = getelementptr i64, ptr %uses, i32 %noted
  %noted.use = load i64, ptr %noted.at, align 8
  %noted.bits = and i64 %noted.use, -2
  %noted.state = inttoptr i64 %noted.bits to ptr
  %noted.writes = trunc i64 %noted.use to i1
  put %number, %noted.state allocation.last_use
  br i1 %noted.writes, label %note.write, label %note.read
note.write:
  put %epoch.now, %noted.state allocation.write_epoch
  br label %note.done
note.read:
  put %epoch.now, %noted.state allocation.read_epoch
  br label %note.done
note.done:
  %noted.after = add i32 %noted, 1
  br label %note.next
done:
  ret void
}}"""
