"""The code generator ``spirv``: a lowered module in, SPIR-V modules with their records out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Blob, KernelRecord, Scalar
from gristmill.plugin.protocols import GenerateOptions

HEADER = b"gmspirv1"
"""What a blob begins with, so that one without kernels is some bytes too."""


class SPIRVGenerator:
    """Writes one SPIR-V module for each kernel; the blob holds them one after the other.

    The blob's requirements are ``spirv`` and ``vulkan``, the versions, and ``features``, what devices must have beyond
    them (sorted, separated by commas); where kernels need them also ``matrices``, the products of tiles, and ``subgroup``,
    the number of threads of a subgroup. :mod:`gristmill_spirv.kernels` says what each record's ``extra`` holds.
    """

    name: ClassVar[str] = "spirv"

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Sequence[Blob]:
        """One blob with all kernels."""
        from gristmill.codegen.exchanges import check_exchanges
        from gristmill.codegen.kernel_records import kernel_record, kernels_of
        from gristmill.passes.deep import run_deep
        from gristmill_spirv.builder import short_name
        from gristmill_spirv.disassembly import text_of_blob
        from gristmill_spirv.kernels import write_kernel
        from gristmill_spirv.limits import check_limits
        from gristmill_spirv.matrices import Shape
        from gristmill_spirv.refusals import over_limit
        from gristmill_spirv.target import MATRICES, TEXT_KIND, capabilities, profile_of

        profile = profile_of(target)
        if profile.subgroup_size:
            check_exchanges(module, str(target), capabilities(target))
        data = HEADER
        records: list[KernelRecord] = []
        features: set[str] = set()
        matrices: set[Shape] = set()
        subgroup = 0
        for function in kernels_of(module):
            record = kernel_record(function, module)
            # Each kernel has a module of its own, so entry points may have equal names.
            record = replace(record, entry=short_name(record.entry))
            check_limits(function, record, profile)
            written = run_deep(partial(write_kernel, module, function, profile, record.block), function)
            if written.shared_bytes > profile.shared_memory:
                what = f"the shared memory of the kernel `{function.name}`"
                raise over_limit(
                    what,
                    written.shared_bytes,
                    profile.shared_memory,
                    "max_shared_memory",
                    profile.target,
                    function.span,
                )
            extra: dict[str, Scalar] = {
                "code_start": len(data),
                "code_bytes": len(written.data),
                "arguments": written.arguments,
                "layout": ",".join(f"{slot.offset}:{slot.form}" for slot in written.slots),
                "block_bytes": written.block_bytes,
            }
            if written.dynamic_element:
                extra["dynamic_element"] = written.dynamic_element
            if written.subgroup_size:
                # The target says how many threads subgroups have: kernels that ask for some ask for the same.
                extra["subgroup"] = subgroup = written.subgroup_size
            if written.asserts:
                extra["asserts"] = written.asserts
            features |= written.features
            matrices |= written.matrices
            data += written.data
            records.append(replace(record, shared_bytes=written.shared_bytes, extra={**record.extra, **extra}))
        if profile.uses_addresses:
            features.add("address")
        return [
            Blob(
                kind="spirv",
                target=str(target),
                data=data,
                entry_points=tuple(dict.fromkeys(record.entry for record in records)),
                kernels=tuple(records),
                requirements={
                    "spirv": _version(profile.spirv),
                    "vulkan": _version(profile.vulkan),
                    "features": ",".join(sorted(features)),
                    **({MATRICES: ",".join(map(str, sorted(matrices, key=str)))} if matrices else {}),
                    **({"subgroup": subgroup} if subgroup else {}),
                },
                texts=((TEXT_KIND, text_of_blob(data, records)),) if TEXT_KIND in options.texts else (),
            )
        ]


def _version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
