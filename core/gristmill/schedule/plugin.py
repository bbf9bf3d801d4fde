"""The plugin with Gristmill's own recipes: passes of the phase ``schedule``, found by entry point like anybody's."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import Pass, PassContext, PassEntry

GRISTMILL_API_VERSION = 1


def _bind_loops(context: PassContext) -> Pass:
    from gristmill.schedule.bind_loops import BindLoops

    return BindLoops(**BindLoops.values_for(context))


@hookimpl
def gristmill_passes() -> Sequence[PassEntry]:
    """The fallback recipe; it does nothing in builds for targets that are no devices."""
    return [
        PassEntry(
            name="bind_loops",
            phase="schedule",
            make=_bind_loops,
            summary="What a device must run and no schedule has bound is bound to blocks and threads.",
            required=True,
        )
    ]
