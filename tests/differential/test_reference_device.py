"""Seeded random programs of several kernels (1,000, unless --programs says otherwise) give on the reference device what the
unsplit program gives in the executor: built, packed, loaded and launched.

Optional passes are on for one program and off for the next; host functions run compiled for two programs, and on the
executor for the next two. Every third program is built for a device whose threads exchange values, and has exchanges. A
failure prints the seed and the smallest program found that still fails.
"""

from __future__ import annotations

from functools import partial

from gristmill.testing.device_programs import (
    DEVICE_CONSTRUCTS,
    ON_EVERY_DEVICE,
    count_device_constructs,
    random_device_program,
)
from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.programs import differential

# The verifier runs between all passes for one program in so many; it takes longer than all else together.
VERIFIED = 5
EXCHANGING = 3


def test_programs_give_on_the_device_what_they_give_unsplit(seeds: range) -> None:
    backends = {
        (optimization, interpreted, verify, exchanges): ReferenceBackend(
            optimization=optimization,
            interpreted=interpreted,
            verify=verify,
            target="reference+warp_shuffles" if exchanges else "reference",
        )
        for optimization in (0, 3)
        for interpreted in (False, True)
        for verify in (False, True)
        for exchanges in (False, True)
    }
    for seed in seeds:
        choice = 3 if seed % 2 else 0, seed // 2 % 2 == 1, seed % VERIFIED == 0, seed % EXCHANGING == 0
        optimization, interpreted, _, exchanges = choice
        make = partial(random_device_program, constructs=DEVICE_CONSTRUCTS if exchanges else ON_EVERY_DEVICE)
        report = differential([seed], backends[choice], make=make, count=count_device_constructs)
        told = f"optimization {optimization}, host functions {'interpreted' if interpreted else 'compiled'}"
        told += ", with exchanges" if exchanges else ""
        assert not report.failures, f"{told}:\n{report.failures[0]}"
