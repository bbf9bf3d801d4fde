"""The target kind ``vulkan``: ``vulkan[:VERSION][+FEATURE...]``, or a table with those and limits as keys.

``{ kind = "vulkan", version = "1.2", float64 = true }`` is the same as ``"vulkan:1.2+float64"``. What the versions have,
which features there are, and the limits that hold where a target says nothing stand in ``gristmill_targets/vulkan.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gristmill.errors import suggestion
from gristmill.ir.dtype import FLOAT64, INT64, SCALARS, UINT64
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities, Scalar
from gristmill.plugin.device_limits import LAUNCH_LIMITS, check_limits, filled_in, with_limits_of
from gristmill.plugin.protocols import FROM_DEVICE, KeyDescription, TargetKind
from gristmill.plugin.target_data import device_limits, target_table
from gristmill_spirv.operations import NATIVE
from gristmill_spirv.profile import Profile

NAME = "vulkan"
BLOB_KIND = "spirv"
PUSH_CONSTANTS = "max_push_constants_size"
_LARGEST_LIMIT = 1 << 32


def resolve(target: Target) -> Target:
    """The target with its version, and its features in order; those of the defaults that are switched off have left.

    Raises ValueError with a sentence for the user for a version, a feature or a limit that cannot be.
    """
    table = target_table(NAME)
    options = dict(target.options)
    version = str(options.pop("version", "") or target.arch or table["default"])
    if target.arch and version != target.arch:
        raise ValueError(f"it names Vulkan {target.arch} and says version = {version}")
    if version not in table["versions"]:
        raise ValueError(f"Vulkan {version} is not known; known are {', '.join(table['versions'])}")
    features = set(table["default_features"])
    known = table["features"]
    for feature in target.features:
        if feature not in known:
            raise ValueError(f"`{feature}` is no feature of Vulkan targets; {suggestion(feature, list(known))}")
        features.add(feature)
    for feature in known:
        if feature in options:
            (features.add if options.pop(feature) else features.discard)(feature)
    if "address" in features and version == "1.1":
        raise ValueError('`address` needs Vulkan 1.2 or later; write version = "1.2"')
    if "address" in features and "int64" not in features:
        raise ValueError("`address` needs `int64`, which addresses are")
    found = replace(target, arch=version, features=tuple(sorted(features)), options=tuple(sorted(options.items())))
    check_limits(found, _largest())
    pushed = options.get(PUSH_CONSTANTS, 128)
    if isinstance(pushed, bool) or not isinstance(pushed, int) or not 8 <= pushed <= 1 << 16 or pushed % 4:
        raise ValueError(f"`{PUSH_CONSTANTS}` is {pushed}; it is a multiple of 4 from 8 to 65536")
    return found


def _largest() -> Capabilities:
    """No limit of a target is refused for being large: the device decides when it launches."""
    return Capabilities(
        max_threads_per_block=_LARGEST_LIMIT,
        max_block_size=(_LARGEST_LIMIT,) * 3,
        max_grid_size=(_LARGEST_LIMIT,) * 3,
        max_shared_memory=_LARGEST_LIMIT,
    )


def from_device(target: Target, properties: Mapping[str, Scalar]) -> Target:
    """The target with version, features and limits of a device where it states none."""
    table = target_table(NAME)
    options = dict(target.options)
    version = str(properties.get("vulkan", table["default"]))
    if not target.arch and "version" not in options and version in table["versions"]:
        options["version"] = version
    has = set(str(properties.get("features", "")).split(","))
    for feature in table["features"]:
        if feature not in target.features:
            options.setdefault(feature, feature in has)
    filled = replace(target, options=tuple(sorted(options.items())))
    return filled_in(filled, properties, [PUSH_CONSTANTS, *(key.name for key in LAUNCH_LIMITS)])


def capabilities(target: Target) -> Capabilities:
    """What passes may rely on."""
    dtypes = set(SCALARS)
    if "float64" not in target.features:
        dtypes.discard(FLOAT64)
    if "int64" not in target.features:
        dtypes -= {INT64, UINT64}
    return replace(
        with_limits_of(target, device_limits(NAME)),
        dtypes=frozenset(dtypes),
        native_operations=frozenset(NATIVE),
    )


def profile_of(target: Target) -> Profile:
    """What the generator must know of a resolved target."""
    table = target_table(NAME)
    options = dict(target.options)
    return Profile(
        target=str(target),
        spirv=_version(table["versions"][target.arch]["spirv"]),
        vulkan=_version(target.arch),
        features=frozenset(target.features),
        push_constants_size=int(options.get(PUSH_CONSTANTS, table["limits"][PUSH_CONSTANTS])),
        shared_memory=with_limits_of(target, device_limits(NAME)).max_shared_memory,
    )


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def target_kind() -> TargetKind:
    """The description of the kind."""
    table: Mapping[str, Any] = target_table(NAME)
    return TargetKind(
        name=NAME,
        summary="every GPU with a Vulkan driver, as SPIR-V",
        generator="spirv",
        blob_kinds=(BLOB_KIND,),
        resolve=resolve,
        capabilities=capabilities,
        keys=(
            KeyDescription("version", "string", "The least version of Vulkan that devices have."),
            *(KeyDescription(name, "boolean", meaning) for name, meaning in table["features"].items()),
            KeyDescription(PUSH_CONSTANTS, "integer", "How many bytes of push constants devices have."),
            *LAUNCH_LIMITS,
            FROM_DEVICE,
        ),
        architectures=tuple(table["versions"]),
        device_type=table["device_type"],
        from_device=from_device,
    )
