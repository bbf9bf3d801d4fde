"""The passes of a build, in order: one list that reads as prose, each step with the reason for its place.

Plugins add passes to a phase by its name. Their *required* passes (launch lowering, the packed host interface) run in
every build; their *optional* ones only where the manifest names them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gristmill.errors import PluginError
from gristmill.passes.check_call_sizes import CheckCallSizes
from gristmill.passes.check_symbols import CheckSymbols
from gristmill.passes.flatten_buffers import FlattenBuffers
from gristmill.passes.guard_arithmetic import GuardArithmetic
from gristmill.passes.hoist_shared_memory import HoistSharedMemory
from gristmill.passes.inline_functions import InlineFunctions
from gristmill.passes.inline_memory_functions import InlineMemoryFunctions
from gristmill.passes.insert_barriers import InsertBarriers
from gristmill.passes.lay_out_dynamic_memory import LayOutDynamicMemory
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.lower_buffer_arguments import LowerBufferArguments
from gristmill.passes.lower_mathematics import LowerMathematics
from gristmill.passes.lower_thread_reductions import LowerThreadReductions
from gristmill.passes.manager import Pass, Pipeline, Step
from gristmill.passes.narrow_indices import NarrowIndices
from gristmill.passes.options import Maker, unknown_pass
from gristmill.passes.remove_dead_code import RemoveDeadCode
from gristmill.passes.remove_unused_functions import RemoveUnusedFunctions
from gristmill.passes.reuse_shared_memory import ReuseSharedMemory
from gristmill.passes.simplify import Simplify
from gristmill.passes.unroll_loops import UnrollLoops
from gristmill.passes.vectorize_loops import VectorizeLoops
from gristmill.passes.vectorize_outer_loops import VectorizeOuterLoops
from gristmill.plugin.protocols import Pass as PassProtocol
from gristmill.plugin.protocols import PassContext, PassEntry


@dataclass(frozen=True, slots=True)
class Planned:
    """A pass of core in the plan of a phase: why it stands here, and whether the result is right without it."""

    kind: type[Pass]
    reason: str
    optional: bool = False
    devices: bool = False
    """Whether it has work only where kernels are launched on devices."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the pipeline: what holds when it ends, and core's passes in it."""

    name: str
    purpose: str
    passes: tuple[Planned, ...] = ()


PHASES: tuple[Phase, ...] = (
    Phase(
        "symbols",
        "What is wrong with the module as a whole is said before anything of it changes.",
        (
            Planned(CheckSymbols, "first: the names are still those that the author wrote"),
            Planned(RemoveUnusedFunctions, "before anything is refused that is never run"),
            Planned(CheckCallSizes, "while calls and the arrays of functions are those that the author wrote"),
        ),
    ),
    Phase(
        "schedule",
        "Loops are moved, split and bound to threads, while blocks still say what may move.",
    ),
    Phase(
        "blocks",
        "Blocks become plain statements; from here on only loops, branches and names are left.",
        (
            Planned(
                LowerThreadReductions, "while blocks say which of their axes reduce, and what starts them", devices=True
            ),
            Planned(LowerBlocks, "after the schedule, which needs axes, reads and writes; before all that moves code"),
            Planned(
                VectorizeOuterLoops, "while each dimension has an index of its own, which tells elements apart", True
            ),
            Planned(
                InlineMemoryFunctions,
                "before memory gets its place and barriers theirs: both look at all that a launch does to memory",
                devices=True,
            ),
            Planned(
                HoistSharedMemory, "after reductions have taken memory, and before regions become kernels", devices=True
            ),
            Planned(ReuseSharedMemory, "with all of a launch's memory in one place", devices=True),
            Planned(
                InsertBarriers, "after places are given: buffers in one place are in each other's way", devices=True
            ),
            Planned(
                LayOutDynamicMemory,
                "last: barriers tell apart the memory of two allocations, and not parts of one of unknown sizes",
                devices=True,
            ),
        ),
    ),
    Phase(
        "split",
        "Code of devices is parted from code of the host; launches stand where kernels stood.",
    ),
    Phase(
        "host",
        "Public functions get the packed interface, which checks its arguments and calls the plain function.",
        (Planned(NarrowIndices, "while kernels and what launches them are in one module", devices=True),),
    ),
    Phase(
        "memory",
        "Buffers become pointers with flat indices; from here on no function takes a buffer.",
        (
            Planned(LowerBufferArguments, "after the packed interface, which needs the shapes of parameters"),
            Planned(FlattenBuffers, "after parameters have become views, so that they are flattened too"),
        ),
    ),
    Phase(
        "loops",
        "Loops take the form that their kind asks for; serial, parallel and unrolled ones are left.",
        (
            Planned(InlineFunctions, "before loops are vectorised: a call has no vector form", True),
            Planned(Simplify, "after indices are flat; extents and conditions become constants here", True),
            Planned(UnrollLoops, "before vectorising, which wants straight bodies", True),
            Planned(VectorizeLoops, "with flat indices, of which one vector says all"),
        ),
    ),
    Phase(
        "mathematics",
        "What the target has no instruction for becomes a call of the library.",
        (Planned(LowerMathematics, "after vectorising, so that the library is called with vectors"),),
    ),
    Phase(
        "arithmetic",
        "Division and shifts lose the guards that bounds prove useless.",
        (
            Planned(Simplify, "once more: unrolling and vectorising have left constants", True),
            Planned(GuardArithmetic, "after the last simplification, which knows total operations only", True),
        ),
    ),
    Phase(
        "cleanup",
        "What nothing uses is removed.",
        (Planned(RemoveDeadCode, "last: every pass may leave something unused", True),),
    ),
)


