"""One set of tests for every way that arguments reach kernels, each with the validation layer on and saying nothing.

The ways: storage buffers as push descriptors and in descriptor sets, with scalars in push constants and in a uniform
buffer; addresses in push constants, and in memory; addresses that are the driver's and that are ours; arrays that the
host sees and that it does not; launches that native support code records and that Python does.
"""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.ir.dtype import FLOAT32, INT32, UINT8, DType
from gristmill.runtime.dlpack import tensor_over
from gristmill_vulkan.kernels import Kernel

if TYPE_CHECKING:
    from tests.vulkan.conftest import Ready


def view(array: Any, first: int, count: int, dtype: DType) -> Any:
    """A tensor over a part of an array, whose address is in the middle of an allocation."""
    address = _address(array)
    return tensor_over(address + first * dtype.bytes, (count,), dtype, (7, array.device.index), array)


def _address(array: Any) -> int:
    found: int = array.device.memory_of(array).address
    return found


def kernels_of(ready: Ready) -> list[Kernel]:
    return list(ready.device.kernels())


def test_the_way_is_the_one_meant(ready: Ready, vulkan_validation: str) -> None:
    forms = {kernel.record.name: kernel.form.arguments for kernel in kernels_of(ready)}
    assert forms["saxpy_kernel"] == ready.way.arguments
    assert {kernel.uses_push_descriptors for kernel in kernels_of(ready)} == {
        "VK_KHR_push_descriptor" not in ready.way.without
    }
    assert ready.device.memory.has_addresses == ("address" not in ready.way.without)
    assert ready.device.memory.arrays.is_mapped == ("mapped_arrays" not in ready.way.without)
    assert ready.device.instance.is_validated == (vulkan_validation == "1")
    assert (ready.device.native is not None) == ready.way.is_native


