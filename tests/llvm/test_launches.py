"""Host functions that launch kernels: what arrives at the functions of the context table, and every way out."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gristmill.codegen.context_table import table_words
from gristmill.ir.parser import parse_module
from gristmill_llvm.cost import releases_gil

LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_int32,
    ctypes.c_int64,
)
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
DEVICE = 0xD0


class FakeDevice:
    """Three functions that note how they are called; launch ``fail_at`` (from 0) fails, as does memory if ``full``."""

    def __init__(self, kernels: int = 1, fail_at: int = -1, full: bool = False) -> None:
        self.launches: list[tuple[Any, ...]] = []
        self.alive: list[int] = []
        self.allocated: list[tuple[int, int]] = []
        self.fail_at = fail_at
        self.full = full
        self.callbacks = (LAUNCH(self.launch), ALLOCATE(self.allocate), RELEASE(self.release))
        addresses = [ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in self.callbacks]
        words = table_words(2, DEVICE, *addresses, tuple(0xA0 + number for number in range(kernels)))
        self.words = (ctypes.c_uint64 * len(words))(*words)
        self.table = ctypes.addressof(self.words)

    def launch(self, device: int, kernel: int, args: Any, count: int, extents: Any, axes: int, dynamic: int) -> int:
        import tvm_ffi

        assert device == DEVICE
        given = [(args[2 * number] & 0xFFFFFFFF, args[2 * number + 1]) for number in range(count)]
        self.launches.append((kernel, given, [extents[number] for number in range(axes)], dynamic))
        if len(self.launches) - 1 == self.fail_at:
            tvm_ffi.LIB.TVMFFIErrorSetRaisedFromCStr(b"ValueError", b"the launch is refused")
            return -1
        return 0

    def allocate(self, device: int, size: int, alignment: int) -> int:
        assert device == DEVICE
        if self.full:
            return 0
        self.allocated.append((size, alignment))
        self.alive.append(0x1000 * len(self.allocated))
        return self.alive[-1]

    def release(self, device: int, data: int) -> None:
        assert device == DEVICE
        self.alive.remove(data)


def compiled(compile_module: Callable[..., Any], text: str) -> Any:
    return compile_module(parse_module("gristmill ir 1\n" + text, "launch.gmir").functions)


SCALARS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
KERNEL = """
function @one_kernel({params})
  symbol "one_kernel"
  convention kernel
  target "reference"
  launch ({axes}){dynamic}
  declaration
{{
}}
"""


def kernel(params: str = "", axes: str = "blockIdx.x", dynamic: str = "") -> str:
    return KERNEL.format(params=params, axes=axes, dynamic=dynamic)


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalars_arrive_widened_without_loss(compile_module: Callable[..., Any], dtype: str) -> None:
    text = f"""
function @run(p: handle, x: {dtype}, context: handle) -> int32
  symbol "run"
{{
  launch @one_kernel(p, x) over blockIdx.x = 1, threadIdx.x = 2i32 context context
  return 7i32
}}
"""
    loaded = compiled(compile_module, text + kernel(f"p: handle, x: {dtype}", "blockIdx.x, threadIdx.x"))
    assert dict(loaded.blob.requirements)["kernels"] == "one_kernel"
    run = loaded.library.run
    types = {"bool": ctypes.c_bool, "float32": ctypes.c_float, "float64": ctypes.c_double}
    run.argtypes = [
        ctypes.c_void_p,
        types.get(dtype) or getattr(ctypes, f"c_{dtype}"),
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    wanted: dict[str, list[Any]] = {
        "bool": [True, False],
        "float32": [0.1, -0.0, float("inf"), 1e-45],
        "float64": [0.1, 5e-324],
    }
    values = wanted.get(dtype) or [np.iinfo(dtype).min, np.iinfo(dtype).max, 3]
    device = FakeDevice()
    for value in values:
        result = ctypes.c_int32()
        assert run(0x123456789A, value, device.table, ctypes.addressof(result)) == 0
        assert result.value == 7
        handle, given, extents, dynamic = device.launches[-1]
        assert (handle, extents, dynamic) == (0xA0, [1, 2], 0)
        assert given[0] == (4, 0x123456789A)
        if dtype.startswith("float"):
            exact = float(np.dtype(dtype).type(value))
            assert given[1] == (3, int.from_bytes(struct.pack("<d", exact), "little"))
        else:
            assert given[1] == (2 if dtype == "bool" else 1, int(value) % (1 << 64))


EXTENTS = """
function @run(a: int32, b: uint32, shared_bytes: int64, context: handle)
  symbol "run"
{
  launch @one_kernel() over blockIdx.x = a, threadIdx.y = b shared shared_bytes context context
}
""" + kernel("", "blockIdx.x, threadIdx.y", " dynamic_shared")


def test_extents_zero_launches_nothing(compile_module: Callable[..., Any]) -> None:
    run = compiled(compile_module, EXTENTS).library.run
    run.argtypes = [ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p]
    device = FakeDevice()
    for a, b in ((0, 5), (5, 0), (-3, 5), (0, 0)):
        assert run(a, b, 16, device.table) == 0
    assert device.launches == []
    assert run(5, 0xFFFFFFFF, 48, device.table) == 0
    assert device.launches == [(0xA0, [], [5, 0xFFFFFFFF], 48)]


def test_the_number_of_the_device(compile_module: Callable[..., Any]) -> None:
    text = """
