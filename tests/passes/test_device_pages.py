"""The pages of the device passes' errors: the wrong example has that mistake, the right one none."""

import re
from pathlib import Path

import pytest

import gristmill
from gristmill.errors import UserError
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lay_out_dynamic_memory import LayOutDynamicMemory
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.testing.pass_equivalence import kernels

PAGES = Path(gristmill.__file__).parent / "explain"
PASSES = Pipeline.of(
    [
        LowerThreadReductions(),
        LowerBlocks(),
        HoistSharedMemory(),
        ReuseSharedMemory(types_apart=True),
        InsertBarriers(),
        LayOutDynamicMemory(types_apart=True),
    ]
)


@pytest.mark.parametrize("code", ["GM0607", "GM0608", "GM0609", "GM0610", "GM0611"])
def test_examples(code):
    wrong, right = re.findall(r"```python\n(.*?)```", (PAGES / f"{code}.md").read_text(encoding="utf-8"), re.DOTALL)
    with pytest.raises(UserError) as caught:
        PASSES.run(kernels(wrong), RunOptions(verify=True))
    assert [found.code for found in caught.value.diagnostics] == [code]
    PASSES.run(kernels(right), RunOptions(verify=True))
