"""The target kind ``reference`` and its code generator: kernels as IR, for the reference device to execute.

The blob is of kind ``gmir``: the device module as text, with the places of the user's source (files by their names
alone, so that the same input gives the same bytes wherever it lies), and a record of each kernel.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Blob, Capabilities, Scalar
from gristmill.plugin.device_limits import LAUNCH_LIMITS, check_limits, filled_in, with_limits_of
from gristmill.plugin.hookspecs import hookimpl
from gristmill.plugin.protocols import FROM_DEVICE, GenerateOptions, TargetKind
from gristmill.plugin.target_data import device_limits, target_table

if TYPE_CHECKING:
    from gristmill.ir.module import Module

NAME = "reference"
BLOB_KIND = "gmir"
SHUFFLES = "warp_shuffles"
"""The feature without which nothing is exchanged between threads but through memory, as on the least of devices."""
_SPAN = re.compile(r'^(  #\d+ = )("(?:[^"\\]|\\.)*")', re.MULTILINE)


def resolve(target: Target) -> Target:
    """The target itself: there is one reference device, which may be taken as one that has shuffles.

    Raises ValueError for anything else after its name, and for limits that are below 1 or above the device's.
    """
    if target.arch:
        raise ValueError(f"the reference device has no architectures; write `{NAME}`")
    unknown = [feature for feature in target.features if feature != SHUFFLES]
    if unknown:
        raise ValueError(f"the reference device has no feature `{unknown[0]}`; its only one is `{NAME}+{SHUFFLES}`")
    check_limits(target, device_limits(NAME))
    return target


def from_device(target: Target, properties: Mapping[str, Scalar]) -> Target:
    """The target with the limits of a reference device where it states none."""
    return filled_in(target, properties, [key.name for key in LAUNCH_LIMITS])


def capabilities(target: Target) -> Capabilities:
    """All of the language, and the limits of the data file, or what the target states below them."""
    from gristmill.ir.dtype import SCALARS
    from gristmill.ir.op import OPS

    limits = with_limits_of(target, device_limits(NAME))
    return replace(
        limits,
        dtypes=frozenset(SCALARS),
        native_operations=frozenset(OPS),
        warp_shuffles=SHUFFLES in target.features,
    )


def _device_type() -> int:
    found: int = target_table(NAME)["device_type"]
    return found


class ReferenceGenerator:
    """Writes the module down as it is."""

    name: ClassVar[str] = NAME

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Sequence[Blob]:
        """One blob with all kernels, and the functions that they call. Raises Unsupported (GM0668)."""
        from gristmill.codegen.exchanges import check_exchanges
        from gristmill.codegen.kernel_records import kernel_record, kernels_of
        from gristmill.ir.printer import print_module

        check_exchanges(module, str(target), capabilities(target), having=f"{NAME}+{SHUFFLES}")
        records = tuple(kernel_record(function, module) for function in kernels_of(module))
        text = _SPAN.sub(_without_folders, print_module(module, spans=True))
        return [
            Blob(
                kind=BLOB_KIND,
                target=str(target),
                data=text.encode(),
                entry_points=tuple(record.entry for record in records),
                kernels=records,
            )
        ]


def _without_folders(found: re.Match[str]) -> str:
    name = os.path.basename(json.loads(found[2]))
    return f"{found[1]}{json.dumps(name)}"


# The plugin -----------------------------------------------------------------------------------------------------------

GRISTMILL_API_VERSION = 1


@hookimpl
def gristmill_targets() -> Sequence[TargetKind]:
    """The target kind ``reference``."""
    return [
        TargetKind(
            name=NAME,
            summary="the reference device: kernels on the executor, slow, with every access checked",
            generator=NAME,
            blob_kinds=(BLOB_KIND,),
            resolve=resolve,
            capabilities=capabilities,
            features=((SHUFFLES, "Exchanges between threads without memory, as `T.warp_shuffle_down(x, 16)`."),),
            keys=(*LAUNCH_LIMITS, FROM_DEVICE),
            device_type=_device_type(),
            from_device=from_device,
        )
    ]


@hookimpl
def gristmill_code_generators() -> Sequence[type[Any]]:
    """The generator ``reference``."""
    return [ReferenceGenerator]
