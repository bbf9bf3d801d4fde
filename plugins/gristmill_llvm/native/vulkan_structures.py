"""What the recording of Vulkan launches shares with the runtime: a device's state, its kernels, allocations, arguments."""

from __future__ import annotations

from gristmill_llvm.native.layout import Structure

LAYOUT_VERSION = 2

BUFFERS_AT_MOST = 32
"""Arrays that a kernel may have to be launched here."""
PUSH_BYTES_AT_MOST = 256
"""Bytes of push constants that a kernel may have to be launched here."""

ALLOCATION = Structure(
    "allocation",
    (
        ("address", "i64"),
        ("size", "i64"),
        ("buffer", "i64"),
        ("offset", "i64"),
        ("last_use", "i64"),
        ("read_epoch", "i64"),
        ("write_epoch", "i64"),
    ),
)

# form: how an argument stands in the block: 0 address, 1 offset, 2 i32, 3 i64, 4 f32, 5 f64. last: where its allocation
# was found in the table of addresses last time.
SLOT = Structure("slot", (("offset", "i32"), ("form", "i32"), ("writes", "i32"), ("last", "i32")))

# form: 0 for kernels that are not launched here, 1 block in push constants, 2 block in memory whose address is pushed,
# 3 block in a uniform buffer. pipeline: that for the block and the dynamic shared memory beside it; null if there is none.
# label: a VkDebugUtilsLabelEXT to put round the dispatch, or null. axes: 0-2 for the blocks along x, y, z, 3-5 for the threads.
KERNEL = Structure(
    "kernel",
    (
        ("form", "i32"),
        ("argument_count", "i32"),
        ("axis_count", "i32"),
        ("block_bytes", "i32"),
        ("slots", "ptr"),
        ("axes", "ptr"),
        ("layout", "i64"),
        ("template", "i64"),
        ("pipeline", "i64"),
        ("block_x", "i64"),
        ("block_y", "i64"),
        ("block_z", "i64"),
        ("dynamic", "i64"),
        ("label", "ptr"),
    ),
)

# stages, memory_barrier: the next barrier, a VkMemoryBarrier between these stages; from the second on launch_barrier, between
# launches only, for nothing but launches has been recorded since.
DEVICE = Structure(
    "device",
    (
        ("busy", "i32"),
        ("batch", "i32"),
        ("recorded", "i32"),
        ("stages", "i32"),
        ("commands", "ptr"),
        ("bound_pipeline", "i64"),
        ("epoch", "i64"),
        ("number", "i64"),
        ("starts", "ptr"),
        ("states", "ptr"),
        ("count", "i64"),
        ("grid_x", "i64"),
        ("grid_y", "i64"),
        ("grid_z", "i64"),
        ("storage_alignment", "i64"),
        ("largest_range", "i64"),
        ("nothing", "ptr"),
        ("block_alignment", "i64"),
        ("block_memory", "ptr"),
        ("block_address", "i64"),
        ("block_buffer", "i64"),
        ("block_offset", "i64"),
        ("block_used", "i64"),
        ("block_size", "i64"),
        ("memory_barrier", "ptr"),
        ("launch_barrier", "ptr"),
        ("bind_pipeline", "ptr"),
        ("push_constants", "ptr"),
        ("push_descriptors", "ptr"),
        ("pipeline_barrier", "ptr"),
        ("dispatch", "ptr"),
        ("slow_device", "ptr"),
        ("slow_launch", "ptr"),
        ("flush", "ptr"),
        ("clock", "ptr"),
        ("early", "i64"),
        ("deadline", "i64"),
        ("fence_status", "ptr"),
        ("handle", "ptr"),
        ("last_fence", "i64"),
        ("begin_label", "ptr"),
        ("end_label", "ptr"),
        ("launches", "i64"),
    ),
)
STRUCTURES = (ALLOCATION, SLOT, KERNEL, DEVICE)
