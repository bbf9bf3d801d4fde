"""The target kind ``vulkan``: ``vulkan[:VERSION][+FEATURE...]``, or a table with those and limits as keys.

``{ kind = "vulkan", version = "1.2", float64 = true }`` is the same as ``"vulkan:1.2+float64"``, and ``int64 = false`` as
``+no-int64``. What the versions have, which features there are, and the limits that hold where a target says nothing
stand in ``gristmill_targets/vulkan.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gristmill.errors import suggestion
from gristmill.ir.dtype import FLOAT64, INT64, SCALARS, UINT64
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Capabilities, KernelRecord, Scalar
from gristmill.plugin.device_limits import LAUNCH_LIMITS, check_limits, filled_in, with_limits_of
from gristmill.plugin.protocols import FROM_DEVICE, KeyDescription, TargetKind
from gristmill.plugin.target_data import device_limits, target_table
from gristmill_spirv.dot_products import FEATURE as DOT_PRODUCT
from gristmill_spirv.dot_products import OPERATIONS as DOT_PRODUCTS
from gristmill_spirv.matrices import FEATURE as COOPERATIVE
from gristmill_spirv.matrices import shapes_of
from gristmill_spirv.operations import NATIVE
from gristmill_spirv.profile import Profile

NAME = "vulkan"
BLOB_KIND = "spirv"
TEXT_KIND = "spirv-assembly"
PUSH_CONSTANTS = "max_push_constants_size"
STORAGE_BUFFERS = "max_storage_buffers"
SUBGROUP_SIZE = "subgroup_size"
MATRICES = "matrices"
ASSERTS = "asserts"
_EXCHANGES = {"subgroup_shuffle", "subgroup_ballot"}
_SUBGROUP_SIZES = (4, 8, 16, 32, 64, 128)
_OFF = "no-"
_LARGEST_LIMIT = 1 << 32


def resolve(target: Target) -> Target:
    """The target with its version, and its features in order. A default that is switched off is the feature ``no-NAME``,
    so that the target's name says it.

    Raises ValueError with a sentence for the user for a version, a feature or a limit that cannot be.
    """
    table = target_table(NAME)
    options = dict(target.options)
    version = str(options.pop("version", "") or target.arch or table["default"])
    if target.arch and version != target.arch:
        raise ValueError(f"it names Vulkan {target.arch} and says version = {version}")
    if version not in table["versions"]:
        raise ValueError(f"Vulkan {version} is not known; known are {', '.join(table['versions'])}")
    stated = _stated(target, table)
    for feature in table["features"]:
        if feature in options:
            wanted = bool(options.pop(feature))
            if stated.setdefault(feature, wanted) != wanted:
                raise ValueError(f"it has `{feature}` on and off")
    defaults = _defaults(table, version, stated)
    has = {**dict.fromkeys(defaults, True), **stated}
    for feature, needed in table["needs"].items():
        if not has.get(feature):
            continue
        if _version(version) < _version(needed["version"]):
            raise ValueError(
                f'`{feature}` needs Vulkan {needed["version"]} or later; write version = "{needed["version"]}"'
            )
        for other in needed.get("features", ()):
            if not has.get(other):
                raise ValueError(f"`{feature}` needs `{other}`")
    features = [name if on else f"{_OFF}{name}" for name, on in has.items() if on or name in defaults]
    found = replace(target, arch=version, features=tuple(sorted(features)), options=tuple(sorted(options.items())))
    check_limits(found, _largest())
    pushed = options.get(PUSH_CONSTANTS, 128)
    if isinstance(pushed, bool) or not isinstance(pushed, int) or not 8 <= pushed <= 1 << 16 or pushed % 4:
        raise ValueError(f"`{PUSH_CONSTANTS}` is {pushed}; it is a multiple of 4 from 8 to 65536")
    bound = options.get(STORAGE_BUFFERS, 4)
    if isinstance(bound, bool) or not isinstance(bound, int) or not 4 <= bound <= _LARGEST_LIMIT:
        raise ValueError(
            f"`{STORAGE_BUFFERS}` is {bound}; every device has 4 or more, and none has more than {_LARGEST_LIMIT}"
        )
    if options.get(ASSERTS) and not has.get("address"):
        raise ValueError(f"`{ASSERTS}` needs `address`: failed asserts are written to memory of their own")
    size = options.get(SUBGROUP_SIZE, 0)
    if size and (isinstance(size, bool) or size not in _SUBGROUP_SIZES):
        known = ", ".join(map(str, _SUBGROUP_SIZES))
        raise ValueError(f"`{SUBGROUP_SIZE}` is {size}; it is one of {known}")
    for feature in sorted(_EXCHANGES):
        if has.get(feature) and not size:
            raise ValueError(f"`{feature}` needs `{SUBGROUP_SIZE}`, which says how many threads exchange values")
    shapes_of(str(options.get(MATRICES, "")))
    if has.get(COOPERATIVE) and not (size and options.get(MATRICES)):
        raise ValueError(
            f"`{COOPERATIVE}` needs `{SUBGROUP_SIZE}`, which says how many threads hold a tile of a matrix, and `{MATRICES}`, "
            f"which lists what is multiplied, as `16x16x16:float16:float32`"
        )
    return found


def _stated(target: Target, table: Mapping[str, Any]) -> dict[str, bool]:
    """The features that the target's name has or switches off."""
    stated: dict[str, bool] = {}
    for feature in target.features:
        name = feature.removeprefix(_OFF)
        if name not in table["features"]:
            known = ", ".join(table["features"])
            hint = suggestion(name, list(table["features"]), f"their features are {known}")
            raise ValueError(f"`{feature[:80]}` is no feature of Vulkan targets; {hint}")
        if name != feature and name not in (*table["default_features"], *table["default_with"]):
            raise ValueError(f"`{name}` is off unless a target says that it is on; leave `{feature}` out")
        if stated.setdefault(name, name == feature) != (name == feature):
            raise ValueError(f"it has `{name}` on and off")
    return stated


