"""The hooks that a plugin may implement. This file is the whole list.

A plugin is a module (or an object) that an entry point of one of the groups below names. It states
``GRISTMILL_API_VERSION = 1`` and marks its implementations with :data:`hookimpl`::

    from gristmill.plugin.hookspecs import hookimpl

    GRISTMILL_API_VERSION = 1

    @hookimpl
    def gristmill_runtimes():
        return [MyRuntime]

Every hook only *registers*: it returns classes or descriptions and does nothing else. None is called per pass, per
function or per node. A hook may be called once in every build or process that asks for its group, and must be pure:
the same answer each time, nothing read from the machine, nothing written. What the machine has is found out by the
returned classes, when they are asked.

An implementation may leave arguments out that it does not need; so new arguments can join a hook without a new API
version, while a removed or changed one needs another ``API_VERSION`` (:mod:`gristmill.plugin.protocols`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from gristmill.plugin.protocols import (
        CodeGenerator,
        CommandEntry,
        Executor,
        NativeSupport,
        PassEntry,
        Runtime,
        TargetKind,
    )

PROJECT = "gristmill"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks the functions of a plugin that implement hooks."""

GROUP_HOOKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "targets": ("gristmill_targets", "gristmill_code_generators", "gristmill_native_support"),
        "passes": ("gristmill_passes",),
        "runtimes": ("gristmill_runtimes",),
        "executors": ("gristmill_executors",),
        "commands": ("gristmill_commands",),
    }
)
"""Which hooks are asked of the plugins in the entry-point group ``gristmill.<key>``."""


@hookspec
def gristmill_targets() -> Sequence[TargetKind]:  # type: ignore[empty-body]
    """The kinds of target that this plugin makes code for.

    Since: API version 1. Group: ``gristmill.targets``; the entry point should have the name of the (first) kind, so
    that asking for that kind imports no other plugin.
    Called when: a target of the kind is named, or all kinds are listed. Must be pure: yes.
    """


@hookspec
def gristmill_code_generators() -> Sequence[type[CodeGenerator]]:  # type: ignore[empty-body]
    """The classes of code generators, which :attr:`TargetKind.generator` names. They are made without arguments.

    Since: API version 1. Group: ``gristmill.targets``.
    Called when: code is generated for a kind that names the generator. Must be pure: yes.
    """


@hookspec
def gristmill_native_support() -> Sequence[NativeSupport]:  # type: ignore[empty-body]
    """Small shared objects that runtimes load, which this plugin can make.

    Since: API version 1. Group: ``gristmill.targets``. An installed Gristmill has those of its own plugins as files, so
    this is asked only where there is no such file: in an installation that runs from the sources.
    Called when: a runtime asks for an object that is not there yet. Must be pure: yes.
    """


@hookspec
def gristmill_passes() -> Sequence[PassEntry]:  # type: ignore[empty-body]
    """The passes that this plugin offers, each with its phase and order constraints.

    Since: API version 1. Group: ``gristmill.passes``. Required passes run in every build; optional ones only where
    kernels.toml names them.
    Called when: a pipeline is put together, or all passes are listed. Must be pure: yes.
    """


@hookspec
def gristmill_runtimes() -> Sequence[type[Runtime]]:  # type: ignore[empty-body]
    """The classes of runtimes. They are made without arguments; making one must not touch any device.

    Since: API version 1. Group: ``gristmill.runtimes``; the entry point should have the name of the (first) runtime.
    Called when: a pack is loaded, a device is opened, or devices are listed. Must be pure: yes.
    """


@hookspec
def gristmill_executors() -> Sequence[type[Executor]]:  # type: ignore[empty-body]
    """The classes of executors that run the jobs of a build (``--executor name://...``).

    Since: API version 1. Group: ``gristmill.executors``.
    Called when: a build names the executor. Must be pure: yes.
    """


@hookspec
def gristmill_commands() -> Sequence[CommandEntry]:  # type: ignore[empty-body]
    """Further subcommands of ``gristmill``. A command of core's own name is refused.

    Since: API version 1. Group: ``gristmill.commands``; the entry point has the name of the command.
    Called when: a command that core does not know is typed, or all commands are listed. Must be pure: yes.
    """
