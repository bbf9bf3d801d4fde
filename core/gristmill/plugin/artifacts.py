"""What code generators, packs and runtimes exchange: capabilities of a target, blobs of code, records of kernels.

All of it is plain data. A generator and a runtime know nothing of each other: they meet at the kind of a blob
("elf-shared", "hsaco", "spirv") and the kernel records in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gristmill.ir.dtype import BOOL, FLOAT32, FLOAT64, SIGNED, UNSIGNED, DType

KERNEL_RECORD_VERSION = 1
"""Version of the meaning of a kernel record; a reader refuses a greater one."""

HOST_ABI_VERSION = 1
"""Version of the packed host interface and of the context table that host functions get."""

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target can do, as passes and generators ask. Made by the target kind from its data file, never guessed.

    ``native_operations`` names operations of :data:`gristmill.ir.op.OPS` that the generator emits itself (all others
    are lowered to mathlib functions). Sizes are in bytes, limits inclusive; 0 means no limit known or not applicable.
    """

    dtypes: frozenset[DType] = frozenset((BOOL, *SIGNED, *UNSIGNED, FLOAT32, FLOAT64))
    native_operations: frozenset[str] = frozenset()
    vector_bytes: int = 16
    """Width of the widest vector register that code should use."""
    slow_int64: bool = False
    """Whether arithmetic of int64 takes several times as long as that of int32, so that kernels are made for both."""
    is_device: bool = False
    """Whether kernels are launched over threads and blocks (rather than run by the calling CPU thread)."""
    recursion: bool = True
    max_threads_per_block: int = 0
    max_block_size: tuple[int, int, int] = (0, 0, 0)
    max_grid_size: tuple[int, int, int] = (0, 0, 0)
    max_shared_memory: int = 0
    shared_types_apart: bool = False
    """Whether one piece of shared memory can be seen as one type of element only."""
    warp_size: int = 0
    """Threads that run side by side, where the target fixes it."""
    warp_shuffles: bool = False
    """Whether it has the exchanges between threads of :data:`gristmill.ir.op.WARP`, in groups of up to ``warp_size``."""


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One argument of a kernel: a buffer (address) or a scalar."""

    name: str
    kind: str
    """``buffer`` or ``scalar``."""
    dtype: str
    written: bool = False
    """Whether the kernel may write through it (buffers)."""


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """What a runtime must know to start one function of a blob.

    For host code (``elf-shared``) ``entry`` is the exported symbol and there are no axes; for device code the axes are
    the launch parameters in order, ``block`` is the work-group size where it is constant (0: not), and
    ``shared_bytes`` the static shared memory.
    """

    name: str
    entry: str
    arguments: tuple[KernelArgument, ...] = ()
    axes: tuple[str, ...] = ()
    block: tuple[int, int, int] = (0, 0, 0)
    shared_bytes: int = 0
    dynamic_shared: bool = False
    extra: Mapping[str, Scalar] = field(default_factory=dict)
    """What only the runtime of this blob kind understands (release_gil, the path of arguments, ...)."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Machine code of one module for one target.

    ``host`` is the triple the code runs on where it is host code. ``requirements`` is checked by the runtime before
    loading (``{"cpu_features": "avx2,fma"}``). ``texts`` are for people: (kind, text), as ("llvm-ir", "..."),
    ("assembly", "...").
    """

    kind: str
    target: str
    data: bytes
    entry_points: tuple[str, ...]
    kernels: tuple[KernelRecord, ...] = ()
    host: str = ""
    requirements: Mapping[str, Scalar] = field(default_factory=dict)
    texts: tuple[tuple[str, str], ...] = ()