def _defaults(table: Mapping[str, Any], version: str, stated: Mapping[str, bool]) -> list[str]:
    """The features that are on unless a target says otherwise."""
    found = list(table["default_features"])
    for name, wanted in table["default_with"].items():
        beside = all(stated.get(other) for other in wanted.get("features", ()))
        if beside and _version(version) >= _version(wanted["version"]):
            found.append(name)
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
    if not target.arch and "version" not in options:
        newest = _version(str(properties.get("vulkan", table["default"])))
        known = [version for version in table["versions"] if _version(version) <= newest]
        options["version"] = known[-1] if known else table["default"]
    version = _version(str(options.get("version", target.arch)))
    has = set(str(properties.get("features", "")).split(","))
    stated = {feature.removeprefix(_OFF): not feature.startswith(_OFF) for feature in target.features}
    for feature in table["features"]:
        if feature not in stated:
            options.setdefault(feature, feature in has)
    for feature, needed in table["needs"].items():
        others = (bool(stated.get(other, options.get(other))) for other in needed.get("features", ()))
        told = feature in stated or feature in dict(target.options)
        if not told and not (version >= _version(needed["version"]) and all(others)):
            options[feature] = False
    if COOPERATIVE not in stated and not properties.get(MATRICES, options.get(MATRICES)):
        options[COOPERATIVE] = False
    filled = replace(target, options=tuple(sorted(options.items())))
    return filled_in(
        filled,
        properties,
        [PUSH_CONSTANTS, STORAGE_BUFFERS, SUBGROUP_SIZE, MATRICES, *(key.name for key in LAUNCH_LIMITS)],
    )


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
        slow_int64=True,
        native_operations=frozenset(NATIVE) - (set() if DOT_PRODUCT in target.features else DOT_PRODUCTS.keys()),
        warp_size=_subgroup_size(target),
        warp_shuffles=bool(_subgroup_size(target)) and set(target.features) >= _EXCHANGES,
    )


def profile_of(target: Target) -> Profile:
    """What the generator must know of a resolved target."""
    table = target_table(NAME)
    options, limits = dict(target.options), with_limits_of(target, device_limits(NAME))
    return Profile(
        target=str(target),
        spirv=_version(table["versions"][target.arch]["spirv"]),
        vulkan=_version(target.arch),
        features=frozenset(feature for feature in target.features if not feature.startswith(_OFF)),
        push_constants_size=int(options.get(PUSH_CONSTANTS, table["limits"][PUSH_CONSTANTS])),
        shared_memory=limits.max_shared_memory,
        max_threads_per_block=limits.max_threads_per_block,
        max_block_size=limits.max_block_size,
        max_grid_size=limits.max_grid_size,
        max_storage_buffers=int(options.get(STORAGE_BUFFERS, table["limits"][STORAGE_BUFFERS])),
        subgroup_size=_subgroup_size(target),
        asserts=bool(options.get(ASSERTS, False)),
        matrices=shapes_of(str(options.get(MATRICES, ""))),
    )


def _subgroup_size(target: Target) -> int:
    return int(dict(target.options).get(SUBGROUP_SIZE, 0))


def _version(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def _text_of_code(kind: str, data: bytes, kernels: Sequence[KernelRecord]) -> str:
    from gristmill_spirv.disassembly import text_of_blob

    assert kind == TEXT_KIND
    return text_of_blob(data, kernels)


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
            KeyDescription(
                ASSERTS, "boolean", "Whether asserts in kernels are checked, and raise when the host next waits."
            ),
            KeyDescription(STORAGE_BUFFERS, "integer", "How many arrays a kernel can have, where it has no addresses."),
            KeyDescription(
                MATRICES, "string", "Which tiles of matrices devices multiply: MxNxK:TYPE:SUM, separated by commas."
            ),
            KeyDescription(SUBGROUP_SIZE, "integer", "How many threads every subgroup has, or can be made to have."),
            *LAUNCH_LIMITS,
            FROM_DEVICE,
        ),
        architectures=tuple(table["versions"]),
        features=tuple(table["features"].items()),
        device_type=table["device_type"],
        texts=(TEXT_KIND,),
        text_of_code=_text_of_code,
        from_device=from_device,
    )
