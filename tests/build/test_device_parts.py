"""Code for a device from a module that is split already: kernels, host parts, packs, loading, calls of both kinds."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill_cpu.plugin
import gristmill_llvm.plugin
from gristmill.build.assemble import assemble
from gristmill.build.compile import Compiled, Job
from gristmill.build.generation import Generated, Settings, generate
from gristmill.codegen import reference as reference_generator
from gristmill.codegen.context_table import DEVICE_KIND, HOST_IR, KERNELS
from gristmill.errors import PluginError, UserError
from gristmill.interp import ExecutionError
from gristmill.ir.dtype import FLOAT32
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.target import parse_target
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.registry import Registry
from gristmill.runtime import LoadedPack, Runtimes, load, reference
from gristmill.runtime.dlpack import tensor_over
from gristmill.runtime.loaded_pack import DeviceDispatch

SPLIT = """gristmill ir 1

function @__tvm_ffi_scale(self: handle, args: handle, count: int32, result: handle) -> int32
  symbol "__tvm_ffi_scale"
  convention packed
{
  assert count == 3i32, "TypeError", "scale: 3 arguments are expected, not ", count
  let a: handle = packed_tensor(args, 0i32) as handle
  let b: handle = packed_tensor(args, 1i32) as handle
  let own: int32 = context_device_id(self) as int32
  assert tensor_device_id(b) as int32 == own, "ValueError", "scale: y is of device ", tensor_device_id(b) as int32, ", not ", own
  assert tensor_device_type(a) as int32 == 18258i32, "ValueError", "scale: x is on another device"
  let n: int64 = tensor_size(a, 0i32) as int64
  let factor: float64 = packed_float(args, 2i32) as float64
  let x: handle = tensor_data(a) as handle
  let y: handle = tensor_data(b) as handle
  evaluate @scale(x, y, n, float32(factor), self)
  return 0i32
}

function @scale(x: handle, y: handle, n: int64, factor: float32, context: handle)
{
  allocate middle: float32[n] data middle_data: ptr<float32, global>
  launch @scale_kernel(x, middle_data, n, factor) over blockIdx.x = (n + 3) // 4, threadIdx.x = 4 context context
  for i: int64 in 0 +: 2 {
    launch @step_kernel(middle_data, n) over threadIdx.x = n context context
  }
  launch @scale_kernel(middle_data, y, n, factor) over blockIdx.x = (n + 3) // 4, threadIdx.x = 4 context context
}

function @scale_kernel(x: ptr<float32, global>, out: ptr<float32, global>, n: int64, factor: float32)
  symbol "scale_kernel"
  convention kernel
  target "reference"
  launch (blockIdx.x, threadIdx.x)
{
  view X: float32[n] over x
  view Y: float32[n] over out
  for b: int64 in 0 +: (n + 3) // 4 thread on blockIdx.x {
    for t: int64 in 0 +: 4 thread on threadIdx.x {
      if b * 4 + t < n {
        Y[b * 4 + t] = X[b * 4 + t] * factor
      }
    }
  }
}

function @step_kernel(x: ptr<float32, global>, n: int64)
  symbol "step_kernel"
  convention kernel
  target "reference"
  launch (threadIdx.x)
{
  view X: float32[n] over x
  for t: int64 in 0 +: n thread on threadIdx.x {
    X[t] = X[t] + 1f32
  }
}
"""
CPU = """gristmill ir 1

