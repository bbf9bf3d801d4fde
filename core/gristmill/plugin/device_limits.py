"""The limits of devices under one set of names: as keys of target tables, properties of devices, and capabilities.

A target kind for devices takes the keys that suit it into its own, lays what a target says over its data file with
:func:`with_limits_of`, and completes a target from a device that is here with :func:`filled_in`. A runtime lists the
same names among the properties of its devices with :func:`as_properties`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill.plugin.artifacts import Capabilities, Scalar
from gristmill.plugin.protocols import KeyDescription

if TYPE_CHECKING:
    from gristmill.ir.target import Target

_AXES = "xyz"

LAUNCH_LIMITS: tuple[KeyDescription, ...] = (
    KeyDescription("max_threads_per_block", "integer", "The most threads of a block."),
    *(
        KeyDescription(f"max_block_size_{axis}", "integer", f"The most threads of a block along {axis}.")
        for axis in _AXES
    ),
    *(
        KeyDescription(f"max_grid_size_{axis}", "integer", f"The most blocks of a launch along {axis}.")
        for axis in _AXES
    ),
    KeyDescription("max_shared_memory", "integer", "The most shared memory of a block, in bytes."),
)
"""The keys for what a launch may ask for; also the names of the properties of devices that say it."""


def as_properties(limits: Capabilities) -> dict[str, Scalar]:
    """The limits by the names of :data:`LAUNCH_LIMITS`, and ``warp_size``; those that are not known (0) are left out."""
    found: dict[str, Scalar] = {
        "max_threads_per_block": limits.max_threads_per_block,
        **{f"max_block_size_{axis}": size for axis, size in zip(_AXES, limits.max_block_size, strict=True)},
        **{f"max_grid_size_{axis}": size for axis, size in zip(_AXES, limits.max_grid_size, strict=True)},
        "max_shared_memory": limits.max_shared_memory,
        "warp_size": limits.warp_size,
    }
    return {name: value for name, value in found.items() if value}


def with_limits_of(target: Target, capabilities: Capabilities) -> Capabilities:
    """The capabilities with the limits that the target's options state."""
    said = {name: int(value) for name, value in target.options if name in _NAMES}
    block = (
        said.get(f"max_block_size_{axis}", size) for axis, size in zip(_AXES, capabilities.max_block_size, strict=True)
    )
    grid = (
        said.get(f"max_grid_size_{axis}", size) for axis, size in zip(_AXES, capabilities.max_grid_size, strict=True)
    )
    block_x, block_y, block_z = block
    grid_x, grid_y, grid_z = grid
    return replace(
        capabilities,
        max_threads_per_block=said.get("max_threads_per_block", capabilities.max_threads_per_block),
        max_block_size=(block_x, block_y, block_z),
        max_grid_size=(grid_x, grid_y, grid_z),
        max_shared_memory=said.get("max_shared_memory", capabilities.max_shared_memory),
    )


def check_limits(target: Target, most: Capabilities) -> None:
    """Raise ValueError for a limit in the target's options that is below 1, or above what all its devices have."""
    known = as_properties(most)
    for name, value in target.options:
        if name not in _NAMES:
            continue
        highest = known.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"`{name}` is {value}; the least is 1")
        if isinstance(highest, int) and value > highest:
            raise ValueError(f"`{name}` is {value}; {target.kind} devices have at most {highest}")


def filled_in(target: Target, properties: Mapping[str, Scalar], keys: Collection[str]) -> Target:
    """The target with those of the ``keys`` that it leaves open as the device's properties say."""
    options = dict(target.options)
    for key in keys:
        if key in properties:
            options.setdefault(key, properties[key])
    return replace(target, options=tuple(sorted(options.items())))


_NAMES = frozenset(key.name for key in LAUNCH_LIMITS)
