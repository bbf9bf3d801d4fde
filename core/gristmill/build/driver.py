"""The build: a manifest in, packs out."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.build.assemble import assemble
from gristmill.build.compile import Compiled, Compiler, Job, plan_job
from gristmill.build.device_parts import host_names, unknown_hosts
from gristmill.build.manifest import Manifest, load_manifest, missing_sources
from gristmill.build.manifest_kinds import refuse_unknown_texts, resolve_targets, unknown_texts
from gristmill.build.manifest_passes import unknown_passes
from gristmill.build.report import BuildReport, PackReport, PartReport
from gristmill.errors import Diagnostic, GristmillError, UserError, suggestion
from gristmill.pack.format import SUFFIX
from gristmill.pack.writer import save

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry

OUTPUT_FOLDER = Path("build", "kernels")
"""Where packs go, below the manifest's folder."""


def build(
    manifest: str | os.PathLike[str] = "kernels.toml",
    *,
    modules: Collection[str] | None = None,
    targets: Collection[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    texts: Collection[str] = (),
    registry: Registry | None = None,
) -> BuildReport:
    """Build the packs of a manifest (a file, or a folder that has a ``kernels.toml``).

    ``modules`` and ``targets`` choose by name; by default all are built. Packs go to ``output``, by default
    ``build/kernels`` beside the manifest; ``texts`` are kinds of text for people that they keep besides those that the
    manifest names. Each is written whole or not at all, and only if its bytes changed. Nothing is
    written if anything is wrong: all modules and targets are compiled first, and their mistakes come in one
    :class:`~gristmill.errors.UserError`.
    """
    begin = time.perf_counter()
    plan = Plan.of(manifest, modules, targets, registry, texts)
    compiled = plan.compile()
    folder = Path(output) if output is not None else Path(plan.manifest.folder) / OUTPUT_FOLDER
    packs = [(name, parts, assemble(plan.manifest.project.name, name, parts)) for name, parts in compiled.items()]
    _make_folder(folder)
    reports = []
    for name, parts, data in packs:
        path = folder / f"{name}{SUFFIX}"
        changed = save(path, data)
        milliseconds = sum(part.milliseconds for part in parts)
        reports.append(PackReport(name, path, len(data), changed, milliseconds, tuple(map(_part_report, parts))))
    return BuildReport(Path(plan.manifest.file), tuple(reports), (time.perf_counter() - begin) * 1e3)


def check(
    manifest: str | os.PathLike[str] = "kernels.toml",
    *,
    modules: Collection[str] | None = None,
    targets: Collection[str] | None = None,
    registry: Registry | None = None,
) -> Manifest:
    """Check manifest and kernels for all targets as a build would, and write nothing. Raises UserError with all mistakes."""
    plan = Plan.of(manifest, modules, targets, registry)
    plan.compile()
    return plan.manifest


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the folder {folder} can't be made for the packs: {error.strerror}"
        raise UserError(
            Diagnostic("GM0811", message, hint="name a folder that can be made, with --output or `output`")
        ) from None


def _part_report(part: Compiled) -> PartReport:
    return PartReport(
        part.job.target_name,
        str(part.job.target),
        part.blobs[0].kind if part.blobs else "",
        tuple(function.name for function in part.module.public),
        sum(len(blob.data) for blob in part.blobs),
        part.milliseconds,
        part.notes,
    )


class Plan:
    """The jobs of a build, in the order of the manifest."""

    def __init__(self, manifest: Manifest, jobs: Sequence[Job], registry: Registry) -> None:
        self.manifest = manifest
        self.jobs = tuple(jobs)
        self.registry = registry

    @classmethod
    def of(
        cls,
        manifest: str | os.PathLike[str],
        modules: Collection[str] | None,
        targets: Collection[str] | None,
        registry: Registry | None,
        texts: Collection[str] = (),
    ) -> Plan:
        """Read the manifest and plan. Raises UserError for mistakes in it and for unknown names."""
        if registry is None:
            from gristmill.plugin.registry import Registry

            registry = Registry.installed()
        kinds = {kind.name: kind for kind in registry.target_kinds()}
        try:
            read = load_manifest(manifest, kinds)
        except UserError as error:
            raise _broken_kind(error, registry) from None
        wrong = [*missing_sources(read), *unknown_texts(read, kinds), *unknown_passes(read, registry)]
        if wrong:
            raise read.error(*wrong)
        refuse_unknown_texts(texts, kinds)
        _check_chosen("module", modules, [module.name for module in read.modules])
        _check_chosen("target", targets, [target.name for target in read.targets])
        built = {
            name
            for module in read.modules
            if modules is None or module.name in modules
            for name in module.targets
            if targets is None or name in targets
        }
        resolved = resolve_targets(read, kinds, registry, built)
        if any(kinds[target.kind].capabilities(target).is_device for target in resolved.values()):
            _check_hosts(read, registry)
        jobs = [
            plan_job(read, module, read.targets_by_name[name], resolved[name], texts)
            for module in read.modules
            if modules is None or module.name in modules
            for name in module.targets
            if targets is None or name in targets
        ]
        return cls(read, jobs, registry)

    def compile(self) -> dict[str, list[Compiled]]:
        """The compiled jobs by module. All jobs are tried; the mistakes of all are raised together."""
        compiler = Compiler(self.registry)
        done: dict[str, list[Compiled]] = {}
        wrong: list[Diagnostic] = []
        for job in self.jobs:
            try:
                done.setdefault(job.module, []).append(compiler.run(job))
            except UserError as error:
                compiler.sources.update(error.sources)
                wrong += [found for found in error.diagnostics if found not in wrong]
        if wrong:
            raise UserError(wrong, compiler.sources)
        return done


def _broken_kind(error: UserError, registry: Registry) -> GristmillError:
    """The error to raise for a manifest's: where a target kind is unknown because its plugin is broken, that."""
    unknown = [found.message for found in error.diagnostics if found.code == "GM0109"]
    for problem in registry.problems("targets"):
        if any(f"`{problem.origin.name}`" in message for message in unknown):
            fault = problem.error()
            fault.__cause__ = problem.cause
            return fault
    return error


def _check_hosts(manifest: Manifest, registry: Registry) -> None:
    hosts = manifest.project.host
    if wrong := unknown_hosts(hosts, registry):
        known = host_names(registry)
        raise manifest.error(*(_unknown_host(manifest, place, hosts[place], known) for place in wrong))


def _unknown_host(manifest: Manifest, place: int, host: str, known: Sequence[str]) -> Diagnostic:
    return Diagnostic(
        "GM1102",
        f"there is no code generator for the host `{host}`",
        manifest.project.place_of("host", place),
        hint=suggestion(host, known, f"there is for {', '.join(known) or 'none'}"),
    )


def _check_chosen(what: str, chosen: Collection[str] | None, known: Sequence[str]) -> None:
    wrong = [name for name in chosen or () if name not in known]
    if wrong:
        raise UserError([_unknown(what, name, known) for name in wrong])


def _unknown(what: str, name: str, known: Sequence[str]) -> Diagnostic:
    hint = suggestion(name, known, f"the {what}s are {', '.join(known) or 'none'}")
    return Diagnostic("GM1101", f"the manifest has no {what} `{name}`", hint=hint)