function @scale<n: int64>(x: float32[n], y: float32[n], factor: float32)
  symbol "scale"
{
  for i: int64 in 0 +: n {
    y[i] = (x[i] * factor + 2f32) * factor
  }
}
"""


def expected(x: np.ndarray, factor: float) -> np.ndarray:
    return (x * np.float32(factor) + np.float32(2)) * np.float32(factor)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.installed()


def generated(registry: Registry, hosts: tuple[str, ...] = ("x86-64-v2",), text: str = SPLIT) -> Generated:
    module = parse_module(text, "scale.gmir")
    return generate(module, parse_target("reference"), registry, Settings("scale", hosts=hosts))


def part(name: str, target: str, module: Module, code: Generated) -> Compiled:
    job = Job("scale", name, parse_target(target), target.partition(":")[0], Path("scale.py"), Path("."), "gristmill")
    return Compiled(job, module, code.blobs, 1.0, code.notes)


@pytest.fixture(scope="module")
def device_pack(registry: Registry) -> bytes:
    return assemble("p", "scale", [part("ref", "reference", parse_module(CPU, "x"), generated(registry))])


@pytest.fixture(scope="module")
def both_pack(registry: Registry) -> bytes:
    module = parse_module(CPU, "x")
    cpu = generate(module, parse_target("cpu:x86-64-v2"), registry, Settings("scale"))
    parts = [part("cpu", "cpu:x86-64-v2", module, cpu), part("ref", "reference", module, generated(registry))]
    return assemble("p", "scale", parts)


@pytest.fixture(scope="module")
def runtimes(registry: Registry) -> Runtimes:
    return Runtimes(registry)


@pytest.fixture(scope="module")
def without_cpu() -> Runtimes:
    """Nothing here runs compiled host parts, so the executor runs the host functions."""
    return Runtimes(Registry.of([reference]))


@pytest.fixture(params=["compiled", "interpreted"])
def loaded(request: Any, device_pack: bytes, runtimes: Runtimes, without_cpu: Runtimes) -> tuple[LoadedPack, Any]:
    here = runtimes if request.param == "compiled" else without_cpu
    return load(device_pack, runtimes=here), here.device("reference:0")


def test_blobs_and_what_ties_them(registry: Registry) -> None:
    code = generated(registry, ("x86-64-v2", "x86-64-v3", "aarch64"))
    kernels, *hosts = code.blobs
    assert [record.name for record in kernels.kernels] == ["scale_kernel", "step_kernel"]
    assert kernels.kind == "gmir"
    assert [host.host for host in hosts] == ["x86_64-linux", "x86_64-linux"]
    for host in hosts:
        assert host.target == "reference"
        assert host.requirements[DEVICE_KIND] == "reference"
        assert host.requirements[KERNELS] == "scale_kernel,step_kernel"
    assert code.notes == ("there is no code generator for the host aarch64: there the executor runs the host code",)
    assert HOST_IR in dict(kernels.texts)
    assert generated(registry, ("x86-64-v2", "x86-64-v3", "aarch64")) == code


def test_the_same_results_compiled_and_interpreted(loaded: tuple[LoadedPack, Any]) -> None:
    pack, device = loaded
    assert pack.devices == ("reference:0",)
    for size in (10, 4, 1, 0):
        x = np.arange(size, dtype=np.float32)
        y = device.empty((size,), "float32")
        assert pack.scale(device.array(x), y, 2.5) is None
        np.testing.assert_array_equal(y.numpy(), expected(x, 2.5))


def test_errors_of_host_functions(loaded: tuple[LoadedPack, Any]) -> None:
    pack, device = loaded
    with pytest.raises(TypeError, match="scale: 3 arguments are expected, not 1"):
        pack.scale(device.empty((4,), "float32"))
    with pytest.raises(ValueError, match="x is on another device"):
        pack.scale(np.zeros(4, np.float32), device.empty((4,), "float32"), 1.0)


def test_arrays_of_another_device_of_the_kind(loaded: tuple[LoadedPack, Any]) -> None:
    """With the same address, which tells nothing."""
    pack, device = loaded
    x, y = device.array(np.ones(4, np.float32)), device.empty((4,), "float32")
    address = y.__tvm_ffi_object__().data_ptr()
    for number in (1, -1):
        with pytest.raises(ValueError, match=f"scale: y is of device {number}, not 0"):
            pack.scale(x, tensor_over(address, (4,), FLOAT32, (device.device_type, number), y), 2.0)
    pack.scale(x, tensor_over(address, (4,), FLOAT32, (device.device_type, 0), y), 2.0)
    np.testing.assert_array_equal(y.numpy(), expected(np.ones(4, np.float32), 2.0))


def test_errors_of_launches_come_as_they_were_raised(loaded: tuple[LoadedPack, Any]) -> None:
    pack, device = loaded
    x, y = device.array(np.ones(1025, np.float32)), device.empty((1025,), "float32")
    with pytest.raises(UserError, match="1025") as caught:
        pack.scale(x, y, 1.0)
    assert caught.value.diagnostics[0].code == "GM0920"
    unwritten = device.empty((4,), "float32")
    with pytest.raises(ExecutionError, match="nothing was written"):
        pack.scale(unwritten, y, 1.0)
    # And after an error all is as before.
    pack.scale(device.array(np.ones(3, np.float32)), device.empty((3,), "float32"), 1.0)


def test_memory_is_given_back(loaded: tuple[LoadedPack, Any]) -> None:
    pack, device = loaded
    gc.collect()
    device.empty((1,), "int8")
    before = len(device._memories)
    for _ in range(3):
        pack.scale(device.array(np.ones(8, np.float32)), device.empty((8,), "float32"), 1.0)
    gc.collect()
    device.empty((1,), "int8")
    assert len(device._memories) <= before + 1


def test_two_packs_and_many_threads(device_pack: bytes, runtimes: Runtimes) -> None:
    packs = [load(device_pack, runtimes=runtimes) for _ in range(2)]
    device = runtimes.device("reference:0")
    wrong: list[Any] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                x = np.full(6, number * 10 + step, np.float32)
                y = device.empty((6,), "float32")
                packs[number % 2].scale(device.array(x), y, 3.0)
                if not np.array_equal(y.numpy(), expected(x, 3.0)):
                    wrong.append((number, step))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_function_outlives_its_pack(device_pack: bytes, runtimes: Runtimes) -> None:
    device = runtimes.device("reference:0")
    scale = load(device_pack, runtimes=runtimes).scale
    gc.collect()
    y = device.empty((2,), "float32")
    scale(device.array(np.ones(2, np.float32)), y, 2.0)
    np.testing.assert_array_equal(y.numpy(), 8)


def test_one_function_for_both_devices(both_pack: bytes, runtimes: Runtimes) -> None:
    import tvm_ffi

    pack = load(both_pack, runtimes=runtimes)
    assert pack.devices == ("cpu:0", "reference:0")
    assert isinstance(pack.scale, tvm_ffi.Function)
    x = np.arange(5, dtype=np.float32)
    for device in (runtimes.device("cpu:0"), runtimes.device("reference:0")):
        y = device.array(np.zeros(5, np.float32))
        pack.scale(device.array(x), y, 0.5)
        np.testing.assert_array_equal(y.numpy(), expected(x, 0.5))
    out = np.zeros(5, np.float32)
    pack.scale(x, out, 0.5)
    np.testing.assert_array_equal(out, expected(x, 0.5))
    # Without an array the CPU's function says what is wrong.
    with pytest.raises(TypeError, match="scale"):
        pack.scale(1, 2, 3.0)


def test_arrays_of_a_device_without_code(both_pack: bytes, runtimes: Runtimes, without_cpu: Runtimes) -> None:
    from gristmill.runtime.null import NullDevice

    pack = load(both_pack, runtimes=runtimes)
    array = NullDevice().array(np.zeros(4, np.float32))
    with pytest.raises(UserError, match="GM0909") as caught:
        pack.scale(array, array, 1.0)
    assert "DLPack device type 12; it has for 1, 18258" in caught.value.diagnostics[0].message
    dispatch = DeviceDispatch("scale", {1: print, 18258: print})
    with pytest.raises(UserError) as slow:
        dispatch(array, array, 1.0)
    assert slow.value.diagnostics == caught.value.diagnostics


def test_a_chosen_device_gets_its_own_code(both_pack: bytes, runtimes: Runtimes) -> None:
    pack = load(both_pack, device="reference:0", runtimes=runtimes)
    assert pack.devices == ("reference:0",)
    with pytest.raises(ValueError, match="another device"):
        pack.scale(np.zeros(4, np.float32), np.zeros(4, np.float32), 1.0)


def test_host_parts_that_do_not_fit_are_told(device_pack: bytes, without_cpu: Runtimes) -> None:
    (refusal,) = load(device_pack, runtimes=without_cpu).refused
    assert refusal.member.host == "x86_64-linux"
    assert "no installed runtime takes code of kind elf-shared" in refusal.reason


def test_a_host_part_that_cannot_be_made_is_noted(registry: Registry) -> None:
    """The CPU's generator has no half floats: there the executor runs the host functions."""
    half = SPLIT.replace("middle_data, n, factor)", "middle_data, n, float32(float16(factor)))")
    code = generated(registry, text=half)
    assert len(code.blobs) == 1
    assert "no host part for x86-64-v2" in code.notes[0]
    assert "float16" in code.notes[0]


