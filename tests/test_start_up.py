"""What start-up may import: the cheap ways in stay cheap however much is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Each costs from 5 to 100 ms, and none is needed to import the package, say the version or show help.
HEAVY = {
    "argparse",
    "asyncio",
    "cffi",
    "concurrent",
    "ctypes",
    "dataclasses",
    "difflib",
    "importlib.metadata",
    "json",
    "llvmlite",
    "ml_dtypes",
    "multiprocessing",
    "numpy",
    "pluggy",
    "tomli",
    "tvm_ffi",
    "vulkan",
    "zipfile",
}


def imported_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has imported after this code, beyond those of a bare one."""
    program = f"import sys\nbefore = set(sys.modules)\n{code}\nprint('modules:', *set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules:")[2].split())


def heavy(modules: set[str]) -> set[str]:
    return {name for name in HEAVY if any(found == name or found.startswith(name + ".") for found in modules)}


def test_the_measure_sees_what_is_imported() -> None:
    assert heavy(imported_by("import json")) == {"json"}


def test_import() -> None:
    modules = imported_by("import gristmill")
    assert heavy(modules) == set()
    assert {name for name in modules if name.startswith("gristmill")} == {"gristmill", "gristmill.version"}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help(option: str) -> None:
    modules = imported_by(f"from gristmill.cli import main\nassert main([{option!r}]) == 0")
    assert heavy(modules) == set()
    assert {name for name in modules if name.startswith("gristmill")} <= {
        "gristmill",
        "gristmill.version",
        "gristmill.cli",
        "gristmill.cli.streams",
    }


def test_help_of_a_command_looks_no_plugin_up() -> None:
    for name in ("build", "inspect", "targets", "demo"):
        modules = imported_by(f"from gristmill.cli import main\nassert main([{name!r}, '--help']) == 0")
        assert heavy(modules) & {"importlib.metadata", "llvmlite", "pluggy", "numpy", "tvm_ffi"} == set(), name


def test_explain_needs_neither_plugins_nor_compiler() -> None:
    modules = imported_by("from gristmill.cli import main\nassert main(['explain', 'GM0102']) == 0")
    assert heavy(modules) & {"importlib.metadata", "llvmlite", "pluggy", "numpy", "tvm_ffi", "tomli"} == set()


def test_manifests_are_read_without_plugins_or_compiler() -> None:
    modules = imported_by("import gristmill.build.manifest")
    assert heavy(modules) & {"llvmlite", "pluggy", "importlib.metadata", "tvm_ffi"} == set()


LOADING = """
import numpy, gristmill
pack = gristmill.load({path!r})
x = numpy.ones(4, numpy.float32)
pack.double(x)
assert x.tolist() == [2, 2, 2, 2]
"""
KERNEL = """from gristmill.script import tir as T


@T.prim_func
def double(x: T.Buffer((4,), "float32")):
    for i in range(4):
        x[i] = x[i] * T.float32(2)
"""


def test_code_for_the_processor_is_loaded_without_vulkan_and_built_without_it(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(KERNEL)
    (tmp_path / "kernels.toml").write_text(
        'schema = 1\n[project]\nname = "p"\n[targets]\ncpu = "cpu"\n[[module]]\nname = "m"\nsource = "m.py"\n'
    )
    modules = imported_by(f"import gristmill\ngristmill.build({str(tmp_path)!r})")
    assert heavy(modules) & {"cffi", "vulkan"} == set()
    modules = imported_by(LOADING.format(path=str(tmp_path / "build" / "kernels" / "m.kpack")))
    assert heavy(modules) & {"cffi", "llvmlite", "vulkan"} == set()
    assert not any(name.startswith(("gristmill_llvm", "gristmill_spirv", "gristmill.passes")) for name in modules)


def test_code_for_vulkan_is_built_without_vulkan(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(KERNEL)
    (tmp_path / "kernels.toml").write_text(
        'schema = 1\n[project]\nname = "p"\n[targets]\ngpu = "vulkan"\n[[module]]\nname = "m"\nsource = "m.py"\n'
    )
    modules = imported_by(f"import gristmill\ngristmill.build({str(tmp_path)!r})")
    assert heavy(modules) & {"cffi", "vulkan"} == set()
    assert not any(name.startswith("gristmill_vulkan") for name in modules)


def test_build_is_a_function_and_a_package() -> None:
    """Importing a module of the package must not take the function away, nor the other way round."""
    imported_by(
        "import gristmill, gristmill.build.manifest\n"
        "assert callable(gristmill.build)\n"
        "assert gristmill.build.manifest.load_manifest"
    )


def test_unknown_names_are_refused_as_python_does() -> None:
    imported_by(
        "import gristmill\n"
        "try:\n    gristmill.absent\n"
        "except AttributeError as error:\n    assert 'absent' in str(error)\n"
        "else:\n    raise SystemExit('no error')\n"
        "assert set(gristmill.__all__) <= set(dir(gristmill))"
    )
