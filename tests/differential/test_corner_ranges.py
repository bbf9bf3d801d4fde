"""Random loops and branches over integers: what bounds conclude changes no result."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.verify import check
from gristmill.testing.compiled import CompiledBackend
from gristmill.testing.corner_ranges import PARAMETERS, SIZE, range_module

SEEDS = range(30)


def scalars(seed):
    chance = random.Random(seed)
    yield (0, 0, 0, 0)
    yield (5, -3, 200, -7)
    yield tuple(dtype.minimum if place % 2 else dtype.maximum for place, dtype in enumerate(PARAMETERS))
    yield tuple(dtype.wrap(chance.randrange(-20, 20)) for dtype in PARAMETERS)


@pytest.mark.parametrize("optimization", [0, 3])
def test_compiled_ranges(optimization):
    run = CompiledBackend("cpu:x86-64-v3", optimization=optimization)
    for seed in SEEDS:
        module = range_module(seed)
        check(module)
        executor = Executor(module)
        for values in scalars(seed):
            expected, given = np.zeros(SIZE, np.int64), np.zeros(SIZE, np.int64)
            executor.call("f", [expected, *values])
            run(module, "f", [given, *values])
            np.testing.assert_array_equal(given, expected, err_msg=f"seed {seed}, scalars {values}")
