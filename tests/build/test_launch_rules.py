"""What holds of every launch: zero extents, limits, shared memory, blocks, scalars; host code compiled and interpreted."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp import ExecutionError
from gristmill.ir.dtype import SCALARS, DType
from gristmill.script import parse_source
from gristmill.testing.on_reference import ReferenceBackend

HEAD = "from gristmill.script import tir as T\n\n"


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def backend(request: Any) -> ReferenceBackend:
    return ReferenceBackend(interpreted=request.param == "interpreted")


def call(backend: ReferenceBackend, text: str, *args: Any) -> Any:
    return backend(parse_source(HEAD + text, "kernel.py").module, "f", list(args))


AXES = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
LIMITS = (2147483647, 65535, 65535, 1024, 1024, 64)
ONE_AXIS = """@T.prim_func
def f(x: T.Buffer((1,), "int32"), n: T.int64):
    for t in T.thread_binding(n, "{axis}"):
        if t == 0:
            x[0] = x[0] + 1
"""


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("extent", [0, -3, 1])
def test_an_extent_of_zero_or_less_launches_nothing(backend: ReferenceBackend, axis: str, extent: int) -> None:
    x = np.zeros(1, np.int32)
    call(backend, ONE_AXIS.format(axis=axis), x, extent)
    assert x[0] == (extent > 0)


@pytest.mark.parametrize(("axis", "limit"), list(zip(AXES, LIMITS, strict=True)))
def test_an_extent_over_the_limit_names_axis_value_and_limit(backend: ReferenceBackend, axis: str, limit: int) -> None:
    x = np.zeros(1, np.int32)
    with pytest.raises(UserError) as caught:
        call(backend, ONE_AXIS.format(axis=axis), x, limit + 1)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0920"
    assert found.message == (
        f"the kernel `f_kernel` cannot be launched: its extent along {axis} is {limit + 1}, "
        f"and reference:0 allows at most {limit}"
    )
    assert axis in found.hint
    assert x[0] == 0


def test_zero_wins_over_a_limit(backend: ReferenceBackend) -> None:
    """Nothing is launched, so nothing is too large for it."""
    x = np.zeros(1, np.int32)
    text = """@T.prim_func
def f(x: T.Buffer((1,), "int32"), n: T.int64, m: T.int64):
    for b in T.thread_binding(n, "blockIdx.y"):
        for t in T.thread_binding(m, "threadIdx.x"):
            x[0] = 1
"""
    call(backend, text, x, 0, 100_000)
    call(backend, text, x, 100_000, 0)
    assert x[0] == 0


def test_launches_before_one_that_is_refused_have_run(backend: ReferenceBackend) -> None:
    """Each launch is checked when its turn comes: host code between launches may decide its extents."""
    text = """@T.prim_func
def f(x: T.Buffer((2,), "int32"), n: T.int64):
    for t in T.thread_binding(2, "threadIdx.x"):
        x[t] = 1
    for t in T.thread_binding(n, "threadIdx.x"):
        if t < 2:
            x[t] = 2
"""
    module = parse_source(HEAD + text, "kernel.py").module
    device = backend.device
    array = device.array(np.zeros(2, np.int32))
    pack = backend.loaded(backend.generated(module), module)
    with pytest.raises(UserError) as caught:
        pack.f(array, 1025)
    assert (
        "`f_kernel_1` cannot be launched: its extent along threadIdx.x is 1025" in caught.value.diagnostics[0].message
    )
    assert list(array.numpy()) == [1, 1]
    pack.f(array, 2)
    assert list(array.numpy()) == [2, 2]


def test_a_block_of_too_many_threads(backend: ReferenceBackend) -> None:
    text = """@T.prim_func
def f(x: T.Buffer((1,), "int32"), n: T.int64, m: T.int64):
    for t in T.thread_binding(n, "threadIdx.x"):
        for u in T.thread_binding(m, "threadIdx.y"):
            if t + u == 0:
                x[0] = 1
"""
    x = np.zeros(1, np.int32)
    call(backend, text, x, 32, 32)
    assert x[0] == 1
    with pytest.raises(UserError) as caught:
        call(backend, text, x, 33, 32)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0921"
    assert "its blocks have 1056 threads (33 x 32 x 1), and reference:0 allows at most 1024" in found.message


SHARED = """@T.prim_func
def f(x: T.Buffer((8,), "int32"), n: T.int64):
    a = T.alloc_buffer(({static},), "int32", scope="shared")
    b = T.alloc_buffer((n,), "int32", scope="shared.dyn")
    for t in T.thread_binding(8, "threadIdx.x"):
        a[t] = x[t]
        b[t] = x[t]
        T.tvm_storage_sync("shared")
        x[t] = a[7 - t] + b[7 - t]
