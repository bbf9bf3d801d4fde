"""A pack in use: its functions as attributes, its sources to look at, its bytes to pass on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from gristmill.errors import MissingError, suggestion
from gristmill.pack import Function, Manifest, PackReader, save
from gristmill.plugin.protocols import LoadedCode
from gristmill.runtime.variants import Refusal


class Placed:
    """The code of a pack for one device: loaded code for each function, and the DLPack type of the device's arrays."""

    __slots__ = ("device_name", "device_type", "entries", "targets")

    def __init__(
        self,
        device_name: str,
        device_type: int,
        entries: Mapping[str, tuple[LoadedCode, str]],
        targets: Sequence[str] = (),
    ) -> None:
        """``entries`` maps the name of a function to its loaded code and its entry point there; ``targets`` are those
        that the loaded code was built for."""
        self.device_name = device_name
        self.device_type = device_type
        self.entries = entries
        self.targets = tuple(targets)


class LoadedPack:
    """A loaded pack: ``pack.blur_rows(image, out)`` calls the public function ``blur_rows``.

    Arguments are NumPy arrays, DLPack producers (PyTorch tensors and the like), ``tvm_ffi.Tensor`` or Gristmill
    arrays, and Python numbers. Where the pack has code for several devices, that of the first array decides. A function
    whose name is also one of this class (``save``, say) is ``pack["save"]``.

    Attributes are looked up once: from then on ``pack.f`` is the ``tvm_ffi.Function`` itself, and a call costs no more
    than that. ``help(pack)`` and ``help(pack.f)`` show signatures. The code lives as long as the pack or any function
    taken from it.
    """

    def __init__(
        self,
        reader: PackReader,
        placed: Sequence[Placed],
        refused: Sequence[Refusal],
        missing: Callable[[], MissingError] | None = None,
    ) -> None:
        """``missing`` makes the error that calls raise where nothing of the pack has a device to run on."""
        self._reader = reader
        self._absent = missing
        self._placed = tuple(placed)
        self._refused = tuple(refused)
        # For help(pack), which shows the class where an instance has no text of its own.
        self.__doc__ = "\n\n".join(map(_documentation, self.functions.values())) or "The pack has no functions."

    @property
    def name(self) -> str:
        """The pack's name in messages: its path, as a rule."""
        return self._reader.name

    @property
    def manifest(self) -> Manifest:
        """All that the pack says of itself."""
        return self._reader.manifest

    @property
    def functions(self) -> Mapping[str, Function]:
        """The public functions by name, each with its ``signature`` and ``parameters``."""
        return MappingProxyType({function.name: function for function in self.manifest.functions})

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that the pack's code is loaded on, as ``("cpu:0",)``."""
        return tuple(placed.device_name for placed in self._placed)

    @property
    def targets(self) -> Mapping[str, tuple[str, ...]]:
        """For each device the targets whose code is loaded on it, the best first."""
        return MappingProxyType({placed.device_name: placed.targets for placed in self._placed})

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The codes of the pack that do not run here, each with the reason."""
        return self._refused

    def inspect(self, kind: str | None = None) -> dict[str, str]:
        """The texts that the pack keeps for people, by member name: ``ir-text``, ``llvm-ir``, ``assembly``, ...

        ``kind`` picks those of one kind. Raises UserError (GM08xx) for a damaged member.
        """
        return {
            member.name: self._reader.text(member)
            for member in self.manifest.texts
            if kind is None or member.kind == kind
        }

    def bytes(self) -> bytes:
        """The whole pack; :func:`gristmill.load` takes it as it takes a path."""
        return self._reader.whole()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole pack to a file, all or nothing."""
        save(path, self.bytes())

    def __getitem__(self, name: str) -> Any:
        """The function of that name. Raises KeyError with the close one."""
        try:
            return self._function(name)
        except AttributeError as error:
            raise KeyError(str(error)) from None

    def __getattr__(self, name: str) -> Any:
        # Only what is not found otherwise comes here: the first access to a function.
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._function(name)
        self.__dict__[name] = found
        return found

    def _function(self, name: str) -> Any:
        entries = [(placed, *placed.entries[name]) for placed in self._placed if name in placed.entries]
        if not entries:
            if self._absent is not None and name in self.functions:
                return AbsentFunction(self.functions[name], self._absent)
            raise AttributeError(self._missing(name))
        by_type = {placed.device_type: (code, entry) for placed, code, entry in reversed(entries)}
        if len(by_type) == 1:
            code, entry = next(iter(by_type.values()))
            found = code.function(entry)
        else:
            found = _native_dispatch(name, by_type) or DeviceDispatch(
                name, {kind: code.function(entry) for kind, (code, entry) in by_type.items()}
            )
        if name in self.functions:
            _document(found, self.functions[name])
        return found

    def _missing(self, name: str) -> str:
        if name in self.functions:
            loaded = ", ".join(self.devices)
            reasons = "".join(f"\n  {each.member.target or each.member.name}: {each.reason}" for each in self._refused)
            text = f"{self.name} has the function {name!r}, but not for the devices that it is loaded on ({loaded})"
            return f"{text}; not used are{reasons}" if reasons else text
        known = sorted({function for placed in self._placed for function in placed.entries})
        hint = suggestion(name, known, f"it has {', '.join(known) or 'none'}", form="'{}'")
        return f"{self.name} has no function {name!r}; {hint}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for placed in self._placed for name in placed.entries)})

    def __repr__(self) -> str:
        names = ", ".join(self.functions)
        return f"<gristmill pack {self.name}: {names or 'no functions'}; on {', '.join(self.devices) or 'no device'}>"


