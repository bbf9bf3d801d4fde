"""The kernels of `vulkan_peers.py` for wgpu, in WGSL: one thread an element, and with shared memory where that is usual."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import wgpu

BLOCKS = 64
THREADS = 256
TILE = 16

_ARRAY = "@group(0) @binding({binding}) var<storage, {access}> {name}: array<{type}>;\n"
_TREE = """
    shared_[t] = own;
    workgroupBarrier();
    for (var step = 128u; step > 0u; step /= 2u) {
        if (t < step) { shared_[t] = COMBINE(shared_[t], shared_[t + step]); }
        workgroupBarrier();
    }
"""
_SUM_TREE = _TREE.replace("COMBINE(shared_[t], shared_[t + step])", "shared_[t] + shared_[t + step]")
_MAX_TREE = _TREE.replace("COMBINE", "max")
_SHARED = "var<workgroup> shared_: array<f32, 256>;\n"
_ROWS = """
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let row = group.x * WIDTH;
    var own = -3.4e38;
    for (var j = t; j < WIDTH; j += 256u) { own = max(own, x[row + j]); }
MAX_TREE
    let top = shared_[0];
    workgroupBarrier();
    own = 0.0;
    for (var j = t; j < WIDTH; j += 256u) { own += exp(x[row + j] - top); }
