"""One job of a build: one module for one target, from source to blobs of code."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.build.arguments import arguments_of
from gristmill.build.manifest import Manifest, ModuleEntry, Parameter, TargetEntry
from gristmill.errors import InternalError, UserError
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.knobs import DUMP_FOLDER
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.artifacts import Blob, KernelArgument, KernelRecord
from gristmill.plugin.guarded import passes_named
from gristmill.plugin.protocols import CodeGenerator, GenerateOptions, PassContext, TargetKind
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


@dataclass(frozen=True)
class Compiled:
    """The code of one job, the module it was made from (as parsed), and how long it took."""

    job: Job
    module: Module
    blobs: tuple[Blob, ...]
    milliseconds: float


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
            blobs = generate(
                parsed.module,
                job.target,
                self.registry,
                name=job.module,
                optimization=job.optimization,
                fast_math=job.fast_math,
                passes=job.passes,
                texts=frozenset(job.texts),
                run_options=_run_options(job),
            )
        except UserError as error:
            error.sources.update(parsed.sources)
            raise
        return Compiled(job, parsed.module, blobs, (time.perf_counter() - begin) * 1e3)

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


def generate(
    module: Module,
    target: Target,
    registry: Registry,
    *,
    name: str,
    optimization: int,
    fast_math: bool,
    passes: Sequence[str],
    texts: frozenset[str],
    run_options: RunOptions,
) -> tuple[Blob, ...]:
    """Lower a module and generate its code for a resolved target."""
    kind = registry.target_kind(target.kind)
    generator = _generator(kind, registry)
    context = PassContext(target, kind.capabilities(target), {"optimization": optimization, "fast_math": fast_math})
    with passes_named(registry):
        pipeline = build_pipeline(context, registry.pass_entries(), passes)
        # What others have written is not taken on trust.
        run_options = replace(run_options, verify=run_options.verify or bool(passes))
        lowered = pipeline.run(_with_fast_math(module, fast_math), run_options)
        if module.public and not lowered.public:
            raise InternalError("the passes have lost all public functions")
    blobs = generator.generate(lowered, target, GenerateOptions(name, optimization, texts))
    _check_kinds(kind, blobs, registry)
    arguments = {function.facts.symbol or function.name: arguments_of(function, module) for function in module.public}
    return tuple(replace(blob, kernels=_with_arguments(blob.kernels, arguments)) for blob in blobs)


def _generator(kind: TargetKind, registry: Registry) -> CodeGenerator:
    try:
        return registry.code_generator(kind.generator)
    except UserError as error:
        # The user has not named it.
        what = f"names the code generator {kind.generator!r} for the target kind {kind.name!r}, which there is not"
        raise registry.fault("targets", kind.name, what) from error


def _check_kinds(kind: TargetKind, blobs: Sequence[Blob], registry: Registry) -> None:
    """Refuse what no runtime could take: no code at all, or code of kinds that the target kind does not name."""
    if not blobs:
        raise registry.fault("code_generators", kind.generator, f"made no code for the target kind {kind.name!r}")
    for blob in blobs:
        if blob.kind not in kind.blob_kinds:
            what = f"made code of kind {blob.kind!r}; the target kind {kind.name!r} is for {', '.join(kind.blob_kinds)}"
            raise registry.fault("code_generators", kind.generator, what)


def _with_arguments(
    records: Sequence[KernelRecord], arguments: Mapping[str, tuple[KernelArgument, ...]]
) -> tuple[KernelRecord, ...]:
    """The records of host functions with the arguments that their authors gave them: a generator sees them lowered."""
    return tuple(
        record if record.arguments or record.axes else replace(record, arguments=arguments.get(record.name, ()))
        for record in records
    )


def _with_fast_math(module: Module, fast_math: bool) -> Module:
    if not fast_math:
        return module
    return module.with_functions(function.with_facts(fast_math=True) for function in module.functions)


def _run_options(job: Job) -> RunOptions:
    folder = DUMP_FOLDER.value()
    return RunOptions(dump=Path(folder) / f"{job.module}-{job.target_name}") if folder else RunOptions()
