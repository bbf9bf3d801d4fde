"""The kernels of the example projects on the reference device: built, packed, loaded, launched."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from gristmill.build import build
from gristmill.build.report import BuildReport
from gristmill.interp import Executor
from gristmill.runtime import device, load
from gristmill.script.parsing import parse_file
from gristmill.testing.demonstration import relative_error
from gristmill.testing.example_project import example_project, import_from
from gristmill.testing.on_reference import ReferenceBackend

ROOT = example_project()
BLOCKS = example_project("blockkit")


@pytest.mark.parametrize("name", ["filters", "linear", "reductions"])
def test_they_run_on_the_reference_device(name: str) -> None:
    """No pass after the fallback recipe takes independent threads for such that must wait."""
    module = parse_file(ROOT / "kernels" / f"{name}.py", root=ROOT).module
    picture = np.random.default_rng(1).integers(0, 255, (5, 9, 4), np.uint8)
    backend = ReferenceBackend(verify=False)
    for case in import_from(ROOT, "checks").cases(picture, count=300, extent=18):
        if case.module != name:
            continue
        expected, found = copy.deepcopy(list(case.arguments)), copy.deepcopy(list(case.arguments))
        Executor(module).call(case.function, expected)
        backend(module, case.function, found)
        for one, other in zip(expected, found, strict=True):
            if isinstance(one, np.ndarray):
                tolerance = 1e-6 if one.dtype.kind == "f" else 0
                np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance, err_msg=case.function)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> BuildReport:
    return build(BLOCKS / "kernels.toml", output=tmp_path_factory.mktemp("packs"))


SIZES = [
    (16, 16, 16, 128),
    (37, 21, 35, 1300),
    (3, 300, 1, 257),
    (1, 1, 1, 1),
    (0, 5, 3, 0),
    (4, 0, 2, 3),
    (5, 3, 0, 2),
]
"""Rows, columns, the extent of products, and values of lines: multiples of blocks, others, and none."""


@pytest.mark.parametrize(("size", "optimization"), [*((size, 3) for size in SIZES), ((18, 5, 17, 130), 0)])
@pytest.mark.parametrize("name", ["tiles", "collectives"])
def test_blocks_of_threads_compute_what_numpy_does(
    name: str, size: tuple[int, int, int, int], optimization: int
) -> None:
    """With optional passes and without; a race would be an error."""
    module = parse_file(BLOCKS / "kernels" / f"{name}.py", root=BLOCKS).module
    backend = ReferenceBackend(optimization=optimization)
    functions = set()
    for case in import_from(BLOCKS, "checks", "blockkit").cases(*size):
        if case.module == name:
            functions.add(case.function)
            found = copy.deepcopy(list(case.arguments))
            backend(module, case.function, found)
            error = relative_error(found[case.output], case.expected(*case.arguments))
            assert error <= case.tolerance, case.function
    assert functions == {function.name for function in module.public}


def test_their_python_package(blocks: BuildReport) -> None:
    folder = Path(blocks.pack("tiles").path).parent
    kit = import_from(BLOCKS, "__init__", "blockkit").open(folder, device="reference:0")
    random = np.random.default_rng(3)
    left, right = random.random((5, 7), np.float32), random.random((7, 3), np.float32)
    np.testing.assert_allclose(kit.multiplied(left, right), left @ right, rtol=1e-5)
    grey = np.full((6, 4), 9, np.uint8)
    np.testing.assert_allclose(kit.blurred(grey), grey, rtol=1e-6)
    assert kit.total(np.arange(10, dtype=np.float32)) == 45


def test_a_size_that_shared_memory_has_no_room_for_is_refused_before_the_launch(blocks: BuildReport) -> None:
    pack = load(blocks.pack("tiles").path, device="reference:0")
    with pytest.raises(AssertionError, match="runs have 1 to 256 values, not 257"):
        pack.reverse_runs(device("reference:0").array(np.zeros(4, np.float32)), 257)
