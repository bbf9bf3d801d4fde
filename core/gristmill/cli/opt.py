"""Run passes over kernels and print what comes out.

The file is a kernel source (.py) or a module in text form, as --dump and this command write it. Without --passes the
whole pipeline for the target runs. --repro replays what a failing pass left behind.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.cli.output import add_json_option, write_file, write_json
from gristmill.cli.selection import add_plugin_option, registry_of
from gristmill.errors import Diagnostic, UserError
from gristmill.plugin.guarded import passes_named
from gristmill.script.dialects import DIALECTS

if TYPE_CHECKING:
    from gristmill.ir.module import Module
    from gristmill.passes.manager import Outcome, Pipeline, RunOptions, Step
    from gristmill.plugin.protocols import PassContext
    from gristmill.plugin.registry import Registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", help="a kernel source, or a module in text form")
    parser.add_argument("-t", "--target", help="a target string, such as cpu:x86-64-v3")
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="how a kernel source is spelled")
    parser.add_argument("--passes", metavar="LIST", help="run just these, such as a,b{limit=8}")
    parser.add_argument(
        "--with", dest="chosen", action="append", default=[], metavar="PASS", help="add an optional pass"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="PASS", help="leave out an optional pass")
    parser.add_argument("--stop-after", default="", metavar="PASS", help="stop after this pass")
    parser.add_argument("--print-after", action="append", default=[], metavar="PASS", help="print the module after it")
    parser.add_argument("--print-all", action="store_true", help="print the module after every pass that changed it")
    parser.add_argument("--dump", metavar="FOLDER", help="write the module after every pass that changed it, numbered")
    parser.add_argument("--verify", action="store_true", help="check the module after every pass")
    parser.add_argument("--time", action="store_true", help="print how long each pass took")
    parser.add_argument("--list", action="store_true", help="print the passes that would run, and why there")
    parser.add_argument("--repro", metavar="FILE", help="replay a reproducer file")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the result here instead of printing it")
    add_plugin_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    registry = registry_of(options)
    if options.repro:
        return _replay(options, registry)
    context = _context(options.target, registry, required=not options.passes)
    with passes_named(registry):
        pipeline = _pipeline(options, registry, context)
    _check_names(options, pipeline)
    if options.list:
        return _list(pipeline, options.json)
    if options.file is None:
        raise UserError(
            Diagnostic("GM0010", "no file to run passes over", hint="name a kernel source or a module's text")
        )
    module = _read(options.file, options.dialect)
    with passes_named(registry):
        outcome = pipeline.run_timed(module, _run_options(options))
    _write(outcome, options)
    return 0


def _context(target: str | None, registry: Registry, required: bool) -> PassContext | None:
    from gristmill.ir.target import parse_target
    from gristmill.plugin.protocols import PassContext

    if target is None:
        kinds = registry.target_kinds() if required else ()
        if not required:
            return None
        if len(kinds) != 1:
            names = ", ".join(kind.name for kind in kinds) or "none"
            raise UserError(
                Diagnostic(
                    "GM0010", "passes depend on a target", hint=f"name one with --target; installed kinds: {names}"
                )
            )
        target = kinds[0].name
    try:
        named = parse_target(target)
        kind = registry.target_kind(named.kind)
        resolved = kind.resolve(named)
    except ValueError as error:
        raise UserError(
            Diagnostic("GM0010", f"--target {target}: {error}", hint="`gristmill targets` lists them")
        ) from None
    return PassContext(resolved, kind.capabilities(resolved))


def _pipeline(options: argparse.Namespace, registry: Registry, context: PassContext | None) -> Pipeline:
    from gristmill.passes.manager import Pipeline
    from gristmill.passes.options import parse_passes
    from gristmill.passes.pipeline import build_pipeline, known_passes

    entries = registry.pass_entries()
    if options.passes:
        passes = parse_passes(options.passes, known_passes(entries, context), context)
        return Pipeline.of(passes, context.target if context else None)
    assert context is not None
    return build_pipeline(context, entries, options.chosen)


def _check_names(options: argparse.Namespace, pipeline: Pipeline) -> None:
    """Refuse names of passes that do not run: to leave out or to stop after one of them would do nothing."""
    from gristmill.passes.options import unknown_pass

    names = tuple(dict.fromkeys(step.name for step in pipeline.steps))
    for name in (*options.skip, *options.print_after, *filter(None, [options.stop_after])):
        if name not in names:
            raise unknown_pass(name, names)


def _run_options(options: argparse.Namespace) -> RunOptions:
    from gristmill import knobs
    from gristmill.ir.printer import print_module
    from gristmill.passes.manager import RunOptions

    def observe(step: Step, module: Module, changed: bool) -> None:
        if step.name in options.print_after or (options.print_all and changed):
            print(f"# after {step.name}{'' if changed else ' (unchanged)'}\n{print_module(module)}", file=sys.stderr)

    folder = options.dump or knobs.DUMP_FOLDER.value()
    return RunOptions(
        verify=options.verify,
        dump=Path(folder) if folder else None,
        stop_after=options.stop_after,
        skip=frozenset(options.skip),
        observe=observe,
    )


def _read(file: str, dialect: str) -> Module:
    if file.endswith(".py"):
        from gristmill.script import parse_file

        path = Path(file)
        return parse_file(path, root=path.parent, dialect=dialect).module
    from gristmill.ir.parser import parse_module

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "name a kernel source or a module's text"
        raise UserError(Diagnostic("GM0010", f"can't read `{file}`: {error}", hint=hint)) from None
    return parse_module(text, file)


def _write(outcome: Outcome, options: argparse.Namespace) -> None:
    from gristmill.ir.printer import print_module

    text = print_module(outcome.module)
    if options.output:
        write_file(options.output, text.encode(), force=True)
    if options.json:
        timings = [
            {"pass": timing.name, "milliseconds": round(timing.milliseconds, 4), "changed": timing.changed}
            for timing in outcome.timings
        ]
        write_json({"timings": timings, "module": text})
        return
    if not options.output:
        print(text)
    if options.time:
        print(outcome.table(), file=sys.stderr)


def _list(pipeline: Pipeline, as_json: bool) -> int:
    if as_json:
        steps = [
            {"phase": step.phase, "pass": step.name, "optional": step.optional, "reason": step.reason}
            for step in pipeline.steps
        ]
        write_json({"steps": steps})
        return 0
    for step in pipeline.steps:
        print(f"{step.phase}: {step.name}{' (optional)' if step.optional else ''}: {step.reason}")
    return 0


def _replay(options: argparse.Namespace, registry: Registry) -> int:
    from gristmill.ir.printer import print_module
    from gristmill.passes import reproducer

    path = Path(options.repro)
    found = reproducer.read(path)
    context = _context(str(found.target), registry, required=True) if found.target else None
    module = reproducer.replay(path, registry.pass_entries(), context)
    if options.json:
        write_json({"failing": found.failing, "fails": False, "module": print_module(module)})
    else:
        print(print_module(module))
        print(f"pass `{found.failing}` does not fail any more", file=sys.stderr)
    return 0