"""


def test_shared_memory_over_the_limit(backend: ReferenceBackend) -> None:
    text = SHARED.format(static=8192)
    x = np.arange(8, dtype=np.int32)
    call(backend, text, x, 8192)
    assert list(x) == [14, 12, 10, 8, 6, 4, 2, 0]
    with pytest.raises(UserError) as caught:
        call(backend, text, x, 8193)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0922"
    for words in ("65540 bytes of shared memory", "32768 in its code", "32772 of the launch", "reference:0 has 65536"):
        assert words in found.message
    assert list(x) == [14, 12, 10, 8, 6, 4, 2, 0]


SIZES = """@T.prim_func
def f(x: T.Buffer((8,), "int32"), n: T.int64, m: T.int64, threads: T.int64):
    {arrays}
    for t in T.thread_binding(threads, "threadIdx.x"):
        {stores}
"""
ONE = SIZES.format(arrays='a = T.alloc_buffer((n, m), "int32", scope="shared.dyn")', stores="a[0, t] = x[t]")
TWO = SIZES.format(
    arrays='a = T.alloc_buffer((n,), "int8", scope="shared.dyn"); b = T.alloc_buffer((m,), "int64", scope="shared.dyn")',
    stores="a[t] = T.int8(1); b[t] = T.int64(x[t] + a[t])",
)


@pytest.mark.parametrize("text", [ONE, TWO])
@pytest.mark.parametrize(
    ("n", "m"), [(2**62, 4), (4, 2**62), (2**61, 2**61), (2**62, 2**62), (2**63 - 1, 8), (2**32, 2**32)]
)
def test_sizes_of_shared_memory_that_wrap_are_large(backend: ReferenceBackend, text: str, n: int, m: int) -> None:
    x = np.arange(8, dtype=np.int32)
    with pytest.raises(UserError) as caught:
        call(backend, text, x, n, m, 1)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0922"
    assert "and reference:0 has 65536" in found.message
    call(backend, text, x, n, m, 0)


@pytest.mark.parametrize("text", [ONE, TWO])
@pytest.mark.parametrize(("n", "m"), [(-1, 4), (8, -1), (-2, -3), (-(2**63), 2), (2**62, -1), (64, -(2**61)), (0, -1)])
def test_negative_sizes_of_shared_memory_are_refused(backend: ReferenceBackend, text: str, n: int, m: int) -> None:
    x = np.arange(8, dtype=np.int32)
    with pytest.raises(UserError) as caught:
        call(backend, text, x, n, m, 1)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0922"
    assert "a size of an array in `shared.dyn` is negative" in found.message
    call(backend, text, x, n, m, 0)


def test_sizes_of_shared_memory_that_fit_are_taken_as_they_are(backend: ReferenceBackend) -> None:
    x = np.arange(8, dtype=np.int32)
    call(backend, ONE, x, 1, 16384, 8)
    call(backend, TWO, x, 8, 8191, 8)
    for text, n, m in ((ONE, 1, 16385), (TWO, 9, 8191)):
        with pytest.raises(UserError, match="bytes of shared memory"):
            call(backend, text, x, n, m, 8)


TEMPORARY = """@T.prim_func
def f(x: T.Buffer((8,), "int32"), n: T.int64, m: T.int64):
    a = T.alloc_buffer((n, m), "int32")
    for t in T.thread_binding(8, "threadIdx.x"):
        a[0, t] = x[t]
    for t in T.thread_binding(8, "threadIdx.x"):
        x[t] = a[0, t] + 1
