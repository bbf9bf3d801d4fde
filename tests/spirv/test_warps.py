"""Exchanges, barriers and memory of warps on targets that guarantee the size of subgroups: that of the device here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gristmill.errors import Unsupported
from gristmill.interp import Executor
from gristmill.interp.options import DEFAULT_OPTIONS
from gristmill.ir.dtype import SCALARS
from gristmill.ir.target import Target, parse_target
from gristmill.runtime.arrays import numpy_dtype
from gristmill.testing.programs.comparison import bits

EXCHANGING = "vulkan+float64+subgroup_ballot+subgroup_shuffle"


def target_of(text: str, size: int) -> Target:
    return replace(parse_target(text), options=(("subgroup_size", size),))


def kernel(threads: str, *lines: str, element: str = "int32", sizes: str = "64") -> str:
    head = f'@T.prim_func\ndef f(x: T.Buffer(({sizes},), "{element}"), y: T.Buffer(({sizes},), "{element}")):\n'
    return head + f"    {threads}\n" + "".join(f"        {line}\n" for line in lines)


THREADS = 'for i in T.thread_binding({}, thread="threadIdx.x"):'
SHUFFLES = (
    *("T.warp_shuffle(x[i], 3, width={w})", "T.warp_shuffle(x[i], T.int32(i) * 5 - 7, width={w})"),
    *("T.warp_shuffle_xor(x[i], 1, width={w})", "T.warp_shuffle_xor(x[i], T.int32(i) - 2, width={w})"),
    *("T.warp_shuffle_up(x[i], 1, width={w})", "T.warp_shuffle_up(x[i], T.int32(i) % 5 - 2, width={w})"),
    *("T.warp_shuffle_down(x[i], 2, width={w})", "T.warp_shuffle_down(x[i], T.int32(i) % 5 - 2, width={w})"),
)


def same(module: Any, run: Callable[..., Any], x: np.ndarray[Any, Any], **options: int) -> None:
    """The device gives what the executor gives."""
    expected, given = [x, np.zeros_like(x)], [x, np.zeros_like(x)]
    Executor(module, replace(DEFAULT_OPTIONS, **options)).call("f", expected)
    run(module, "f", given)
    np.testing.assert_array_equal(bits(given[1]), bits(expected[1]))


@pytest.mark.parametrize("threads", [64, 13, "n"])
@pytest.mark.parametrize("width", [1, 4, None])
def test_shuffles(
    threads: int | str,
    width: int | None,
    subgroup_size: int,
    parsed: Callable[..., Any],
    on_vulkan: Callable[..., Any],
) -> None:
    """Also where the last group is cut, and where only the launch says how many threads there are."""
    for shuffle in SHUFFLES:
        size = 20 if threads == "n" else int(threads)
        source = kernel(
            THREADS.format(threads),
            f"y[i] = {shuffle.format(w=width or subgroup_size)}",
            sizes=repr(threads).replace("'", '"'),
        )
        x = np.random.default_rng(1).integers(-100, 100, size, np.int32)
        same(parsed(source), on_vulkan(EXCHANGING, subgroup_size=subgroup_size), x)


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_shuffles_of_every_type(
    subgroup_size: int, dtype: Any, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    source = kernel(THREADS.format(64), "y[i] = T.warp_shuffle_xor(x[i], 5, width=8)", element=str(dtype))
    x = np.random.default_rng(2).integers(0, 2 if dtype.is_bool else 120, 64)
    same(parsed(source), on_vulkan(EXCHANGING, subgroup_size=subgroup_size), x.astype(numpy_dtype(dtype)))


@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize("vote", ["ballot", "any", "all"])
def test_votes(
    subgroup_size: int, vote: str, width: int, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    source = kernel(
        THREADS.format(61),
        "if x[i] == 7:",
        "    return",
        f"found = T.warp_{vote}(x[i] > 0, width={width})",
        "y[i] = T.int64(found)",
        element="int64",
        sizes="61",
    )
    x = np.random.default_rng(3).integers(-2, 8, 61)
    same(parsed(source), on_vulkan(EXCHANGING, subgroup_size=subgroup_size), x)


@pytest.mark.parametrize(
    ("size", "width"), [(size, width) for size in (8, 32, 64, 128) for width in (8, 32, 64) if width <= size]
)
def test_it_is_valid_for_subgroups_of_every_size(
    subgroup_size: int, size: int, width: int, parsed: Callable[..., Any], written: Callable[..., Any]
) -> None:
    lines = [f"y[i] = y[i] + {shuffle.format(w=width or subgroup_size)}" for shuffle in SHUFFLES]
    lines += [f"y[i] = y[i] + T.int32(T.warp_{vote}(x[i] > 0, width={width}))" for vote in ("ballot", "any", "all")]
    module = parsed(kernel(THREADS.format(200), *lines, sizes="200"))
    found = written(module, target_of(EXCHANGING, size))
    assert found.subgroup_size == size
    assert {"subgroup_basic", "subgroup_ballot", "subgroup_shuffle"} <= found.features


def test_the_record_says_the_size_only_where_code_relies_on_it(
    subgroup_size: int, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    run = on_vulkan(EXCHANGING, subgroup_size=subgroup_size)
    for line, size in (("y[i] = x[i]", None), ("y[i] = T.warp_shuffle(x[i], 0, width=8)", subgroup_size)):
        (blob,) = [b for b in run.generated(parsed(kernel(THREADS.format(64), line))).blobs if b.kind == "spirv"]
        (record,) = blob.kernels
        assert record.extra.get("subgroup") == size
        assert ("subgroup_basic" in str(blob.requirements["features"])) == bool(size)


def test_barriers_and_memory_of_warps(
    subgroup_size: int, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    lines = (
        'own = T.alloc_buffer((W,), "int32", scope="warp")',
        'all = T.alloc_buffer((64,), "int32", scope="shared")',
        "own[i % W] = x[i] * 3",
        "all[i] = x[i]",
        'T.tvm_storage_sync("warp")',
        "y[i] = own[(i + 3) % W] * 1000 + all[i // W * W + (i + 5) % W]",
    )
    module = parsed(kernel(THREADS.format(64), *(line.replace("W", str(subgroup_size)) for line in lines)))
    run = on_vulkan("vulkan", subgroup_size=subgroup_size)
    same(module, run, np.arange(64, dtype=np.int32), warp_size=subgroup_size)


def test_memory_of_warps_counts_for_every_warp(parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    source = kernel(
        THREADS.format(60), 'own = T.alloc_buffer((8,), "int32", scope="warp")', "own[i % 8] = x[i]", "y[i] = own[0]"
    )
    assert written(parsed(source), target_of("vulkan", 8)).shared_bytes == 8 * 8 * 4


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('T.tvm_storage_sync("warp")', "a barrier of a warp"),
        ('own = T.alloc_buffer((8,), "int32", scope="warp")', "`own`, memory of a warp,"),
        ("k = T.warp_shuffle(x[i], 0)", "`warp_shuffle`, an exchange between threads,"),
    ],
)
def test_without_a_size_the_key_is_named(
    subgroup_size: int, line: str, what: str, parsed: Callable[..., Any], written: Callable[..., Any]
) -> None:
    module = parsed(kernel(THREADS.format(64), line, "y[i] = x[i]"))
    with pytest.raises(Unsupported) as caught:
        written(module, "vulkan", 0)
    (found,) = caught.value.diagnostics
    assert found.code == "GM0681"
    assert found.message == f"{what} is not supported by target `vulkan:1.1+int64+storage16+storage8`"
    assert "`subgroup_size = 32`" in found.hint


def test_exchanges_wider_than_subgroups(
    subgroup_size: int, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module = parsed(kernel(THREADS.format(64), f"y[i] = T.warp_shuffle(x[i], 0, width={2 * subgroup_size})"))
    with pytest.raises(Unsupported, match=rf"GM0668.*`warp_shuffle` with a width over {subgroup_size}"):
        on_vulkan(EXCHANGING, subgroup_size=subgroup_size).generated(module)


REDUCTION = """@T.prim_func
def f(x: T.Buffer((512,), "int32"), y: T.Buffer((512,), "int32")):
    for i in range(512):
        y[i] = T.int32(0)
    for k in range(512):
        y[0] = y[0] + x[k]
"""


def test_reductions_are_finished_by_exchanges(
    subgroup_size: int, parsed: Callable[..., Any], on_vulkan: Callable[..., Any]
) -> None:
    module, run = parsed(REDUCTION), on_vulkan(EXCHANGING, subgroup_size=subgroup_size)
    same(module, run, np.arange(512, dtype=np.int32))
    features = [str(b.requirements["features"]) for b in run.generated(module).blobs if b.kind == "spirv"]
    assert "subgroup_shuffle" in features[0]
