"""Importing one plugin and calling its hooks, so that whatever it does wrong is told with its name.

Each plugin has a pluggy manager of its own: one that fails leaves nothing behind in another's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gristmill.errors import PluginError
from gristmill.plugin.checks import kind_of
from gristmill.plugin.discovery import Candidate, Origin
from gristmill.plugin.protocols import API_VERSION


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a plugin: a stable code, a sentence that names plugin, distribution and version, the cause."""

    code: str
    origin: Origin
    message: str
    cause: BaseException | None = None

    def error(self) -> PluginError:
        """The problem as an exception, to be raised ``from problem.cause``."""
        return PluginError(f"[{self.code}] {self.message}")


class PluginFault(Exception):
    """Carries a :class:`Problem` up to the registry, which goes on with the other plugins."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)


@dataclass(frozen=True, slots=True, eq=False)
class Plugin:
    """A plugin that has been imported and checked."""

    origin: Origin
    manager: Any
    """Its pluggy.PluginManager, which knows no other plugin."""

    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks that it implements."""
        (plugin,) = self.manager.get_plugins()
        return tuple(sorted(caller.name for caller in self.manager.get_hookcallers(plugin) or ()))

    def call(self, hook: str, check: Callable[[Any], str]) -> tuple[Any, ...]:
        """What the plugin registers through ``hook``; nothing if it does not implement it.

        ``check`` says what is wrong with one item, in a phrase, or nothing. Raises PluginFault.
        """
        try:
            answers = getattr(self.manager.hook, hook)()
        except (Exception, SystemExit) as error:
            error.add_note(f"while {hook} of {self.origin} ran")
            raise PluginFault(
                Problem("GM1007", self.origin, f"{hook} of {self.origin} failed: {described(error)}", error)
            ) from error
        items: list[Any] = []
        for answer in answers:
            if not isinstance(answer, (list, tuple)):
                raise self._bad_answer(hook, f"returned {kind_of(answer)}, not a list")
            items.extend(answer)
        for item in items:
            if wrong := check(item):
                raise self._bad_answer(hook, wrong)
        return tuple(items)

    def make(self, found: type[Any]) -> Any:
        """An instance of a class that the plugin registered. Raises PluginFault."""
        try:
            return found()
        except (Exception, SystemExit) as error:
            error.add_note(f"while {found.__qualname__}() of {self.origin} ran")
            raise PluginFault(
                Problem(
                    "GM1007", self.origin, f"{found.__qualname__}() of {self.origin} failed: {described(error)}", error
                )
            ) from error

    def _bad_answer(self, hook: str, wrong: str) -> PluginFault:
        return PluginFault(Problem("GM1009", self.origin, f"{hook} of {self.origin} {wrong}"))


def load(candidate: Candidate) -> Plugin:
    """Import a plugin, check its API version and its hooks. Raises PluginFault for anything wrong with it."""
    origin = candidate.origin
    plugin = _imported(origin) if candidate.given is None else candidate.given
    version = getattr(plugin, "GRISTMILL_API_VERSION", None)
    if type(version) is not int or version != API_VERSION:
        stated = "states no GRISTMILL_API_VERSION" if version is None else f"is made for plugin API {version!r}"
        raise PluginFault(Problem("GM1003", origin, f"{origin} {stated}; this Gristmill has plugin API {API_VERSION}"))
    return Plugin(origin, _registered(plugin, origin))


def _imported(origin: Origin) -> Any:
    module_name, _, attributes = origin.value.partition(":")
    try:
        found: Any = import_module(module_name.strip())
    except (Exception, SystemExit) as error:
        # SystemExit too: a module that calls sys.exit() would end the user's build.
        raise PluginFault(
            Problem("GM1001", origin, f"{origin} cannot be imported: {described(error)}", error)
        ) from error
    for attribute in attributes.strip().split(".") if attributes.strip() else ():
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise PluginFault(
                Problem("GM1002", origin, f"{origin} cannot be loaded: {described(error)}", error)
            ) from error
    return found


def _registered(plugin: Any, origin: Origin) -> Any:
    import pluggy

    from gristmill.plugin import hookspecs

    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, name=origin.name)
    except pluggy.PluginValidationError as error:
        reason = " ".join(str(error).split())
        raise PluginFault(
            Problem("GM1005", origin, f"{origin} takes an argument that the hook does not have: {reason}", error)
        ) from error
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        known = ", ".join(name for hooks in hookspecs.GROUP_HOOKS.values() for name in hooks)
        unknown = _unknown_hooks(manager)
        raise PluginFault(
            Problem("GM1004", origin, f"{origin} implements {unknown}, which is not a hook; hooks are {known}", error)
        ) from error
    return manager


def _unknown_hooks(manager: Any) -> str:
    (plugin,) = manager.get_plugins()
    callers: Sequence[Any] = manager.get_hookcallers(plugin) or ()
    return ", ".join(sorted(caller.name for caller in callers if not caller.has_spec()))


def described(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
