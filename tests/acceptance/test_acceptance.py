"""Twelve lines that tell right launch lowering from wrong: each was seen to go wrong in a compiler of this kind.

 1. a kernel calls a private function that returns nothing
 2. a helper returns a float on the CPU
 3. an early return guards a kernel
 4. shared memory is turned around behind a barrier: the machine code waits
 5. a kernel of 1024 threads says 1024, built where there is no GPU
 6. shared memory that is declared outside of the loops over threads is shared memory
 7. contradicting extents of one axis are refused
 8. an array without elements launches nothing
 9. a public function calls a public function
10. scalars of every type arrive exactly
11. seventeen scalars keep their values in two launches that are queued, from two threads too
12. a plain installation builds for a device that is not here; the pack loads anywhere, and says why it cannot run

What is tested here: 2 on the CPU; 1, 3, 6, 8, 9, 10, 11 and 12 on the reference device and, with arguments bound and by
address, on a Vulkan device; 7 for any. The same is owed for AMD GPUs by the tests of that back end; lines 4 and 5 are about
machine code:

* AMD GPUs: 1, 3, 4 (gfx90a, gfx942, gfx1030, gfx1100), 5, 6, 8, 10, 11, 12
"""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.build import build
from gristmill.errors import MissingError, UserError
from gristmill.interp import Executor
from gristmill.ir.dtype import SCALARS, DType
from gristmill.ir.parser import parse_module
from gristmill.ir.stmt import ThreadAxis
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import Probe
from gristmill.plugin.registry import Registry
from gristmill.runtime import LoadedPack, Runtimes, load, null, reference
from gristmill.runtime.devices import this_process

MANIFEST = """schema = 1
[project]
name = "acceptance"
[targets]
{targets}
[[module]]
name = "m"
source = "m.py"
"""
HEAD = "from gristmill.script import tir as T\n\n\n"


def built(folder: Path, source: str, targets: str = 'ref = "reference"') -> Path:
    """The pack of a source."""
    (folder / "m.py").write_text(HEAD + source)
    (folder / "kernels.toml").write_text(MANIFEST.format(targets=targets))
    return build(folder / "kernels.toml").pack("m").path


@dataclass(frozen=True)
class Here:
    """Where a pack is run: runtimes, the name of the device, the target to build for."""

    runtimes: Runtimes
    device: str = "reference:0"
    target: str = "reference"

    def load(self, folder: Path, source: str, more: str = "") -> LoadedPack:
        return load(built(folder, source, f'ref = "{self.target}"\n{more}'), runtimes=self.runtimes)

    def open(self) -> Any:
        return self.runtimes.device(self.device)


TARGETS = {"vulkan": "vulkan+float64", "vulkan by address": "vulkan:1.2+address+float64"}


@pytest.fixture(params=["compiled", "interpreted", *TARGETS])
def here(request: Any) -> Here:
    """Host functions run compiled, or on the executor where nothing runs compiled ones; kernels on either device."""
    if request.param in TARGETS:
        return Here(this_process(), "vulkan:0", TARGETS[request.param])
    return Here(Runtimes(Registry.installed() if request.param == "compiled" else Registry.of([reference])))


