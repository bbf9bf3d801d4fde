"""Passes and the pipeline that runs them: verified between, dumped, timed, stopped, and reproducible when one fails.

A pass is a frozen dataclass whose fields are its options. It takes a module and returns one, the same object if
nothing changed. What goes wrong inside a pass and is not a :class:`~gristmill.errors.UserError` is our fault: the
module before the pass goes to a reproducer file, which ``gristmill opt --repro`` runs again.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gristmill.errors import InternalError, Place, UserError
from gristmill.files import replace_file
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.span import place_of
from gristmill.ir.target import Target
from gristmill.passes.deep import run_deep
from gristmill.passes.options import print_pass
from gristmill.plugin.protocols import Pass as PassProtocol
from gristmill.plugin.protocols import PassContext

_NODE_TEXT_AT_MOST = 400


@dataclass(frozen=True)
class Pass:
    """The base of core's passes, and a convenience for plugins: the name comes from the class (``UnrollLoops`` is
    ``unroll_loops``), the summary is the first line of its docstring, the fields are its options."""

    name: ClassVar[str] = "pass"
    summary: ClassVar[str] = ""

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.summary = (cls.__doc__ or "").strip().partition("\n")[0]

    def run(self, module: Module) -> Module:
        """The transformed module; the same object if nothing changed."""
        raise NotImplementedError

    @classmethod
    def values_for(cls, context: PassContext) -> Mapping[str, Any]:
        """The options that follow from the target and the build; none for a pass that is the same for all."""
        return {}


def is_interface(function: Function) -> bool:
    """Whether a function is of the packed host interface: long, run once a call, and not worth optimising."""
    return function.facts.convention is CallingConvention.PACKED_HOST


@dataclass(frozen=True, slots=True)
class Step:
    """A pass in its place: the phase it belongs to, why it stands there, and whether results stay right without it."""

    phase: str
    work: PassProtocol
    reason: str = ""
    optional: bool = False

    @property
    def name(self) -> str:
        return self.work.name


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to do around the passes of one run.

    ``skip`` names optional steps to leave out, and ``optional_at_most`` lets only so many optional steps run (for
    bisecting); ``stop_after`` names the last step. ``dump`` is a folder for one numbered file per step that changed
    something. ``observe`` is called after each step with the step, the module and whether it changed.
    """

    verify: bool = False
    dump: Path | None = None
    stop_after: str = ""
    skip: frozenset[str] = frozenset()
    optional_at_most: int | None = None
    observe: Callable[[Step, Module, bool], None] | None = None
    reproducers: Path | None = None
    """Folder for reproducer files; None is the system's folder for temporary files."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one step took, in milliseconds, and whether it changed the module."""

    name: str
    milliseconds: float
    changed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The module that came out and the timings of the steps, in order."""

    module: Module
    timings: tuple[Timing, ...]

    def table(self) -> str:
        """The timings as a table for people, with the sum."""
        width = max((len(timing.name) for timing in self.timings), default=4)
        lines = [
            f"{timing.name:<{width}}  {timing.milliseconds:8.3f} ms{'' if timing.changed else '  (unchanged)'}"
            for timing in self.timings
        ]
        total = sum(timing.milliseconds for timing in self.timings)
        return "\n".join([*lines, f"{'total':<{width}}  {total:8.3f} ms"])


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Steps in order, and the target they were made for (None: for none in particular)."""

    steps: tuple[Step, ...]
    target: Target | None = None

    @classmethod
    def of(cls, passes: Sequence[PassProtocol], target: Target | None = None) -> Pipeline:
        """A pipeline of just these passes."""
        return cls(tuple(Step("chosen", work) for work in passes), target)

    def text(self) -> str:
        """The passes with their options, in the form that :func:`~gristmill.passes.options.parse_passes` reads."""
        return ",".join(print_pass(step.work) for step in self.steps)

    def selected(self, options: RunOptions) -> Iterator[Step]:
        """The steps that a run with these options takes."""
        taken = 0
        for step in self.steps:
            if step.optional:
                if step.name in options.skip:
                    continue
                if options.optional_at_most is not None and taken >= options.optional_at_most:
                    continue
                taken += 1
            yield step
            if step.name == options.stop_after:
                return

    def run(self, module: Module, options: RunOptions | None = None) -> Module:
        """The module after all steps. Raises UserError for the user's mistakes, InternalError for a failing pass."""
        return self.run_timed(module, options).module

    def run_timed(self, module: Module, options: RunOptions | None = None) -> Outcome:
        """As :meth:`run`, with the time of each step."""
        options = options or RunOptions()
        return run_deep(lambda: self._run(module, options), module)

    def _run(self, module: Module, options: RunOptions) -> Outcome:
        if options.verify:
            _verify(module, "")
        if options.dump is not None:
            _dump(options.dump, 0, "input", module)
        timings = []
        for number, step in enumerate(self.selected(options), 1):
            result, milliseconds = self._step(step, module, options)
            timings.append(Timing(step.name, milliseconds, result is not module))
            if options.dump is not None and result is not module:
                _dump(options.dump, number, step.name, result)
            if options.observe is not None:
                options.observe(step, result, result is not module)
            module = result
        return Outcome(module, tuple(timings))

    def _step(self, step: Step, module: Module, options: RunOptions) -> tuple[Module, float]:
        """The module after the step, and how many milliseconds its pass took (verifying left out)."""
        try:
            start = time.perf_counter()
            result = step.work.run(module)
            milliseconds = (time.perf_counter() - start) * 1e3
            if options.verify and result is not module:
                _verify(result, step.name)
            return result, milliseconds
        except UserError:
            raise
        except Exception as error:
            raise self._fault(step, module, error, options) from error

    def _fault(self, step: Step, module: Module, error: Exception, options: RunOptions) -> InternalError:
        """The error to raise for a failing step, with all that is known of the place, and a reproducer on disk."""
        from gristmill.passes import reproducer

        node, place = _circumstances(error)
        if isinstance(error, InternalError):
            message = error.message
            node, place = error.where.node or node, error.where.place or place
        else:
            message = f"{type(error).__name__}: {error}"
        failing = Pipeline((step,), self.target)
        try:
            folder = options.reproducers or Path(tempfile.gettempdir())
            path = str(reproducer.write(folder, failing.text(), step.name, self.target, message, module))
        except Exception as unwritten:  # the first fault matters more than that it could not be kept
            path = ""
            message += f" (and no reproducer could be written: {unwritten})"
        kind = type(error) if isinstance(error, InternalError) else InternalError
        return kind(message, pass_name=step.name, node=node, place=place, reproducer=path)


