"""The reference device: memory by address, launches, what is refused before one, what the executor reports."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.codegen.reference import ReferenceGenerator, resolve
from gristmill.errors import MissingError, UserError
from gristmill.interp import ExecutionError
from gristmill.ir.dtype import SCALARS
from gristmill.ir.host_interface import OWN_DEVICE_TYPES
from gristmill.ir.parser import parse_module
from gristmill.ir.span import Span
from gristmill.ir.target import parse_target
from gristmill.plugin.protocols import GenerateOptions
from gristmill.plugin.target_data import target_table
from gristmill.runtime.reference import ReferenceDevice, ReferenceRuntime

SCALE = """gristmill ir 1

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
"""


def loaded(device: ReferenceDevice, text: str) -> Any:
    module = parse_module(text, "kernels.gmir")
    (blob,) = ReferenceGenerator().generate(module, resolve(parse_target("reference")), GenerateOptions())
    assert blob.kind == "gmir"
    return device.load(memoryview(blob.data), blob.entry_points, blob.kernels)


def address(array: Any) -> int:
    return int(array._tensor.data_ptr())


@pytest.fixture
def device() -> ReferenceDevice:
    return ReferenceRuntime().open(0)


def test_it_shows_its_name(device: ReferenceDevice) -> None:
    assert repr(device) == "<gristmill device reference:0>"


def test_the_record_of_a_kernel() -> None:
    module = parse_module(SCALE, "scale.gmir")
    (function,) = kernels_of(module)
    record = kernel_record(function, module)
    assert record.axes == ("blockIdx.x", "threadIdx.x")
    assert record.block == (4, 1, 1)
    assert [(each.name, each.kind, each.dtype, each.written) for each in record.arguments] == [
        ("x", "buffer", "float32", False),
        ("out", "buffer", "float32", True),
        ("n", "scalar", "int64", False),
        ("factor", "scalar", "float32", False),
    ]


def test_a_launch(device: ReferenceDevice) -> None:
    code = loaded(device, SCALE)
    x = np.arange(10, dtype=np.float32)
    a, out = device.array(x), device.empty((10,), "float32")
    device.launch(code.handle("scale_kernel"), [address(a), address(out), 10, 2.5], [3, 4], 0)
    device.synchronize()
    np.testing.assert_array_equal(out.numpy(), x * np.float32(2.5))
    assert a.__dlpack_device__() == (18258, 0)
    assert OWN_DEVICE_TYPES[18258] == "reference"


def test_an_address_inside_of_an_array(device: ReferenceDevice) -> None:
    code = loaded(device, SCALE)
    a, out = device.array(np.arange(10, dtype=np.float32)), device.array(np.zeros(10, np.float32))
    device.launch(code.handle("scale_kernel"), [address(a) + 8, address(out) + 24, 4, 1.0], [1, 4], 0)
    np.testing.assert_array_equal(out.numpy(), [0, 0, 0, 0, 0, 0, 2, 3, 4, 5])


def test_zero_extents_launch_nothing(device: ReferenceDevice) -> None:
    code = loaded(device, SCALE)
    # Addresses that no launch would be given: nothing is looked at.
    device.launch(code.handle("scale_kernel"), [12345, 12345, 0, 1.0], [0, 4], 0)


@pytest.mark.parametrize(
    ("extents", "dynamic", "code", "words"),
    [
        ([1 << 31, 4], 0, "GM0920", ("blockIdx.x is 2147483648", "at most 2147483647")),
        ([1, 1025], 0, "GM0920", ("threadIdx.x is 1025", "at most 1024")),
        ([1, 8], 0, "GM0921", ("threadIdx.x is 8", "made for 4")),
        ([1], 0, "GM0921", ("gives it 1 axes of threads and blocks, and its record has 2",)),
        ([1, 4, 1], 0, "GM0921", ("gives it 3 axes of threads and blocks, and its record has 2",)),
        ([1, 4], 8, "GM0922", ("8 bytes of dynamic shared memory",)),
    ],
)
def test_what_is_refused_before_a_launch(
    device: ReferenceDevice, extents: list[int], dynamic: int, code: str, words: tuple[str, ...]
) -> None:
    kernels = loaded(device, SCALE)
    out = device.array(np.zeros(4, np.float32))
    args = [address(device.array(np.ones(4, np.float32))), address(out), 4, 1.0]
    with pytest.raises(UserError) as caught:
        device.launch(kernels.handle("scale_kernel"), args, extents, dynamic)
    assert caught.value.diagnostics[0].code == code
    for word in words:
        assert word in caught.value.diagnostics[0].message
    np.testing.assert_array_equal(out.numpy(), 0)


@pytest.mark.parametrize("count", [3, 5])
def test_another_number_of_arguments(device: ReferenceDevice, count: int) -> None:
    kernels = loaded(device, SCALE)
    with pytest.raises(UserError, match=f"GM0921.*gives it {count} arguments, and its record has 4"):
        device.launch(kernels.handle("scale_kernel"), [0] * count, [1, 4], 0)


SHARED = """gristmill ir 1

