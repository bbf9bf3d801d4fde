"""Random expressions with constants at the ends of their types: compiled code gives what the executor gives."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.verify import check
from gristmill.testing.compiled import CompiledBackend
from gristmill.testing.corner_expressions import corner_arguments, corner_module
from gristmill.testing.programs.comparison import bits

SEEDS = range(12)


@pytest.mark.parametrize(("target", "optimization"), [("cpu:x86-64-v3", 3), ("cpu:x86-64-v2", 3), ("cpu:x86-64-v3", 0)])
def test_compiled_expressions(target, optimization):
    run = CompiledBackend(target, optimization=optimization)
    for seed in SEEDS:
        module = corner_module(seed)
        check(module)
        expected = corner_arguments(seed)
        given = copy.deepcopy(expected)
        Executor(module).call("f", expected)
        run(module, "f", given)
        for param, one, other in zip(module.functions[0].params, expected, given, strict=True):
            wrong = np.argwhere(bits(one) != bits(other))
            assert len(wrong) == 0, f"seed {seed}, {target}: `{param.name}` differs at {wrong[:4].tolist()}"
