"""Our disassembler shows what spirv-dis shows."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gristmill
from gristmill.cli import main
from gristmill.codegen.kernel_records import kernel_record, kernels_of
from gristmill.ir.dtype import SCALARS
from gristmill.testing.device_programs import ON_EVERY_DEVICE, random_device_program
from gristmill_spirv.builder import ModuleBuilder, Section
from gristmill_spirv.disassembly import disassemble
from gristmill_spirv.enumerants import (
    BuiltIn,
    Capability,
    Decoration,
    FunctionControl,
    GroupOperation,
    LoopControl,
    MemoryAccess,
    Op,
    PackedVectorFormat,
    StorageClass,
)
from gristmill_spirv.instructions import OPERANDS
from gristmill_spirv.kernels import write_kernel
from gristmill_spirv.target import profile_of


def ours(data: bytes) -> list[str]:
    lines = [" ".join(line.split()) for line in disassemble(data).splitlines()]
    assert lines[0].startswith("; SPIR-V 1.")
    return lines[1:]


FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 1e30, 3.4028234663852886e38, 1e-30, 1e-40, 2.0**-149, float("inf"), float("nan"))


def module_of_everything() -> bytes:
    """Each kind of constant, decoration, mask and operand; not a valid module, but a readable one."""
    module = ModuleBuilder((1, 5))
    for capability in Capability:
        module.capability(capability)
    module.extension("SPV_KHR_8bit_storage")
    module.instructions("GLSL.std.450")
    module.name(7, 'a "name" with \\ and umlauts: \xe4\xf6\xfc')
    module.string("kernel.py")
    for bits, form in ((32, "<f"), (64, "<d")):
        type_ = module.type_float(bits)
        for value in FLOATS:
            data = struct.pack(form, value)
            module.constant(type_, struct.unpack(f"<{len(data) // 4}I", data))
    for bits, signed in ((32, False), (32, True), (64, False), (64, True), (16, True), (8, False)):
        for value in (0, 1, -1, 1 << (bits - 1), 12345):
            module.constant_int(value, bits, signed)
    number = module.spec_constant(module.type_int(32, signed=False), 5, 3)
    for decoration in Decoration:
        operands = {
            Decoration.BuiltIn: [BuiltIn.SubgroupSize],
            Decoration.FPRoundingMode: None,
        }.get(
            decoration,
            [4] if decoration.name in ("SpecId", "ArrayStride", "Binding", "DescriptorSet", "Offset") else [],
        )
        if operands is not None:
            module.decorate(number, decoration, *operands)
    type_ = module.type_int(32, signed=False)
    pointer = module.pointer(StorageClass.PhysicalStorageBuffer, type_)
    write = module.write
    function = module.function_type(type_, [pointer])
    here = Section.FUNCTIONS
    write(here, Op.Function, (type_, module.new_id(), FunctionControl.Inline | FunctionControl.Pure, function))
    parameter = module.new_id()
    write(here, Op.FunctionParameter, (pointer, parameter))
    write(here, Op.Label, (module.new_id(),))
    for access in ((MemoryAccess.Aligned, 16), (MemoryAccess.Aligned | MemoryAccess.NonPrivatePointer, 4), (32,)):
        write(here, Op.Load, (type_, module.new_id(), parameter, *access))
    scope = module.constant_int(2, 32, signed=False)
    write(here, Op.Store, (parameter, number, MemoryAccess.MakePointerAvailable | 32, scope))
    write(here, Op.GroupNonUniformIAdd, (type_, module.new_id(), scope, GroupOperation.ExclusiveScan, number))
    packed = PackedVectorFormat.PackedVectorFormat4x8Bit
    write(here, Op.SDot, (type_, module.new_id(), number, number, packed))
    write(here, Op.UDotAccSat, (type_, module.new_id(), number, number, number, packed))
    write(here, Op.LoopMerge, (number, number, LoopControl.Unroll))
    write(here, Op.LoopMerge, (number, number, LoopControl.PartialCount, 4))
    write(here, Op.CompositeExtract, (type_, module.new_id(), number, 3, 1))
    write(here, Op.VectorShuffle, (type_, module.new_id(), number, number, 0, 3))
    write(here, Op.ReturnValue, (number,))
    write(here, Op.FunctionEnd)
    return module.data()


def test_every_kind_of_operand(disassembled: Callable[[bytes], list[str]]) -> None:
    data = module_of_everything()
    assert ours(data) == disassembled(data)


def test_every_instruction_has_a_row() -> None:
    assert set(OPERANDS) == set(Op)


@pytest.mark.parametrize("target", ["vulkan:1.1+float64", "vulkan:1.3+address+float64"])
def test_random_kernels(target: str, lowered: Callable[..., Any], disassembled: Callable[[bytes], list[str]]) -> None:
    constructs = ON_EVERY_DEVICE - {"warp", "thread assert"}
    for seed in range(8):
        program = random_device_program(seed, dtypes=SCALARS, constructs=constructs)
        module, resolved = lowered(program.module, target)
        for kernel in kernels_of(module):
            data = write_kernel(module, kernel, profile_of(resolved), kernel_record(kernel, module).block).data
            assert ours(data) == disassembled(data), f"seed {seed}, {kernel.name}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"short", "not made of words"),
        (b"\0" * 24, "begins with 0x00000000"),
        (struct.pack("<6I", 0x07230203, 0x10300, 0, 1, 0, 0), "of 0 words"),
        (struct.pack("<6I", 0x07230203, 0x10300, 0, 1, 0, 3 << 16 | 19), "of 3 words"),
        (struct.pack("<6I", 0x07230203, 0x10300, 0, 1, 0, 1 << 16 | 60000), "instruction 60000"),
    ],
)
def test_what_is_no_module(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        disassemble(data)


SOURCE = """from gristmill.script import tir as T

@T.prim_func
def f(x: T.Buffer((64,), "float32")):
    for i in range(64):
        x[i] = x[i] * T.float32(2)
"""


@pytest.mark.parametrize("kept", [False, True])
def test_inspect_shows_it(kept: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernel.py").write_text(SOURCE)
    (tmp_path / "kernels.toml").write_text(
        'schema = 1\n[project]\nname = "p"\n[targets]\ngpu = "vulkan"\n[[module]]\nname = "m"\nsource = "kernel.py"\n'
    )
    if kept:
        assert main(["build", str(tmp_path / "kernels.toml"), "--texts", "spirv-assembly"]) == 0
    else:
        gristmill.build(tmp_path / "kernels.toml")
    capsys.readouterr()
    assert main(["inspect", str(tmp_path / "build/kernels/m.kpack"), "--text", "spirv-assembly"]) == 0
    shown = capsys.readouterr().out
    assert "; kernel f_kernel" in shown
    assert "OpEntryPoint GLCompute" in shown
    assert "OpFMul" in shown
    assert ("made of the code in the pack" in shown) != kept