def both(pack: LoadedPack, here: Here, function: str, *args: Any) -> list[np.ndarray]:
    """The arrays after a call on the reference device, which are those that the executor gives for the unsplit function."""
    wanted = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    Executor(parse_module(pack.inspect("ir-text")["ir/ref.gmir"], "m.gmir")).call(function, wanted)
    device = here.open()
    given = [device.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    pack[function](*given)
    found = [arg.numpy() for arg in given if hasattr(arg, "numpy")]
    for one, other in zip(found, (arg for arg in wanted if isinstance(arg, np.ndarray)), strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def test_line_1_a_kernel_calls_a_private_function_that_returns_nothing(tmp_path: Path, here: Here) -> None:
    source = """@T.prim_func
def f(x: T.Buffer(("n",), "int32")):
    for b in T.thread_binding(n, thread="blockIdx.x"):
        store(x, b)


@T.prim_func(private=True)
def store(x: T.Buffer(("n",), "int32"), place: T.int64):
    x[place] = answer(T.int32(place))


@T.prim_func(private=True)
def answer(by: T.int32) -> T.int32:
    return 42 + by
"""
    pack = here.load(tmp_path, source)
    (found,) = both(pack, here, "f", np.zeros(5, np.int32))
    assert list(found) == [42, 43, 44, 45, 46]


def test_line_2_a_helper_returns_a_float_on_the_cpu(tmp_path: Path) -> None:
    source = """@T.prim_func
def f(x: T.Buffer(("n",), "float32")) -> T.float32:
    for i in range(n):
        x[i] = half(x[i])
    return half(T.float32(n))


@T.prim_func(private=True)
def half(v: T.float32) -> T.float32:
    return v / T.float32(2)
"""
    x = np.arange(5, dtype=np.float32)
    assert load(built(tmp_path, source, 'cpu = "cpu"')).f(x) == 2.5
    assert list(x) == [0, 0.5, 1, 1.5, 2]


@pytest.mark.parametrize("result", ["", " -> T.int32"])
def test_line_3_an_early_return_guards_a_kernel(tmp_path: Path, here: Here, result: str) -> None:
    """Also in the spelling of functions with a result, where a thread returns 0."""
    value = " 0" if result else ""
    source = f"""@T.prim_func
def f(x: T.Buffer(("n",), "float32"), count: T.int64){result}:
    for b in T.thread_binding((n + 7) // 8, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            if b * 8 + t >= count:
                return{value}
            x[b * 8 + t] = x[b * 8 + t] + 1.0
{"    return 0" if result else ""}
"""
    pack = here.load(tmp_path, source)
    for size, count in ((20, 20), (20, 11), (20, 0), (1, 1)):
        (found,) = both(pack, here, "f", np.zeros(size, np.float32), count)
        assert list(found) == [1.0] * count + [0.0] * (size - count)


def test_line_6_shared_memory_declared_outside_of_the_loops_is_shared(tmp_path: Path, here: Here) -> None:
    source = """@T.prim_func
def f(x: T.Buffer(("n", 8), "float32"), y: T.Buffer(("n", 8), "float32")):
    s = T.alloc_buffer((8,), "float32", scope="shared")
    for b in T.thread_binding(n, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            s[t] = x[b, t]
            T.tvm_storage_sync("shared")
            y[b, t] = s[7 - t]
"""
    pack = here.load(tmp_path, source)
    records = [record for blob in pack.manifest.blobs for record in blob.kernels if record["axes"]]
    assert records
    for record in records:
        assert [argument["name"] for argument in record["arguments"]] == ["x_data", "y_data", "n"]
        assert record["shared_bytes"] == 32
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    assert np.array_equal(both(pack, here, "f", x, np.zeros_like(x))[1], x[:, ::-1])


def test_line_7_contradicting_extents_are_refused(tmp_path: Path) -> None:
    source = """@T.prim_func
def f(x: T.Buffer((64,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            x[t] = 1.0
        for t in T.thread_binding(32, thread="threadIdx.x"):
            x[t] = 2.0
"""
    with pytest.raises(UserError) as caught:
        built(tmp_path, source)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0652"
    assert "`threadIdx.x` in one launch have the extents 64 and 32" in found.message
    assert found.place is not None
    assert (found.place.line, found.place.column) == (9, 35)
    assert "for t in T.thread_binding(32, thread=" in str(caught.value)
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_line_8_an_array_without_elements_launches_nothing(
    tmp_path: Path, here: Here, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """@T.prim_func
def f(x: T.Buffer(("n", "m"), "float32"), y: T.Buffer(("n", "m"), "float32")):
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in T.thread_binding(m, thread="threadIdx.x"):
            y[i, j] = x[i, j]
"""
    pack = here.load(tmp_path, source)
    launched: list[dict[ThreadAxis, int]] = []
    launch = Executor.launch

    def counted(self: Executor, function: str, values: Any, axes: Any, *rest: Any) -> Any:
        launched.append(axes)
        return launch(self, function, values, axes, *rest)

    monkeypatch.setattr(Executor, "launch", counted)
    device = here.open()
    y = device.empty(shape, "float32")
    assert pack.f(device.empty(shape, "float32"), y) is None
    assert y.numpy().shape == shape
    assert not launched
    both(pack, here, "f", np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32))
    if here.target == "reference":
        assert launched == [{ThreadAxis.BLOCK_X: 2, ThreadAxis.THREAD_X: 3}]


def test_line_9_a_public_function_calls_a_public_function(tmp_path: Path, here: Here) -> None:
    source = """@T.prim_func
def f(x: T.Buffer(("n",), "float32"), by: T.float32):
    scale(x, square(by))


@T.prim_func
def scale(x: T.Buffer(("n",), "float32"), by: T.float32):
    for i in range(n):
        x[i] = x[i] * by


@T.prim_func
def square(v: T.float32) -> T.float32:
    return v * v
"""
    pack = here.load(tmp_path, source, 'cpu = "cpu"\n')
    (found,) = both(pack, here, "f", np.arange(3, dtype=np.float32), 3.0)
    assert list(found) == [0, 9, 18]
    assert pack.square(4.0) == 16
    if "cpu:0" in pack.devices:
        x = np.arange(3, dtype=np.float32)
        pack.f(x, 3.0)
        assert list(x) == [0, 9, 18]


def extremes(dtype: DType) -> list[Any]:
    if dtype.is_bool:
        return [True, False]
    return [1.5, -0.0, float("-inf")] if dtype.is_float else [dtype.minimum, dtype.maximum, 1]


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_line_10_scalars_of_every_type_arrive_exactly(tmp_path: Path, here: Here, dtype: DType) -> None:
    source = f"""@T.prim_func
def f(x: T.Buffer((3,), "{dtype}"), a: T.{dtype}, b: T.int8, c: T.{dtype}, d: T.float64, e: T.{dtype}):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        x[0] = a
        x[1] = c
        x[2] = e
"""
    pack = here.load(tmp_path, source)
    array = here.open().empty((3,), str(dtype))
    first, second, *more = extremes(dtype)
    third = more[0] if more else first
    pack.f(array, first, -5, second, 0.1, third)
    assert [str(element.item()) for element in array.numpy()] == [str(first), str(second), str(third)]


def test_line_11_seventeen_scalars_keep_their_values_in_every_launch_and_thread(tmp_path: Path, here: Here) -> None:
    names = [f"a{number}" for number in range(17)]
    source = f"""@T.prim_func
def f(x: T.Buffer((17,), "int64"), y: T.Buffer((17,), "int64"), {", ".join(f"{name}: T.int64" for name in names)}):
    for t in T.thread_binding(1, thread="threadIdx.x"):
{chr(10).join(f"        x[{place}] = {name}" for place, name in enumerate(names))}
    for t in T.thread_binding(1, thread="threadIdx.x"):
{chr(10).join(f"        y[{place}] = {name} + 1" for place, name in enumerate(names))}
"""
    pack = here.load(tmp_path, source)
    device = here.open()
    wrong: list[Any] = []

    def work(start: int) -> None:
        try:
            pairs = [(device.empty((17,), "int64"), device.empty((17,), "int64")) for _ in range(3)]
            for number, (x, y) in enumerate(pairs):
                pack.f(x, y, *range(start + 100 * number, start + 100 * number + 17))
            for number, (x, y) in enumerate(pairs):
                values = list(range(start + 100 * number, start + 100 * number + 17))
                if [list(x.numpy()), list(y.numpy())] != [values, [value + 1 for value in values]]:
                    wrong.append((start, number))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(-5000)
    assert not wrong


SCALE = """@T.prim_func
def f(x: T.Buffer(("n",), "float32"), by: T.float32):
    for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            if b * 32 + t < n:
                x[b * 32 + t] = x[b * 32 + t] * by
"""


def test_line_12_a_pack_loads_where_nothing_runs_it_and_says_why(tmp_path: Path) -> None:
    """No compiler, no headers and no driver are asked for; what is missing is a device, and that is what is said."""
    path = built(tmp_path, SCALE)
    with pytest.raises(MissingError) as caught:
        load(path, runtimes=Runtimes(Registry.of([null])))
    assert caught.value.code == "GM0901"
    told = str(caught.value)
    assert "has no code that runs here" in told
    assert "reference (gmir): no installed runtime takes code of kind gmir" in told

    class WithoutDevice(reference.ReferenceRuntime):
        def probe(self) -> Probe:
            return Probe(reason="the driver of the device is not installed")

    class Plugin:
        GRISTMILL_API_VERSION = 1

        @hookimpl
        def gristmill_runtimes(self) -> Any:
            return [WithoutDevice]

    with pytest.raises(MissingError, match="has no device: the driver of the device is not installed"):
        load(path, runtimes=Runtimes(Registry.of([Plugin()]))).f(np.zeros(3, np.float32), 1.0)


def test_line_12_a_pack_can_be_looked_at_where_nothing_runs_it(tmp_path: Path) -> None:
    from gristmill.pack import find_pack

    with find_pack(built(tmp_path, SCALE)) as reader:
        assert {member.target for member in reader.manifest.blobs} == {"reference"}
        assert [function.name for function in reader.manifest.functions] == ["f"]


def test_line_12_loading_and_launching_need_no_compiler(tmp_path: Path) -> None:
    """The pack is loaded in a process in which the compiler cannot be imported, and no program can be started."""
    path = built(tmp_path, SCALE)
    code = f"""
import sys
for name in ("llvmlite", "gristmill_llvm", "gristmill_launch", "gristmill.build"):
    sys.modules[name] = None
import subprocess
subprocess.Popen = None
import numpy as np
import gristmill
device = gristmill.device("reference:0")
pack = gristmill.load({str(path)!r}, device=device)
x = device.array(np.arange(5, dtype=np.float32))
pack.f(x, 3.0)
print(list(map(float, x.numpy())))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[0.0, 3.0, 6.0, 9.0, 12.0]"