function @run(context: handle) -> int32
  symbol "run"
{
  return context_device_id(context) as int32
}
"""
    run = compiled(compile_module, text).library.run
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    device, result = FakeDevice(), ctypes.c_int32()
    assert run(device.table, ctypes.addressof(result)) == 0
    assert result.value == 2
    assert run(None, ctypes.addressof(result)) == -1
    assert result.value == 2


def test_without_a_table_there_is_an_error(compile_module: Callable[..., Any], tmp_path: Path) -> None:
    """As when the library is opened with TVM FFI's own loader, which passes null for `self`."""
    import tvm_ffi

    text = """
function @__tvm_ffi_run(self: handle, args: handle, count: int32, result: handle) -> int32
  symbol "__tvm_ffi_run"
  convention packed
{
  evaluate @inner(3, self)
  return 0i32
}

function @inner(n: int64, context: handle)
{
  launch @one_kernel() over blockIdx.x = n context context
}
"""
    loaded = compiled(compile_module, text + kernel())
    (tmp_path / "run.so").write_bytes(loaded.blob.data)
    run = tvm_ffi.load_module(tmp_path / "run.so").run
    with pytest.raises(RuntimeError, match="must be loaded by gristmill"):
        run()
    function = loaded.module.get("__tvm_ffi_run")
    assert not releases_gil(function, loaded.module)
    # A wish of the author goes first.
    assert releases_gil(function.with_facts(release_gil=True), loaded.module)


TEMPORARIES = """
function @run(n: int64, p: handle, stop: bool, context: handle)
  symbol "run"
{
  for i: int64 in 0 +: 2 {
    allocate first: float32[n] data first_data: ptr<float32, global>
    launch @one_kernel(first_data, p) over blockIdx.x = 4 context context
    allocate second: float64[8] align 256 data second_data: ptr<float64, global>
    view other: int32[4] data other_data: ptr<int32, global> from second_data
    if stop {
      return
    }
    allocate mine: int64[2]
    mine[0] = n
    evaluate @inner(other_data, mine[0], context)
  }
}

function @inner(p: handle, n: int64, context: handle)
{
  assert n < 1000, "ValueError", "too many"
  launch @one_kernel(p, p) over blockIdx.x = n context context
}
""" + kernel("a: handle, b: handle")


@pytest.fixture(scope="module")
def with_temporaries(compile_module: Callable[..., Any]) -> Any:
    run = compiled(compile_module, TEMPORARIES).library.run
    run.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p]
    return run


def test_memory_of_the_device_comes_from_the_table(with_temporaries: Any) -> None:
    device = FakeDevice()
    assert with_temporaries(5, 0x77, False, device.table) == 0
    assert [given[0][1] for _, given, _, _ in device.launches] == [0x1000, 0x2000, 0x3000, 0x4000]
    # The array that only the host uses is the host's.
    assert device.allocated == [(20, 64), (64, 256)] * 2
    assert device.alive == []


@pytest.mark.parametrize(("n", "stop", "fail_at"), [(5, True, -1), (5, False, 0), (5, False, 3), (1000, False, -1)])
def test_memory_of_the_device_is_given_back_on_every_way_out(
    with_temporaries: Any, n: int, stop: bool, fail_at: int
) -> None:
    import tvm_ffi

    device = FakeDevice(fail_at=fail_at)
    status = with_temporaries(n, 0x77, stop, device.table)
    assert (status != 0) == (not stop)
    assert device.allocated
    assert device.alive == []
    if status:
        # Take the error, or it would be the next one's.
        raised = ctypes.c_void_p()
        tvm_ffi.LIB.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
        tvm_ffi.LIB.TVMFFIObjectDecRef(raised)


def test_no_memory_on_the_device(compile_module: Callable[..., Any]) -> None:
    text = """
function @__tvm_ffi_run(self: handle, args: handle, count: int32, result: handle) -> int32
  symbol "__tvm_ffi_run"
  convention packed
{
  evaluate @inner(3, self)
  return 0i32
}

function @inner(n: int64, context: handle)
{
  allocate first: float32[n] data first_data: ptr<float32, global>
  launch @one_kernel(first_data) over blockIdx.x = n context context
}
"""
    import tvm_ffi

    loaded = compiled(compile_module, text + kernel("a: handle"))
    device = FakeDevice(full=True)
    handle = ctypes.c_void_p()
    address = ctypes.cast(getattr(loaded.library, "__tvm_ffi_run"), ctypes.c_void_p)
    assert tvm_ffi.LIB.TVMFFIFunctionCreate(ctypes.c_void_p(device.table), address, None, ctypes.byref(handle)) == 0
    status = tvm_ffi.LIB.TVMFFIFunctionCall(handle, None, 0, ctypes.byref((ctypes.c_uint64 * 2)()))
    assert status != 0
    assert device.launches == []
    raised = ctypes.c_void_p()
    tvm_ffi.LIB.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
    tvm_ffi.LIB.TVMFFIObjectDecRef(raised)
    tvm_ffi.LIB.TVMFFIObjectDecRef(handle)
