"""The kernels of the example project on the reference device: built, packed, loaded, launched."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.script.parsing import parse_file
from gristmill.testing.example_project import example_project, import_from
from gristmill.testing.on_reference import ReferenceBackend

ROOT = example_project()


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