def bisect(pipeline: Pipeline, module: Module, is_good: Callable[[Module], bool]) -> Step | None:
    """The first optional step with which the result is no longer good; None if it is good with all of them.

    Raises ValueError if the result is bad without any optional step.
    """
    optional = [step for step in pipeline.steps if step.optional]

    def good_with(count: int) -> bool:
        return is_good(pipeline.run(module, RunOptions(optional_at_most=count)))

    if good_with(len(optional)):
        return None
    if not good_with(0):
        raise ValueError("the result is bad without any optional pass too")
    good, bad = 0, len(optional)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if good_with(middle) else (good, middle)
    return optional[bad - 1]


def _verify(module: Module, after: str) -> None:
    from gristmill.ir import verify

    verify.check(module, after=after)


def _dump(folder: Path, number: int, name: str, module: Module) -> None:
    from gristmill.ir.printer import print_module

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:03}_{name.replace('/', '_')}.gmir"
    replace_file(path, print_module(module).encode(), follow_links=False)


def _circumstances(error: BaseException) -> tuple[str, Place | None]:
    """What the failing code was looking at: the innermost node in a local variable, and the innermost place of one."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    text = ""
    for frame in reversed(frames):
        for value in frame.f_locals.values():
            if isinstance(value, Node) and not isinstance(value, Module):
                text = text or repr(value)[:_NODE_TEXT_AT_MOST]
                place = place_of(getattr(value, "span", None))
                if place is not None:
                    return text, place
    return text, None
