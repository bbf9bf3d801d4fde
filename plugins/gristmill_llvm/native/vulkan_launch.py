"""Recording of a launch of a Vulkan kernel, as machine code: what a context table's ``launch`` points to.

``gristmill_vulkan_launch`` has the signature of that field (:mod:`gristmill.codegen.context_table`); its device is a
:data:`DEVICE`, its kernel a :data:`KERNEL`. It packs the arguments into the block of parameters, finds the allocation
of each address, puts a barrier before the dispatch where an allocation needs one, notes the uses, and records: no
interpreter takes part. Everything unusual goes to the runtime's own launch (``slow_launch``), before anything is
changed: a kernel that was never launched with this block and this dynamic shared memory, an address that is unknown, an
extent over a limit, no command buffer, an argument of another kind than the record says, or ``busy`` being set.

``busy`` is a lock that is never waited for here. ``gristmill_vulkan_acquire`` takes it for whoever else changes what the
device's state says, and says with 1 that it did; ``gristmill_vulkan_release`` gives it back.

The runtime's ``flush`` is called, once the launch is recorded, where it should be submitted: there are enough of them,
recording was begun so long ago that ``deadline`` has passed (nanoseconds of the monotonic clock), or ``early`` has and the
device has done all else (``last_fence``). Before that an idle device waits: were each of many launches submitted by
itself, submitting them would take longer than running them.
"""

from __future__ import annotations

from gristmill.codegen.packed_interface import ANY_BYTES, ANY_VALUE_OFFSET
from gristmill.ir.host_interface import TypeIndex
from gristmill_llvm.native.layout import define_layout, layout_text, with_fields
from gristmill_llvm.native.vulkan_arguments import FIND, PACK
from gristmill_llvm.native.vulkan_order import ORDER
from gristmill_llvm.native.vulkan_structures import (
    BUFFERS_AT_MOST,
    LAYOUT_VERSION,
    PUSH_BYTES_AT_MOST,
    SLOT,
    STRUCTURES,
)
from gristmill_llvm.writer import ModuleWriter

NAME = "vulkan_launch"
LAUNCH, ACQUIRE, RELEASE = "gristmill_vulkan_launch", "gristmill_vulkan_acquire", "gristmill_vulkan_release"
EXPORTS = (LAUNCH, ACQUIRE, RELEASE)

# VkPipelineBindPoint, VkShaderStageFlagBits, VkPipelineStageFlagBits, VkResult (Vulkan specification); clockid_t of Linux.
_COMPUTE_POINT, _COMPUTE_STAGE, _LAUNCHES, _NOT_READY, _CLOCK_MONOTONIC = 1, 0x20, 0x800, 1, 1
_LAUNCHES_BETWEEN_LOOKS = 8


def module_text(triple: str) -> str:
    """The LLVM IR of the object."""
    writer = ModuleWriter(triple, NAME, 'nounwind "no-builtins"')
    limits = {"buffers": BUFFERS_AT_MOST, "push_bytes": PUSH_BYTES_AT_MOST}
    define_layout(writer, layout_text(LAYOUT_VERSION, limits, STRUCTURES))
    values = {
        "launch": LAUNCH,
        "acquire": ACQUIRE,
        "release": RELEASE,
        "buffers": BUFFERS_AT_MOST,
        "infos": BUFFERS_AT_MOST + 1,
        "push_bytes": PUSH_BYTES_AT_MOST,
        "any": ANY_BYTES,
        "value": ANY_VALUE_OFFSET,
        "int": int(TypeIndex.INT),
        "bool": int(TypeIndex.BOOL),
        "float": int(TypeIndex.FLOAT),
        "pointer": int(TypeIndex.POINTER),
        "point": _COMPUTE_POINT,
        "stage": _COMPUTE_STAGE,
        "launches": _LAUNCHES,
        "slot_bytes": SLOT.size,
        "monotonic": _CLOCK_MONOTONIC,
        "not_ready": _NOT_READY,
        "turns": _LAUNCHES_BETWEEN_LOOKS - 1,
    }
    parts = (_LOCK, FIND, PACK, ORDER, _LAUNCH)
    writer.functions += [with_fields(part, STRUCTURES).format(**values) for part in parts]
    return writer.text()