function @k(out: ptr<int32, global>, n: int64, m: int64)
  symbol "k"
  convention kernel
  target "reference"
  launch (threadIdx.x, threadIdx.y) dynamic_shared
{
  allocate s: int32[10000] in shared
  allocate d: int32[0] in shared.dyn
  for t: int64 in 0 +: n thread on threadIdx.x {
    for u: int64 in 0 +: m thread on threadIdx.y {
    }
  }
}
"""


def test_threads_and_shared_memory_of_a_block(device: ReferenceDevice) -> None:
    code = loaded(device, SHARED)
    handle = code.handle("k")
    device.launch(handle, [0, 512, 2], [512, 2], 25536)
    for extents, dynamic, words in (
        ((512, 3), 0, "1536 threads (512 x 3 x 1)"),
        ((2, 2), 25537, "65537 bytes of shared memory (40000 in its code and 25537 of the launch)"),
        ((2, 2), -1, "-1 bytes of dynamic"),
    ):
        with pytest.raises(UserError) as caught:
            device.launch(handle, [0, *extents], extents, dynamic)
        assert words in caught.value.diagnostics[0].message


def scalar_kernel(dtype: str) -> str:
    return f"""gristmill ir 1

function @k(out: ptr<{dtype}, global>, x: {dtype})
  symbol "k"
  convention kernel
  target "reference"
  launch ()
{{
  view Y: {dtype}[1] over out
  Y[0] = x
}}
"""


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_scalars_of_every_type(device: ReferenceDevice, dtype: Any) -> None:
    code = loaded(device, scalar_kernel(str(dtype)))
    out = device.empty((1,), str(dtype))
    if dtype.is_bool:
        values: list[Any] = [True, False]
    elif dtype.is_float:
        values = [0.5, -0.0, float("inf"), 1.0078125]
    else:
        values = [dtype.minimum, dtype.maximum]
    for value in values:
        # A uint64 comes through the host interface as the int64 of the same bits.
        given = value - (1 << 64) if str(dtype) == "uint64" and value >= 1 << 63 else value
        device.launch(code.handle("k"), [address(out), given], [], 0)
        found = out.numpy()[0].item()
        assert (found, str(found)) == (value, str(value))


def test_foreign_and_dead_memory(device: ReferenceDevice) -> None:
    code = loaded(device, scalar_kernel("int32"))
    host = np.zeros(4, np.int32)
    with pytest.raises(UserError, match="no memory of reference:0"):
        device.launch(code.handle("k"), [host.ctypes.data, 1], [], 0)
    array = device.empty((1,), "int32")
    was = address(array)
    del array
    gc.collect()
    with pytest.raises(UserError, match="GM0923"):
        device.launch(code.handle("k"), [was, 1], [], 0)


def test_memory_that_kernels_ask_for(device: ReferenceDevice) -> None:
    code = loaded(device, scalar_kernel("int32"))
    found = device.allocate(4, 256)
    assert found % 256 == 0
    device.launch(code.handle("k"), [found, 1], [], 0)
    device.release(found)
    with pytest.raises(UserError, match="GM0923"):
        device.launch(code.handle("k"), [found, 1], [], 0)


def test_unwritten_elements_stay_unwritten_from_launch_to_launch(device: ReferenceDevice) -> None:
    code = loaded(device, SCALE)
    half, out = device.empty((8,), "float32"), device.empty((8,), "float32")
    full = device.array(np.ones(8, np.float32))
    device.launch(code.handle("scale_kernel"), [address(full), address(half), 4, 3.0], [1, 4], 0)
    device.launch(code.handle("scale_kernel"), [address(half), address(out), 4, 3.0], [1, 4], 0)
    np.testing.assert_array_equal(out.numpy()[:4], 9)
    with pytest.raises(ExecutionError) as caught:
        device.launch(code.handle("scale_kernel"), [address(half), address(out), 8, 3.0], [2, 4], 0)
    assert caught.value.diagnostics[0].code == "GM0502"


RACE = """gristmill ir 1

