"""Random programs for devices: several kernels with host code between them, to test launch lowering and generators.

:func:`random_device_program` makes one; what :mod:`gristmill.testing.programs` has for comparing and shrinking works on
them, and :func:`count_device_constructs` says what occurred.
"""

from gristmill.testing.device_programs.constructs import count_device_constructs, required_device_constructs
from gristmill.testing.device_programs.generator import (
    DEVICE_CONSTRUCTS,
    ON_EVERY_DEVICE,
    random_device_program,
)
from gristmill.testing.device_programs.program import RandomDeviceProgram, with_serial_reductions

__all__ = [
    "DEVICE_CONSTRUCTS",
    "ON_EVERY_DEVICE",
    "RandomDeviceProgram",
    "count_device_constructs",
    "random_device_program",
    "required_device_constructs",
    "with_serial_reductions",
]
