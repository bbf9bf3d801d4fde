"""What a plugin gives: target kinds, code generators, passes, runtimes with their devices, executors.

Hooks return these classes or descriptions; core calls them by name. Nothing here is called per node or per pass
through pluggy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gristmill.ir.host_interface import CPU_DEVICE_TYPE
from gristmill.plugin.artifacts import Blob, Capabilities, KernelRecord, Scalar

if TYPE_CHECKING:
    import argparse

    import numpy as np

    from gristmill.ir.module import Module
    from gristmill.ir.target import Target

API_VERSION = 1
"""Version of this file. A plugin module states ``GRISTMILL_API_VERSION``; another number is refused before it is registered."""


# Targets --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyDescription:
    """A key that a target kind (or another plugin) adds to a table of the manifest."""

    name: str
    type: str
    """``string``, ``integer``, ``number``, ``boolean``, or ``strings`` (a list of strings)."""
    meaning: str
    default: Scalar | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of target, as ``cpu`` or ``vulkan``: its manifest keys, its generator, and what it knows of architectures.

    ``resolve`` checks a target and completes it (``native`` becomes a real name, defaults are filled in); it raises
    ValueError with a sentence for the user otherwise. ``capabilities`` is called with resolved targets only.
    ``device_type`` is DLPack's number for the memory its kernels work on (1 is the CPU).
    """

    name: str
    summary: str
    generator: str
    blob_kinds: tuple[str, ...]
    resolve: Callable[[Target], Target]
    capabilities: Callable[[Target], Capabilities]
    keys: tuple[KeyDescription, ...] = ()
    architectures: tuple[str, ...] = ()
    """Known names after the colon, for lists and suggestions; ``resolve`` decides."""
    features: tuple[tuple[str, str], ...] = ()
    """What may follow after a ``+``, each with a sentence that says what it is; for lists, ``resolve`` decides."""
    device_type: int = CPU_DEVICE_TYPE
    texts: tuple[str, ...] = ()
    """The kinds of text for people that its generator can make, as ``assembly``."""
    text_of_code: Callable[[str, bytes, Sequence[KernelRecord]], str] | None = None
    """A text of a kind from the code itself (the data of a blob, and its records), where ``texts`` are of that sort; it
    raises ValueError for what is no such code. Without it a text that a pack does not keep is made again from its IR."""
    from_device: Callable[[Target, Mapping[str, Scalar]], Target] | None = None
    """The target with what it leaves open filled in from the properties of a device, for a kind whose keys have
    :data:`FROM_DEVICE`. Called before ``resolve``, and only where a manifest names a device; without it no build looks
    at the machine that it runs on."""


FROM_DEVICE = KeyDescription(
    "from_device", "integer", "Number of a device of the machine that builds; it says what the target leaves open."
)
"""The key for kinds with :attr:`TargetKind.from_device`, the same for all."""


# Code generators ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What the manifest says about code beyond the IR: optimisation level 0-3, which texts to make for people.

    Fast math is no option here: each function says in its facts whether its own floats may be reassociated.
    """

    name: str = "kernels"
    """Name of the module, for symbols and file names."""
    optimization: int = 3
    texts: frozenset[str] = frozenset()
    """The kinds of text wanted in :attr:`Blob.texts`, of those that the target's kind names; others are left out."""
    extra: Mapping[str, Scalar] = field(default_factory=dict)


class CodeGenerator(Protocol):
    """Turns a lowered, verified module into blobs. Raises nothing but :class:`gristmill.errors.Unsupported` for it."""

    name: ClassVar[str]

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Sequence[Blob]:
        """The machine code of all functions; the same input gives the same bytes.

        Several blobs for a device are codes to choose from (for architectures, say): each has all kernels.
        """
        ...


# Passes ---------------------------------------------------------------------------------------------------------------


class Pass(Protocol):
    """One transformation of a module; a frozen dataclass whose fields are its options (see gristmill.passes.manager)."""

    @property
    def name(self) -> str: ...

    def run(self, module: Module) -> Module:
        """The transformed module; the same object if nothing changed."""
        ...


