"""One job of a build: one module for one target, from source to blobs of code."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.build.generation import Settings, generate
from gristmill.build.manifest import Manifest, ModuleEntry, Parameter, TargetEntry
from gristmill.errors import UserError
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.knobs import DUMP_FOLDER
from gristmill.passes.index_widths import AUTO
from gristmill.passes.manager import RunOptions
from gristmill.plugin.artifacts import Blob
from gristmill.script import ParsedSource, parse_file

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


@dataclass(frozen=True)
class Job:
    """What one compilation depends on. Plain data, so that it can be sent to another process."""

    module: str
    target_name: str
    target: Target
    kind: str
    source: Path
    root: Path
    dialect: str
    params: Mapping[str, Parameter] = field(default_factory=dict)
    functions: tuple[str, ...] | None = None
    passes: tuple[str, ...] = ()
    externs: Mapping[str, str] = field(default_factory=dict)
    optimization: int = 3
    fast_math: bool = False
    texts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """The machines that host parts are compiled for, where the target is a device."""
    indices: str = AUTO


@dataclass(frozen=True)
class Compiled:
    """The code of one job, the module it was made from (as parsed), and how long it took."""

    job: Job
    module: Module
    blobs: tuple[Blob, ...]
    milliseconds: float
    notes: tuple[str, ...] = ()
    """What of the code there is not, and why."""


def plan_job(
    manifest: Manifest, module: ModuleEntry, target: TargetEntry, resolved: Target, texts: Collection[str] = ()
) -> Job:
    """The job for a module and a target of the manifest, whose kind has resolved it; ``texts`` are kept besides."""
    settings = module.settings(target.name)
    return Job(
        module.name,
        target.name,
        resolved,
        target.target.kind,
        Path(manifest.source_path(module)),
        Path(manifest.folder),
        module.dialect,
        settings.params,
        settings.functions,
        settings.passes,
        module.extern,
        settings.options.opt_level,
        settings.options.fast_math,
        tuple(dict.fromkeys((*settings.options.texts, *texts))),
        manifest.project.host,
        settings.options.indices,
    )


class Compiler:
    """Runs jobs one after the other; sources that several targets share are parsed once."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.parsed: dict[object, ParsedSource] = {}
        self.sources: dict[str, str] = {}

    def run(self, job: Job) -> Compiled:
        """Parse, lower and generate. Raises UserError with the user's source where the kernel or the target is at fault."""
        begin = time.perf_counter()
        parsed = self._parse(job)
        self.sources.update(parsed.sources)
        try:
            code = generate(parsed.module, job.target, self.registry, _settings(job))
        except UserError as error:
            error.sources.update(parsed.sources)
            raise
        return Compiled(job, parsed.module, code.blobs, (time.perf_counter() - begin) * 1e3, code.notes)

    def _parse(self, job: Job) -> ParsedSource:
        key = (job.source, job.dialect, tuple(sorted(job.params.items())), job.functions, tuple(job.externs.items()))
        found = self.parsed.get(key)
        if found is None:
            found = self.parsed[key] = parse_file(
                job.source,
                root=job.root,
                dialect=job.dialect,
                params=job.params,
                functions=job.functions,
                externs=job.externs,
            )
        return found


def _settings(job: Job) -> Settings:
    return Settings(
        job.module,
        job.optimization,
        job.fast_math,
        job.passes,
        frozenset(job.texts),
        job.indices,
        hosts=job.hosts,
        run_options=_run_options(job),
    )


def _run_options(job: Job) -> RunOptions:
    folder = DUMP_FOLDER.value()
    return RunOptions(dump=Path(folder) / f"{job.module}-{job.target_name}") if folder else RunOptions()
