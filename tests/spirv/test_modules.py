"""What stands in SPIR-V modules: versions, capabilities, interfaces, decorations, control flow as the rules of SPIR-V ask."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gristmill.errors import Unsupported, UserError
from gristmill.ir.target import Target
from gristmill.script import parse_source

Written = Callable[..., Any]
Text = Callable[[bytes], list[str]]


def kernel(*lines: str, parameters: str = 'x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")') -> str:
    head = f'@T.prim_func\ndef f({parameters}):\n    for i in T.thread_binding(64, thread="threadIdx.x"):\n'
    return head + "".join(f"        {line}\n" for line in lines)


COPY = kernel("y[i] = x[i]")
TILE = ('tile = T.alloc_buffer((64,), "float32", scope="shared")', "tile[i] = x[i]", 'T.tvm_storage_sync("shared")')
SHARED = kernel(*TILE, "y[i] = tile[63 - i]")


def of(lines: list[str], op: str) -> list[str]:
    return [line for line in lines if op in line.split()]


@pytest.fixture
def text(parsed: Callable[..., Any], written: Written, disassembled: Text) -> Callable[..., list[str]]:
    """The instructions of the kernel of a source."""

    def found(source: str, target: Target | str = "vulkan+float64", optimization: int = 3) -> list[str]:
        return disassembled(written(parsed(source), target, optimization).data)

    return found


# Modules, versions, interfaces ----------------------------------------------------------------------------------------


def test_one_module_with_one_entry_point(text: Callable[..., list[str]]) -> None:
    lines = text(COPY)
    (entry,) = of(lines, "OpEntryPoint")
    assert entry.split()[1] == "GLCompute"
    assert '"f_kernel"' in entry
    assert of(lines, "OpMemoryModel") == ["OpMemoryModel Logical GLSL450"]
    assert "OpCapability Shader" in lines
    (mode,) = of(lines, "OpExecutionMode")
    assert mode.endswith("LocalSize 64 1 1")


def test_several_kernels_are_modules_of_their_own(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    source = COPY + "    for k in range(64):\n        x[k] = y[k]\n"
    (blob,) = [found for found in on_vulkan().generated(parsed(source)).blobs if found.kind == "spirv"]
    assert len(blob.kernels) > 1
    assert blob.data.startswith(b"gmspirv1")
    place = 8
    for record in blob.kernels:
        start, size = int(record.extra["code_start"]), int(record.extra["code_bytes"])
        assert start == place
        assert struct.unpack_from("<I", blob.data, start) == (0x07230203,)
        assert blob.data[start : start + size].count(record.entry.encode() + b"\0") == 2, "entry point and name"
        place += size
    assert place == len(blob.data)


@pytest.mark.parametrize(("target", "version"), [("1.1", 3), ("1.2", 5), ("1.3", 6), ("1.4", 6)])
def test_the_version_is_the_targets(target: str, version: int, parsed: Callable[..., Any], written: Written) -> None:
    assert struct.unpack_from("<I", written(parsed(COPY), f"vulkan:{target}").data, 4) == (1 << 16 | version << 8,)


@pytest.mark.parametrize("target", ["vulkan:1.1", "vulkan:1.2", "vulkan:1.2+address"])
def test_the_entry_point_names_the_variables_that_its_version_asks_for(
    target: str, text: Callable[..., list[str]]
) -> None:
    lines = text(SHARED, target)
    (entry,) = of(lines, "OpEntryPoint")
    named = set(entry.split()[4:])
    variables = {line.split()[0]: line.split()[4] for line in of(lines, "OpVariable") if "Function" not in line}
    # Below 1.4 inputs and outputs only, from there on all.
    wanted = {name for name, storage in variables.items() if target != "vulkan:1.1" or storage == "Input"}
    assert named == wanted
    assert {"Workgroup", "Input", "PushConstant"} <= set(variables.values())


# Capabilities ---------------------------------------------------------------------------------------------------------

BUFFERS = 'x: T.Buffer((64,), "{0}"), y: T.Buffer((64,), "{0}")'
STORED: dict[str, set[str]] = {
    "float32": set(),
    "int32": set(),
    "bool": {"StorageBuffer8BitAccess"},
    "int8": {"StorageBuffer8BitAccess"},
    "uint16": {"StorageBuffer16BitAccess"},
    "float16": {"StorageBuffer16BitAccess"},
    "bfloat16": {"StorageBuffer16BitAccess"},
    "int64": {"Int64"},
    "uint64": {"Int64"},
    "float64": {"Int64", "Float64"},
}


@pytest.mark.parametrize("dtype", STORED)
def test_capabilities_are_those_that_are_used(dtype: str, text: Callable[..., list[str]]) -> None:
    """Nothing is declared that a module does not use: no dot products, no cooperative matrices, no narrow arithmetic."""
    index = "T.int32(i)"
    lines = text(kernel(f"y[{index}] = x[{index}]", parameters=BUFFERS.format(dtype)), optimization=3)
    declared = {line.split()[1] for line in of(lines, "OpCapability")}
    # Indices are int64 until bounds prove that 32 bits hold them.
    assert declared - {"Shader", "Int64"} == STORED[dtype] - {"Int64"}
    assert declared >= STORED[dtype]
    extensions = {line.split()[1] for line in of(lines, "OpExtension")}
    assert extensions == ({'"SPV_KHR_8bit_storage"'} if "StorageBuffer8BitAccess" in declared else set())


def test_storage_of_8_bits_is_no_extension_from_1_5_on(text: Callable[..., list[str]]) -> None:
    lines = text(kernel("y[i] = x[i]", parameters=BUFFERS.format("int8")), "vulkan:1.2")
    assert of(lines, "OpExtension") == []
    assert "OpCapability StorageBuffer8BitAccess" in lines


@pytest.mark.parametrize(
    ("dtype", "key"),
    [("float64", "float64"), ("int64", "int64"), ("int8", "storage8"), ("bool", "storage8"), ("float16", "storage16")],
)
def test_a_dtype_that_the_target_lacks_names_the_key(
    dtype: str, key: str, parsed: Callable[..., Any], written: Written
) -> None:
    module = parsed(kernel("y[i] = x[i]", parameters=BUFFERS.format(dtype)))
    with pytest.raises(Unsupported) as caught:
        written(module, Target("vulkan", "", (), ((key, False),)))
    (found,) = caught.value.diagnostics
    assert found.code == "GM0680"
    assert dtype in found.message
    assert f"`{key} = true`" in found.hint
    assert found.place is not None


# Memory ---------------------------------------------------------------------------------------------------------------


def test_buffers_are_blocks_of_a_runtime_array_by_their_binding(text: Callable[..., list[str]]) -> None:
    lines = text(COPY)
    decorations = [line.split()[2:] for line in of(lines, "OpDecorate")]
    assert ["Binding", "0"] in decorations
    assert ["Binding", "1"] in decorations
    assert decorations.count(["DescriptorSet", "0"]) == 2
    assert decorations.count(["ArrayStride", "4"]) >= 1
    assert len(of(lines, "OpTypeRuntimeArray")) >= 1
    assert all("BufferBlock" not in line for line in lines)
    storage = [line for line in of(lines, "OpVariable") if line.endswith("StorageBuffer")]
    assert len(storage) == 2


def test_only_interface_types_have_a_layout(text: Callable[..., list[str]]) -> None:
    """Shared and local arrays have neither stride nor offsets."""
    local = ('own = T.alloc_buffer((4,), "float32", scope="local")', "own[i % 4] = x[i]", "y[i] = own[i % 4]")
    for source in (SHARED, kernel(*local)):
        lines = text(source, optimization=0)
        arrays = {line.split()[0] for line in of(lines, "OpTypeArray")}
        assert arrays
        laid_out = {line.split()[1] for line in (*of(lines, "OpDecorate"), *of(lines, "OpMemberDecorate"))}
        assert not arrays & laid_out


def test_local_variables_stand_at_the_start_of_their_function(text: Callable[..., list[str]]) -> None:
    lines = text(
        kernel(
            "for k in range(3):",
            '    own = T.alloc_buffer((4,), "float32", scope="local")',
            "    own[i % 4] = x[i]",
            "    y[i] = y[i] + own[(i + k) % 4]",
        ),
        optimization=0,
    )
    places = [place for place, line in enumerate(lines) if "OpVariable" in line and line.endswith("Function")]
    start = next(place for place, line in enumerate(lines) if "OpLabel" in line)
    assert places == list(range(start + 1, start + 1 + len(places)))
    assert places


def test_threads_and_blocks_are_loaded_once_at_the_start(text: Callable[..., list[str]]) -> None:
    lines = text(
        """@T.prim_func
