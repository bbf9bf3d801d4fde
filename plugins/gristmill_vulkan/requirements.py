"""What a code requires of its device, and what of it a device lacks."""

from __future__ import annotations

from collections.abc import Mapping, Set

from gristmill.plugin.artifacts import Scalar
from gristmill_vulkan.physical import PhysicalDevice


def lacking(device: PhysicalDevice, requirements: Mapping[str, Scalar], without: Set[str] = frozenset()) -> str:
    """What a device lacks of what a code requires, in a sentence; an empty text if nothing. ``without`` is left unused."""
    version = _version(str(requirements.get("vulkan", "1.1")))
    if version > device.api_version:
        return f"it requires Vulkan {version[0]}.{version[1]}, and {device.name} has {_dotted(device.api_version)}"
    has = device.features - without
    missing = [name for name in str(requirements.get("features", "")).split(",") if name and name not in has]
    if missing:
        return f"{device.name} lacks {', '.join(missing)}"
    products = [name for name in str(requirements.get("matrices", "")).split(",") if name]
    missing = [name for name in products if name not in device.matrices]
    if missing:
        return f"{device.name} does not multiply matrices of {', '.join(missing)}"
    threads = requirements.get("subgroup", 0)
    if isinstance(threads, int) and not has_subgroups_of(device, threads):
        return f"it needs subgroups of {threads} threads, and those of {device.name} have {subgroup_sizes(device)}"
    return ""


def has_subgroups_of(device: PhysicalDevice, threads: int) -> bool:
    """Whether kernels that need subgroups of so many threads run there; 0 needs none."""
    least, most = device.subgroup_sizes
    if not threads:
        return True
    return least <= threads <= most if most else threads == device.subgroup_size


def subgroup_sizes(device: PhysicalDevice) -> str:
    """How many threads its subgroups can have, as ``8`` or ``32 to 64``."""
    least, most = device.subgroup_sizes
    return f"{least} to {most}" if most > least else f"{most or device.subgroup_size}"


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (99, 0)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
