"""Processes of their own: how they end with work in flight, and what they say where Vulkan is missing or broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LAVAPIPE = next(iter(sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))), None)

# Daemon threads go on for a while after the device was closed.
LOAD = """
import atexit, sys, threading, time
atexit.register(time.sleep, 0.05)
import numpy as np
import gristmill
gpu = gristmill.device("vulkan:0")
pack = gristmill.load(sys.argv[1], device=gpu)
array = gpu.array(np.zeros(1 << 16, np.int32))
def work(count):
    for _ in range(count):
        pack.double(array)
"""
ENDINGS = {
    "from the main thread": "work(300)",
    "with a device that is held by nothing but a cycle": "work(50); gpu.itself = gpu; del gpu, pack, array",
    "after close": "work(50); gpu.close()",
    "from a thread that goes on to the end": "threading.Thread(target=work, args=(300,)).start()",
    "with a daemon thread in the middle of it": (
        "threading.Thread(target=work, args=(100000,), daemon=True).start(); time.sleep(0.2)"
    ),
    "with a daemon thread that waits": """
def read():
    while True:
        work(20)
        array.numpy()
threading.Thread(target=read, daemon=True).start()
time.sleep(0.2)
""",
    "with work that nobody waited for": "work(3)",
    "with a thread of its own that submits": "for _ in range(100): work(3); time.sleep(0.0009)",
    "in a child that was forked": """
import os
work(20)
child = os.fork()
if child == 0:
    del array
    sys.exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
work(20)
print(array.numpy()[0])
""",
    "with two devices": """
from gristmill_vulkan.device import VulkanDevice
other = VulkanDevice("vulkan:1", gpu.instance, gpu.physical)
second = gristmill.load(sys.argv[1], device=other)
more = other.array(np.zeros(1 << 16, np.int32))
for _ in range(100):
    pack.double(array)
    second.double(more)
""",
}


def run(source: str, *args: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", source, *args],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_ends_cleanly(ending: str, packs: dict[str, Path]) -> None:
    found = run(f"{LOAD}\n{ending}\nprint('end', flush=True)\n", str(packs["few_double"]))
    assert found.stdout.endswith("end\n"), found.stderr
    assert found.returncode == 0, (found.returncode, found.stderr)
    # Also a daemon thread, whose device was closed under it, says nothing: the end of the process has begun.
    assert found.stderr == ""


PROBE = """
import gristmill
rows = [row for row in gristmill.devices() if row.name.startswith("vulkan")]
for row in rows:
    print(row.name, "|", row.reason)
"""


def reason(source: str = PROBE, **variables: str | None) -> str:
    found = run(source, **variables)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_driver_file_that_is_not_there(tmp_path: Path) -> None:
    said = reason(VK_ICD_FILENAMES=str(tmp_path / "nothing.json"), VK_DRIVER_FILES=str(tmp_path / "nothing.json"))
    assert said.startswith("vulkan | ")
    assert "VK_ERROR_INCOMPATIBLE_DRIVER" in said


@pytest.mark.parametrize(
    "text",
    ["", "no json", '{"file_format_version": "1.0.0", "ICD": {"library_path": "/nowhere/lib.so"}}', "[" * 2000],
    ids=["empty", "no json", "no library", "nested"],
)
def test_a_broken_driver_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    said = reason(VK_ICD_FILENAMES=str(path), VK_DRIVER_FILES=str(path))
    assert said.startswith("vulkan | ")
    assert "VK_DRIVER_FILES" in said
    # Loaders differ in which of the two they say of a file that they cannot read.
    assert re.search("vkCreateInstance gave VK_ERROR_(INCOMPATIBLE_DRIVER|OUT_OF_HOST_MEMORY)", said)


def test_a_library_that_is_no_driver(tmp_path: Path) -> None:
    library = tmp_path / "libnot.so"
    library.write_bytes(b"\x7fELF not")
    path = tmp_path / "not.json"
    path.write_text(f'{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{library}", "api_version": "1.3"}}}}')
    said = reason(VK_ICD_FILENAMES=str(path), VK_DRIVER_FILES=str(path))
    assert "vkCreateInstance gave VK_ERROR_INCOMPATIBLE_DRIVER" in said


def test_a_good_driver_beside_a_broken_one(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(
        '{"file_format_version": "1.0.0", "ICD": {"library_path": "/nowhere/lib.so", "api_version": "1.3"}}'
    )
    both = f"{path}:{LAVAPIPE}"
    assert reason(VK_ICD_FILENAMES=both, VK_DRIVER_FILES=both).startswith("vulkan:0 | ")


def test_no_package() -> None:
    said = reason("import sys\nsys.modules['vulkan'] = None\n" + PROBE)
    assert said.startswith("vulkan | ")
    assert "the Python package `vulkan` is not installed" in said


def test_no_loader() -> None:
    # What the package does where there is none: its import raises OSError.
    source = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "vulkan":
            raise OSError("Cannot find Vulkan SDK version")
sys.meta_path.insert(0, Finder())
"""
    said = reason(source + PROBE)
    assert "Vulkan's loader is not installed" in said


def test_packs_with_other_code_load_where_no_vulkan_is(packs: dict[str, Path], tmp_path: Path) -> None:
    source = """
import sys
import gristmill
pack = gristmill.load(sys.argv[1])
print(pack.devices, [refusal.reason for refusal in pack.refused])
alone = gristmill.load(sys.argv[2])
try:
    alone.double(None)
except gristmill.errors.MissingError as error:
    print(error)
"""
    missing = str(tmp_path / "nothing.json")
    found = run(source, str(packs["with_cpu"]), str(packs["push"]), VK_ICD_FILENAMES=missing, VK_DRIVER_FILES=missing)
    assert found.returncode == 0, found.stderr
    assert "('cpu:0',)" in found.stdout
    assert found.stdout.count("VK_ERROR_INCOMPATIBLE_DRIVER") == 2


def test_a_validation_layer_that_is_missing(tmp_path: Path) -> None:
    said = reason(GRISTMILL_VULKAN_VALIDATION="1", VK_LAYER_PATH=str(tmp_path))
    assert "the layer VK_LAYER_KHRONOS_validation is not installed" in said


def test_importing_and_loading_import_nothing_of_vulkan(packs: dict[str, Path]) -> None:
    source = """
import sys
import gristmill
import gristmill_vulkan.plugin
assert "vulkan" not in sys.modules
import gristmill.pack
gristmill.pack.PackReader
assert "vulkan" not in sys.modules and "gristmill_vulkan.api" not in sys.modules
print("lazy")
"""
    assert run(source).stdout == "lazy\n"


def test_probing_is_quick() -> None:
    """What listing devices costs beyond starting Python and the first import, and again."""
    source = """
import time
from gristmill_vulkan.runtime import VulkanRuntime
runtime = VulkanRuntime()
runtime.probe()
started = time.perf_counter()
for _ in range(100):
    runtime.probe()
print((time.perf_counter() - started) / 100)
"""
    assert float(run(source).stdout) < 0.005
