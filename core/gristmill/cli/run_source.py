"""Running a kernel from its source on the reference executor, which checks every access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gristmill.errors import Diagnostic, Note, UserError, suggestion

MET_WITHOUT_BARRIER = ("GM0502", "GM0504")
"""Reports that threads give which meet in memory where the build would put a barrier."""
_AS_IT_STANDS = Note(
    "the source is run as it stands, and a build puts barriers where threads meet in memory: build it for the target "
    "`reference` and run the pack, which checks every access as well"
)


def source_function(file: str, name: str, dialect: str) -> Callable[..., Any]:
    """The public function of a kernel source, to be called with NumPy arrays, which are written in place, and numbers.

    Raises UserError: with the mistakes of the source, with GM0013 for a function that it does not have; a call raises
    UserError (GM05xx) for whatever the kernel does wrong, at its line.
    """
    from gristmill.interp import Executor
    from gristmill.ir.functor import walk
    from gristmill.ir.stmt import For
    from gristmill.ir.verify import check
    from gristmill.script import parse_file

    path = Path(file)
    parsed = parse_file(path, root=path.parent, dialect=dialect)
    names = [function.name for function in parsed.module.public]
    if name not in names:
        hint = suggestion(name, names, f"the public functions are {', '.join(names) or 'none'}")
        raise UserError(Diagnostic("GM0013", f"{file} has no public function `{name}`", hint=hint))
    check(parsed.module)
    executor = Executor(parsed.module)
    has_threads = any(isinstance(node, For) and node.thread is not None for node in walk(parsed.module))

    def call(*arguments: Any) -> Any:
        try:
            return executor.call(name, arguments).value
        except UserError as error:
            error.sources.update(parsed.sources)
            if has_threads and error.code in MET_WITHOUT_BARRIER:
                raise UserError(
                    [replace(found, notes=(*found.notes, _AS_IT_STANDS)) for found in error.diagnostics], error.sources
                ) from None
            raise

    return call
