"""The machines that the linker knows, by ELF machine number."""

from __future__ import annotations

from collections.abc import Mapping

from gristmill.objfile.machine import Machine
from gristmill.objfile.x86_64 import X86_64

MACHINES: Mapping[int, Machine] = {machine.number: machine for machine in (X86_64,)}
