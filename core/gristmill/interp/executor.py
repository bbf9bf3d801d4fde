"""The reference executor: runs a verified module as the language defines it, and reports what it does not allow.

:class:`Executor` prepares a module once and calls its functions many times; :func:`execute` does both for one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from gristmill.errors import Note
from gristmill.interp.arguments import dtype_of_array, refuse, take_arguments, tensors_of
from gristmill.interp.definitions import Mode
from gristmill.interp.options import DEFAULT_OPTIONS, ExecutionOptions, ExecutionResult
from gristmill.interp.packed import AnyArguments, AnyResult, any_value
from gristmill.interp.program import Program
from gristmill.interp.races import Strand
from gristmill.interp.reports import AssertionFailed, ExecutionError, Site, report
from gristmill.interp.state import Execution, Overhang
from gristmill.interp.threads import launch
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.stmt import ThreadAxis
from gristmill.recursion import room_for

# Frames of generated code, and of the executor, for each call of the program.
_FRAMES_PER_CALL = 4
_SPARE_FRAMES = 2_000


class Executor:
    """A module prepared for execution; ``options`` hold for every call that brings none of its own."""

    def __init__(self, module: Module, options: ExecutionOptions = DEFAULT_OPTIONS) -> None:
        self.module = module
        self.options = options
        self.program = Program(module)

    def call(self, function: str, args: Sequence[object], options: ExecutionOptions | None = None) -> ExecutionResult:
        """Call a function as its author wrote it.

        ``args`` are NumPy arrays, written in place, and numbers, one for each parameter. Raises ExecutionError for
        wrong arguments and for whatever the program does wrong.
        """
        found = self.lookup(function)
        if found.facts.convention is not CallingConvention.PLAIN:
            kind = found.facts.convention.value
            raise report(
                "GM0512",
                f"`{function}` has the calling convention `{kind}`, so it cannot be called with plain arguments",
                Site(function, found.span),
                hint="use call_packed for packed functions, and launch for kernels",
            )
        code = self.program.function(function, Mode.SERIAL)
        values = take_arguments(found, args)
        execution = self.execution(options)
        result = self.guarded(execution, lambda: code(execution, Strand(), *values))
        return ExecutionResult(_python_value(result, found), execution.steps)

    def call_packed(
        self, function: str, args: Sequence[object], options: ExecutionOptions | None = None
    ) -> ExecutionResult:
        """Call a function of the packed host interface: any arguments, which its own code checks.

        ``args`` are None, numbers, texts, NumPy arrays or tensors. Raises AssertionFailed with the Python error that
        the function's checks would raise.
        """
        found = self.lookup(function)
        if found.facts.convention is not CallingConvention.PACKED_HOST:
            raise report(
                "GM0512", f"`{function}` is not a function of the packed host interface", Site(function, found.span)
            )
        code = self.program.function(function, Mode.SERIAL)
        arrays = [(number, arg) for number, arg in enumerate(args) if isinstance(arg, np.ndarray)]
        dtypes = [dtype_of_array(array) for _, array in arrays]
        values = list(args)
        known = [dtype for dtype in dtypes if dtype is not None]
        if len(known) != len(arrays):
            raise refuse(found, None, "an array has elements of a type that the language lacks")
        names = [f"argument {number}" for number, _ in arrays]
        tensors = tensors_of([array for _, array in arrays], names, known)
        for (number, _), tensor in zip(arrays, tensors, strict=True):
            values[number] = tensor
        packed = AnyArguments(tuple(any_value(value) for value in values))
        result = AnyResult()
        execution = self.execution(options)
        status = self.guarded(execution, lambda: code(execution, Strand(), None, packed, len(values), result))
        if status != 0:
            raise report(
                "GM0519",
                f"`{function}` returned the status {status} without an error",
                Site(function, found.span),
                hint="a packed function returns 0, or leaves by a failed assert",
            )
        return ExecutionResult(result.found.held, execution.steps)

    def launch(
        self,
        kernel: str,
        args: Sequence[object],
        extents: Mapping[ThreadAxis, int],
        dynamic_shared: int | None = None,
        options: ExecutionOptions | None = None,
    ) -> ExecutionResult:
        """Launch a device kernel with the extents of its axes, and the bytes of its dynamic shared memory."""
        found = self.lookup(kernel)
        if found.facts.convention is not CallingConvention.DEVICE_KERNEL:
            raise report("GM0512", f"`{kernel}` is not a kernel, so it cannot be launched", Site(kernel, found.span))
        if found.facts.declaration:
            message = f"`{kernel}` is only declared in this module, so there is no code of it to launch"
            raise report("GM0512", message, Site(kernel, found.span))
        code = self.program.function(kernel, Mode.DEVICE)
        values = take_arguments(found, args)
        execution = self.execution(options)
        site = self.program.site(Site(kernel, found.span, kernel))
        barriers = self.program.barriers if kernel in self.program.that_wait else None
        self.guarded(
            execution,
            lambda: launch(execution, code, tuple(values), extents, site, Strand(), barriers, dynamic_shared),
        )
        return ExecutionResult(None, execution.steps)

    # Parts ------------------------------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Function:
        found = self.program.functions.get(name)
        if found is None:
            known = ", ".join(f"`{known}`" for known in self.program.functions) or "none"
            raise report("GM0512", f"the module has no function `{name}`; it has {known}", None)
        return found

    def execution(self, options: ExecutionOptions | None) -> Execution:
        return Execution(self.options if options is None else options, self.program.sites)

    def guarded(self, execution: Execution, run: Callable[[], Any]) -> Any:
        """Run code; what Python itself refuses becomes a report at the user's line, and calls on the way are noted."""
        try:
            with room_for(execution.options.recursion_limit * _FRAMES_PER_CALL + _SPARE_FRAMES):
                # NaNs that NumPy's code would warn of do not occur here; nothing of the caller's is changed.
                return run()
        except ExecutionError as error:
            raise self.with_calls(error) from None
        except Overhang as error:
            overhang = error
            raise self.at_line(
                error, lambda site: execution.outside_memory(site, overhang.memory, overhang.byte)
            ) from None
        except TypeError as error:
            if str(error) != "cannot modify read-only memory":
                raise
            raise self.at_line(error, execution.read_only) from None
        except RecursionError as error:
            raise self.at_line(error, execution.too_deep) from None

    def at_line(self, cause: BaseException, make: Callable[[int], NoReturn]) -> BaseException:
        """The report for what Python refused in generated code; the cause itself if it did not come from there."""
        sites = self.program.sites_of(cause.__traceback__)
        if not sites:
            return cause
        try:
            make(sites[-1])
        except ExecutionError as error:
            return self.with_calls(error, cause)

    def with_calls(self, error: ExecutionError, cause: BaseException | None = None) -> ExecutionError:
        """The report with a note for each call that it happened in."""
        traceback = (error if cause is None else cause).__traceback__
        places = [self.program.sites[site].place for site in self.program.sites_of(traceback)]
        first = error.diagnostics[0]
        calls = [place for place in dict.fromkeys(places) if place is not None and place != first.place]
        notes = tuple(Note("called from here", place) for place in reversed(calls[-_CALLS_SHOWN:]))
        diagnostic = replace(first, notes=(*first.notes, *notes))
        if isinstance(error, AssertionFailed):
            return AssertionFailed(diagnostic, error.sources, error.kind, error.message)
        return ExecutionError(diagnostic, error.sources)


_CALLS_SHOWN = 8


def _python_value(result: Any, function: Function) -> int | float | bool | None:
    if not function.returns_value:
        return None
    if function.returns.is_bool:
        return bool(result)
    return float(result) if function.returns.is_float else int(result)


def execute(
    module: Module, function: str, args: Sequence[object], *, options: ExecutionOptions = DEFAULT_OPTIONS
) -> ExecutionResult:
    """Call one function of a module once. As :meth:`Executor.call`."""
    return Executor(module, options).call(function, args)


def execute_packed(
    module: Module, function: str, args: Sequence[object], *, options: ExecutionOptions = DEFAULT_OPTIONS
) -> ExecutionResult:
    """Call one function of the packed host interface once. As :meth:`Executor.call_packed`."""
    return Executor(module, options).call_packed(function, args)