# busy is the first field of a device.
_LOCK = """
define i32 @{acquire}(ptr %device) #0 {{
entry:
  %pair = cmpxchg ptr %device, i32 0, i32 1 acquire monotonic, align 4
  %done = extractvalue {{ i32, i1 }} %pair, 1
  %result = zext i1 %done to i32
  ret i32 %result
}}

define void @{release}(ptr %device) #0 {{
entry:
  store atomic i32 0, ptr %device release, align 4
  ret void
}}"""

_LAUNCH = """
define i32 @{launch}(ptr %device, ptr %kernel, ptr %args, i32 %arg.count, ptr %extents, i32 %axis.count, \
i64 %dynamic) #0 {{
entry:
  %small = alloca [{push_bytes} x i8], align 8
  %pushed = alloca i64, align 8
  %uses = alloca [{buffers} x i64], align 8
  ; One more for the block.
  %infos = alloca [{infos} x [3 x i64]], align 8
  %sizes = alloca [6 x i64], align 8
  %time = alloca [2 x i64], align 8
  %slow.device = get %device device.slow_device
  %slow.launch = get %device device.slow_launch
  %taken = call i32 @{acquire}(ptr %device)
  %is.taken = icmp ne i32 %taken, 0
  br i1 %is.taken, label %begin, label %slow

begin:
  %commands = get %device device.commands
  %has.commands = icmp ne ptr %commands, null
  br i1 %has.commands, label %begin.kernel, label %give.up
begin.kernel:
  %form = get %kernel kernel.form
  %is.ours = icmp ne i32 %form, 0
  %pipeline = get %kernel kernel.pipeline
  %has.pipeline = icmp ne i64 %pipeline, 0
  %expected.dynamic = get %kernel kernel.dynamic
  %same.dynamic = icmp eq i64 %expected.dynamic, %dynamic
  %expected.args = get %kernel kernel.argument_count
  %same.args = icmp eq i32 %expected.args, %arg.count
  %expected.axes = get %kernel kernel.axis_count
  %same.axes = icmp eq i32 %expected.axes, %axis.count
  %fit.1 = and i1 %is.ours, %has.pipeline
  %fit.2 = and i1 %same.dynamic, %same.args
  %fit.3 = and i1 %fit.1, %fit.2
  %fit = and i1 %fit.3, %same.axes
  br i1 %fit, label %launch.sizes, label %give.up

launch.sizes:
  ; What the kernel has no axis for is one block of one thread.
  store [6 x i64] [ i64 1, i64 1, i64 1, i64 1, i64 1, i64 1 ], ptr %sizes, align 8
  %axes = get %kernel kernel.axes
  br label %axis.next
axis.next:
  %axis = phi i32 [ 0, %launch.sizes ], [ %axis.after, %axis.put ]
  %axis.more = icmp slt i32 %axis, %axis.count
  br i1 %axis.more, label %axis.put, label %axis.done
axis.put:
  %axis.kind.at = getelementptr i32, ptr %axes, i32 %axis
  %axis.kind = load i32, ptr %axis.kind.at, align 4
  %extent.at = getelementptr i64, ptr %extents, i32 %axis
  %extent = load i64, ptr %extent.at, align 8
  %size.at = getelementptr i64, ptr %sizes, i32 %axis.kind
  store i64 %extent, ptr %size.at, align 8
  %axis.after = add i32 %axis, 1
  br label %axis.next
axis.done:
  %grid.x = load i64, ptr %sizes, align 8
  %grid.y.at = getelementptr i64, ptr %sizes, i64 1
  %grid.y = load i64, ptr %grid.y.at, align 8
  %grid.z.at = getelementptr i64, ptr %sizes, i64 2
  %grid.z = load i64, ptr %grid.z.at, align 8
  %block.x.at = getelementptr i64, ptr %sizes, i64 3
  %block.x = load i64, ptr %block.x.at, align 8
  %block.y.at = getelementptr i64, ptr %sizes, i64 4
  %block.y = load i64, ptr %block.y.at, align 8
  %block.z.at = getelementptr i64, ptr %sizes, i64 5
  %block.z = load i64, ptr %block.z.at, align 8
  %expected.x = get %kernel kernel.block_x
  %expected.y = get %kernel kernel.block_y
  %expected.z = get %kernel kernel.block_z
  %same.x = icmp eq i64 %block.x, %expected.x
  %same.y = icmp eq i64 %block.y, %expected.y
  %same.z = icmp eq i64 %block.z, %expected.z
  %limit.x = get %device device.grid_x
  %limit.y = get %device device.grid_y
  %limit.z = get %device device.grid_z
  ; Less one, so that no blocks, or less, are too many.
  %less.x = sub i64 %grid.x, 1
  %less.y = sub i64 %grid.y, 1
  %less.z = sub i64 %grid.z, 1
  %fits.x = icmp ult i64 %less.x, %limit.x
  %fits.y = icmp ult i64 %less.y, %limit.y
  %fits.z = icmp ult i64 %less.z, %limit.z
  %size.1 = and i1 %same.x, %same.y
  %size.2 = and i1 %same.z, %fits.x
  %size.3 = and i1 %fits.y, %fits.z
  %size.4 = and i1 %size.1, %size.2
  %size.fits = and i1 %size.3, %size.4
  br i1 %size.fits, label %block.place, label %give.up

block.place:
  %block.bytes.narrow = get %kernel kernel.block_bytes
  %block.bytes = zext i32 %block.bytes.narrow to i64
  %is.pushed = icmp eq i32 %form, 1
  br i1 %is.pushed, label %block.small, label %block.memory
block.small:
  %used.still = get %device device.block_used
  br label %pack
block.memory:
  %memory = get %device device.block_memory
  %used = get %device device.block_used
  %room = get %device device.block_size
  %step = get %device device.block_alignment
  %step.less = sub i64 %step, 1
  %used.up = add i64 %used, %step.less
  %step.mask = sub i64 0, %step
  %block.start = and i64 %used.up, %step.mask
  %block.end = add i64 %block.start, %block.bytes
  %has.room = icmp ule i64 %block.end, %room
  %has.memory = icmp ne ptr %memory, null
  %can.place = and i1 %has.room, %has.memory
  br i1 %can.place, label %block.found, label %give.up
block.found:
  %block.at = getelementptr i8, ptr %memory, i64 %block.start
  br label %pack

pack:
  %block = phi ptr [ %small, %block.small ], [ %block.at, %block.found ]
  %memory.start = phi i64 [ 0, %block.small ], [ %block.start, %block.found ]
  %memory.end = phi i64 [ %used.still, %block.small ], [ %block.end, %block.found ]
  %counts = call i32 @pack(ptr %device, ptr %kernel, ptr %args, i32 %arg.count, ptr %block, ptr %uses, ptr %infos)
  %is.unusual = icmp eq i32 %counts, -1
  br i1 %is.unusual, label %give.up, label %record
record:
  ; From here on the launch is recorded, whatever comes.
  %use.count = and i32 %counts, 65535
  %info.count = lshr i32 %counts, 16
  call void @order(ptr %device, ptr %commands, ptr %uses, i32 %use.count)
  br label %bind

bind:
  %bound = get %device device.bound_pipeline
  %is.bound = icmp eq i64 %bound, %pipeline
  br i1 %is.bound, label %push, label %bind.now
bind.now:
  %bind.pipeline = get %device device.bind_pipeline
  call void %bind.pipeline(ptr %commands, i32 {point}, i64 %pipeline)
  put %pipeline, %device device.bound_pipeline
  br label %push

push:
  %layout = get %kernel kernel.layout
  put %memory.end, %device device.block_used
  switch i32 %form, label %push.uniform [ i32 1, label %push.block  i32 2, label %push.address ]
push.block:
  %has.block = icmp ne i32 %block.bytes.narrow, 0
  br i1 %has.block, label %push.now, label %descriptors
push.address:
  %block.address = get %device device.block_address
  %pushed.address = add i64 %block.address, %memory.start
  store i64 %pushed.address, ptr %pushed, align 8
  br label %push.now
push.now:
  %push.from = phi ptr [ %small, %push.block ], [ %pushed, %push.address ]
  %push.count = phi i32 [ %block.bytes.narrow, %push.block ], [ 8, %push.address ]
  %push.constants = get %device device.push_constants
  call void %push.constants(ptr %commands, i64 %layout, i32 {stage}, i32 0, i32 %push.count, ptr %push.from)
  br label %descriptors
push.uniform:
  %uniform = getelementptr [3 x i64], ptr %infos, i32 %info.count
  %uniform.buffer = get %device device.block_buffer
  %uniform.base = get %device device.block_offset
  %uniform.start = add i64 %uniform.base, %memory.start
  store i64 %uniform.buffer, ptr %uniform, align 8
  %uniform.offset = getelementptr i64, ptr %uniform, i64 1
  store i64 %uniform.start, ptr %uniform.offset, align 8
  %uniform.range = getelementptr i64, ptr %uniform, i64 2
  store i64 %block.bytes, ptr %uniform.range, align 8
  br label %descriptors
descriptors:
  %template = get %kernel kernel.template
  %has.template = icmp ne i64 %template, 0
  br i1 %has.template, label %descriptors.push, label %label
descriptors.push:
  %push.descriptors = get %device device.push_descriptors
  call void %push.descriptors(ptr %commands, i64 %template, i64 %layout, i32 0, ptr %infos)
  br label %label

label:
  %label.text = get %kernel kernel.label
  %has.label = icmp ne ptr %label.text, null
  br i1 %has.label, label %label.begin, label %dispatch
label.begin:
  %begin.label = get %device device.begin_label
  call void %begin.label(ptr %commands, ptr %label.text)
  br label %dispatch
dispatch:
  %dispatch.code = get %device device.dispatch
  %groups.x = trunc i64 %grid.x to i32
  %groups.y = trunc i64 %grid.y to i32
  %groups.z = trunc i64 %grid.z to i32
  call void %dispatch.code(ptr %commands, i32 %groups.x, i32 %groups.y, i32 %groups.z)
  br i1 %has.label, label %label.end, label %count
label.end:
  %end.label = get %device device.end_label
  call void %end.label(ptr %commands)
  br label %count
count:
  %launches = get %device device.launches
  %launches.next = add i64 %launches, 1
  put %launches.next, %device device.launches
  %recorded = get %device device.recorded
  %recorded.next = add i32 %recorded, 1
  put %recorded.next, %device device.recorded
  %batch = get %device device.batch
  %is.full = icmp sge i32 %recorded.next, %batch
  %flush = get %device device.flush
  br i1 %is.full, label %submit, label %look
look:
  %clock = get %device device.clock
  %clock.status = call i32 %clock(i32 {monotonic}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %nanoseconds.at = getelementptr i64, ptr %time, i64 1
  %nanoseconds = load i64, ptr %nanoseconds.at, align 8
  %seconds.long = mul i64 %seconds, 1000000000
  %now = add i64 %seconds.long, %nanoseconds
  %deadline = get %device device.deadline
  %is.late = icmp sge i64 %now, %deadline
  br i1 %is.late, label %submit, label %look.idle
look.idle:
  ; Asking costs something, so not every time, but the first time.
  %early = get %device device.early
  %is.early = icmp slt i64 %now, %early
  %turn = and i32 %recorded.next, {turns}
  %is.turn = icmp eq i32 %turn, 1
  %is.no.turn = xor i1 %is.turn, true
  %asks.not = or i1 %is.early, %is.no.turn
  br i1 %asks.not, label %recorded.only, label %ask
ask:
  %last.fence = get %device device.last_fence
  %has.fence = icmp ne i64 %last.fence, 0
  br i1 %has.fence, label %ask.fence, label %submit
ask.fence:
  %fence.status = get %device device.fence_status
  %handle = get %device device.handle
  %answer = call i32 %fence.status(ptr %handle, i64 %last.fence)
  %is.running = icmp eq i32 %answer, {not_ready}
  br i1 %is.running, label %recorded.only, label %submit
recorded.only:
  call void @{release}(ptr %device)
  ret i32 0
submit:
  call void @{release}(ptr %device)
  %submitted = tail call i32 %flush(ptr %slow.device)
  ret i32 %submitted

give.up:
  call void @{release}(ptr %device)
  br label %slow
slow:
  %status = tail call i32 %slow.launch(ptr %slow.device, ptr %kernel, ptr %args, i32 %arg.count, ptr %extents, \
i32 %axis.count, i64 %dynamic)
  ret i32 %status
}}"""