"""


@pytest.mark.parametrize(("n", "m"), [(2**62, 4), (2**62 + 2, 8), (2**32, 2**32), (2**63 - 1, 2**63 - 1), (2**61, 8)])
def test_sizes_of_memory_of_the_device_that_wrap_get_none(backend: ReferenceBackend, n: int, m: int) -> None:
    x = np.arange(8, dtype=np.int32)
    # Compiled code gets no memory; the executor says what is too large.
    with pytest.raises((MemoryError, ExecutionError), match=r"no memory|takes .* bytes"):
        call(backend, TEMPORARY, x, n, m)
    assert list(x) == list(range(8))
    call(backend, TEMPORARY, x, 1, 8)
    assert list(x) == list(range(1, 9))


# Scalars --------------------------------------------------------------------------------------------------------------

FLOATS = {
    # Sign, subnormal and largest: IEEE 754 binary16, bfloat16 (the upper half of binary32), binary32, binary64.
    "float16": [0.0, -0.0, 2.0**-24, -(2.0**-24), 65504.0, 1 / 3],
    "bfloat16": [0.0, -0.0, 2.0**-133, -(2.0**-133), 2.0**127 * (2 - 2.0**-7), 1 / 3],
    "float32": [0.0, -0.0, 2.0**-149, -(2.0**-149), 2.0**127 * (2 - 2.0**-23), 1 / 3],
    "float64": [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 1 / 3],
}


def values_of(dtype: DType) -> list[Any]:
    if dtype.is_bool:
        return [True, False]
    if dtype.is_float:
        return [*FLOATS[str(dtype)], math.inf, -math.inf, math.nan]
    return [dtype.minimum, dtype.maximum, 0, 1, dtype.maximum // 3]


def rounded(value: Any, dtype: DType) -> Any:
    """The value as an element of that type holds it."""
    import ml_dtypes

    if not dtype.is_float:
        return value
    kinds: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16}
    kind = kinds.get(str(dtype)) or np.dtype(str(dtype)).type
    return float(kind(value))


def bits(value: Any) -> Any:
    """What tells all values apart, zeros of two signs too; one for all NaN."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return type(value), value


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_scalars_of_every_type_pass_exactly(backend: ReferenceBackend, dtype: DType) -> None:
    """Alone, and between others whose sizes differ, so that none is read from another's place."""
    text = f"""@T.prim_func
def f(x: T.Buffer((4,), "{dtype}"), a: T.int8, value: T.{dtype}, b: T.float64, again: T.{dtype}, c: T.bool):
    for t in T.thread_binding(4, "threadIdx.x"):
        if t % 2 == 0:
            x[t] = value
        elif a == T.int8(-3) and b == T.float64(0.1) and c:
            x[t] = again
"""
    module = parse_source(HEAD + text, "kernel.py").module
    pack = backend.loaded(backend.generated(module), module)
    values = values_of(dtype)
    for value, other in zip(values, [*values[1:], values[0]], strict=True):
        array = backend.device.empty((4,), str(dtype))
        pack.f(array, -3, value, 0.1, other, True)
        found = [bits(element.item()) for element in array.numpy()]
        assert found == [bits(rounded(value, dtype)), bits(rounded(other, dtype))] * 2, (value, other)


# Errors ---------------------------------------------------------------------------------------------------------------


def test_an_assertion_of_a_kernel_fails_the_call(backend: ReferenceBackend) -> None:
    """At the line of the kernel, with the thread; and the next call is as if nothing had been."""
    text = """@T.prim_func
def f(x: T.Buffer((64,), "float32"), most: T.int64):
    for t in T.thread_binding(64, "threadIdx.x"):
        assert t < most, "too many"
        x[t] = 1.0
"""
    x = np.zeros(64, np.float32)
    with pytest.raises(ExecutionError) as caught:
        call(backend, text, x, 50)
    (found,) = caught.value.diagnostics
    assert "AssertionError: too many" in found.message
    assert found.place is not None
    assert (found.place.file, found.place.line) == ("kernel.py", 6)
    assert found.notes[0].message == "in the thread or iteration threadIdx.x = 50"
    call(backend, text, x, 64)
    assert x.all()


LOOPS = """@T.prim_func
def f(x: T.Buffer((8,), "int32"), n: T.int64, m: T.int64):
    for i in T.parallel(n):
        for j in T.parallel(m):
            if 0 <= i * m + j < 8:
                x[i * m + j] = 1
"""


@pytest.mark.parametrize(
    ("n", "m"), [(2**32, 2**32), (2**62, 4), (2**63 - 1, 1), (1, 2**63 - 1), (2**63 - 1, 2**63 - 1), (2**31, 2**33)]
)
def test_more_iterations_than_numbers_are_not_taken_as_none(backend: ReferenceBackend, n: int, m: int) -> None:
    """Their number wraps in int64: the launch is refused as too large, and not left out as empty."""
    x = np.zeros(8, np.int32)
    with pytest.raises(UserError, match="GM0920"):
        call(backend, LOOPS, x, n, m)
    assert not x.any()


@pytest.mark.parametrize(("n", "m"), [(0, 2**63 - 1), (-5, -7), (-(2**63), 1), (2**62, 0), (2, 3)])
def test_iterations_that_can_be_counted_are_launched(backend: ReferenceBackend, n: int, m: int) -> None:
    x = np.zeros(8, np.int32)
    call(backend, LOOPS, x, n, m)
    assert x.sum() == max(n, 0) * max(m, 0)
