"""Reproducer files: a failing pass, its options and the module it failed on, in one text file that runs again.

The file starts with comment lines (version, pipeline, failing pass, target, error) up to a line ``# ir:``; the text of
the module follows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.errors import Diagnostic, UserError
from gristmill.files import replace_file
from gristmill.ir.module import Module
from gristmill.ir.target import Target, parse_target
from gristmill.plugin.protocols import PassContext, PassEntry
from gristmill.version import __version__

_FIRST_LINE = "# gristmill reproducer"
_LAST_LINE = "# ir:"


@dataclass(frozen=True, slots=True)
class Reproducer:
    """What a reproducer file says: who wrote it, what to run, for which target, and the module before the pass."""

    version: str
    pipeline: str
    failing: str
    target: Target | None
    error: str
    ir: str


def write(folder: Path, pipeline: str, failing: str, target: Target | None, error: str, module: Module) -> Path:
    """Write a reproducer into the folder; its name holds the pass and a hash of the content."""
    from gristmill.ir.printer import print_module

    header = [
        _FIRST_LINE,
        f"# version: {__version__}",
        f"# pipeline: {pipeline}",
        f"# failing: {failing}",
        f"# target: {target or ''}",
        f"# error: {' '.join(error.split())}",
        _LAST_LINE,
    ]
    text = "\n".join([*header, print_module(module)])
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = folder / f"gristmill-{failing.replace('/', '_')}-{digest}.repro"
    # The folder may be one for everybody, and the module somebody's own: for the eyes of who wrote it.
    replace_file(path, text.encode(), follow_links=False, mode=0o600)
    return path


def read(path: Path) -> Reproducer:
    """The content of a reproducer file. Raises UserError (GM0605) for a file of another form, or none."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(Diagnostic("GM0605", f"`{path}` can't be read: {error}")) from None
    if lines[0].strip() != _FIRST_LINE or _LAST_LINE not in lines:
        raise UserError(
            Diagnostic(
                "GM0605",
                f"`{path}` is not a reproducer file",
                hint="a failing pass writes one and names it in its error",
            )
        )
    end = lines.index(_LAST_LINE)
    found = dict(line[2:].partition(": ")[::2] for line in lines[1:end])
    found = {key.rstrip(":"): value for key, value in found.items()}
    try:
        target = parse_target(found["target"]) if found.get("target") else None
    except ValueError as error:
        raise UserError(Diagnostic("GM0605", f"`{path}` names a target that can't be read: {error}")) from None
    return Reproducer(
        found.get("version", ""),
        found.get("pipeline", ""),
        found.get("failing", ""),
        target,
        found.get("error", ""),
        "\n".join(lines[end + 1 :]),
    )


def replay(path: Path, entries: Sequence[PassEntry] = (), context: PassContext | None = None) -> Module:
    """Run what a reproducer file holds. Returns the module if nothing fails any more; else raises what the pass raises.

    ``entries`` and ``context`` are for passes of plugins, which are made from them.
    """
    from gristmill.ir.parser import parse_module
    from gristmill.passes.manager import Pipeline, RunOptions
    from gristmill.passes.options import parse_passes
    from gristmill.passes.pipeline import known_passes

    found = read(path)
    module = parse_module(found.ir, str(path))
    passes = parse_passes(found.pipeline, known_passes(entries, context))
    return Pipeline.of(passes, found.target).run(module, RunOptions(verify=True, reproducers=path.parent))
