"""Constants of files: folded when they are first used, and replaced by ``params``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gristmill.errors import Note, Place, suggestion
from gristmill.ir.dtype import DType, parse_dtype
from gristmill.ir.expr import FloatImm, IntImm
from gristmill.script.context import Context
from gristmill.script.expressions import lower
from gristmill.script.files import Definition, File
from gristmill.script.lookup import is_constant
from gristmill.script.problems import Mistake, Reported, mistake
from gristmill.script.source import Positioned
from gristmill.script.values import Callee, ClassNamespace, FileNamespace, Symbolic, Value, describe

if TYPE_CHECKING:
    from gristmill.script.project import ParamValue, Project


def constant_of(
    project: Project, file: File, name: str, definition: Definition, context: Context, at: Positioned
) -> Value:
    """The value of a constant, folded when it is first used."""
    if definition.state == "done":
        return definition.value
    if definition.state == "wrong":
        raise Reported
    if definition.state == "folding":
        raise context.mistake(
            "GM0218",
            at,
            f"the constant `{name}` depends on itself",
            label="a circle",
            hint="give one of the constants a value that does not use the other",
        )
    override = project.params.get(name) if file.name == project.main else None
    if name in project.params and file.name == project.main:
        assert override is not None
        definition.state = "folding"
        try:
            definition.value = _overridden(project, file, name, definition, override)
        except Mistake:
            definition.state = "wrong"
            raise
        definition.state = "done"
        return definition.value
    definition.state = "folding"
    inner = Context(project, file, None)
    try:
        definition.value = _folded(project, inner, name, definition)
        definition.state = "done"
    except Mistake as problem:
        if definition.state == "folding":
            definition.state = "wrong"
        place = problem.diagnostic.place
        if context.callee is not None and problem.diagnostic.code == "GM0217" and place is not None:
            raise context.mistake(
                "GM0217", at, f"`{name}` is not a constant that can be read without executing anything",
                label="no constant", hint=problem.diagnostic.hint,
                notes=(Note("it is defined here", place),),
            ) from None  # fmt: skip
        raise
    return definition.value


def _folded(project: Project, context: Context, name: str, definition: Definition) -> Value:
    node = definition.node
    hint = f"make `{name}` a number, a text, a tuple or arithmetic of those, or a parameter of the kernel"
    if definition.times > 1:
        raise context.mistake(
            "GM0220",
            node,
            f"`{name}` is assigned {definition.times} times at the top level of the file",
            label="the last one",
            hint="give each constant a name of its own; `params` in kernels.toml make variants",
        )
    if definition.kind == "unknown" or not isinstance(node, ast.expr):
        raise context.mistake(
            "GM0217",
            node,
            f"`{name}` would have to be executed",
            label="not a plain assignment",
            hint=hint,
        )
    try:
        value = lower(context, node)
    except Mistake as problem:
        if problem.diagnostic.code in ("GM0251", "GM0253", "GM0255", "GM0297"):
            raise context.mistake(
                "GM0217", node, f"`{name}` would have to be executed", label="not a constant", hint=hint
            ) from None
        raise
    if not is_constant(value) and not isinstance(value, (Symbolic, ClassNamespace, FileNamespace, Callee)):
        from gristmill.script.values import Namespace

        if isinstance(value, Namespace):
            return value
        raise context.mistake("GM0217", node, f"`{name}` is not a constant", label=describe(value), hint=hint)
    return value


def _overridden(project: Project, file: File, name: str, definition: Definition, override: ParamValue) -> Value:
    """The value that ``params`` give; it must be of the kind of the constant in the file."""
    node = definition.node
    context = Context(project, file, None)
    try:
        default = lower(context, node) if isinstance(node, ast.expr) and definition.kind == "constant" else None
    except (Mistake, Reported):
        default = None
    found = _of_kind(default, override)
    if found is None:
        raise context.mistake(
            "GM0216",
            node if isinstance(node, (ast.expr, ast.stmt)) else None,
            f"the param `{name}` is {describe(override)}, and the constant is {describe(default)}",
            label="the constant in the file",
            hint=f"give `{name}` a value of the same kind in kernels.toml",
        )
    return found


def check_params(project: Project, file: File) -> None:
    """Every param must name a constant of the file, and be of its kind."""
    known = [name for name, one in file.definitions.items() if one.kind == "constant"]
    for name in project.params:
        definition = file.definitions.get(name)
        if definition is None or definition.kind != "constant":
            project.problems.add(
                mistake(
                    "GM0215",
                    Place(file.name, 1, 1, 1, 1),
                    f"the param `{name}` is no constant of {file.name}",
                    label="no such constant",
                    hint=suggestion(
                        name,
                        known,
                        f"its constants are {', '.join(known)}" if known else f"write `{name} = ...` at its top level",
                    ),
                )
            )
            continue
        try:
            at = definition.node
            assert isinstance(at, ast.expr)
            constant_of(project, file, name, definition, Context(project, file, None), at)
        except (Mistake, Reported) as problem:
            project.problems.add(problem)


def _type_named(text: str) -> DType | None:
    """The type of numbers that a text names, if it does."""
    try:
        found = parse_dtype(text)
    except ValueError:
        return None
    return None if found.is_handle or found.is_void else found


def _of_kind(default: Value, override: ParamValue) -> Value:
    """The param as a value of the kind of the constant; None if it is of another kind."""
    if isinstance(default, (IntImm, FloatImm)):
        plain = _of_kind(bool(default.value) if default.type.is_bool else default.value, override)
        if plain is None:
            return None
        from gristmill.script.types import literal, misfit

        return None if misfit(plain, default.type) else literal(plain, default.type, default.span)
    if isinstance(default, bool) or isinstance(override, bool):
        return override if isinstance(default, bool) and isinstance(override, bool) else None
    if isinstance(default, float) and isinstance(override, (int, float)):
        return float(override)
    if isinstance(default, int) and isinstance(override, int):
        return override
    if isinstance(default, str) and isinstance(override, str):
        return override
    if isinstance(default, DType) and isinstance(override, str):
        return _type_named(override)
    if isinstance(default, tuple) and isinstance(override, (tuple, list)):
        items = [
            _of_kind(default[index] if index < len(default) else (default[-1] if default else item), item)
            for index, item in enumerate(override)
        ]
        return None if any(item is None for item in items) else tuple(items)
    return None
