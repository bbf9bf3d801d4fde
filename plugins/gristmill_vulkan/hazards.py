"""Which work must wait for which: an allocation is known by when it was last read and written, counted in barriers.

Between two barriers nothing may read what is written there, or write what is read or written. The counting is coarse on
purpose: an allocation is one thing, however little of it a kernel touches.
"""

from __future__ import annotations

from collections.abc import Iterable

from gristmill_vulkan.memory import Allocation


def needs_barrier(uses: Iterable[tuple[Allocation, bool]], epoch: int) -> bool:
    """Whether work that uses these allocations (each with whether it writes) must wait for work since the last barrier."""
    return any(
        allocation.write_epoch == epoch or (writes and allocation.read_epoch == epoch) for allocation, writes in uses
    )


def note(uses: Iterable[tuple[Allocation, bool]], epoch: int, submission: int) -> None:
    """Remember that work of this epoch and submission uses these allocations."""
    for allocation, writes in uses:
        if writes:
            allocation.write_epoch = epoch
        else:
            allocation.read_epoch = epoch
        allocation.last_use = submission
