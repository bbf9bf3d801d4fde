"""A back end for differential runs: a module built for the reference device, packed, loaded and launched as users do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gristmill.build.assemble import assemble
from gristmill.build.compile import Compiled, Job
from gristmill.build.generation import Generated, Settings, generate
from gristmill.codegen.context_table import DEVICE_KIND
from gristmill.ir.module import Module
from gristmill.ir.target import parse_target
from gristmill.passes.manager import RunOptions
from gristmill.plugin.registry import Registry
from gristmill.runtime import LoadedPack, Runtimes, load

HOST = "x86-64-v2"


class ReferenceBackend:
    """Builds modules for the reference device and calls their functions on it.

    An object of this class is a :data:`~gristmill.testing.programs.differential.Backend`. ``optimization`` 0 leaves
    out the optional passes. Host functions run compiled, or (``interpreted``) on the executor, as they do where no host
    part fits. The module is verified between passes unless ``verify`` is off. ``target`` is the reference device as it is
    built for: with exchanges between threads if it is ``reference+warp_shuffles``.
    """

    def __init__(
        self,
        *,
        optimization: int = 3,
        interpreted: bool = False,
        registry: Registry | None = None,
        verify: bool = True,
        target: str = "reference",
    ) -> None:
        self.target = parse_target(target)
        self.registry = registry or Registry.installed()
        self.settings = Settings(
            "program",
            optimization,
            hosts=() if interpreted else (HOST,),
            run_options=RunOptions(verify=verify),
        )
        self.runtimes = Runtimes(self.registry)
        self.device = self.runtimes.device("reference:0")
        self._latest: tuple[Module, LoadedPack] | None = None

    def __call__(self, module: Module, function: str, args: list[Any]) -> int | float | bool | None:
        """Call a public function; arrays are written in place. Raises what the build, the function or a launch raises."""
        if self._latest is None or self._latest[0] is not module:
            self._latest = module, self.loaded(self.generated(module), module)
        pack = self._latest[1]
        given = [self.device.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        result = pack[function](*given)
        self.device.synchronize()
        for arg, array in zip(args, given, strict=True):
            if isinstance(arg, np.ndarray):
                arg[...] = array.numpy()
        return result  # type: ignore[no-any-return]

    def generated(self, module: Module) -> Generated:
        """The code of a module, and the notes of what of it there is not."""
        return generate(module, self.target, self.registry, self.settings)

    def loaded(self, code: Generated, module: Module) -> LoadedPack:
        """The code in a pack, loaded on the device."""
        job = Job("program", "ref", self.target, "reference", Path("program.py"), Path("."), "gristmill")
        data = assemble("testing", "program", [Compiled(job, module, code.blobs, 0.0, code.notes)])
        return load(data, device=self.device, runtimes=self.runtimes)


def has_host_part(code: Generated) -> bool:
    """Whether host functions are compiled, not interpreted."""
    return any(DEVICE_KIND in blob.requirements for blob in code.blobs)
