"""Records and modules come from files: whatever stands in them, they are read or refused, and never tried."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import gristmill
from gristmill.errors import MissingError, UserError
from gristmill.pack import find_pack
from gristmill.plugin.artifacts import KernelArgument, KernelRecord
from gristmill_vulkan.kernel_forms import kernel_form
from gristmill_vulkan.kernel_limits import check_kernel, check_module

if TYPE_CHECKING:
    from pathlib import Path

    from gristmill_vulkan.device import VulkanDevice

ARGUMENTS = (
    KernelArgument("x", "buffer", "float32"),
    KernelArgument("n", "scalar", "int64"),
    KernelArgument("y", "buffer", "float32", True),
)
EXTRA = {
    "code_start": 8,
    "code_bytes": 400,
    "arguments": "push",
    "layout": "0:offset,8:i64,4:offset",
    "block_bytes": 16,
}
GOOD = KernelRecord("f_kernel", "f_kernel", ARGUMENTS, ("blockIdx.x",), extra=EXTRA)


def record(**changes: Any) -> KernelRecord:
    return replace(GOOD, extra={**EXTRA, **changes})


def test_a_good_record() -> None:
    form = kernel_form(GOOD, 408)
    assert (form.buffers, form.descriptors, form.push_bytes, form.subgroup) == (2, 2, 16, 0)
    uniform = kernel_form(record(arguments="uniform"), 408)
    assert (uniform.buffers, uniform.descriptors, uniform.push_bytes) == (2, 3, 0)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"code_start": -4}, "has a number that is none"),
        ({"code_start": True}, "has a number that is none"),
        ({"code_bytes": "400"}, "has a number that is none"),
        ({"block_bytes": 2.0}, "has a number that is none"),
        ({"code_start": 1 << 40}, "has a number that is none"),
        ({"code_start": 6}, "its code lies where there is none"),
        ({"code_bytes": 404}, "its code lies where there is none"),
        ({"code_bytes": 16}, "its code lies where there is none"),
        ({"arguments": "pull"}, "passes arguments as `pull`"),
        ({"arguments": 7}, "passes arguments as `7`"),
        ({"layout": "0:offset,8:i64"}, "has 2 places for 3 arguments"),
        ({"layout": "0:offset,8:i64,4:offset,0:i32"}, "has 4 places for 3 arguments"),
        ({"layout": "0:offset,8:i65,4:offset"}, "has the place `8:i65`"),
        ({"layout": "0:offset,-8:i64,4:offset"}, "has the place `-8:i64`"),
        ({"layout": "0:offset,9999999:i64,4:offset"}, "has the place `9999999:i64`"),
        ({"layout": "0:offset,\u0668:i64,4:offset"}, "has the place"),
        ({"layout": "0:offset,6:i64,4:offset"}, "has the place `6:i64`"),
        ({"layout": "0:offset,12:i64,4:offset"}, "has a place outside of its block"),
        ({"block_bytes": 1 << 17}, "has a place outside of its block"),
        ({"layout": "0:i32,8:i64,4:offset"}, "in a form that is not for arrays"),
        ({"layout": "0:offset,8:offset,4:offset"}, "in a form that is not for arrays"),
        ({"arguments": "address"}, "in a form that is not for arrays"),
        ({"dynamic_element": 4}, "has dynamic shared elements of 4 bytes"),
        ({"dynamic_element": 8}, "has dynamic shared elements of 8 bytes"),
        ({"subgroup": 12}, "has subgroups of 12 threads"),
        ({"subgroup": 256}, "has subgroups of 256 threads"),
    ],
)
def test_a_malformed_record(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match="GM0914") as found:
        kernel_form(record(**changes), 408)
    assert what in str(found.value)


def test_records_at_random() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    values = [
        0,
        1,
        4,
        -1,
        8,
        16,
        400,
        1 << 31,
        1 << 70,
        2.5,
        True,
        "",
        "push",
        "0:offset",
        "0:offset,8:i64,4:offset",
        None,
    ]
    refused, codes = 0, set()
    for _ in range(3000):
        changes = {key: draw.choice(values) for key in draw.sample([*EXTRA, "dynamic_element", "subgroup"], 2)}
        text = "".join(draw.choice("0123456789:,-ofsetiaddr64 \u00e9") for _ in range(draw.randrange(30)))
        if draw.random() < 0.3:
            changes["layout"] = text
        try:
            form = kernel_form(record(**changes), draw.choice([0, 8, 100, 408, 1000]))
        except UserError as error:
            codes.add(error.diagnostics[0].code)
            refused += 1
        else:
            assert all(slot.offset + slot.size <= form.block_bytes for slot in form.slots)
    assert refused > 100
    assert codes == {"GM0914"}


def test_what_the_device_does_not_allow(gpu: VulkanDevice) -> None:
    limits = gpu.physical.limits
    buffers = limits["max_storage_buffers"] + 1
    many = tuple(KernelArgument(f"x{place}", "buffer", "float32") for place in range(buffers))
    layout = ",".join(f"{4 * place}:offset" for place in range(buffers))
    pushed = limits["max_push_constants_size"] + 4
    cases = [
        (record(block_bytes=pushed), rf"push constants, and vulkan:0 \(.*\) has {pushed - 4}"),
        (
            replace(record(arguments="uniform", layout=layout, block_bytes=4 * buffers), arguments=many),
            rf"it has {buffers} arrays, and vulkan:0 \(.*\) binds at most {buffers - 1}",
        ),
        (record(subgroup=64), r"subgroups of 64 threads, and those of vulkan:0 \(.*\) have \d+"),
    ]
    for given, what in cases:
        with pytest.raises(UserError, match=rf"(?s)GM0935.*{what}"):
            check_kernel(gpu.logical, given, kernel_form(given, 408))


def test_the_subgroup_size_of_the_device(gpu: VulkanDevice) -> None:
    given = record(subgroup=gpu.physical.subgroup_size)
    check_kernel(gpu.logical, given, kernel_form(given, 408))


def module_of(path: Path) -> tuple[KernelRecord, bytes]:
    from gristmill.runtime.kernel_records import kernel_records

    reader = find_pack(path)
    member = next(each for each in reader.manifest.blobs if each.kind == "spirv")
    # That with all that the code needs: int64 among it, beside the kernels in 32 bits.
    found = next(record for record in kernel_records(member) if record.name.endswith("_wide"))
    form = kernel_form(found, len(reader.blob(member)))
    return found, bytes(reader.blob(member)[form.start : form.start + form.size])


def test_modules(gpu: VulkanDevice, packs: dict[str, Path]) -> None:
    found, code = module_of(packs["push"])
    check_module(gpu.logical, found, code)
    for bad in (b"", code[:16], b"\0" * 100, code[:24], code[1:], code[:20] + b"\0\0\0\0" + code[24:]):
        with pytest.raises(UserError, match=r"GM0914.*is no module of SPIR-V"):
            check_module(gpu.logical, found, bad)
    newer = code[:4] + (2 << 16).to_bytes(4, "little") + code[8:]
    with pytest.raises(UserError, match=r"GM0935.*it is SPIR-V 2.0, and vulkan:0 \(.*\) reads up to 1.6"):
        check_module(gpu.logical, found, newer)


def test_capabilities_that_the_device_lacks(driver: Any, packs: dict[str, Path]) -> None:
    found, code = module_of(packs["push"])
    device = driver.open(frozenset(["int64"]))
    with pytest.raises(UserError, match=r"GM0935.*needs `int64`, which vulkan:0 \(.*\) lacks"):
        check_module(device.logical, found, code)
    with pytest.raises(MissingError, match=r"GM0901(?s:.*)lacks int64"):
        gristmill.load(packs["push"], device=device)
    device.close()
    unknown = code[:20] + (2 << 16 | 17).to_bytes(4, "little") + (9999).to_bytes(4, "little") + code[20:]
    device = driver.open()
    with pytest.raises(UserError, match=r"GM0935.*needs `the capability 9999 of SPIR-V`"):
        check_module(device.logical, found, unknown)
    device.close()


def test_code_at_random(gpu: VulkanDevice, packs: dict[str, Path]) -> None:
    """Damage in what is read here never gives anything but a refusal; hashes keep the rest out."""
    found, code = module_of(packs["push"])
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    codes = set()
    for _ in range(2000):
        bad = bytearray(code[: draw.randrange(len(code))] if draw.random() < 0.3 else code)
        for _ in range(draw.randrange(1, 4)):
            if bad:
                bad[draw.randrange(min(len(bad), 80))] = draw.randrange(256)
        try:
            check_module(gpu.logical, found, bytes(bad))
        except UserError as error:
            codes.add(error.diagnostics[0].code)
    assert codes == {"GM0914", "GM0935"}