@pytest.mark.parametrize("size", [1, 255, 1000, 70001])
def test_saxpy(ready: Ready, size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    given, result = ready.device.array(x), ready.device.array(np.ones(size, np.float32))
    ready.pack.saxpy(2.0, given, result)
    np.testing.assert_array_equal(result.numpy(), 2 * x + 1)


def test_arrays_without_elements(ready: Ready) -> None:
    given, result = ready.device.empty((0,), "float32"), ready.device.empty((0,), "float32")
    ready.pack.saxpy(2.0, given, result)
    assert result.numpy().shape == (0,)
    assert ready.device.array(np.zeros((3, 0, 2), np.int8)).numpy().shape == (3, 0, 2)


def test_arguments_of_all_kinds(ready: Ready) -> None:
    out, wide = ready.device.empty((10,), "float32"), ready.device.empty((2,), "int64")
    ready.pack.kinds(-7, 200, -30000, 60000, -5, 1 << 31, -(1 << 40), 1 << 42, True, 0.1, out, wide)
    expected = [-7, 200, -30000, 60000, -5, 1 << 31, -(1 << 40), 1 << 42, 1, np.float32(0.1)]
    assert out.numpy().tolist() == [np.float32(value) for value in expected]
    assert wide.numpy().tolist() == [-(1 << 40), 1 << 42]


def test_kernels_that_are_queued_keep_their_own_scalars(ready: Ready) -> None:
    """Also the 17 that many devices cannot push, and when what holds them has to grow while they are queued."""
    given = [[100 * launch + place for place in range(17)] for launch in range(700)]
    results = [ready.device.empty((17,), "int64") for _ in given]
    for values, out in zip(given, results, strict=True):
        ready.pack.many(*values, out)
    assert [out.numpy().tolist() for out in results] == given


def test_threads_keep_their_own_scalars(ready: Ready) -> None:
    found: dict[int, list[list[int]]] = {}

    def work(thread: int) -> None:
        results = []
        for launch in range(40):
            out = ready.device.empty((17,), "int64")
            ready.pack.many(*(1000 * thread + launch + place for place in range(17)), out)
            results.append(out)
        found[thread] = [out.numpy().tolist() for out in results]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(3):
        assert found[number] == [[1000 * number + launch + place for place in range(17)] for launch in range(40)]


def test_launches_that_depend_on_each_other(ready: Ready) -> None:
    array = ready.device.array(np.zeros(100, np.int32))
    for _ in range(20):
        ready.pack.double(array)
    assert array.numpy().tolist() == [(1 << 20) - 1] * 100


def test_arrays_that_go_while_they_are_queued(ready: Ready) -> None:
    device = ready.device
    # What earlier tests let go may wait for the garbage collector.
    gc.collect()
    device.synchronize()
    before = device.memory.count
    kept = device.array(np.zeros(5000, np.int32))
    for number in range(50):
        passing = device.empty((5000,), "int32")
        ready.pack.fill(number, passing)
        del passing
    ready.pack.fill(3, kept)
    assert set(kept.numpy().tolist()) == {3}
    del kept
    gc.collect()
    device.synchronize()
    assert device.memory.count == before


def test_views_and_byte_offsets(ready: Ready) -> None:
    array = ready.device.array(np.zeros(64, np.int32))
    # Not at a multiple of any alignment but the element's own.
    ready.pack.fill(5, view(array, 3, 10, INT32))
    ready.pack.fill(7, view(array, 61, 3, INT32))
    expected = np.zeros(64, np.int32)
    expected[3:13], expected[61:] = 5, 7
    np.testing.assert_array_equal(array.numpy(), expected)


def test_bytes_at_odd_offsets(ready: Ready) -> None:
    values = np.arange(200, dtype=np.uint8)
    source, target = ready.device.array(values), ready.device.array(np.zeros(200, np.uint8))
    ready.pack.copy_bytes(view(source, 13, 101, UINT8), view(target, 1, 101, UINT8))
    expected = np.zeros(200, np.uint8)
    expected[1:102] = values[13:114]
    np.testing.assert_array_equal(target.numpy(), expected)


def test_views_of_one_array_for_reading_and_writing(ready: Ready) -> None:
    array = ready.device.array(np.arange(32, dtype=np.float32))
    ready.pack.saxpy(1.0, view(array, 0, 16, FLOAT32), view(array, 16, 16, FLOAT32))
    expected = np.arange(32, dtype=np.float32)
    expected[16:] += expected[:16]
    np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("threads", [32, 7, 64, 1])
def test_sizes_of_blocks_and_of_shared_memory_are_those_of_the_launch(ready: Ready, threads: int) -> None:
    count = threads * 3
    given, result = ready.device.array(np.arange(count, dtype=np.int32)), ready.device.empty((count,), "int32")
    ready.pack.reverse_blocks(threads, given, result)
    expected = np.arange(count).reshape(3, threads)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_threads_of_a_block_see_what_others_wrote_to_memory(ready: Ready) -> None:
    x, y = ready.device.array(np.arange(64, dtype=np.int32)), ready.device.empty((64,), "int32")
    ready.pack.exchange(x, y)
    assert y.numpy().tolist() == list(range(64, 0, -1))


def test_memory_that_host_code_takes_for_a_while(ready: Ready) -> None:
    values = np.arange(500, dtype=np.float32)
    given, result = ready.device.array(values), ready.device.empty((500,), "float32")
    for _ in range(5):
        ready.pack.with_temporary(given, result)
    np.testing.assert_array_equal(result.numpy(), values[::-1] + 1)


def test_more_launches_than_one_submission_holds(ready: Ready) -> None:
    arrays = [ready.device.array(np.zeros(10, np.int32)) for _ in range(7)]
    for number in range(300):
        ready.pack.double(arrays[number % 7])
    rounds = [43] * 6 + [42]
    expected = [((1 << count) - 1 + (1 << 31)) % (1 << 32) - (1 << 31) for count in rounds]
    assert [array.numpy()[0] for array in arrays] == expected


def test_an_address_of_nothing(ready: Ready) -> None:
    with pytest.raises(UserError, match=r"GM0923.*`x_data` an address that is no memory of vulkan:0"):
        ready.pack.double(tensor_over(1 << 60, (4,), INT32, (7, 0), None))


def test_extents_over_the_device_s_limits(ready: Ready) -> None:
    out = ready.device.array(np.zeros(4, np.int32))
    most = ready.device.physical.limits["max_grid_size"][0]
    with pytest.raises(UserError, match=r"GM0920.*extent along blockIdx.x is"):
        ready.pack.on_many_blocks(most + 1, out)
    threads = ready.device.physical.limits["max_threads_per_block"] + 1
    with pytest.raises(UserError, match=r"GM092[01]"):
        ready.pack.reverse_blocks(threads, out, out)
    ready.pack.on_many_blocks(most, out)
    assert out.numpy().tolist() == [0, 1, 2, 3]


def test_copies_in_several_chunks(ready: Ready) -> None:
    device = ready.device
    device.transfers.chunk_bytes, before = 4096, device.transfers.chunk_bytes
    values = np.arange(5000, dtype=np.int64)
    array = device.array(values)
    np.testing.assert_array_equal(array.numpy(), values)
    other = device.array(array)
    np.testing.assert_array_equal(other.numpy(), values)
    assert other.shape == array.shape
    device.transfers.chunk_bytes = before
