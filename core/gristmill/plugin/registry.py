"""The registry: what the installed plugins offer, by name.

A registry is made for one build or one process and handed on; there is no global one. It reads only metadata until
something is asked, and then imports only what it must: asking for the target kind ``cpu`` imports the plugin whose
entry point has that name, and others only if that does not give the kind.

A broken plugin never stops the others. What is wrong with it is kept (:meth:`Registry.problems`) and raised when it is
the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gristmill.errors import Diagnostic, GristmillError, MissingError, Note, PluginError, UserError, close_match
from gristmill.plugin import checks, discovery, guarded
from gristmill.plugin.discovery import Candidate, Origin, normalized
from gristmill.plugin.loading import Plugin, PluginFault, Problem, load
from gristmill.plugin.protocols import (
    CodeGenerator,
    CommandEntry,
    Executor,
    NativeSupport,
    PassEntry,
    Runtime,
    TargetKind,
)

GROUPS = ("targets", "passes", "runtimes", "executors", "commands")
"""The entry-point groups, each called ``gristmill.<this>``."""


@dataclass(frozen=True, slots=True)
class PluginRow:
    """One line of ``gristmill plugins``.

    ``status``: ``installed`` (not imported), ``ok``, ``disabled`` or ``broken``; ``reason`` says why for the last two.
    """

    group: str
    name: str
    distribution: str
    version: str
    value: str
    status: str
    reason: str = ""
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Offer:
    """One thing that a plugin registered, and the plugin."""

    name: str
    item: Any
    plugin: Plugin
    hook: str


class Registry:
    """The plugins of one build or process; see the module's text.

    Usually made by :meth:`installed` (entry points) or :meth:`of` (modules given directly, for tests).
    """

    def __init__(self, find: Callable[[str], Sequence[Candidate]], disabled: Collection[str] = ()) -> None:
        """``find`` gives the candidates of a group; ``disabled`` names plugins or distributions to leave alone."""
        self._find = find
        self._disabled = frozenset(normalized(name) for name in disabled)
        self._candidates: dict[str, tuple[Candidate, ...]] = {}
        self._loaded: dict[Candidate, Plugin | Problem] = {}
        self._offers: dict[str, tuple[_Offer, ...]] = {}
        self._answers: dict[tuple[Candidate, str], tuple[_Offer, ...]] = {}
        self._instances: dict[type[Any], Any] = {}
        self._problems: dict[tuple[str, Origin, str], Problem] = {}

    @classmethod
    def installed(cls, disabled: Collection[str] = ()) -> Registry:
        """The installed plugins, less those named in ``disabled`` and in GRISTMILL_DISABLE_PLUGINS."""
        from gristmill import knobs

        return cls(discovery.Installed(), (*disabled, *knobs.DISABLED_PLUGINS.value()))

    @classmethod
    def of(cls, modules: Sequence[Any], disabled: Collection[str] = ()) -> Registry:
        """These plugin modules (or objects) and no others."""
        candidates = discovery.given(modules)
        return cls(lambda group: candidates, disabled)

    # What plugins offer -----------------------------------------------------------------------------------------------

    def target_kinds(self) -> tuple[TargetKind, ...]:
        """All kinds of target, sorted by name."""
        return tuple(offer.item for offer in self._all("targets", "gristmill_targets"))

    def target_kind(self, name: str) -> TargetKind:
        """The kind of that name. Raises UserError (GM1008), MissingError (GM1011) or PluginError."""
        return cast(TargetKind, self._one("target kind", "targets", "gristmill_targets", name).item)

    def code_generator(self, name: str) -> CodeGenerator:
        """The code generator of that name, made once a registry. Raises as :meth:`target_kind`."""
        offer = self._one("code generator", "targets", "gristmill_code_generators", name)
        return cast(CodeGenerator, self._instance(offer))

    def native_support(self, name: str) -> NativeSupport:
        """The native support code of that name. Raises as :meth:`target_kind`."""
        return cast(NativeSupport, self._one("native support", "targets", "gristmill_native_support", name).item)

    def pass_entries(self) -> tuple[PassEntry, ...]:
        """All passes, required and optional, sorted by name; their order in a pipeline is the pipeline's affair.

        A broken plugin's passes are missing: a build shows :meth:`problems` of ``passes``.
        """
        return tuple(offer.item for offer in self._all("passes", "gristmill_passes"))

    def pass_entry(self, name: str) -> PassEntry:
        """The pass of that name. Raises as :meth:`target_kind`."""
        return cast(PassEntry, self._one("pass", "passes", "gristmill_passes", name).item)

    def runtimes(self) -> tuple[Runtime, ...]:
        """All runtimes, sorted by name, each made once a registry; one that cannot be made is a problem."""
        found = []
        for offer in self._all("runtimes", "gristmill_runtimes"):
            try:
                found.append(cast(Runtime, self._made(offer)))
            except PluginFault as fault:
                self._note(fault.problem)
        return tuple(found)

    def runtime(self, name: str) -> Runtime:
        """The runtime of that name, made once a registry. Raises as :meth:`target_kind`."""
        return cast(Runtime, self._instance(self._one("runtime", "runtimes", "gristmill_runtimes", name)))

    def executors(self) -> tuple[type[Executor], ...]:
        """The classes of executors, sorted by name."""
        return tuple(offer.item for offer in self._all("executors", "gristmill_executors"))

    def executor(self, name: str) -> type[Executor]:
        """The class of executor of that name. Raises as :meth:`target_kind`."""
        return cast("type[Executor]", self._one("executor", "executors", "gristmill_executors", name).item)

    def commands(self) -> tuple[CommandEntry, ...]:
        """The commands of plugins, sorted by name."""
        return tuple(offer.item for offer in self._all("commands", "gristmill_commands"))

    def command(self, name: str) -> CommandEntry:
        """The command of that name. Raises as :meth:`target_kind`."""
        return cast(CommandEntry, self._one("command", "commands", "gristmill_commands", name).item)

    # What is known of the plugins themselves --------------------------------------------------------------------------

    def problems(self, group: str | None = None) -> tuple[Problem, ...]:
        """What is wrong with plugins, as far as it has come up; of one group or of all."""
        return tuple(
            problem for (found_in, _, _), problem in self._problems.items() if group is None or found_in in (group, "")
        )

    def loaded(self) -> tuple[Origin, ...]:
        """Where the plugins come from that were imported so far; for cache keys and reports."""
        return tuple(plugin.origin for plugin in self._loaded.values() if isinstance(plugin, Plugin))

    def origin(self, kind: str, name: str) -> Origin:
        """Which plugin gives the thing of that name; ``kind`` is a hook without ``gristmill_``. Raises as the others."""
        hook = f"gristmill_{kind}"
        group = next(group for group, hooks in _hooks_of_groups().items() if hook in hooks)
        return self._one(kind.rstrip("s").replace("_", " "), group, hook, name).plugin.origin

    def fault(self, kind: str, name: str, what: str) -> PluginError:
        """The error (GM1012) for a thing that does not do what it should; ``kind`` as for :meth:`origin`."""
        return guarded.fault(self.origin(kind, name), what)

    def listing(self, check: bool = False) -> tuple[PluginRow, ...]:
        """A row for each installed plugin, by group. Nothing is imported unless ``check`` asks to try every plugin."""
        rows = []
        for group in GROUPS:
            twice = self._duplicates(group)
            for candidate in self._of_group(group):
                status, reason, hooks = self._status(candidate, twice, group, check)
                origin = candidate.origin
                rows.append(
                    PluginRow(
                        origin.group or group,
                        origin.name,
                        origin.distribution,
                        origin.version,
                        origin.value,
                        status,
                        reason,
                        hooks,
                    )
                )
        return tuple(rows)

    def _status(
        self, candidate: Candidate, twice: dict[str, Problem], group: str, check: bool
    ) -> tuple[str, str, tuple[str, ...]]:
        if switched_off := candidate.goes_by(self._disabled):
            return "disabled", f"{switched_off!r} is switched off", ()
        if candidate.origin.name in twice:
            return "broken", twice[candidate.origin.name].message, ()
        if not check and candidate not in self._loaded:
            return "installed", "", ()
        plugin = self._load(candidate)
        if isinstance(plugin, Problem):
            return "broken", plugin.message, ()
        for hook in _hooks_of_groups()[group]:
            try:
                self._ask(candidate, plugin, hook)
            except PluginFault as fault:
                return "broken", fault.problem.message, plugin.hooks()
        return "ok", "", plugin.hooks()

    # Finding ----------------------------------------------------------------------------------------------------------

    def _of_group(self, group: str) -> tuple[Candidate, ...]:
        if group not in self._candidates:
            self._candidates[group] = tuple(self._find(group))
        return self._candidates[group]

    def _enabled(self, group: str) -> list[Candidate]:
        return [candidate for candidate in self._of_group(group) if not candidate.goes_by(self._disabled)]

    def _duplicates(self, group: str) -> dict[str, Problem]:
        """Names that several distributions claim: none of them is taken, for it would depend on the path which one."""
        by_name: dict[str, list[Candidate]] = {}
        for candidate in self._enabled(group):
            if candidate.origin.distribution:
                by_name.setdefault(candidate.origin.name, []).append(candidate)
        found = {}
        for name, claimants in by_name.items():
            if len(claimants) > 1:
                owners = " and ".join(
                    f"{one.origin.distribution} {one.origin.version} ({one.origin.value})" for one in claimants
                )
                message = (
                    f"the name {name!r} in the group {discovery.GROUP_PREFIX}{group} is claimed by {owners}; "
                    "uninstall one of them, or switch it off with --no-plugin and its distribution's name"
                )
                found[name] = self._note(Problem("GM1006", claimants[0].origin, message))
        return found

    def _load(self, candidate: Candidate) -> Plugin | Problem:
        found = self._loaded.get(candidate)
        if found is None:
            try:
                found = load(candidate)
            except PluginFault as fault:
                found = self._note(fault.problem)
            self._loaded[candidate] = found
        return found

    def _ask(self, candidate: Candidate, plugin: Plugin, hook: str) -> tuple[_Offer, ...]:
        """What a plugin registers through a hook, asked once."""
        key = (candidate, hook)
        if key not in self._answers:
            items = plugin.call(hook, lambda item: checks.registered(hook, item))
            self._answers[key] = tuple(
                _Offer(item.name, guarded.item(item, plugin.origin), plugin, hook) for item in items
            )
        return self._answers[key]

    def _all(self, group: str, hook: str) -> tuple[_Offer, ...]:
        """Everything that the plugins of a group register, sorted by name; a name given twice is given to nobody."""
        if hook in self._offers:
            return self._offers[hook]
        twice = self._duplicates(group)
        by_name: dict[str, list[_Offer]] = {}
        for candidate in self._enabled(group):
            if candidate.origin.name in twice:
                continue
            plugin = self._load(candidate)
            if isinstance(plugin, Problem):
                continue
            try:
                offers = self._ask(candidate, plugin, hook)
            except PluginFault as fault:
                self._note(fault.problem)
                continue
            for offer in offers:
                by_name.setdefault(offer.name, []).append(offer)
        for name, offers_of_name in by_name.items():
            if len(offers_of_name) > 1:
                owners = " and ".join(str(offer.plugin.origin) for offer in offers_of_name)
                message = f"{hook} gives the name {name!r} more than once: {owners}; switch one of them off"
                self._note(Problem("GM1010", offers_of_name[0].plugin.origin, message))
        found = tuple(by_name[name][0] for name in sorted(by_name) if len(by_name[name]) == 1)
        self._offers[hook] = found
        return found

    def _one(self, what: str, group: str, hook: str, name: str) -> _Offer:
        """The offer of that name: from the plugin whose entry point has the name if it gives it, else from any."""
        if problem := self._duplicates(group).get(name):
            raise problem.error()
        for candidate in self._enabled(group):
            if candidate.origin.name != name or candidate.given is not None:
                continue
            plugin = self._load(candidate)
            if isinstance(plugin, Problem):
                raise plugin.error() from plugin.cause
            try:
                named = [offer for offer in self._ask(candidate, plugin, hook) if offer.name == name]
            except PluginFault as fault:
                problem = self._note(fault.problem)
                raise problem.error() from problem.cause
            if len(named) == 1:
                return named[0]
        for offer in self._all(group, hook):
            if offer.name == name:
                return offer
        raise self._refusal(what, group, hook, name)

    def _refusal(self, what: str, group: str, hook: str, name: str) -> GristmillError:
        for problem in self.problems(group):
            if problem.code == "GM1010" and f"{hook} gives the name {name!r}" in problem.message:
                return problem.error()
        for candidate in self._of_group(group):
            if candidate.origin.name == name and candidate.goes_by(self._disabled):
                return MissingError(
                    "GM1011",
                    f"{what} {name!r} comes from {candidate.origin}, which is switched off",
                    "take it out of GRISTMILL_DISABLE_PLUGINS or --no-plugin",
                )
        known = [offer.name for offer in self._offers[hook]]
        close = close_match(name, known)
        listed = f"known are: {', '.join(known)}" if known else "no installed plugin offers any"
        return UserError(
            Diagnostic(
                "GM1008",
                f"there is no {what} {name!r}",
                hint=f"did you mean {close!r}? ({listed})" if close else listed,
                notes=tuple(Note(problem.message) for problem in self.problems(group)),
            )
        )

    # Instances --------------------------------------------------------------------------------------------------------

    def _made(self, offer: _Offer) -> Any:
        if offer.item not in self._instances:
            made = offer.plugin.make(offer.item)
            self._instances[offer.item] = guarded.instance(made, offer.hook, offer.plugin.origin)
        return self._instances[offer.item]

    def _instance(self, offer: _Offer) -> Any:
        try:
            return self._made(offer)
        except PluginFault as fault:
            problem = self._note(fault.problem)
            raise problem.error() from problem.cause

    def _note(self, problem: Problem) -> Problem:
        """Keep a problem, once; returns the one kept."""
        return self._problems.setdefault((problem.origin.group, problem.origin, problem.message), problem)


def _hooks_of_groups() -> Any:
    from gristmill.plugin.hookspecs import GROUP_HOOKS

    return GROUP_HOOKS
