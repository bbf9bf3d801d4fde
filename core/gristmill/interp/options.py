"""How to execute: limits, order, and what stands for functions outside of the module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """The executor's options."""

    step_limit: int = 1_000_000_000
    """Iterations of loops, calls and threads together, after which the program counts as endless."""
    recursion_limit: int = 500
    """Calls within calls."""
    memory_limit: int = 1 << 31
    """Bytes that one allocation of the program may take."""
    shuffle_seed: int | None = None
    """Run iterations of parallel loops, blocks of a grid and threads of a block in a random order with this seed."""
    warp_size: int = 32
    """Threads of a warp, for barriers of that scope."""
    externs: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """What runs for a call of a C symbol. Pointers arrive as one-dimensional NumPy arrays from their place on."""
    packed: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """What runs for a packed call by name. Tensors arrive as NumPy arrays."""
    launcher: Callable[[str, Sequence[Any], Sequence[int], int], None] | None = None
    """What launches a kernel that the module only declares: name, arguments (numbers and
    :class:`~gristmill.interp.memory.Pointer`), extents in the order of the launch, bytes of dynamic shared memory. It is
    not called for launches without threads."""
    device_id: int = 0
    """The number of the device that kernels are launched on, which arrays of it have too."""


DEFAULT_OPTIONS = ExecutionOptions()


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What an execution gave: the function's result (None for void), and the steps that it took."""

    value: int | float | bool | None
    steps: int