SUM_TREE
    let total = shared_[0];
    for (var j = t; j < WIDTH; j += 256u) { out[row + j] = exp(x[row + j] - top) / total; }
}
""".replace("MAX_TREE", _MAX_TREE).replace("SUM_TREE", _SUM_TREE)
_LINE = "@compute @workgroup_size(256)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
_GRID = "@compute @workgroup_size(SHAPE)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
_STENCIL = """
    if (id.y >= HEIGHT - 2u || id.x >= WIDTH - 2u) { return; }
    let at = (id.y + 1u) * WIDTH + id.x + 1u;
    out[at] = 0.2 * (x[at] + x[at - WIDTH] + x[at + WIDTH] + x[at - 1u] + x[at + 1u]);
}
"""
_CONVOLUTION = """
    if (id.y >= HEIGHT - 2u || id.x >= WIDTH - 2u) { return; }
    var total = 0.0;
    for (var p = 0u; p < 3u; p++) {
        for (var q = 0u; q < 3u; q++) { total += weights[p * 3u + q] * x[(id.y + p) * WIDTH + id.x + q]; }
    }
    out[(id.y + 1u) * WIDTH + id.x + 1u] = total;
}
"""
_MATMUL = """
    if (id.y >= HEIGHT || id.x >= WIDTH) { return; }
    var total = 0.0;
    for (var p = 0u; p < DEPTH; p++) { total += a[id.y * DEPTH + p] * b[p * WIDTH + id.x]; }
    c[id.y * WIDTH + id.x] = total;
}
"""
_TILES = """
var<workgroup> left: array<array<f32, 16>, 16>;
var<workgroup> right: array<array<f32, 16>, 16>;
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) t: vec3<u32>) {
    var total = 0.0;
    for (var tile = 0u; tile < DEPTH / 16u; tile++) {
        left[t.y][t.x] = a[id.y * DEPTH + tile * 16u + t.x];
        right[t.y][t.x] = b[(tile * 16u + t.y) * WIDTH + id.x];
        workgroupBarrier();
        for (var p = 0u; p < 16u; p++) { total += left[t.y][p] * right[p][t.x]; }
        workgroupBarrier();
    }
    c[id.y * WIDTH + id.x] = total;
}
"""
_SUM_OF_BLOCK = """
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(local_invocation_index) t: u32) {
    var own = 0.0;
    for (var i = id.x; i < COUNT; i += 64u * 256u) { own += x[i]; }
SUM_TREE
    if (t == 0u) { partial[group.x] = shared_[0]; }
}
""".replace("SUM_TREE", _SUM_TREE)
_SUM_OF_ALL = """
@compute @workgroup_size(1)
fn main() {
    var total = 0.0;
    for (var i = 0u; i < 64u; i++) { total += partial[i]; }
    out[0] = total;
}
"""
# Lines have more than 65535 blocks of 256: they are spread over two dimensions, as WGSL's users have to.
_SAXPY = """
    let i = id.y * 8388608u + id.x;
    if (i < COUNT) { y[i] = scalars[0] * x[i] + y[i]; }
}
"""
_SAXPY4 = """
    let i = id.y * 8388608u + id.x;
    if (i < COUNT / 4u) { y[i] = scalars[0] * x[i] + y[i]; }
}
"""
SOURCES = {
    "step": _LINE + "    if (id.x < COUNT) { z[id.x] = x[id.x] + y[id.x]; }\n}\n",
    "saxpy": _LINE + _SAXPY,
    "softmax": _SHARED + _ROWS,
    "stencil": _GRID + _STENCIL,
    "convolution": _GRID + _CONVOLUTION,
    "matmul": _GRID + _MATMUL,
}


class Wgpu:
    """Runs the kernels on one device."""

    name = "wgpu"

    def __init__(self, device: int) -> None:
        found = [adapter for adapter in wgpu.gpu.enumerate_adapters_sync() if adapter.info["backend_type"] == "Vulkan"]
        adapter = found[device]
        names = ("max-buffer-size", "max-storage-buffer-binding-size")
        self.device = adapter.request_device_sync(required_limits={name: adapter.limits[name] for name in names})
        # The documented wait, on_submitted_work_done_sync, raises a TypeError in version 0.32.
        self.wait = self.device._poll_wait

    def buffer(self, value: np.ndarray) -> Any:
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        return self.device.create_buffer_with_data(data=value, usage=usage)

    def pass_of(self, source: str, buffers: Mapping[str, Any], groups: tuple[int, ...], type_: str = "f32") -> Any:
        """A function that adds one launch to a command encoder."""
        read_only = ("a", "b", "x", "weights", "scalars")
        head = ""
        for binding, name in enumerate(buffers):
            access = "read" if name in read_only and f"{name}[i] =" not in source else "read_write"
            kind = "f32" if name == "scalars" else type_
            head += _ARRAY.format(binding=binding, access=access, name=name, type=kind)
        module = self.device.create_shader_module(code=head + source)
        pipeline = self.device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        entries = [{"binding": n, "resource": {"buffer": found}} for n, found in enumerate(buffers.values())]
        group = self.device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)

        def record(encoder: Any) -> None:
            opened = encoder.begin_compute_pass()
            opened.set_pipeline(pipeline)
            opened.set_bind_group(0, group)
            opened.dispatch_workgroups(*groups)
            opened.end()

        return record

    def queued(self, *records: Callable[[Any], None]) -> Callable[[], None]:
        def run() -> None:
            encoder = self.device.create_command_encoder()
            for record in records:
                record(encoder)
            self.device.queue.submit([encoder.finish()])

        return run

    def runs(self, problem: str, inputs: Mapping[str, np.ndarray], out: str) -> dict[str, Callable[[], Any]]:
        """The ways to solve a problem, each a function that queues it, and ``read``, which reads the result."""
        buffers = {name: self.buffer(value) for name, value in inputs.items() if value.ndim}
        scalars = [value for value in inputs.values() if not value.ndim]
        if scalars:
            buffers["scalars"] = self.buffer(np.array(scalars, np.float32))
        shape = inputs[out].shape
        height, width = ([*shape, 1])[:2]
        depth = inputs["a"].shape[1] if problem == "matmul" else 1
        count = inputs["x"].size if "x" in inputs else 1

        def source(text: str, threads: str = "16, 16") -> str:
            for name, value in (("HEIGHT", height), ("WIDTH", width), ("DEPTH", depth), ("COUNT", count)):
                text = text.replace(name, f"{value}u")
            return text.replace("SHAPE", threads)

        def line(of: int) -> tuple[int, int]:
            blocks = -(-of // THREADS)
            return min(blocks, 32768), -(-blocks // 32768)

        grids = {"16, 16": (-(-width // 16), -(-height // 16)), "64": (-(-width // 64), height)}
        found: dict[str, Callable[[], Any]] = {}
        if problem == "sum":
            partial = self.buffer(np.zeros(BLOCKS, np.float32))
            first = {"x": buffers["x"], "partial": partial}
            second = {"partial": partial, "out": buffers["out"]}
            found["by hand"] = self.queued(
                self.pass_of(source(_SHARED + _SUM_OF_BLOCK), first, (BLOCKS,)),
                self.pass_of(source(_SUM_OF_ALL), second, (1,)),
            )
        elif problem in ("step", "saxpy"):
            found["default"] = self.queued(self.pass_of(source(SOURCES[problem]), buffers, line(count)))
            if problem == "saxpy":
                four = self.pass_of(source(_LINE + _SAXPY4), buffers, line(count // 4), "vec4<f32>")
                found["vec4"] = self.queued(four)
        elif problem == "softmax":
            found["by hand"] = self.queued(self.pass_of(source(SOURCES[problem]), buffers, (height,)))
        else:
            for threads, groups in grids.items():
                record = self.pass_of(source(SOURCES[problem], threads), buffers, groups)
                found[f"{threads} threads"] = self.queued(record)
        if problem == "matmul":
            found["by hand"] = self.queued(self.pass_of(source(_TILES), buffers, (width // TILE, height // TILE)))

        def read() -> np.ndarray:
            return np.frombuffer(self.device.queue.read_buffer(buffers[out]), np.float32).reshape(shape)

        return found | {"read": read}