def phase_names() -> tuple[str, ...]:
    """The names of the phases, in order; what a plugin's pass may name."""
    return tuple(phase.name for phase in PHASES)


def known_passes(entries: Sequence[PassEntry] = (), context: PassContext | None = None) -> dict[str, Maker]:
    """All passes by name: core's classes, and what makes those of plugins (only with a context to make them for)."""
    found: dict[str, Maker] = {planned.kind.name: planned.kind for phase in PHASES for planned in phase.passes}
    if context is not None:
        for entry in entries:
            found[entry.name] = _maker(entry, context)
    return found


def _maker(entry: PassEntry, context: PassContext) -> Callable[[], PassProtocol]:
    return lambda: entry.make(context)


def build_pipeline(
    context: PassContext,
    entries: Sequence[PassEntry] = (),
    chosen: Sequence[str] = (),
    phases: Collection[str] | None = None,
) -> Pipeline:
    """The pipeline for a target: core's passes, the required passes of plugins, and the optional ones ``chosen`` by name.

    ``phases`` names the phases to take of it, by default all: what is built for a device is parted on the way, and the
    rest of the pipeline runs over each part for its own target.
    With ``optimization`` 0 in the context's options, optional passes of core are left out. Raises UserError (GM0602)
    for a chosen pass that no plugin offers, PluginError for an entry with an unknown phase, neighbours that the phase
    does not have, a name taken twice, or an order that runs in circles.
    """
    _check_entries(entries)
    optional_names = {entry.name: entry for entry in entries if not entry.required}
    for name in chosen:
        if name not in optional_names:
            raise unknown_pass(name, optional_names)
    taken = [entry for entry in entries if entry.required or entry.name in chosen]
    optimize = context.options.get("optimization", 3) != 0
    steps: list[Step] = []
    for phase in PHASES:
        if phases is not None and phase.name not in phases:
            continue
        core = [planned for planned in phase.passes if _has_work(planned, context, optimize)]
        own = {
            planned.kind.name: Step(
                phase.name, planned.kind(**planned.kind.values_for(context)), planned.reason, planned.optional
            )
            for planned in core
        }
        for entry in taken:
            if entry.phase == phase.name:
                own[entry.name] = Step(phase.name, entry.make(context), entry.summary, not entry.required)
        steps += _ordered(phase, own, [entry for entry in taken if entry.phase == phase.name])
    return Pipeline(tuple(steps), context.target)


def _has_work(planned: Planned, context: PassContext, optimize: bool) -> bool:
    return (optimize or not planned.optional) and (not planned.devices or context.capabilities.is_device)


def _check_entries(entries: Sequence[PassEntry]) -> None:
    names = {planned.kind.name for phase in PHASES for planned in phase.passes}
    of_phase: dict[str, set[str]] = {phase.name: {planned.kind.name for planned in phase.passes} for phase in PHASES}
    for entry in entries:
        if entry.phase not in of_phase:
            raise PluginError(
                f"pass `{entry.name}` is for the phase `{entry.phase}`, which there is not; "
                f"the phases are {', '.join(of_phase)}"
            )
        if entry.name in names:
            raise PluginError(f"two passes are named `{entry.name}`")
        names.add(entry.name)
        of_phase[entry.phase].add(entry.name)
    for entry in entries:
        for neighbour in (*entry.after, *entry.before):
            if neighbour not in of_phase[entry.phase]:
                raise PluginError(
                    f"pass `{entry.name}` must stand beside `{neighbour}`, which is no pass of the phase "
                    f"`{entry.phase}`; its passes are {', '.join(sorted(of_phase[entry.phase])) or 'none'}"
                )


def _ordered(phase: Phase, steps: Mapping[str, Step], entries: Sequence[PassEntry]) -> list[Step]:
    """The steps of a phase in an order that keeps core's own and what the entries ask for, and is always the same.

    A neighbour that does not run in this build puts no constraint.
    """
    before: dict[str, set[str]] = {name: set() for name in steps}
    core = [planned.kind.name for planned in phase.passes if planned.kind.name in steps]
    for first, second in pairwise(core):
        before[second].add(first)
    for entry in entries:
        before[entry.name].update(name for name in entry.after if name in steps)
        for name in entry.before:
            if name in steps:
                before[name].add(entry.name)
    found: list[Step] = []
    waiting = list(steps)
    while waiting:
        ready = next((name for name in waiting if not before[name]), None)
        if ready is None:
            raise PluginError(
                f"the passes {', '.join(f'`{name}`' for name in waiting)} of the phase `{phase.name}` "
                f"must each run after another of them"
            )
        waiting.remove(ready)
        found.append(steps[ready])
        for others in before.values():
            others.discard(ready)
    return found