def test_kernels_that_a_pack_lacks(registry: Registry, runtimes: Runtimes) -> None:
    code = generated(registry)
    kernels, host = code.blobs
    wrong = replace(host, requirements={**host.requirements, KERNELS: "scale_kernel,other_kernel"})
    pack = assemble("p", "scale", [part("ref", "reference", parse_module(CPU, "x"), Generated((kernels, wrong)))])
    with pytest.raises(UserError, match="has no kernel `other_kernel`"):
        load(pack, runtimes=runtimes)
    fewer = replace(kernels, kernels=kernels.kernels[:1])
    told = part("ref", "reference", parse_module(CPU, "x"), Generated((fewer,)))
    with pytest.raises(UserError, match="has no kernel `step_kernel`"):
        load(assemble("p", "scale", [told]), runtimes=runtimes)
    untold = replace(kernels, texts=())
    pack = assemble("p", "scale", [part("ref", "reference", parse_module(CPU, "x"), Generated((untold,)))])
    with pytest.raises(UserError, match="has no host functions"):
        load(pack, runtimes=runtimes)


def test_names_of_errors_come_from_a_file_and_are_not_trusted(registry: Registry, without_cpu: Runtimes) -> None:
    (kernels,) = generated(registry, ()).blobs
    forged = dict(kernels.texts)[HOST_IR].replace('"TypeError", "scale: 3', '"exec", "raise SystemExit(3) # scale: 3')
    code = Generated((replace(kernels, texts=((HOST_IR, forged),)),))
    pack = assemble("p", "scale", [part("ref", "reference", parse_module(CPU, "x"), code)])
    with pytest.raises(UserError, match="`exec` is not a built-in exception class"):
        load(pack, runtimes=without_cpu)


