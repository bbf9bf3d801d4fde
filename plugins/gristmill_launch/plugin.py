"""The plugin: the passes that part host code from device code and give host functions their public interface."""

from __future__ import annotations

from collections.abc import Sequence

from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import Pass, PassContext, PassEntry

GRISTMILL_API_VERSION = 1


def _lower_packed_interface(context: PassContext) -> Pass:
    from gristmill_launch.lower_packed_interface import LowerPackedInterface

    return LowerPackedInterface()


@hookimpl
def gristmill_passes() -> Sequence[PassEntry]:
    """``lower_packed_interface``, in every build."""
    return [
        PassEntry(
            name="lower_packed_interface",
            phase="host",
            make=_lower_packed_interface,
            summary="Public functions get the packed interface, which checks its arguments and calls the plain function.",
            required=True,
        )
    ]
