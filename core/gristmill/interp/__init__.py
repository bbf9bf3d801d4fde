"""The reference executor: the executable definition of the language, and the oracle of every test.

It runs any verified module, before any pass and after each of them, host and device code alike, and reports what the
language does not allow (out-of-bounds accesses, reads of what was never written, races, barriers that only some
threads reach) at the user's line. It imports nothing of passes, mathematics or code generators, so it shares none of
their faults.

Each function is compiled to Python text (:mod:`gristmill.interp.program`), which runs about ten times faster than a
walk over the tree.
"""

from gristmill.interp.executor import Executor, execute, execute_packed
from gristmill.interp.options import ExecutionOptions, ExecutionResult
from gristmill.interp.reports import AssertionFailed, ExecutionError

__all__ = [
    "AssertionFailed",
    "ExecutionError",
    "ExecutionOptions",
    "ExecutionResult",
    "Executor",
    "execute",
    "execute_packed",
]
