"""Random programs queued many times without waiting: all that was queued is done in order, with what it needs still there.

Several programs, each with kernels in host loops and with temporaries of the device, take turns on one device. Each works
on arrays of its own again and again, and on fresh copies that are dropped as soon as they are queued.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from gristmill.interp import Executor
from gristmill.ir.dtype import FLOAT32, INT32, INT64, UINT8
from gristmill.ir.functor import walk
from gristmill.ir.memory import Scope
from gristmill.ir.stmt import Allocate, For, LoopKind
from gristmill.plugin.registry import Registry
from gristmill.testing.device_programs import ON_EVERY_DEVICE, RandomDeviceProgram, random_device_program
from gristmill.testing.on_device import DeviceBackend
from gristmill.testing.programs import Outcome, compare

PROGRAMS = 6
CALLS = 12
CONSTRUCTS = ON_EVERY_DEVICE - {"warp", "mathematics"}
TARGETS = ("vulkan", "vulkan:1.2+address")


def programs() -> Iterator[RandomDeviceProgram]:
    """Programs that have both a host loop and a temporary of the device."""
    for seed in range(10_000):
        program = random_device_program(seed, dtypes=(INT32, INT64, UINT8, FLOAT32), constructs=CONSTRUCTS)
        nodes = list(walk(program.entry.body))
        loops = any(isinstance(node, For) and node.kind is LoopKind.SERIAL for node in program.entry.body.body)
        temporaries = any(isinstance(node, Allocate) and node.buffer.scope is Scope.GLOBAL for node in nodes)
        if loops and temporaries:
            yield program


@dataclass
class Queued:
    """A program, its arguments as the executor and as the device see them, and what the device gives back."""

    program: RandomDeviceProgram
    function: Any
    expected: list[Any]
    given: list[Any]
    results: list[Any] = field(default_factory=list)


@pytest.mark.parametrize("target", TARGETS)
def test_programs_that_are_queued_again_and_again(validated: Registry, target: str) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    device = validated.runtime("vulkan").open(0)
    queued = []
    for program, _ in zip(programs(), range(PROGRAMS), strict=False):
        backend = DeviceBackend(target, device, registry=validated, verify=False)
        expected = program.make_arguments(chance.randrange(1 << 20))
        given = [device.array(arg) if isinstance(arg, np.ndarray) else arg for arg in expected]
        queued.append(Queued(program, backend.pack(program.module)[program.function], expected, given))
    order = [each for each in queued for _ in range(CALLS)]
    chance.shuffle(order)
    kept = []
    for number, each in enumerate(order):
        if chance.random() < 0.3:
            # Other arrays with the same values: the device frees them when it has done with them, no sooner.
            fresh = [
                device.array(arg) if isinstance(arg, np.ndarray) else arg for arg in each.program.make_arguments(0)
            ]
            each.function(*fresh)
            if number % 5 == 0:
                kept.append((each, fresh))
        each.results.append(each.function(*each.given))
    for each in queued:
        executor = Executor(each.program.oracle)
        values = [executor.call(each.program.function, each.expected).value for _ in range(CALLS)]
        _check(each.program, values, each.expected, each.results, each.given)
    for each, fresh in kept:
        once = copy.deepcopy(each.program.make_arguments(0))
        value = Executor(each.program.oracle).call(each.program.function, once).value
        _check(each.program, [value], once, [value], fresh)
    del queued, kept, order, fresh, each, given
    device.synchronize()
    device.close()


def _check(
    program: RandomDeviceProgram, values: list[Any], expected: list[Any], results: list[Any], given: list[Any]
) -> None:
    found = [
        arg if isinstance(want, (int, float, bool)) else arg.numpy() for want, arg in zip(expected, given, strict=True)
    ]
    for value, result in zip(values, results, strict=True):
        differences = compare(program.entry, Outcome(value, expected), Outcome(result, found), program.bounded)
        assert not differences, f"program {program.seed}: {differences}"
