"""Random programs for testing back ends against the reference executor.

:func:`random_program` makes one, :func:`differential` runs many of them on a back end and on the executor,
:func:`shrink` makes a failing one small, :func:`count_constructs` says what occurred.
"""

from gristmill.testing.programs.comparison import Outcome, compare
from gristmill.testing.programs.constructs import count_constructs, required_constructs
from gristmill.testing.programs.differential import Backend, DifferentialReport, Failure, differences, differential
from gristmill.testing.programs.generator import CONSTRUCTS, CPU_DTYPES, random_program
from gristmill.testing.programs.program import RandomProgram
from gristmill.testing.programs.shrinking import shrink

__all__ = [
    "CONSTRUCTS",
    "CPU_DTYPES",
    "Backend",
    "DifferentialReport",
    "Failure",
    "Outcome",
    "RandomProgram",
    "compare",
    "count_constructs",
    "differences",
    "differential",
    "random_program",
    "required_constructs",
    "shrink",
]