def test_arrays_of_types_that_kernels_lack(loaded: tuple[LoadedPack, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        loaded[0].scale(np.zeros(4, np.complex64), np.zeros(4, np.complex64), 1.0)


# Several codes for one device -----------------------------------------------------------------------------------------


class Twins:
    """A generator of two codes with all kernels each, and a runtime whose device runs one of them only."""

    GRISTMILL_API_VERSION = 1

    def __init__(self, runs: str, lacking: str = "") -> None:
        self.runs = runs
        self.lacking = lacking

    @hookimpl
    def gristmill_targets(self) -> Any:
        kind = Registry.of([reference_generator]).target_kind("reference")
        return [replace(kind, name="twins", generator="twins", blob_kinds=("twin",), resolve=lambda target: target)]

    @hookimpl
    def gristmill_code_generators(self) -> Any:
        lacking = self.lacking

        class Generator(reference_generator.ReferenceGenerator):
            name = "twins"

            def generate(self, module: Module, target: Any, options: Any) -> Any:
                (blob,) = super().generate(module, target, options)
                first, second = (
                    replace(blob, kind="twin", target=f"twins:{arch}", data=blob.data + end)
                    for arch, end in (("one", b""), ("two", b"\n"))
                )
                kept = tuple(record for record in second.kernels if record.name != lacking)
                return [first, replace(second, kernels=kept)]

        return [Generator]

    @hookimpl
    def gristmill_runtimes(self) -> Any:
        runs = self.runs

        class Runtime(reference.ReferenceRuntime):
            blob_kinds = ("twin",)

            def refusal(self, kind: str, target: str, host: str, requirements: Any) -> str:
                return "" if target == f"twins:{runs}" else f"the device is of the architecture {runs}"

        return [Runtime]


def twins(runs: str, *others: Any, lacking: str = "") -> Registry:
    return Registry.of([Twins(runs, lacking), *others])


@pytest.mark.parametrize("runs", ["one", "two"])
@pytest.mark.parametrize("others", [(), (gristmill_cpu.plugin,)], ids=["interpreted", "compiled"])
def test_whichever_code_fits_has_the_host_functions(runs: str, others: tuple[Any, ...]) -> None:
    registry = twins(runs, gristmill_llvm.plugin, *others)
    module = parse_module(SPLIT.replace('"reference"', '"twins"'), "scale.gmir")
    code = generate(module, parse_target("twins"), registry, Settings("scale", hosts=("x86-64-v2",)))
    assert [blob.kind for blob in code.blobs] == ["twin", "twin", "elf-shared"]
    packed = assemble("p", "scale", [part("t", "twins", parse_module(CPU, "x"), code)])
    runtimes = Runtimes(registry)
    pack = load(packed, runtimes=runtimes)
    (refused,) = [refusal for refusal in pack.refused if refusal.member.kind == "twin"]
    assert refused.reason == f"the device is of the architecture {runs}"
    assert bool(others) == all(refusal.member.kind == "twin" for refusal in pack.refused)
    device, x = runtimes.device("reference:0"), np.arange(6, dtype=np.float32)
    y = device.empty((6,), "float32")
    pack.scale(device.array(x), y, 1.5)
    np.testing.assert_array_equal(y.numpy(), expected(x, 1.5))


def test_a_code_that_lacks_kernels_is_the_generators_fault() -> None:
    registry = twins("one", lacking="step_kernel")
    module = parse_module(SPLIT.replace('"reference"', '"twins"'), "scale.gmir")
    with pytest.raises(PluginError, match="without the kernel 'step_kernel'; each blob has all kernels"):
        generate(module, parse_target("twins"), registry, Settings("scale"))
