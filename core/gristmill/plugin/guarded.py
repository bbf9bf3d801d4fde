"""What plugins registered, at work: whatever goes wrong is told with the plugin's name, and answers are checked.

The registry hands these out in place of the plugin's own objects, so nobody who asks one needs to know. Errors that a
protocol allows pass; all others become a :class:`~gristmill.errors.PluginError` that names plugin and distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gristmill.errors import GristmillError, InternalError, PluginError, UserError
from gristmill.plugin import checks
from gristmill.plugin.artifacts import Blob, Capabilities, Scalar
from gristmill.plugin.discovery import Origin, normalized
from gristmill.plugin.loading import Problem, described
from gristmill.plugin.protocols import GenerateOptions, NativeSupport, PassEntry, Probe, TargetKind

if TYPE_CHECKING:
    from gristmill.ir.module import Module
    from gristmill.ir.target import Target
    from gristmill.plugin.registry import Registry


def fault(origin: Origin, what: str) -> PluginError:
    """The error for a plugin that does not do what it should: ``what`` is read after its name."""
    return Problem("GM1012", origin, f"{origin} {what}").error()


@contextmanager
def watched(origin: Origin, doing: str, *allowed: type[Exception]) -> Iterator[None]:
    """Whatever a plugin raises in this block becomes a PluginError, but for Gristmill's own errors and ``allowed``."""
    try:
        yield
    except InternalError as error:
        if not isinstance(error, PluginError):
            error.where.notes.append(f"while {doing} of {origin} ran")
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, (GristmillError, *allowed)):
            raise
        raise fault(origin, f"failed: {doing} raised {described(error)}") from error


@contextmanager
def passes_named(registry: Registry) -> Iterator[None]:
    """Whatever goes wrong with passes in this block is told with the plugins that they come from.

    A pass that fails may have been given its module by another that broke it: where the one that is spoken of is of no
    plugin, all plugins with passes are named.
    """
    try:
        yield
    except InternalError as error:
        error.where.notes += _origins_of_passes(registry, error.where.pass_name, error.message)
        raise
    except UserError as error:
        if error.code == "GM0602" and (problem := _why_unknown(registry, error)):
            raise problem.error() from problem.cause
        raise
    except SystemExit as error:
        fault = PluginError(f"a pass would end the process ({described(error)})")
        fault.where.notes += _origins_of_passes(registry)
        raise fault from error


def _origins_of_passes(registry: Registry, pass_name: str = "", message: str = "") -> list[str]:
    known = {entry.name: registry.origin("passes", entry.name) for entry in registry.pass_entries()}
    spoken_of = {name: origin for name, origin in known.items() if name == pass_name or f"`{name}`" in message}
    return [f"`{name}` is of {origin}" for name, origin in (spoken_of or known).items()]


def _why_unknown(registry: Registry, error: UserError) -> Problem | None:
    """The broken plugin that should give the pass that is unknown: of the same name, or of the name before its dot."""
    for problem in registry.problems("passes"):
        owners = {normalized(name) for name in (problem.origin.name, problem.origin.distribution) if name}
        for diagnostic in error.diagnostics:
            name = diagnostic.message.partition("`")[2].partition("`")[0]
            if normalized(name.partition(".")[0]) in owners or repr(name) in problem.message:
                return problem
    return None


def item(found: Any, origin: Origin) -> Any:
    """What a hook registered, with its callables guarded."""
    if isinstance(found, TargetKind):
        return _target_kind(found, origin)
    if isinstance(found, PassEntry):
        return _pass_entry(found, origin)
    if isinstance(found, NativeSupport):
        return _native_support(found, origin)
    return found


def instance(made: Any, hook: str, origin: Origin) -> Any:
    """An instance of a registered class, guarded."""
    if hook == "gristmill_code_generators":
        return GuardedGenerator(made, origin)
    return GuardedRuntime(made, origin) if hook == "gristmill_runtimes" else made


