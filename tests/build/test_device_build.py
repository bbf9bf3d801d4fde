"""From sources with loops over threads to packs for the reference device, and back: the same results as the executor's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill
from gristmill.build import build
from gristmill.build.report import BuildReport
from gristmill.errors import MissingError, UserError
from gristmill.interp import ExecutionError, Executor
from gristmill.ir.dtype import SCALARS
from gristmill.ir.parser import parse_module
from gristmill.pack import find_pack
from gristmill.plugin.registry import Registry
from gristmill.runtime import LoadedPack, Runtimes, load, reference

MANIFEST = """schema = 1
[project]
name = "p"
host = ["x86-64-v2", "x86-64-v3", "aarch64"]
[targets]
ref = "reference"
[[module]]
name = "m"
source = "m.py"
"""
SOURCE = """from gristmill.script import tir as T


@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), factor: T.float32):
    for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            if b * 32 + t < n:
                y[b * 32 + t] = x[b * 32 + t] * factor


@T.prim_func
def steps(x: T.Buffer(("n",), "float32"), count: T.int32):
    middle = T.alloc_buffer((n,), "float32")
    for s in range(count):
        for t in T.thread_binding(n, thread="threadIdx.x"):
            middle[t] = x[t] + T.float32(1)
        if s % 3 != 1:
            for t in T.thread_binding(n, thread="threadIdx.x"):
                x[t] = middle[n - 1 - t]


