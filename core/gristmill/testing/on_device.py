"""A back end for differential runs: a module built for a device, packed, loaded and launched as users do."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.build.assemble import assemble
from gristmill.build.compile import Compiled, Job
from gristmill.build.generation import Generated, Settings, generate
from gristmill.codegen.context_table import DEVICE_KIND
from gristmill.ir.dtype import INT32
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.target import Target, parse_target
from gristmill.passes.index_widths import AUTO
from gristmill.passes.manager import RunOptions
from gristmill.plugin.registry import Registry
from gristmill.runtime import LoadedPack, Runtimes, load

if TYPE_CHECKING:
    from gristmill.plugin.protocols import Device

_HOSTS = {"x86_64": "x86-64-v2", "AMD64": "x86-64-v2"}
"""What host functions are compiled for, by the machine's name."""


class DeviceBackend:
    """Builds modules for a target and calls their functions on a device.

    An object of this class is a :data:`~gristmill.testing.programs.differential.Backend`. ``target`` is a target's text
    (``"vulkan:1.2+address"``) or a Target, ``device`` the name of a device, or one that is open. ``optimization`` 0 leaves
    out the optional passes. Host functions run compiled, or (``interpreted``) on the executor, as they do where no host
    part fits. The module is verified between passes unless ``verify`` is off. ``indices`` is what kernels compute indices in
    (as in ``kernels.toml``); where there are two kernels, those above ``index_limit`` have the wide one launched.

    Raises UserError for a target that is none, MissingError for a device that is not here.
    """

    def __init__(
        self,
        target: str | Target,
        device: str | Device,
        *,
        optimization: int = 3,
        interpreted: bool = False,
        registry: Registry | None = None,
        verify: bool = True,
        indices: str = AUTO,
        index_limit: int = INT32.maximum,
    ) -> None:
        self.registry = registry or Registry.installed()
        named = parse_target(target) if isinstance(target, str) else target
        self.target = self.registry.target_kind(named.kind).resolve(named)
        host = _HOSTS.get(platform.machine(), platform.machine())
        self.settings = Settings(
            "program",
            optimization,
            indices=indices,
            index_limit=index_limit,
            hosts=() if interpreted else (host,),
            run_options=RunOptions(verify=verify),
        )
        self.runtimes = Runtimes(self.registry)
        # Devices have more than arrays and waiting: what kernels are launched on has all of KernelDevice.
        self.device: Any = self.runtimes.device(device) if isinstance(device, str) else device
        self._latest: tuple[Module, LoadedPack] | None = None

    def __call__(self, module: Module, function: str, args: list[Any]) -> int | float | bool | None:
        """Call a public function; arrays are written in place. Raises what the build, the function or a launch raises."""
        pack = self.pack(module)
        given = [self.device.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        result = pack[function](*given)
        self.device.synchronize()
        for arg, array in zip(args, given, strict=True):
            if isinstance(arg, np.ndarray):
                arg[...] = array.numpy()
        return result  # type: ignore[no-any-return]

    def pack(self, module: Module) -> LoadedPack:
        """The module, built and loaded; the latest one is kept."""
        if self._latest is None or self._latest[0] is not module:
            self._latest = module, self.loaded(self.generated(module), module)
        return self._latest[1]

    def generated(self, module: Module) -> Generated:
        """The code of a module, and the notes of what of it there is not."""
        return generate(module, self.target, self.registry, self.settings)

    def loaded(self, code: Generated, module: Module) -> LoadedPack:
        """The code in a pack, loaded on the device."""
        job = Job("program", "device", self.target, self.target.kind, Path("program.py"), Path("."), "gristmill")
        data = assemble("testing", "program", [Compiled(job, module, code.blobs, 0.0, code.notes)])
        return load(data, device=self.device, runtimes=self.runtimes)


_DOUBLED = """gristmill ir 1

function @doubled(x: float32[1])
  symbol "doubled"
  signature "doubled(...)"
{
  for i: int64 in 0 +: 1 {
    x[i] = x[i] + x[i]
  }
}
"""


def flushes_denormals(backend: DeviceBackend) -> bool:
    """Whether the device takes float32 numbers below the normal ones for zeros."""
    x = np.full(1, 1e-40, np.float32)
    backend(parse_module(_DOUBLED), "doubled", [x])
    return bool(x[0] == 0)


def has_host_part(code: Generated) -> bool:
    """Whether host functions are compiled, not interpreted."""
    return any(DEVICE_KIND in blob.requirements for blob in code.blobs)