def _target_kind(kind: TargetKind, origin: Origin) -> TargetKind:
    def resolve(target: Target) -> Target:
        from gristmill.ir.target import Target

        with watched(origin, f"resolving `{target}`", ValueError):
            found = kind.resolve(target)
        if not isinstance(found, Target):
            raise fault(origin, f"resolved `{target}` to {found!r}, which is no Target")
        return found

    def capabilities(target: Target) -> Capabilities:
        with watched(origin, f"finding the capabilities of `{target}`"):
            found = kind.capabilities(target)
        if not isinstance(found, Capabilities):
            raise fault(origin, f"gave {found!r} as the capabilities of `{target}`")
        return found

    if (complete := kind.from_device) is None:
        return replace(kind, resolve=resolve, capabilities=capabilities)

    def from_device(target: Target, properties: Mapping[str, Scalar]) -> Target:
        from gristmill.ir.target import Target

        with watched(origin, f"completing `{target}` from a device", ValueError):
            found = complete(target, properties)
        if not isinstance(found, Target):
            raise fault(origin, f"made {found!r} of `{target}` and a device, which is no Target")
        return found

    return replace(kind, resolve=resolve, capabilities=capabilities, from_device=from_device)


def _pass_entry(entry: PassEntry, origin: Origin) -> PassEntry:
    def make(context: Any) -> Any:
        with watched(origin, f"making the pass `{entry.name}`"):
            found = entry.make(context)
        if not callable(getattr(found, "run", None)):
            raise fault(origin, f"made {found!r} as the pass `{entry.name}`, which has no method run")
        return found

    return replace(entry, make=make)


def _native_support(support: NativeSupport, origin: Origin) -> NativeSupport:
    def identity(machine: str) -> str:
        with watched(origin, f"identifying the native support `{support.name}`", ImportError):
            found = support.identity(machine)
        if not isinstance(found, str) or not found.isalnum():
            raise fault(origin, f"gave {found!r} as the identity of the native support `{support.name}`")
        return found

    def build(machine: str) -> bytes:
        with watched(origin, f"making the native support `{support.name}`", ImportError):
            found = support.build(machine)
        if not isinstance(found, bytes):
            raise fault(origin, f"made {found!r} as the native support `{support.name}`, which is not bytes")
        return found

    return replace(support, identity=identity, build=build)


class _Guarded:
    """A plugin's object and where it comes from; what is not guarded is the object's own."""

    def __init__(self, made: Any, origin: Origin) -> None:
        self.made = made
        self.origin = origin
        self.name: str = made.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)


class GuardedGenerator(_Guarded):
    """A code generator whose blobs are checked."""

    def generate(self, module: Module, target: Target, options: GenerateOptions) -> Sequence[Blob]:
        with watched(self.origin, f"generating code for `{target}`"):
            found = self.made.generate(module, target, options)
        if wrong := checks.blobs(found):
            raise fault(self.origin, f"{wrong}, for `{target}`")
        return tuple(found)


class GuardedRuntime(_Guarded):
    """A runtime that stops no other: one that fails while it is asked has no device, or takes no code."""

    def probe(self) -> Probe:
        found = self._or_text(lambda: self.made.probe(), "looking for devices", checks.probe)
        return Probe(reason=found) if isinstance(found, str) else found

    def refusal(self, kind: str, target: str, host: str, requirements: Mapping[str, Scalar]) -> str:
        """As the plugin says; its preference is asked too, for one that cannot be ranked cannot be chosen."""

        def ask() -> Any:
            return self.made.refusal(kind, target, host, requirements), self.made.preference(target)

        def check(answer: Any) -> str:
            reason, rank = answer
            if not isinstance(reason, str):
                return f"gave {reason!r} as the reason to refuse code, which is no text"
            return "" if type(rank) is int else f"gave {rank!r} as its preference, which is no int"

        found = self._or_text(ask, "looking at code", check)
        return found if isinstance(found, str) else str(found[0])

    def preference(self, target: str) -> int:
        return int(self.made.preference(target))

    def open(self, index: int) -> Any:
        with watched(self.origin, f"opening {self.name}:{index}"):
            found = self.made.open(index)
        if wrong := checks.device(found):
            raise fault(self.origin, f"{wrong}, when {self.name}:{index} was opened")
        return found

    def _or_text(self, ask: Callable[[], Any], doing: str, check: Callable[[Any], str]) -> Any:
        """The answer, or the message of what is wrong with it."""
        try:
            with watched(self.origin, doing):
                found = ask()
            if wrong := check(found):
                raise fault(self.origin, wrong)
        except InternalError as error:
            return error.message
        except GristmillError as error:
            return f"{self.origin} failed: {doing} raised {described(error)}"
        return found