def f(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        if x[b] > T.float32(0):
            for i in T.thread_binding(32, thread="threadIdx.x"):
                y[b * 32 + i] = T.float32(1)
        for k in T.thread_binding(32, thread="threadIdx.x"):
            y[b * 32 + k] = y[b * 32 + k] + x[k]
""",
        optimization=0,
    )
    inputs = {line.split()[0] for line in of(lines, "OpVariable") if line.endswith("Input")}
    assert len(inputs) == 2
    loads = [place for place, line in enumerate(lines) if "OpLoad" in line and line.split()[4] in inputs]
    first_branch = next(place for place, line in enumerate(lines) if "OpSelectionMerge" in line)
    assert len(loads) == 2
    assert max(loads) < first_branch


def test_shared_memory_over_the_limit(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    source = kernel(
        'tile = T.alloc_buffer((32768,), "int32", scope="shared")', "tile[i] = x[i]", "y[i] = tile[63 - i]"
    ).replace("float32", "int32")
    with pytest.raises(UserError, match=r"GM0683.*takes 131072 bytes, and target `vulkan.*` has 16384"):
        on_vulkan().generated(parsed(source))


def test_narrow_shared_elements_count_as_they_lie(parsed: Callable[..., Any], written: Written) -> None:
    """Held in words, an int8 takes four bytes, and the limit is asked about those."""
    source = kernel('tile = T.alloc_buffer((63,), "int8", scope="shared")', "tile[i] = x[i]", "y[i] = tile[0]")
    found = written(parsed(source.replace('"float32"', '"int8"')), "vulkan")
    assert found.shared_bytes == 63 * 4


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_memory_whose_size_is_not_constant(scope: str, parsed: Callable[..., Any]) -> None:
    source = kernel(
        f'tile = T.alloc_buffer((n,), "float32", scope="{scope}")',
        "tile[i] = x[i]",
        "y[i] = tile[i]",
        parameters='n: T.int64, x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")',
    )
    with pytest.raises(UserError, match=rf'GM0289.*memory of scope "{scope}" needs a constant size'):
        parsed(source)


def test_dynamic_shared_memory_is_sized_by_a_specialisation_constant(
    text: Callable[..., list[str]],
) -> None:
    lines = text(
        kernel(
            'tile = T.alloc_buffer((n,), "float32", scope="shared.dyn")',
            "tile[i] = x[i]",
            "y[i] = tile[i]",
            parameters='n: T.int64, x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")',
        ),
        optimization=0,
    )
    (constant,) = of(lines, "OpSpecConstant")
    assert f"OpDecorate {constant.split()[0]} SpecId 3" in lines
    assert any(line.split()[-1] == constant.split()[0] for line in of(lines, "OpTypeArray"))


# Arguments ------------------------------------------------------------------------------------------------------------

MANY = ", ".join(f"a{number}: T.float32" for number in range(40))


@pytest.mark.parametrize(
    ("target", "count", "form"),
    [
        ("vulkan", 4, "push"),
        ("vulkan", 40, "uniform"),
        ("vulkan:1.2+address", 4, "address"),
        ("vulkan:1.2+address", 40, "address_block"),
    ],
)
def test_scalars_are_pushed_as_far_as_they_fit(
    target: str, count: int, form: str, parsed: Callable[..., Any], written: Written, disassembled: Text
) -> None:
    names = [f"a{number}" for number in range(count)]
    parameters = ", ".join(f"{name}: T.float32" for name in names) + ', y: T.Buffer((64,), "float32")'
    found = written(parsed(kernel("y[i] = " + " + ".join(names), parameters=parameters)), target)
    assert found.arguments == form
    assert found.block_bytes in (4 * count + 4, 4 * count + 8)
    lines = disassembled(found.data)
    if form == "uniform":
        (variable,) = (line.split()[0] for line in of(lines, "OpVariable") if line.endswith("Uniform"))
        assert f"OpDecorate {variable} Binding 1" in lines
        assert of(lines, "PushConstant") == []


def test_places_of_scalars_are_aligned_and_those_that_the_record_names(
    parsed: Callable[..., Any], written: Written, disassembled: Text
) -> None:
    parameters = 'a: T.int32, b: T.int64, c: T.int8, d: T.float16, e: T.int64, y: T.Buffer((64,), "int64")'
    found = written(parsed(kernel("y[i] = a + b + c + T.int64(d) + e", parameters=parameters)), "vulkan")
    places = {(slot.offset, slot.form) for slot in found.slots}
    offsets = {int(line.split()[4]) for line in of(disassembled(found.data), "OpMemberDecorate")}
    assert {offset for offset, _ in places} <= offsets
    assert sorted(form for _, form in places) == ["f32", "i32", "i32", "i64", "i64", "offset"]
    assert all(offset % (8 if form == "i64" else 4) == 0 for offset, form in places)


def test_a_block_whose_size_the_launch_gives(text: Callable[..., list[str]]) -> None:
    lines = text(
        """@T.prim_func
def f(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in T.thread_binding(n, thread="threadIdx.x"):
        y[i] = x[i]
"""
    )
    assert any(line.endswith("BuiltIn WorkgroupSize") for line in lines)
    assert [line.split()[3] for line in of(lines, "SpecId")] == ["0"]


# Barriers -------------------------------------------------------------------------------------------------------------


def test_a_barrier_of_a_block_orders_shared_memory(text: Callable[..., list[str]]) -> None:
    lines = text(SHARED)
    constants = {line.split()[0]: line.split()[-1] for line in of(lines, "OpConstant")}
    (barrier,) = of(lines, "OpControlBarrier")
    execution, memory, semantics = (int(constants[name]) for name in barrier.split()[1:])
    assert (execution, memory) == (2, 2)
    assert semantics == 0x108, "AcquireRelease and WorkgroupMemory"


# Control flow ---------------------------------------------------------------------------------------------------------


def test_the_counter_of_a_loop_stands_right_after_the_label(text: Callable[..., list[str]]) -> None:
    source = kernel("for k in range(9):", "    for j in range(k):", "        y[i] = y[i] * x[k] + x[j]")
    lines = text(source, optimization=0)
    merges = [place for place, line in enumerate(lines) if line.startswith("OpLoopMerge")]
    assert len(merges) == 2
    for place in merges:
        without = [line for line in lines[:place] if not line.startswith("OpLine")]
        assert "OpPhi" in without[-1]
        assert "OpLabel" in without[-2]


def test_unrolled_loops_are_marked(text: Callable[..., list[str]]) -> None:
    source = kernel("for k in T.unroll(40):", "    y[i] = y[i] * x[k] + T.float32(1)")
    merges = of(text(source, optimization=0), "OpLoopMerge")
    assert [line.split()[-1] for line in merges] == ["Unroll"]


@pytest.mark.parametrize(("target", "control"), [("vulkan:1.1", ["None"]), ("vulkan:1.2", ["PartialCount", "4"])])
def test_how_often_a_loop_is_repeated_in_the_code(
    target: str, control: list[str], text: Callable[..., list[str]]
) -> None:
    """From SPIR-V 1.4 on it can be said."""
    source = kernel('for k in T.serial(40, annotations={"unroll": 4}):', "    y[i] = y[i] * x[k] + T.float32(1)")
    (merge,) = of(text(source, target, 0), "OpLoopMerge")
    assert merge.split()[3:] == control


def test_the_condition_of_a_while_has_a_block_of_its_own(text: Callable[..., list[str]]) -> None:
    source = kernel("k = T.int64(0)", "while x[k] > T.float32(0) and k < 60:", "    k += 1", "y[i] = x[k]")
    lines = text(source, optimization=0)
    (place,) = (place for place, line in enumerate(lines) if line.startswith("OpLoopMerge"))
    assert lines[place + 1].split()[0] == "OpBranch"
    header = next(line.split()[0] for line in reversed(lines[:place]) if "OpLabel" in line)
    assert any(line == f"OpBranch {header}" for line in lines[place:]), "the back edge"


@pytest.mark.parametrize("optimization", [0, 3])
def test_no_remainder_of_the_machine_is_used_for_signed_numbers(
    optimization: int, text: Callable[..., list[str]]
) -> None:
    """Vulkan leaves OpSRem and OpSMod open where an operand is negative."""
    source = kernel("y[i] = x[i] // x[63 - i] + x[i] % x[63 - i] + T.truncmod(x[i], x[63 - i])")
    lines = text(source.replace("float32", "int32"), optimization=optimization)
    assert of(lines, "OpSRem") == of(lines, "OpSMod") == []
    assert of(lines, "OpSDiv")


# Calls, asserts, refusals ---------------------------------------------------------------------------------------------


def test_helpers_are_functions_of_the_module(text: Callable[..., list[str]]) -> None:
    source = """@T.prim_func(private=True)
def scaled(v: T.float32, k: T.int64) -> T.float32:
    if v < T.float32(0):
        return T.float32(0)
    return v * T.float32(k)

""" + kernel("y[i] = scaled(x[i], i) + scaled(y[i], 3)")
    lines = text(source, optimization=0)
    assert len(of(lines, "OpFunction")) == 2
    assert len(of(lines, "OpFunctionCall")) == 2
    assert len(of(lines, "OpReturnValue")) == 2
    assert of(lines, '"scaled"')


def test_recursion_is_refused(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    source = """@T.prim_func(private=True)
def depth(k: T.int64) -> T.int64:
    if k < 1:
        return T.int64(0)
    return depth(k - 1) + 1

""" + kernel("y[i] = T.float32(depth(i))")
    with pytest.raises(UserError, match=r"GM06\d\d.*`depth`"):
        on_vulkan().generated(parsed(source))


def test_c_functions_are_refused(parsed: Callable[..., Any], written: Written) -> None:
    source = kernel('y[i] = T.call_extern("float32", "sinf", x[i])')
    module = parse_source("from gristmill.script import tir as T\n\n" + source, "k.py", externs={"sinf": "m"}).module
    with pytest.raises(UserError, match=r"GM06\d\d.*`sinf`"):
        written(module)


def test_names_and_lines_of_the_source_are_kept(text: Callable[..., list[str]]) -> None:
    source = """@T.prim_func(private=True)
def scaled(factor: T.float32, k: T.int64) -> T.float32:
    if factor < T.float32(0):
        return T.float32(0)
    return factor * T.float32(k)

""" + kernel(
        *TILE,
        "for step in range(3):",
        "    total = tile[63 - i] * T.float32(step)",
        "    y[i] = total + total * scaled(total, i) + size",
        parameters='size: T.float32, x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")',
    )
    lines = text(source, optimization=0)
    names = {line.split()[-1].strip('"') for line in of(lines, "OpName")}
    assert {"f_kernel", "tile", "parameters", "threadIdx", "total", "scaled", "factor", "step"} <= names
    assert {"x_data", "y_data"} <= names
    assert {line.split()[-1].strip('"') for line in of(lines, "OpMemberName")} == {"size", "x_data", "y_data"}
    assert of(lines, "OpString")[0].endswith('"kernel.py"')
    assert {line.split()[2] for line in of(lines, "OpLine")} >= {"5", "13", "15", "17"}


def test_names_of_any_length(parsed: Callable[..., Any], on_vulkan: Callable[..., Any]) -> None:
    """More than an instruction can hold, or the validation layer takes for an entry point."""
    function, array, size, local = "f" * 200, "x" * 270_000, "n" * 270_000, "é" * 1000
    source = f"""
@T.prim_func
def {function}({array}: T.Buffer(("{size}",), "int32"), count: T.int32):
    for i in range({size}):
        {local} = {array}[i]
        while {local} < count:
            {local} = {local} * 2 + 1
        {array}[i] = {local}
"""
    x = np.arange(10, dtype=np.int32)
    on_vulkan()(parsed(source), function, [x, 5])
    assert x.tolist() == [7, 7, 5, 7, 9, 5, 6, 7, 8, 9]


def test_operations_are_not_contracted(text: Callable[..., list[str]]) -> None:
    lines = text(kernel("y[i] = x[i] * x[i] + y[i]"))
    made = {line.split()[0] for line in (*of(lines, "OpFMul"), *of(lines, "OpFAdd"))}
    assert len(made) == 2
    assert made == {line.split()[1] for line in lines if line.endswith("NoContraction")}
