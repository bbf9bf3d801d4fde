"""What the generator may ask of a device is what the runtime knows: neither imports the other."""

from __future__ import annotations

import re
from pathlib import Path

import gristmill_spirv
from gristmill.plugin.target_data import target_table
from gristmill_spirv.enumerants import Capability
from gristmill_vulkan.features import CORE_FEATURES, STRUCTURES, float_names, subgroup_features
from gristmill_vulkan.kernel_limits import FEATURES

KNOWN = {
    *CORE_FEATURES,
    *(name for structure in STRUCTURES for name in structure.members),
    *subgroup_features(0xFFFF),
    *float_names(),
}


def test_every_feature_of_targets_is_one_of_devices() -> None:
    assert set(target_table("vulkan")["features"]) - KNOWN == set()


def test_every_capability_that_is_emitted_has_its_feature() -> None:
    sources = [path.read_text() for path in Path(gristmill_spirv.__file__).parent.glob("*.py")]
    named = {name for source in sources for name in re.findall(r"\bCapability\.(\w+)", source)}
    assert len(named) > 10
    assert {name for name in named if Capability[name] not in FEATURES} == set()


def test_features_of_capabilities_are_known() -> None:
    assert {name for names in FEATURES.values() for name in names.split("|") if name} - KNOWN == set()
