"""Seeded random programs (1,000, unless --programs says otherwise) give on the CPU what the executor gives, with optional
passes on and off.

A failure prints the seed and the smallest program found that still fails.
"""

from __future__ import annotations

from gristmill.testing.compiled import CompiledBackend
from gristmill.testing.programs import count_constructs, differential, random_program, required_constructs

PROGRAMS = 1000
TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3")
# The verifier runs between all passes for one program in so many; it takes longer than all else together.
VERIFIED = 5


def test_programs_give_what_the_executor_gives(seeds: range) -> None:
    target = TARGETS[seeds.start // len(seeds) % len(TARGETS)]
    backends = {
        (optimization, verify): CompiledBackend(target, optimization=optimization, verify=verify)
        for optimization in (0, 3)
        for verify in (False, True)
    }
    for seed in seeds:
        for optimization in (0, 3):
            report = differential([seed], backends[optimization, seed % VERIFIED == 0])
            assert not report.failures, f"{target}, optimization {optimization}:\n{report.failures[0]}"


def test_every_construct_of_the_language_occurs() -> None:
    found = count_constructs(random_program(seed).module for seed in range(PROGRAMS))
    for name, count in sorted(found.items()):
        print(f"{count:8} {name}")
    assert [name for name in required_constructs() if not found[name]] == []
