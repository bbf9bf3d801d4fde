"""What the generator knows of its target: versions, features, limits, the form of arguments, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gristmill.ir.dtype import DType

if TYPE_CHECKING:
    from gristmill_spirv.matrices import Shape


@dataclass(frozen=True, slots=True)
class Profile:
    """A resolved Vulkan target."""

    target: str
    spirv: tuple[int, int] = (1, 3)
    """The version of SPIR-V to write."""
    vulkan: tuple[int, int] = (1, 1)
    features: frozenset[str] = frozenset()
    """What the device must have beyond its version, by the names of the target's keys."""
    push_constants_size: int = 128
    shared_memory: int = 16384
    asserts: bool = False
    """Whether asserts in kernels report to the host."""
    max_threads_per_block: int = 256
    max_block_size: tuple[int, int, int] = (256, 256, 64)
    max_grid_size: tuple[int, int, int] = (65535, 65535, 65535)
    max_storage_buffers: int = 30
    """How many arrays a kernel can have bound."""
    subgroup_size: int = 0
    """How many threads every subgroup has; 0: not known."""
    matrices: tuple[Shape, ...] = ()
    """The tiles of matrices that the device multiplies."""
    dtypes: frozenset[DType] = field(default_factory=frozenset)

    @property
    def uses_addresses(self) -> bool:
        """Whether kernels get addresses of memory rather than bindings."""
        return "address" in self.features
