"""The identity of targets: ``kind[:arch][+feature...]``."""

from __future__ import annotations

import pytest

from gristmill.ir.target import Target, parse_target

TEXTS = {
    "cpu": Target("cpu"),
    "cpu:x86-64-v3": Target("cpu", "x86-64-v3"),
    "cpu:x86-64-v3+avx512vnni+fma": Target("cpu", "x86-64-v3", ("avx512vnni", "fma")),
    "amdgpu:gfx942": Target("amdgpu", "gfx942"),
    "vulkan+float16": Target("vulkan", "", ("float16",)),
    "amdgpu:gfx9-4-generic+sramecc": Target("amdgpu", "gfx9-4-generic", ("sramecc",)),
    "acme.chip:v1.2_b": Target("acme.chip", "v1.2_b"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_and_its_target(text: str) -> None:
    assert parse_target(text) == TEXTS[text]
    assert str(TEXTS[text]) == text
    assert hash(parse_target(text)) == hash(TEXTS[text])


@pytest.mark.parametrize(
    "text",
    ["", ":", "cpu:", ":x86", "cpu+", "cpu:a:b", "cpu ", "cpu: a", "cpu:a+", "cpu:a++b", "-cpu", "cpu-", "cpu:a b", "c/d",
     "cpu:a+b:c", "cpu\n", "cpu:ü"],
)  # fmt: skip
def test_texts_that_name_no_target(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not of the form kind\[:arch\]\[\+feature\.\.\.\]"):
        parse_target(text)


def test_options_tell_targets_apart_and_are_not_in_the_name() -> None:
    small = Target("reference", options=(("max_threads_per_block", 64),))
    assert small != Target("reference")
    assert str(small) == "reference"