function @k(out: ptr<int32, global>)
  symbol "k"
  convention kernel
  target "reference"
  launch (threadIdx.x)
{
  view Y: int32[4] over out
  for t: int64 in 0 +: 4 thread on threadIdx.x {
    Y[t] = 1i32
    Y[3 - t] = 2i32
  }
}
"""


def test_races_are_reported_and_launches_do_not_race_with_each_other(device: ReferenceDevice) -> None:
    out = device.array(np.zeros(4, np.int32))
    racy, single = loaded(device, RACE), loaded(device, scalar_kernel("int32"))
    for value in (3, 4):
        device.launch(single.handle("k"), [address(out), value], [], 0)
        with pytest.raises(ExecutionError, match="GM0504"):
            device.launch(racy.handle("k"), [address(out)], [4], 0)


def test_damaged_code(device: ReferenceDevice) -> None:
    module = parse_module(SCALE, "scale.gmir")
    (record,) = (kernel_record(found, module) for found in kernels_of(module))
    for data in (b"\xff\xfe", b"nonsense", SCALE.replace("launch (blockIdx.x, ", "launch (").encode()):
        with pytest.raises(UserError, match="GM0912"):
            device.load(memoryview(data), (record.entry,), (record,))
    with pytest.raises(MissingError):
        ReferenceRuntime().open(1)


def test_many_threads_launch_and_let_go(device: ReferenceDevice) -> None:
    code = loaded(device, SCALE)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        try:
            for number in range(20):
                x = np.full(9, seed * 100 + number, np.float32)
                a, out = device.array(x), device.empty((9,), "float32")
                device.launch(code.handle("scale_kernel"), [address(a), address(out), 9, 2.0], [3, 4], 0)
                if not np.array_equal(out.numpy(), x * 2):
                    wrong.append((seed, number))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_generator_keeps_names_of_files_and_no_folders() -> None:
    module = parse_module(SCALE, "scale.gmir")
    kernel = replace(module.functions[0], span=Span.at("/home/me/kernels/a.py", 7, 1, 7, 9))
    module = module.with_functions([kernel])
    (blob,) = ReferenceGenerator().generate(module, resolve(parse_target("reference")), GenerateOptions())
    assert b"/home/me" not in blob.data
    span = parse_module(blob.data.decode(), "x.gmir").functions[0].span
    assert span == Span.at("a.py", 7, 1, 7, 9)


def test_there_is_one_reference_device() -> None:
    with pytest.raises(ValueError, match="no architectures"):
        resolve(parse_target("reference:gfx"))


def test_data_that_is_not_installed() -> None:
    with pytest.raises(MissingError, match="GM0924"):
        target_table("no-such-family")