@T.prim_func
def turned(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    tile = T.alloc_buffer((32,), "float32", scope="shared")
    for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            tile[t] = T.if_then_else(b * 32 + t < n, x[b * 32 + t], T.float32(0))
            T.tvm_storage_sync("shared")
            if b * 32 + t < n:
                y[b * 32 + t] = tile[31 - t]


@T.prim_func
def grid(x: T.Buffer(("h", "w"), "int32")):
    for i in T.thread_binding(h, thread="blockIdx.y"):
        for j in T.thread_binding(w, thread="threadIdx.x"):
            x[i, j] = x[i, j] + T.int32(i * 100 + j)


@T.prim_func
def both_ways(x: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        x[t] = x[t] * T.float32(2)
    scale(x, x, T.float32(3))


@T.prim_func
def told(x: T.Buffer((4,), "float32"), count: T.int32):
    T.evaluate(T.call_packed("tests.device_build.seen", count))
    for t in T.thread_binding(4, thread="threadIdx.x"):
        x[t] = T.float32(count)


@T.prim_func
def racy(x: T.Buffer((64,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        x[t % 32] = T.int32(t)
"""


def project(folder: Path, source: str) -> BuildReport:
    (folder / "m.py").write_text(source)
    (folder / "kernels.toml").write_text(MANIFEST)
    return build(folder / "kernels.toml")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> BuildReport:
    return project(tmp_path_factory.mktemp("project"), SOURCE)


def interpreting() -> Registry:
    """Runtimes without one for host parts."""
    return Registry.of([reference])


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def here(request: Any) -> Runtimes:
    """With the CPU's runtime, compiled host parts run; without it, the executor runs the host functions."""
    return Runtimes(Registry.installed() if request.param == "compiled" else interpreting())


@pytest.fixture(scope="module")
def pack(report: BuildReport, here: Runtimes) -> LoadedPack:
    return load(report.pack("m").path, runtimes=here)


def test_the_report(report: BuildReport) -> None:
    (part,) = report.pack("m").parts
    assert part.kind == "gmir"
    assert part.notes == ("there is no code generator for the host aarch64: there the executor runs the host code",)
    assert report.as_json()["packs"][0]["parts"][0]["notes"] == list(part.notes)


def test_the_same_input_gives_the_same_bytes(report: BuildReport, tmp_path: Path) -> None:
    again = project(tmp_path, SOURCE)
    assert again.pack("m").path.read_bytes() == report.pack("m").path.read_bytes()


CASES: list[tuple[str, list[Any]]] = [
    *(("scale", [(size,), (size,), 2.5]) for size in (100, 64, 1, 0)),
    *(("steps", [(size,), count]) for size in (33, 1, 0) for count in (0, 1, 5)),
    *(("turned", [(size,), (size,)]) for size in (70, 32, 0)),
    *(("grid", [shape]) for shape in ((3, 5), (0, 5), (5, 0), (1, 1))),
    ("both_ways", [(4,)]),
]


@pytest.mark.parametrize(("function", "given"), CASES, ids=str)
def test_results_are_the_unsplit_functions(pack: LoadedPack, here: Runtimes, function: str, given: list[Any]) -> None:
    random = np.random.default_rng(7)
    dtype = np.int32 if function == "grid" else np.float32
    values = [(random.random(part) * 100).astype(dtype) if isinstance(part, tuple) else part for part in given]
    wanted = [value.copy() if isinstance(value, np.ndarray) else value for value in values]
    Executor(parse_module(pack.inspect("ir-text")["ir/ref.gmir"], "m.gmir")).call(function, wanted)
    device = here.device("reference:0")
    arrays = [device.array(value) if isinstance(value, np.ndarray) else value for value in values]
    pack[function](*arrays)
    device.synchronize()
    for array, value in zip(arrays, wanted, strict=True):
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(array.numpy(), value)


def test_a_function_that_host_code_calls_by_name(pack: LoadedPack, here: Runtimes) -> None:
    import tvm_ffi

    seen: list[int] = []
    tvm_ffi.register_global_func("tests.device_build.seen", seen.append, override=True)
    try:
        pack.told(here.device("reference:0").array(np.zeros(4, np.float32)), 5)
    finally:
        tvm_ffi.remove_global_func("tests.device_build.seen")
    assert seen == [5]


def test_an_extent_over_the_limit(pack: LoadedPack, here: Runtimes) -> None:
    array = here.device("reference:0").array(np.zeros(2000, np.float32))
    with pytest.raises(UserError) as caught:
        pack.steps(array, 1)
    assert caught.value.diagnostics[0].code == "GM0920"
    for word in ("threadIdx.x", "2000", "1024"):
        assert word in caught.value.diagnostics[0].message


def test_a_race_is_reported_at_the_users_line(pack: LoadedPack, here: Runtimes) -> None:
    with pytest.raises(ExecutionError) as caught:
        pack.racy(here.device("reference:0").array(np.zeros(64, np.int32)))
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "GM0504"
    assert diagnostic.place is not None
    assert (diagnostic.place.file, diagnostic.place.line) == (
        "m.py",
        SOURCE[: SOURCE.index("x[t % 32]")].count("\n") + 1,
    )


def test_arguments_are_checked_as_on_the_cpu(pack: LoadedPack, here: Runtimes) -> None:
    device = here.device("reference:0")
    x = device.array(np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="float32"):
        pack.scale(x, device.array(np.zeros(4, np.int32)), 1.0)
    with pytest.raises(
        ValueError,
        match=r"in memory of device type 1 .*18258 reference\), but reference memory is expected; .*makes a copy there",
    ):
        pack.scale(np.zeros(4, np.float32), x, 1.0)
    with pytest.raises(ValueError, match="y"):
        pack.scale(x, device.array(np.zeros(5, np.float32)), 1.0)
    with pytest.raises(TypeError, match="argument"):
        pack.scale(x)


SCALAR = """from gristmill.script import tir as T


@T.prim_func
def store(x: T.Buffer((2,), "{dtype}"), value: T.{dtype}):
    for t in T.thread_binding(2, thread="threadIdx.x"):
        x[t] = value
"""


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_scalars_of_every_type_arrive_exactly(tmp_path: Path, dtype: Any) -> None:
    source = SCALAR.format(dtype="bool" if dtype.is_bool else str(dtype))
    path = project(tmp_path, source).pack("m").path
    if dtype.is_bool:
        values: list[Any] = [True, False]
    elif dtype.is_float:
        values = [1.5, -0.0, float("-inf"), 1.0078125]
    else:
        values = [dtype.minimum, dtype.maximum]
    for runtimes in (Runtimes(Registry.installed()), Runtimes(interpreting())):
        device, pack = runtimes.device("reference:0"), load(path, runtimes=runtimes)
        array = device.empty((2,), str(dtype))
        for value in values:
            pack.store(array, value)
            found = [element.item() for element in array.numpy()]
            assert list(map(str, found)) == [str(value)] * 2


def test_without_gristmill_the_library_says_what_is_missing(
    report: BuildReport, here: Runtimes, tmp_path: Path
) -> None:
    import tvm_ffi

    with find_pack(report.pack("m").path) as reader:
        part = next(member for member in reader.manifest.blobs if member.kind == "elf-shared")
        (tmp_path / "m.so").write_bytes(reader.blob(part))
    device = here.device("reference:0")
    x = device.array(np.zeros(4, np.float32))
    with pytest.raises(RuntimeError, match="must be loaded by gristmill"):
        tvm_ffi.load_module(tmp_path / "m.so").scale(x, x, 1.0)


MANY = """from gristmill.script import tir as T


@T.prim_func
def keep(x: T.Buffer((17,), "int64"), {params}):
    for t in T.thread_binding(1, thread="threadIdx.x"):
{stores}
"""


def test_seventeen_scalars_keep_their_values_in_every_launch_and_thread(tmp_path: Path) -> None:
    params = ", ".join(f"a{number}: T.int64" for number in range(17))
    stores = "\n".join(f"        x[{number}] = a{number}" for number in range(17))
    path = project(tmp_path, MANY.format(params=params, stores=stores)).pack("m").path
    pack, device = load(path), gristmill.device("reference:0")
    wrong: list[Any] = []

    def work(start: int) -> None:
        arrays = [device.empty((17,), "int64") for _ in range(2)]
        for number, array in enumerate(arrays):
            pack.keep(array, *(start + 100 * number + place for place in range(17)))
        for number, array in enumerate(arrays):
            if list(array.numpy()) != [start + 100 * number + place for place in range(17)]:
                wrong.append((start, number))

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(-5000)
    assert not wrong


PLAIN = """from gristmill.script import tir as T


@T.prim_func
def blur(x: T.Buffer(("h", "w"), "float32"), y: T.Buffer(("h", "w"), "float32")):
    for i, j in T.grid(h, w):
        total = T.float32(0)
        for k in range(-2, 3):
            total = total + x[i, T.min(T.max(j + k, 0), w - 1)]
        y[i, j] = total / 5.0
"""


def test_plain_loops_for_the_cpu_and_a_device_in_one_pack(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(PLAIN)
    (tmp_path / "kernels.toml").write_text(MANIFEST.replace("[targets]\n", '[targets]\ncpu = "cpu"\n'))
    pack = load(build(tmp_path / "kernels.toml").pack("m").path)
    assert pack.devices == ("cpu:0", "reference:0")
    device = gristmill.device("reference:0")
    for shape in ((7, 9), (1, 1), (0, 5), (40, 3)):
        x = np.random.default_rng(5).random(shape, dtype=np.float32)
        y, result = np.zeros_like(x), device.empty(shape, "float32")
        pack.blur(x, y)
        pack.blur(device.array(x), result)
        np.testing.assert_array_equal(result.numpy(), y)


TURNED = """from gristmill.script import tir as T


@T.prim_func
def turn(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        y[n - 1 - i] = x[i] + 1.0
"""


def test_arrays_that_overlap_are_seen_to(tmp_path: Path, here: Runtimes) -> None:
    path = project(tmp_path, TURNED).pack("m").path
    pack, device = load(path, runtimes=here), here.device("reference:0")
    values = np.arange(9, dtype=np.float32)
    wanted = values.copy()
    Executor(parse_module(pack.inspect("ir-text")["ir/ref.gmir"], "m.gmir")).call("turn", [wanted, wanted])
    array, other = device.array(values), device.empty((9,), "float32")
    pack.turn(array, other)
    np.testing.assert_array_equal(other.numpy(), values[::-1] + 1)
    pack.turn(array, array)
    np.testing.assert_array_equal(array.numpy(), wanted)


EXTERN = """from gristmill.script import tir as T


@T.prim_func
def add(x: T.Buffer(("n",), "float32"), by: T.float64):
    kept = T.alloc_buffer((2,), "int32")
    T.evaluate(T.call_extern("void", "fill", kept.data))
    total: T.let[T.float64] = T.call_extern("float64", "scaled", by, T.int32(n), kept.data, "units")
    T.evaluate(T.call_extern("labs", T.int64(1), dtype="int64"))
    for t in T.thread_binding(n, thread="threadIdx.x"):
        x[t] = x[t] + T.float32(total)
"""


def test_c_functions_that_host_code_calls(tmp_path: Path, here: Runtimes) -> None:
    import ctypes

    (tmp_path / "m.py").write_text(EXTERN)
    declared = '\nextern = { fill = "libkit.so.1", scaled = "libkit.so.1", labs = "libc.so.6" }\n'
    (tmp_path / "kernels.toml").write_text(MANIFEST + declared)
    path = build(tmp_path / "kernels.toml").pack("m").path
    seen: list[Any] = []

    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p)
    def scaled(by: float, n: int, kept: int, text: bytes) -> float:
        seen.append((by, n, list((ctypes.c_int32 * 2).from_address(kept)), text))
        return by * n

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def fill(kept: int) -> None:
        (ctypes.c_int32 * 2).from_address(kept)[:] = [7, 8]

    externs = {"scaled": scaled, "fill": fill}
    pack = load(path, device=here.device("reference:0"), runtimes=here, externs=externs)
    array = here.device("reference:0").array(np.zeros(4, np.float32))
    pack.add(array, 2.5)
    np.testing.assert_array_equal(array.numpy(), 10)
    assert seen == [(2.5, 4, [7, 8], b"units")]
    with pytest.raises(MissingError, match="libkit"):
        load(path, device=here.device("reference:0"), runtimes=here)
