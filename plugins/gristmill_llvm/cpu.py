"""CPU targets: what ``cpu:x86-64-v3+avxvnni`` means, from the data in ``gristmill_targets/cpu.toml``.

``cpu`` alone is the level that nearly every machine has (``default`` in the data). ``cpu:native`` is the machine that
builds: resolved to the highest level that it has, the features that it has beyond it, and tuned for its processor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from gristmill.errors import close_match
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import KeyDescription, TargetKind
from gristmill.plugin.target_data import target_table
from gristmill_llvm.operation_names import CPU_OPERATIONS
from gristmill_llvm.profile import Profile

NATIVE = "native"
_CPUINFO = "/proc/cpuinfo"


@dataclass(frozen=True, slots=True)
class Architecture:
    """A level of CPUs, with what it includes counted in."""

    name: str
    machine: str
    triple: str
    host: str
    vector_bytes: int
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature beyond a level: its flag in /proc/cpuinfo, and the features it stands on."""

    name: str
    cpuinfo: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CpuData:
    """The data file: architectures in ascending order, features by machine and name."""

    default: str
    architectures: Mapping[str, Architecture]
    features: Mapping[str, Mapping[str, Feature]]


@cache
def cpu_data() -> CpuData:
    """The data of CPU targets."""
    table = target_table("cpu")
    architectures: dict[str, Architecture] = {}
    for name, fields in table["arch"].items():
        features = frozenset(fields["features"])
        if "includes" in fields:
            features |= architectures[fields["includes"]].features
        architectures[name] = Architecture(
            name, fields["machine"], fields["llvm_triple"], fields["host"], fields["vector_bytes"], features
        )
    features_of = {
        machine: {
            name: Feature(name, fields["cpuinfo"], tuple(fields.get("needs", ()))) for name, fields in known.items()
        }
        for machine, known in table["features"].items()
    }
    return CpuData(table["default"], architectures, features_of)


def architecture_of(target: Target) -> Architecture:
    """The architecture of a resolved target."""
    return cpu_data().architectures[target.arch]


def all_features(target: Target) -> frozenset[str]:
    """Every feature that code for a resolved target may use: the level's, the extra ones, and what those stand on."""
    architecture = architecture_of(target)
    return architecture.features | _closure(target.features, architecture.machine)


def _closure(names: Iterable[str], machine: str) -> frozenset[str]:
    known = cpu_data().features[machine]
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(known[name].needs)
    return frozenset(found)


def resolve(target: Target) -> Target:
    """The target with everything filled in. Raises ValueError for what there is not."""
    data = cpu_data()
    if target.arch == NATIVE:
        return _resolve_native(target)
    arch = target.arch or data.default
    if arch not in data.architectures:
        raise ValueError(_unknown("architecture", arch, (NATIVE, *data.architectures)))
    architecture = data.architectures[arch]
    known = data.features[architecture.machine]
    for feature in target.features:
        if feature not in known:
            raise ValueError(_unknown(f"feature of {architecture.machine}", feature, tuple(known)))
    _check_options(target)
    extra = sorted(set(target.features) - architecture.features)
    return replace(target, arch=arch, features=tuple(extra))


def _unknown(what: str, given: str, known: tuple[str, ...]) -> str:
    close = close_match(given, known)
    suggestion = f"; did you mean `{close}`?" if close else "."
    return f"`{given}` is no known {what}{suggestion} Known: {', '.join(known)}"


def _check_options(target: Target) -> None:
    for name, value in target.options:
        if name == "vector_width" and value not in (128, 256, 512):
            raise ValueError(f"`vector_width` is {value}; it may be 128, 256 or 512 (bits)")


def _resolve_native(target: Target) -> Target:
    data = cpu_data()
    machine = os.uname().machine
    known = data.features.get(machine)
    if known is None:
        raise ValueError(
            f"this machine is {machine}, for which there is no CPU target yet; known: {', '.join(data.features)}"
        )
    flags = _cpu_flags()
    has = {name for name, feature in known.items() if feature.cpuinfo in flags}
    levels = [level for level in data.architectures.values() if level.machine == machine and level.features <= has]
    if not levels:
        lowest = next(level for level in data.architectures.values() if level.machine == machine)
        missing = ", ".join(sorted(lowest.features - has))
        raise ValueError(f"this processor is below {lowest.name}, the least that there is code for; it lacks {missing}")
    from gristmill_llvm.machine import host_cpu_name

    options = dict(target.options)
    options.setdefault("tune", host_cpu_name())
    native = replace(
        target,
        arch=levels[-1].name,
        features=(*target.features, *sorted(has)),
        options=tuple(sorted(options.items())),
    )
    return resolve(native)


def _cpu_flags() -> frozenset[str]:
    """The feature flags of the first processor, as Linux names them."""
    try:
        with open(_CPUINFO, encoding="utf-8") as opened:
            for line in opened:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def operations_of(target: Target) -> frozenset[str]:
    """The operations that a resolved target emits itself; without the feature, fma would be a call of libm."""
    return CPU_OPERATIONS if "fma" in all_features(target) else CPU_OPERATIONS - {"fma"}


def capabilities(target: Target) -> Capabilities:
    """What passes may rely on."""
    width = dict(target.options).get("vector_width")
    architecture = architecture_of(target)
    return Capabilities(
        native_operations=operations_of(target),
        vector_bytes=int(width) // 8 if width else architecture.vector_bytes,
    )


def profile_of(target: Target) -> Profile:
    """What the core of the generator asks for."""
    architecture = architecture_of(target)
    options = dict(target.options)
    return Profile(
        target=str(target),
        triple=architecture.triple,
        cpu=architecture.name,
        features=tuple(sorted(_closure(target.features, architecture.machine) - architecture.features)),
        operations=operations_of(target),
        tune=str(options.get("tune", "")),
        prefer_vector_bits=int(options.get("vector_width", 0)),
    )


CPU = TargetKind(
    name="cpu",
    summary="the CPU, through LLVM",
    generator="llvm",
    blob_kinds=("elf-shared",),
    resolve=resolve,
    capabilities=capabilities,
    keys=(
        KeyDescription(
            "tune", "string", "Processor, by LLVM's name, to choose instructions for; results stay the same."
        ),
        KeyDescription("vector_width", "integer", "Widest vectors that loops should use, in bits: 128, 256 or 512."),
    ),
    architectures=(NATIVE, "x86-64-v2", "x86-64-v3", "x86-64-v4"),
    texts=("llvm-ir", "assembly"),
)
