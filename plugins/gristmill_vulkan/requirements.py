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
    return f"{device.name} does not multiply matrices of {', '.join(missing)}" if missing else ""


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (99, 0)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
