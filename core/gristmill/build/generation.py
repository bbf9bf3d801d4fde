"""From a module as its author wrote it to code for one target: the passes, then the code generator."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gristmill.build.arguments import arguments_of
from gristmill.errors import InternalError, UserError
from gristmill.ir.dtype import INT32
from gristmill.ir.module import Module
from gristmill.ir.target import Target
from gristmill.passes.index_widths import AUTO
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.artifacts import Blob, KernelArgument, KernelRecord
from gristmill.plugin.guarded import passes_named
from gristmill.plugin.protocols import CodeGenerator, GenerateOptions, PassContext, TargetKind

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


@dataclass(frozen=True)
class Settings:
    """What the manifest says of the code of a module, beside its source and its target."""

    name: str
    optimization: int = 3
    fast_math: bool = False
    passes: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    indices: str = AUTO
    """What kernels compute indices in: one of :data:`gristmill.passes.index_widths.WIDTHS`."""
    index_limit: int = INT32.maximum
    """The greatest index that is taken for one of 32 bits. Tests make it smaller, to see both kernels at work."""
    hosts: tuple[str, ...] = ()
    """The machines that host parts are compiled for, where the target is a device."""
    run_options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class Generated:
    """The code of a module for a target; ``notes`` say what of it there is not, and why."""

    blobs: tuple[Blob, ...]
    notes: tuple[str, ...] = ()


def generate(module: Module, target: Target, registry: Registry, settings: Settings) -> Generated:
    """Lower a module and generate its code for a resolved target.

    Raises UserError for the user's mistakes, PluginError for a plugin's.
    """
    kind = registry.target_kind(target.kind)
    if kind.capabilities(target).is_device:
        from gristmill.build.device_parts import generate_for_device

        return generate_for_device(module, target, kind, registry, settings)
    lowered = lower(with_fast_math(module, settings.fast_math), kind, target, registry, settings)
    blobs = code_of(lowered, kind, target, registry, settings)
    return Generated(with_arguments(blobs, module))


def lower(
    module: Module,
    kind: TargetKind,
    target: Target,
    registry: Registry,
    settings: Settings,
    *,
    phases: Collection[str] | None = None,
    dump: str = "",
) -> Module:
    """Run the passes over a module: all phases, or some of them; ``dump`` is a folder below that for dumps."""
    context = PassContext(
        target,
        kind.capabilities(target),
        {
            "optimization": settings.optimization,
            "fast_math": settings.fast_math,
            "indices": settings.indices,
            "index_limit": settings.index_limit,
            "device_type": kind.device_type,
        },
    )
    # What others have written is not taken on trust.
    options = replace(settings.run_options, verify=settings.run_options.verify or bool(settings.passes))
    if options.dump is not None and dump:
        options = replace(options, dump=options.dump / dump)
    with passes_named(registry):
        pipeline = build_pipeline(context, registry.pass_entries(), settings.passes, phases)
        lowered = pipeline.run(module, options)
        if module.public and not lowered.public:
            raise InternalError("the passes have lost all public functions")
    return lowered


def code_of(
    lowered: Module, kind: TargetKind, target: Target, registry: Registry, settings: Settings
) -> tuple[Blob, ...]:
    """What the kind's generator makes of a lowered module, checked."""
    blobs = generator_of(kind, registry).generate(
        lowered, target, GenerateOptions(settings.name, settings.optimization, settings.texts)
    )
    _check_kinds(kind, blobs, registry)
    return tuple(blobs)


def generator_of(kind: TargetKind, registry: Registry) -> CodeGenerator:
    """The code generator that a target kind names. Raises PluginError where there is none of that name."""
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


def with_arguments(blobs: Sequence[Blob], module: Module) -> tuple[Blob, ...]:
    """Host code with the arguments in its records that the authors of its functions gave them.

    A generator sees them lowered. ``module`` is as it was parsed.
    """
    arguments = {function.facts.symbol or function.name: arguments_of(function, module) for function in module.public}
    return tuple(replace(blob, kernels=_with_arguments(blob.kernels, arguments)) for blob in blobs)


def _with_arguments(
    records: Sequence[KernelRecord], arguments: Mapping[str, tuple[KernelArgument, ...]]
) -> tuple[KernelRecord, ...]:
    return tuple(
        record if record.arguments or record.axes else replace(record, arguments=arguments.get(record.name, ()))
        for record in records
    )


def with_fast_math(module: Module, fast_math: bool) -> Module:
    """The module with fast math in all its functions, if it is asked for."""
    if not fast_math:
        return module
    return module.with_functions(function.with_facts(fast_math=True) for function in module.functions)
