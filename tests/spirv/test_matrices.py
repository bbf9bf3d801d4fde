"""Tiles of matrices on Vulkan targets: cooperative matrices of valid modules, and what is refused when it is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gristmill.errors import Unsupported
from gristmill.ir.target import Target, parse_target
from gristmill.plugin.protocols import GenerateOptions
from gristmill.testing.spirv_tools import disassembly
from gristmill_spirv.disassembly import disassemble
from gristmill_spirv.enumerants import Capability
from gristmill_spirv.generator import SPIRVGenerator
from gristmill_spirv.matrices import shapes_of
from gristmill_spirv.target import from_device, resolve

FEATURES = "+cooperative_matrix+float16+int16+int8+vulkan_memory_model"
SHAPES = "16x8x16:float16:float32,16x8x16:float16:float16,16x8x32:int8:int32,16x8x32:uint8:uint32"
PRODUCT = """
@T.prim_func
def f(a: T.Buffer((64, {k}), "{factor}"), b: T.Buffer(("n", {k}), "{factor}"), c: T.Buffer((64, "n"), "{total}")):
    for bx in T.thread_binding(n // 8, thread="blockIdx.x"):
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            s = T.alloc_buffer((16, {k}), "{factor}", scope="shared")
            r = T.alloc_buffer((16, 8), "{total}", scope="shared")
            A = T.alloc_buffer((16, {k}), "{factor}", scope="matrix.a")
            B = T.alloc_buffer(({k}, 8), "{factor}", scope="matrix.b")
            C = T.alloc_buffer((2, 2, 16, 8), "{total}", scope="matrix.accumulator")
            T.matrix_load(B, b[bx * 8, 0], {k}, layout="column", width={width})
            for i in range(2):
                for j in range(2):
                    for e in range({k} // 2):
                        s[e % 16, t % {k}] = a[i * 32 + j * 16 + e % 16, t % {k}]
                    T.matrix_load(A, s[0, 0], {k}, width={width})
                    T.matrix_fill(C[i, j], 1, width={width})
                    T.matrix_multiply(C[i, j], A, B, C[i, j], width={width})
                    T.matrix_store(c[i * 32 + j * 16, bx * 8], C[i, j], n, width={width})
                    T.matrix_store(r[0, 0], C[i, j], 8, width={width})
"""
TYPES = [("float16", "float32", 16), ("float16", "float16", 16), ("int8", "int32", 32), ("uint8", "uint32", 32)]


def target_of(
    text: str = "vulkan:1.2+address", matrices: str = SHAPES, features: str = FEATURES, size: int = 32
) -> Target:
    return replace(parse_target(text + features), options=(("matrices", matrices), ("subgroup_size", size)))


def product(factor: str = "float16", total: str = "float32", k: int = 16, threads: int = 32, width: int = 32) -> str:
    return PRODUCT.format(factor=factor, total=total, k=k, threads=threads, width=width)


@pytest.mark.parametrize("form", ["vulkan:1.1", "vulkan:1.3", "vulkan:1.2+address"])
@pytest.mark.parametrize(("factor", "total", "k"), TYPES)
@pytest.mark.parametrize("optimization", [0, 3])
def test_modules_are_valid_and_say_what_they_need(
    form: str, factor: str, total: str, k: int, optimization: int,
    parsed: Callable[..., Any], written: Callable[..., Any],
) -> None:  # fmt: skip
    """Valid by every validator that knows cooperative matrices, of which there is one."""
    found = written(parsed(product(factor, total, k)), target_of(form), optimization)
    text = disassemble(found.data)
    for line in (
        "OpCapability CooperativeMatrixKHR",
        'OpExtension "SPV_KHR_cooperative_matrix"',
        "OpCapability Float16",
    ):
        assert (line in text) == ("Float16" not in line or factor == "float16"), line
    needed = {"cooperative_matrix", "vulkan_memory_model", "int16" if factor == "float16" else "int8"}
    assert needed <= found.features
    assert ("float16" in found.features) == (factor == "float16")
    assert {str(shape) for shape in found.matrices} == {f"16x8x{k}:{factor}:{total}"}
    assert found.subgroup_size == 32
    assert text.count("OpCooperativeMatrixLoadKHR") == 2 * text.count("OpCooperativeMatrixMulAddKHR")
    signed = "MatrixASignedComponentsKHR|MatrixBSignedComponentsKHR|MatrixCSignedComponentsKHR|MatrixResultSignedComponentsKHR"
    assert (signed in text) == (factor == "int8")
    # The tile of the shared memory lies in 16 lines of k narrow elements, that of the sums in words or as narrow ones.
    assert found.shared_bytes == 16 * k * (2 if factor == "float16" else 1) + 16 * 8 * (2 if total == "float16" else 4)


def test_the_disassembly_is_that_of_the_tools(parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    found = written(parsed(product("int8", "int32", 32)), target_of())
    assert disassemble(found.data).splitlines()[1:] == disassembly(found.data)


def test_kernels_without_tiles_need_nothing_of_it(parsed: Callable[..., Any], written: Callable[..., Any]) -> None:
    source = '@T.prim_func\ndef f(x: T.Buffer((64,), "float32")):\n    for i in range(64):\n        x[i] = x[i] + 1.0\n'
    found = written(parsed(source), target_of())
    assert not {"cooperative_matrix", "float16", "int8", "int16"} & found.features
    assert not any("CooperativeMatrix" in line for line in disassembly(found.data))
    assert not found.matrices


def test_the_blob_requires_what_it_multiplies(parsed: Callable[..., Any], lowered: Callable[..., Any]) -> None:
    device, target = lowered(parsed(product()), target_of())
    (blob,) = SPIRVGenerator().generate(device, target, GenerateOptions())
    assert blob.requirements["matrices"] == "16x8x16:float16:float32"
    assert Capability.CooperativeMatrixKHR == 6022


@pytest.mark.parametrize(
    ("source", "target", "code", "words"),
    [
        (product(width=16), target_of(), "GM0681", "with a width of 16"),
        (product(threads=48), target_of(), "GM0681", "in blocks of 48 threads"),
        (product(), target_of(matrices="16x16x16:float16:float32"), "GM0684", "`B`, tiles of 16 x 8 of float16"),
        (product(), target_of(matrices="16x8x16:float16:float16"), "GM0684", "`C`, tiles of 16 x 8 of float32"),
        (
            product(),
            target_of(matrices="16x8x16:float16:float16,16x8x32:float16:float32"),
            "GM0684",
            "the product `16x8x16:float16:float32` of tiles",
        ),
        (product(), target_of(features="+cooperative_matrix+vulkan_memory_model"), "GM0680", "float16"),
        (
            product(),
            target_of(features="+cooperative_matrix+vulkan_memory_model+float16"),
            "GM0680",
            "tiles of matrices",
        ),
        (product("bfloat16"), target_of(matrices="16x8x16:bfloat16:float32"), "GM0681", "tiles of `bfloat16`"),
    ],
)
def test_what_is_refused(
    source: str, target: Target, code: str, words: str, parsed: Callable[..., Any], written: Callable[..., Any]
) -> None:
    with pytest.raises(Unsupported) as caught:
        written(parsed(source), target)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert words in found.message
    assert found.place is not None


def test_a_target_lists_what_it_multiplies() -> None:
    assert [str(shape) for shape in shapes_of(" 16x8x16:float16:float32, 8x8x8:int8:int32")] == [
        "16x8x16:float16:float32",
        "8x8x8:int8:int32",
    ]
    for text in ("16x16:float16:float32", "16x8xy:float16:float32", "16x8x16:float16", "0x8x16:float16:float32"):
        with pytest.raises(ValueError, match="no size of matrices"):
            resolve(target_of(matrices=text))
    for missing in ((("matrices", SHAPES),), (("subgroup_size", 32),)):
        with pytest.raises(ValueError, match="needs `subgroup_size`"):
            resolve(replace(parse_target("vulkan:1.2" + FEATURES), options=missing))


def test_a_device_says_what_it_multiplies() -> None:
    properties = {
        "vulkan": "1.3",
        "features": "cooperative_matrix,float16,int16,int64,vulkan_memory_model",
        "subgroup_size": 32,
        "matrices": SHAPES,
    }
    found = resolve(from_device(parse_target("vulkan"), properties))
    assert "cooperative_matrix" in found.features
    assert dict(found.options)["matrices"] == SHAPES
    del properties["matrices"]
    assert "cooperative_matrix" not in resolve(from_device(parse_target("vulkan"), properties)).features
