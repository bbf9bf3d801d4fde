"""A back end for differential runs: a module built for the reference device, packed, loaded and launched as users do."""

from __future__ import annotations

from gristmill.ir.dtype import INT32
from gristmill.passes.index_widths import AUTO
from gristmill.plugin.registry import Registry
from gristmill.testing.on_device import DeviceBackend, has_host_part

__all__ = ["ReferenceBackend", "has_host_part"]


class ReferenceBackend(DeviceBackend):
    """Builds modules for the reference device and calls their functions on it: see :class:`DeviceBackend`.

    ``target`` is the reference device as it is built for: with exchanges between threads if it is
    ``reference+warp_shuffles``.
    """

    def __init__(
        self,
        *,
        optimization: int = 3,
        interpreted: bool = False,
        registry: Registry | None = None,
        verify: bool = True,
        target: str = "reference",
        indices: str = AUTO,
        index_limit: int = INT32.maximum,
    ) -> None:
        super().__init__(
            target,
            "reference:0",
            optimization=optimization,
            interpreted=interpreted,
            registry=registry,
            verify=verify,
            indices=indices,
            index_limit=index_limit,
        )
