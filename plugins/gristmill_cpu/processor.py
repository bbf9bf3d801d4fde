"""What the processor of this machine is and can do, as the kernel of the system says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from gristmill.plugin.target_data import target_table

_CPUINFO = "/proc/cpuinfo"

ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
"""The machines that there is CPU code for: ``os.uname().machine`` to ``e_machine`` (EM_X86_64, EM_AARCH64)."""


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor: machine as ``uname`` names it, name for people, cores that this process may use, flags of cpuinfo."""

    machine: str
    name: str
    cores: int
    flags: frozenset[str]

    @property
    def host(self) -> str:
        """The host that code must be made for to run here, as ``x86_64-linux``."""
        return f"{self.machine}-{sys.platform}"

    def lacking(self, features: Iterable[str]) -> tuple[str, ...]:
        """Which of these features (LLVM's names) it does not have; names that nobody knows are lacking too."""
        known = _flag_of_feature(self.machine)
        return tuple(sorted(name for name in features if known.get(name) not in self.flags))


@cache
def _flag_of_feature(machine: str) -> dict[str, str]:
    """For each feature of a machine by LLVM's name the flag that the system shows for it."""
    features = target_table("cpu")["features"]
    return {name: fields["cpuinfo"] for name, fields in features.get(machine, {}).items()}


def this_processor(cpuinfo: str = _CPUINFO) -> Processor:
    """The processor of this machine; without a readable ``cpuinfo``, one without name and flags."""
    machine = os.uname().machine
    try:
        with open(cpuinfo, encoding="utf-8", errors="replace") as opened:
            text = opened.read(1 << 16)
    except OSError:
        text = ""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    flags = frozenset((fields.get("flags") or fields.get("Features") or "").split())
    return Processor(machine, fields.get("model name") or machine, _cores(), flags)


def _cores() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
