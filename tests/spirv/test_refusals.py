"""What Vulkan targets cannot have is refused when it is built, with the place in the source and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

import gristmill
from gristmill.errors import UserError

HEAD = """from gristmill.script import tir as T

@T.prim_func
def f({parameters}):
{body}
"""


def refusal(folder: Path, parameters: str, body: list[str], target: str = '"vulkan"') -> UserError:
    """What the build of a kernel says."""
    text = HEAD.format(parameters=parameters, body="\n".join(f"    {line}" for line in body))
    (folder / "kernel.py").write_text(text)
    (folder / "kernels.toml").write_text(
        f'schema = 1\n[project]\nname = "p"\n[targets]\ngpu = {target}\n[[module]]\nname = "m"\nsource = "kernel.py"\n'
    )
    with pytest.raises(UserError) as caught:
        gristmill.build(folder / "kernels.toml")
    return caught.value


def test_a_dtype_that_the_target_lacks(tmp_path: Path) -> None:
    body = ["for i in range(n):", "    x[i] = x[i] * 2.0"]
    (found,) = refusal(tmp_path, 'x: T.Buffer(("n",), "float64")', body).diagnostics
    assert found.code == "GM0680"
    assert "dtype `float64` is not supported by target `vulkan:1.1" in found.message
    assert "`float64 = true`" in found.hint
    assert found.place is not None


def test_a_barrier_of_a_warp(tmp_path: Path) -> None:
    body = [
        'for t in T.thread_binding(64, thread="threadIdx.x"):',
        "    x[t] = x[t] + T.float32(1)",
        '    T.tvm_storage_sync("warp")',
        "    x[t] = x[t] * T.float32(2)",
    ]
    (found,) = refusal(tmp_path, 'x: T.Buffer(("n",), "float32")', body).diagnostics
    assert found.code == "GM0681"
    assert "a barrier of a warp is not supported" in found.message
    assert found.place is not None
    assert found.place.line == 7


def test_an_operation_without_code(tmp_path: Path) -> None:
    body = ["for i in range(n):", "    x[i] = T.exp(x[i])"]
    (found,) = refusal(tmp_path, 'x: T.Buffer(("n",), "float16")', body).diagnostics
    assert found.code == "GM0682"
    assert "`exp`" in found.message
    assert found.place is not None
    assert found.place.line == 6


def test_too_much_shared_memory(tmp_path: Path) -> None:
    body = [
        'for t in T.thread_binding(64, thread="threadIdx.x"):',
        '    tile = T.alloc_buffer((64, 65), "float32", scope="shared")',
        "    tile[t, 0] = x[t]",
        "    x[t] = tile[63 - t, 0]",
    ]
    (found,) = refusal(tmp_path, 'x: T.Buffer((64,), "float32")', body).diagnostics
    assert found.code == "GM0683"
    assert "16640 bytes" in found.message
    assert "16384" in found.message
    assert "`max_shared_memory`" in found.hint


@pytest.mark.parametrize(
    ("loop", "target", "message", "key"),
    [
        (
            'for t in T.thread_binding(512, thread="threadIdx.x"):',
            '{ kind = "vulkan", max_block_size_x = 1024 }',
            "the kernel `f_kernel` takes 512 threads of a block, and target `vulkan",
            "max_threads_per_block",
        ),
        (
            'for t in T.thread_binding(128, thread="threadIdx.z"):',
            '"vulkan"',
            "`threadIdx.z` in the kernel `f_kernel` takes 128 threads of a block, and target `vulkan",
            "max_block_size_z",
        ),
        (
            'for t in T.thread_binding(70000, thread="blockIdx.y"):',
            '"vulkan"',
            "`blockIdx.y` in the kernel `f_kernel` takes 70000 blocks, and target `vulkan",
            "max_grid_size_y",
        ),
    ],
)
def test_launches_over_the_limits(loop: str, target: str, message: str, key: str, tmp_path: Path) -> None:
    body = [loop, "    x[t] = x[t] + T.float32(1)"]
    (found,) = refusal(tmp_path, 'x: T.Buffer((70000,), "float32")', body, target).diagnostics
    assert found.code == "GM0683"
    assert found.message.startswith(message)
    assert f"`{key}`" in found.hint
    assert found.place is not None


def test_more_arrays_than_can_be_bound(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(31)]
    parameters = ", ".join(f'{name}: T.Buffer((64,), "float32")' for name in names)
    body = ["for i in range(64):", *(f"    {name}[i] = T.float32(1)" for name in names)]
    (found,) = refusal(tmp_path, parameters, body).diagnostics
    assert found.code == "GM0683"
    assert "takes 31 arrays" in found.message
    assert "`max_storage_buffers`" in found.hint


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("subgroup_size = 12", "`subgroup_size` is 12; it is one of 4, 8, 16, 32, 64, 128"),
        ("subgroup_shuffle = true", "`subgroup_shuffle` needs `subgroup_size`"),
        ("asserts = true", "`asserts` needs `address`"),
        ("max_storage_buffers = 2", "`max_storage_buffers` is 2; every device has 4 or more"),
        ("max_storage_buffers = 4294967297", "none has more than 4294967296"),
    ],
)
def test_targets_that_no_device_is(keys: str, message: str, tmp_path: Path) -> None:
    body = ["for i in range(64):", "    x[i] = T.float32(1)"]
    (found,) = refusal(tmp_path, 'x: T.Buffer((64,), "float32")', body, f'{{ kind = "vulkan", {keys} }}').diagnostics
    assert message in found.message
