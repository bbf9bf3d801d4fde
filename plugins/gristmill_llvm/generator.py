"""The code generator ``llvm``: a lowered module in, a shared object with its records out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from gristmill.codegen.context_table import KERNELS
from gristmill.codegen.dispatch_table import DISPATCH_SYMBOL
from gristmill.codegen.extern_table import EXTERN_TABLE
from gristmill.codegen.host_imports import HOST_IMPORTS
from gristmill.codegen.packed_interface import EXPORT_PREFIX
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.target import Target
from gristmill.plugin.artifacts import Blob, KernelRecord, Scalar
from gristmill.plugin.protocols import GenerateOptions
from gristmill_llvm.cost import releases_gil
from gristmill_llvm.cpu import all_features, architecture_of, profile_of


class LLVMGenerator:
    """Compiles modules for CPUs with LLVM.

    The blob is a shared object of kind ``elf-shared`` that imports nothing but functions of TVM FFI and needs no other
    library. Its requirements are ``cpu_features``, the features of the processor that the code uses (LLVM's names,
    separated by commas), and, if the module calls C functions, ``externs``: a JSON list of [symbol, library] pairs that
    whoever loads the object must fill in (see :mod:`gristmill.codegen.extern_table`). Each record says in ``extra`` whether to
    release the interpreter lock during a call (``release_gil``), and the function's ``signature``.
    """

    name: ClassVar[str] = "llvm"

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Sequence[Blob]:
        """One blob with all functions of the module."""
        from gristmill.objfile import link_shared
        from gristmill_llvm.launches import launched_kernels
        from gristmill_llvm.machine import compile_text, message_object
        from gristmill_llvm.modules import module_text

        profile = profile_of(target)
        written = module_text(module, profile, options.name)
        compiled = compile_text(written.text, profile, options.optimization, "assembly" in options.texts)
        objects = {f"{options.name}.o": compiled.object_file}
        if written.raises:
            objects["messages.o"] = message_object(profile.triple)
        kernels = launched_kernels(module)
        exports = [
            function.facts.symbol
            for function in module.public
            if function.facts.symbol and not function.facts.declaration
        ]
        if module.externs:
            exports.append(EXTERN_TABLE)
        if kernels:
            exports.append(DISPATCH_SYMBOL)
        data = link_shared(list(objects.values()), exports=exports, allowed_imports=HOST_IMPORTS, names=list(objects))
        requirements: dict[str, Scalar] = {"cpu_features": ",".join(sorted(all_features(target)))}
        if module.externs:
            pairs = sorted((extern.symbol, extern.library) for extern in module.externs)
            requirements["externs"] = json.dumps(pairs)
        if kernels:
            requirements[KERNELS] = ",".join(kernels)
        packed = [function for function in module.public if _is_packed(function)]
        return [
            Blob(
                kind="elf-shared",
                target=str(target),
                data=data,
                entry_points=tuple(function.facts.symbol or "" for function in packed),
                kernels=tuple(_record(function, module) for function in packed),
                host=architecture_of(target).host,
                requirements=requirements,
                texts=tuple(
                    (kind, found)
                    for kind, found in (("llvm-ir", written.text), ("assembly", compiled.assembly))
                    if kind in options.texts
                ),
            )
        ]


def _is_packed(function: Function) -> bool:
    return function.facts.convention is CallingConvention.PACKED_HOST


def _record(function: Function, module: Module) -> KernelRecord:
    symbol = function.facts.symbol or ""
    extra: dict[str, Scalar] = {"release_gil": releases_gil(function, module)}
    if function.facts.signature:
        extra["signature"] = function.facts.signature
    return KernelRecord(name=symbol.removeprefix(EXPORT_PREFIX), entry=symbol, extra=extra)
