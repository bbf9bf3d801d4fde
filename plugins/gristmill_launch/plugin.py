"""The plugin: the passes that part host code from device code and give host functions their public interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import Pass, PassContext, PassEntry

if TYPE_CHECKING:
    from gristmill.ir.target import Target

GRISTMILL_API_VERSION = 1


def _device(context: PassContext) -> Target | None:
    """The device that a build is for; None where the target is a host, which launches nothing."""
    return context.target if context.capabilities.is_device else None


def _bind_targets(context: PassContext) -> Pass:
    from gristmill_launch.bind_targets import BindTargets

    return BindTargets(_device(context))


def _annotate_device_regions(context: PassContext) -> Pass:
    from gristmill_launch.annotate_device_regions import AnnotateDeviceRegions

    return AnnotateDeviceRegions(_device(context))


def _split_host_device(context: PassContext) -> Pass:
    from gristmill_launch.split_host_device import SplitHostDevice

    return SplitHostDevice()


def _lower_launches(context: PassContext) -> Pass:
    from gristmill_launch.lower_launches import LowerLaunches

    return LowerLaunches(_device(context))


def _check_launch_limits(context: PassContext) -> Pass:
    from gristmill_launch.check_launch_limits import CheckLaunchLimits

    return CheckLaunchLimits.of(_device(context), context.capabilities)


def _lower_packed_interface(context: PassContext) -> Pass:
    from gristmill_launch.lower_packed_interface import LowerPackedInterface

    device_type = context.options.get("device_type")
    return LowerPackedInterface() if device_type is None else LowerPackedInterface(int(device_type))


@hookimpl
def gristmill_passes() -> Sequence[PassEntry]:
    """Launch lowering, which does nothing in builds for hosts, and the packed interface; all of it in every build."""
    return [
        PassEntry(
            name="bind_targets",
            phase="split",
            make=_bind_targets,
            summary="Every function is bound to host or device; one for both becomes two.",
            required=True,
        ),
        PassEntry(
            name="annotate_device_regions",
            phase="split",
            make=_annotate_device_regions,
            summary="What begins a launch in host functions is put into device regions.",
            required=True,
            after=("bind_targets",),
        ),
        PassEntry(
            name="split_host_device",
            phase="split",
            make=_split_host_device,
            summary="Device regions become kernels, launched where the regions stood.",
            required=True,
            after=("annotate_device_regions",),
        ),
        PassEntry(
            name="lower_launches",
            phase="split",
            make=_lower_launches,
            summary="Calls from host to device become launches; host code leaves the device's memory alone.",
            required=True,
            after=("split_host_device",),
        ),
        PassEntry(
            name="check_launch_limits",
            phase="split",
            make=_check_launch_limits,
            summary="Launches whose constant extents or shared memory are over the target's limits are refused.",
            required=True,
            after=("lower_launches",),
        ),
        PassEntry(
            name="lower_packed_interface",
            phase="host",
            make=_lower_packed_interface,
            summary="Public functions get the packed interface, which checks its arguments and calls the plain function.",
            required=True,
        ),
    ]