def _documentation(function: Function) -> str:
    """What ``help`` shows of a function: its signature, and what its author says."""
    return "\n\n".join(text for text in (function.signature or function.name, function.summary) if text)


def _document(found: Any, function: Function) -> None:
    """Give a function the name, text and parameters that ``help``, ``inspect.signature`` and notebooks show.

    They stand in the object's own dictionary, so a call costs no more for them.
    """
    import inspect

    parameters = [inspect.Parameter(each.name, inspect.Parameter.POSITIONAL_ONLY) for each in function.parameters]
    told = {
        "__name__": function.name,
        "__qualname__": function.name,
        "__doc__": _documentation(function),
        "__signature__": inspect.Signature(parameters),
    }
    # Functions of other runtimes may be of a kind that takes none of this.
    with suppress(AttributeError, TypeError, ValueError):
        for key, value in told.items():
            setattr(found, key, value)


def _native_dispatch(name: str, by_type: Mapping[int, tuple[LoadedCode, str]]) -> Any:
    """A native function that goes by the device of its arrays; None where some code is not machine code."""
    natives = {kind: getattr(code, "native", None) for kind, (code, _) in by_type.items()}
    dispatchers = [code.dispatcher() for code, _ in by_type.values() if hasattr(code, "dispatcher")]
    if not dispatchers or not all(natives.values()):
        return None
    from gristmill.runtime.host_functions import dispatching

    return dispatching(
        name,
        {kind: native(by_type[kind][1]) for kind, native in natives.items() if native is not None},
        dispatchers[0],
    )


class AbsentFunction:
    """A function of a pack whose code has no device to run on here. It can be looked up, and says so when it is called."""

    def __init__(self, function: Function, missing: Callable[[], MissingError]) -> None:
        """``missing`` makes the error."""
        self.name = function.name
        self._missing = missing
        self.__doc__ = _documentation(function)

    def __call__(self, *args: Any) -> Any:
        """Raises MissingError (GM0901) with every code of the pack and why it is not used."""
        raise self._missing()

    def __repr__(self) -> str:
        return f"<function {self.name}, with no device to run on>"


class DeviceDispatch:
    """A function of a pack with code for several kinds of device: the first array among the arguments decides.

    What :func:`_native_dispatch` does natively, for code that is not machine code.
    """

    def __init__(self, name: str, functions: Mapping[int, Any]) -> None:
        """``functions`` maps DLPack's DLDeviceType to the function for it."""
        self.name = name
        self.functions = functions

    def __call__(self, *args: Any) -> Any:
        for argument in args:
            locate = getattr(argument, "__dlpack_device__", None)
            if locate is None:
                continue
            kind = int(locate()[0])
            function = self.functions.get(kind)
            if function is None:
                from gristmill.runtime.host_functions import no_code_for

                raise no_code_for(self.name, kind, sorted(self.functions))
            return function(*args)
        # No array at all: any code gives the same result, and the CPU (type 1) has the least way to go.
        return self.functions.get(1, next(iter(self.functions.values())))(*args)

    def __repr__(self) -> str:
        return f"<function {self.name} for DLPack device types {sorted(self.functions)}>"