@dataclass(frozen=True, slots=True)
class PassContext:
    """What a pass may depend on when it is made for a build."""

    target: Target
    capabilities: Capabilities
    options: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A pass that a plugin offers.

    ``phase`` is one of core's phases (gristmill.passes.pipeline). A *required* pass runs in every build; an optional
    one only where kernels.toml names it as ``DISTRIBUTION-CHOSEN.NAME``. ``after`` and ``before`` name passes of the
    same phase.
    """

    name: str
    phase: str
    make: Callable[[PassContext], Pass]
    summary: str
    required: bool = False
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


# Runtimes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """A device that is there: number within its runtime, name for people, properties for reports."""

    index: int
    name: str
    properties: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Probe:
    """What a runtime found: its devices, or the reason for none (a sentence for the user)."""

    devices: tuple[DeviceDescription, ...] = ()
    reason: str = ""


class LoadedCode(Protocol):
    """Code of one blob, loaded on one device. Lives as long as any function taken from it."""

    def function(self, entry: str) -> Any:
        """A callable for an entry point: for host code a ``tvm_ffi.Function``."""
        ...


class Device(Protocol):
    """An open device: memory, code, order of work.

    A device that can become useless (closed, lost by its driver) may have a property ``is_usable``; where it is false the
    device is opened anew when it is next asked for by name.
    """

    @property
    def name(self) -> str:
        """``runtime:index``, as ``cpu:0``. The index is the number that DLPack's DLDevice has for the device's arrays."""
        ...

    @property
    def device_type(self) -> int:
        """DLPack's DLDeviceType of its arrays."""
        ...

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """A new array of the device; its elements are not initialised. Zero sizes are fine."""
        ...

    def array(self, values: np.ndarray) -> Any:
        """A new array of the device with a copy of these values."""
        ...

    def load(
        self,
        data: memoryview,
        entry_points: Sequence[str],
        kernels: Sequence[KernelRecord],
        externs: Mapping[str, int] = MappingProxyType({}),
    ) -> LoadedCode:
        """Load the code of a blob that :meth:`Runtime.refusal` let through. Raises UserError (GM09xx) if it cannot be.

        ``externs`` gives addresses for C symbols that the code calls, in place of those of the libraries it names.
        """
        ...

    def synchronize(self) -> None:
        """Wait until all work queued on the device is done."""
        ...

    def properties(self) -> Mapping[str, Scalar]: ...


@dataclass(frozen=True, slots=True)
class NativeLaunch:
    """How compiled host code reaches a device: what a context table has (:mod:`gristmill.codegen.context_table`).

    ``device`` is handed to the three functions, which are given by their addresses; ``owner`` keeps all of it alive.
    """

    device: int
    launch: int
    allocate: int
    release: int
    owner: Any = None


@dataclass(frozen=True, slots=True)
class NativeSupport:
    """A shared object that a runtime loads (:mod:`gristmill.runtime.native_support`), and how it is made.

    ``machines`` are those that it can be made for, as ``uname -m`` names them. ``build`` gives its bytes for one, the
    same each time; ``identity`` a text that is another one whenever the bytes may be, at much less cost. It must import
    nothing. Objects are for Linux.
    """

    name: str
    machines: tuple[str, ...]
    identity: Callable[[str], str]
    build: Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A function of the packed interface as machine code: address and ``self``; ``owner`` keeps both alive."""

    code: int
    context: int
    owner: Any
    release_gil: bool = False


class HostCode(LoadedCode, Protocol):
    """Loaded host code, whose functions other machine code can call."""

    def native(self, entry: str) -> NativeFunction:
        """The machine code of an exported function. Raises UserError (GM0913) where there is none."""
        ...


class KernelCode(LoadedCode, Protocol):
    """Loaded code of kernels, which host functions launch."""

    def handle(self, kernel: str) -> int:
        """What stands for the kernel of that name in a launch; valid as long as this object lives."""
        ...


def device_number(name: str) -> int:
    """The index in the name of a device."""
    return int(name.rpartition(":")[2])


class KernelDevice(Device, Protocol):
    """A device whose kernels are launched by host functions; :meth:`Device.load` gives :class:`KernelCode`."""

    def allocate(self, size: int, alignment: int) -> int:
        """The address of new memory of so many bytes. Raises MemoryError where there is none."""
        ...

    def release(self, address: int) -> None:
        """Give memory back that :meth:`allocate` gave, once the work that uses it is done."""
        ...

    def launch(self, kernel: int, args: Sequence[Any], extents: Sequence[int], dynamic_shared: int) -> None:
        """Queue a kernel. ``args`` are addresses and numbers, ``extents`` those of its axes in order, none zero.

        What the kernel's record or the device's limits do not allow is a UserError (GM0920-GM0922), before anything runs.
        """
        ...

    def native_launch(self) -> NativeLaunch:
        """The same for compiled host code."""
        ...


class Runtime(Protocol):
    """Loads and launches blobs of certain kinds."""

    name: ClassVar[str]
    blob_kinds: ClassVar[tuple[str, ...]]

    def probe(self) -> Probe:
        """What is here. Never raises, never crashes; cheap enough for a listing."""
        ...

    def open(self, index: int) -> Device:
        """Open a device that :meth:`probe` listed. Raises MissingError otherwise."""
        ...

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """Why a blob cannot run here, in a sentence; an empty text if it can."""
        ...

    def preference(self, target: str) -> int:
        """Which of several blobs that fit to take: the greatest."""
        ...


class Executor(Protocol):
    """Runs the jobs of a build: in this process, in a pool, on a cluster."""

    name: ClassVar[str]

    def map(self, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Sequence[Any]:
        """The results in order; the exception of a job is raised when its result is taken."""
        ...


# Commands -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A further subcommand of ``gristmill``.

    ``add_arguments`` is given the command's own parser; ``run`` the parsed arguments, and returns the exit status
    (0 done, 1 the user's mistakes, 2 usage, 3 something of the environment is missing, 4 a fault of ours or a plugin's).
    """

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
