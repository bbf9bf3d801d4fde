"""Random programs give the same results after every pass that changes them, and stay well formed."""

import pytest

from gristmill.interp import ExecutionError
from gristmill.ir.op import OPS
from gristmill.ir.target import Target
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.pass_equivalence import outcome_of, same_outcome, sizes_of
from gristmill.testing.programs import random_program

# Mathematics stays as it is here, so that every result must be the same bit for bit.
CONTEXT = PassContext(Target("cpu"), Capabilities(native_operations=frozenset(OPS)))
PROGRAMS_A_CASE = 20


@pytest.mark.parametrize("case", range(6))
def test_results_stay_after_every_step(case):
    run = 0
    for seed in range(case * PROGRAMS_A_CASE, (case + 1) * PROGRAMS_A_CASE):
        print(f"seed {seed}")
        program = random_program(seed)
        args = program.make_arguments(seed)
        sizes = sizes_of(program.entry, args)
        try:
            expected = outcome_of(program.module, program.function, args, sizes)
        except ExecutionError as error:
            print(f"not run: {error}")
            continue
        run += 1

        def observe(step, module, changed, program=program, args=args, sizes=sizes, expected=expected):
            if changed:
                found = outcome_of(module, program.function, args, sizes)
                assert same_outcome(found, expected), f"after {step.name}\n{program.text()}"

        build_pipeline(CONTEXT).run(program.module, RunOptions(verify=True, observe=observe))
    assert run > PROGRAMS_A_CASE // 2
