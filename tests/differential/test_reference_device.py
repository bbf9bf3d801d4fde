"""Seeded random programs of several kernels (1,000, unless --programs says otherwise) give on the reference device what the
unsplit program gives in the executor: built, packed, loaded and launched.

Optional passes are on for one program and off for the next; host functions run compiled for two programs, and on the
executor for the next two; launches take kernels in 32 bits for six programs, and then mostly and always those in 64. Every
third program is built for a device whose threads exchange values, and has exchanges. A failure prints the seed and the
smallest program found that still fails.
"""

from __future__ import annotations

from functools import cache, partial

from gristmill.passes.index_widths import BOTH
from gristmill.testing.device_programs import (
    DEVICE_CONSTRUCTS,
    ON_EVERY_DEVICE,
    count_device_constructs,
    random_device_program,
)
from gristmill.testing.differential_run import choice_of
from gristmill.testing.on_reference import ReferenceBackend
from gristmill.testing.programs import differential

EXCHANGING = 3


@cache
def backend(optimization: int, interpreted: bool, verify: bool, limit: int, exchanges: bool) -> ReferenceBackend:
    return ReferenceBackend(
        optimization=optimization,
        interpreted=interpreted,
        verify=verify,
        target="reference+warp_shuffles" if exchanges else "reference",
        indices=BOTH,
        index_limit=limit,
    )


def test_programs_give_on_the_device_what_they_give_unsplit(seeds: range) -> None:
    for seed in seeds:
        optimization, interpreted, _, limit = choice_of(seed)
        exchanges = seed % EXCHANGING == 0
        make = partial(random_device_program, constructs=DEVICE_CONSTRUCTS if exchanges else ON_EVERY_DEVICE)
        report = differential([seed], backend(*choice_of(seed), exchanges), make=make, count=count_device_constructs)
        told = f"optimization {optimization}, host functions {'interpreted' if interpreted else 'compiled'}"
        told += ", with exchanges" if exchanges else ""
        told += f", indices of 32 bits up to {limit}"
        assert not report.failures, f"{told}:\n{report.failures[0]}"
