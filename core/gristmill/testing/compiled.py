"""A back end for differential runs: a module through the pipeline, the generator and the runtime of a target."""

from __future__ import annotations

from typing import Any

import numpy as np

from gristmill.errors import MissingError
from gristmill.ir.module import Module
from gristmill.ir.target import parse_target
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.protocols import Device, GenerateOptions, PassContext, Runtime
from gristmill.plugin.registry import Registry


class CompiledBackend:
    """Compiles modules for a target and calls their functions on the first device that runs the code.

    An object of this class is a :data:`~gristmill.testing.programs.differential.Backend`. ``optimization`` 0 leaves
    out the optional passes. The module is verified between passes unless ``verify`` is off.
    """

    def __init__(
        self, target: str, *, optimization: int = 3, registry: Registry | None = None, verify: bool = True
    ) -> None:
        self.registry = registry or Registry.installed()
        named = parse_target(target)
        self.kind = self.registry.target_kind(named.kind)
        self.target = self.kind.resolve(named)
        self.generator = self.registry.code_generator(self.kind.generator)
        options: dict[str, str | int | float | bool] = {"optimization": optimization}
        context = PassContext(self.target, self.kind.capabilities(self.target), options)
        self.pipeline = build_pipeline(context, self.registry.pass_entries())
        self.run_options = RunOptions(verify=verify)
        self.generate_options = GenerateOptions("program", optimization)
        self._latest: tuple[Module, dict[str, tuple[Device, Any]]] | None = None

    def __call__(self, module: Module, function: str, args: list[Any]) -> int | float | bool | None:
        """Call a public function; arrays are written in place. Raises what the compiled function raises."""
        device, code = self.compiled(module)[function]
        given = [device.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        result = code(*given)
        device.synchronize()
        for arg, array in zip(args, given, strict=True):
            if isinstance(arg, np.ndarray):
                arg[...] = array.numpy()
        return result  # type: ignore[no-any-return]

    def compiled(self, module: Module) -> dict[str, tuple[Device, Any]]:
        """The module's public functions by name, each with the device it is loaded on; the latest module is kept."""
        if self._latest is not None and self._latest[0] is module:
            return self._latest[1]
        found: dict[str, tuple[Device, Any]] = {}
        lowered = self.pipeline.run(module, self.run_options)
        for blob in self.generator.generate(lowered, self.target, self.generate_options):
            runtime = self._runtime(blob.kind, blob.target, blob.host, dict(blob.requirements))
            device = runtime.open(runtime.probe().devices[0].index)
            code = device.load(memoryview(blob.data), blob.entry_points, blob.kernels)
            found |= {record.name: (device, code.function(record.entry)) for record in blob.kernels}
        self._latest = (module, found)
        return found

    def _runtime(self, kind: str, target: str, host: str, requirements: dict[str, Any]) -> Runtime:
        reasons = []
        for runtime in self.registry.runtimes():
            if kind in runtime.blob_kinds:
                reason = runtime.refusal(kind, target, host, requirements)
                if not reason:
                    return runtime
                reasons.append(reason)
        raise MissingError("GM0901", f"nothing here runs {target}: {'; '.join(reasons) or f'no runtime takes {kind}'}")
