"""Random programs for devices whose barriers are taken out: the passes put in what is needed, and no more than there was."""

import copy

from gristmill.interp import ExecutionOptions, Executor
from gristmill.ir.functor import Mutator
from gristmill.ir.stmt import Seq
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.inline_memory_functions import InlineMemoryFunctions
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lay_out_dynamic_memory import LayOutDynamicMemory
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.testing.barriers import barrier_scopes
from gristmill.testing.device_programs import DEVICE_CONSTRUCTS, random_device_program
from gristmill.testing.programs import Outcome, compare

IN_PLACE = Pipeline.of([LowerThreadReductions(), LowerBlocks(), InlineMemoryFunctions()])
BEFORE = Pipeline.of([*(step.work for step in IN_PLACE.steps), HoistSharedMemory(), ReuseSharedMemory()])
PASSES = Pipeline.of([*(step.work for step in BEFORE.steps), InsertBarriers(), LayOutDynamicMemory()])


class WithoutBarriers(Mutator):
    def visit_Barrier(self, node):
        return Seq(())


def test_programs_without_their_barriers():
    before, after = 0, 0
    for seed in range(40):
        program = random_device_program(seed)
        module = PASSES.run(WithoutBarriers().visit(program.module), RunOptions(verify=True))
        before += len(barrier_scopes(IN_PLACE.run(program.module)))
        after += len(barrier_scopes(module))
        for number in (0, 1):
            args = program.make_arguments(number)
            own = copy.deepcopy(args)
            value = Executor(program.oracle).call(program.function, args).value
            found = Executor(module, ExecutionOptions(shuffle_seed=seed)).call(program.function, own).value
            assert compare(program.entry, Outcome(value, args), Outcome(found, own)) == [], f"seed {seed}"
    print(f"{before} barriers before, {after} after")
    assert 0 < after <= before * 3 // 2


def test_programs_that_have_their_barriers_need_no_more():
    for seed in range(60):
        # A barrier of a warp is not enough for shared memory where nobody says how large a warp is.
        constructs = DEVICE_CONSTRUCTS - {"reduction", "dynamic", "warp"}
        module = random_device_program(seed, constructs=constructs).module
        module = Pipeline.of([LowerBlocks(), InlineMemoryFunctions(), HoistSharedMemory()]).run(module)
        assert InsertBarriers().run(module) is module, f"seed {seed}"
