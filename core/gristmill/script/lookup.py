"""What a name stands for: names of the function, then of the file and its imports, then Python's own."""

from __future__ import annotations

import ast
import builtins
import math

from gristmill.errors import Note, close_match, suggestion
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, FloatImm, IntImm, Load
from gristmill.script.context import Context
from gristmill.script.files import Definition, File
from gristmill.script.habits import ALWAYS_IMPORTED, DEVICE, FUNCTIONS, PYTHON
from gristmill.script.problems import Mistake, Reported
from gristmill.script.values import (
    ClassNamespace,
    FileNamespace,
    Foreign,
    Local,
    Namespace,
    Value,
    describe,
)

SCRIPT_MODULE = "gristmill.script"
TVM_MODULES = ("tvm.script", "tvm.script.parser")
_SCRIPT_NAMES = {"tir": "T", "T": "T", "tirx": "T", "ir": "I", "I": "I"}


def name_value(context: Context, node: ast.Name, called: bool = False) -> Value:
    """The value of a name where it is read, or ``called``. Raises Mistake if there is none yet, or none at all."""
    name = node.id
    if context.has(name):
        found = context.find(name)
        if isinstance(found, Local):
            return read_local(context, node, found)
        return found
    if name in context.poisoned:
        raise Reported
    if name in context.plan.names or name in context.matched:
        raise _not_assigned(context, node)
    if context.callee is not None and context.callee.owner:
        inside = context.file.classes[context.callee.owner].get(name)
        if inside is not None and inside.kind == "constant":
            return definition_value(context, inside, node, name)
        if name == "cls":
            return ClassNamespace(context.file, context.callee.owner)
    if name in context.file.definitions:
        return definition_value(context, context.file.definitions[name], node, name)
    from gristmill.script.calls import BUILTINS

    if name in BUILTINS:
        return BUILTINS[name]
    raise _undefined(context, node, called)


def _undefined(context: Context, node: ast.Name, called: bool) -> Mistake:
    name = node.id
    if name in context.hidden:
        return context.mistake(
            "GM0248",
            node,
            f"`{name}` is the variable of a loop that has ended",
            label="not known here",
            hint=f"assign what you need of `{name}` to a name of its own inside the loop",
            notes=(Note("the loop is here", context.hidden[name]),),
        )
    if context.file.imports_everything:
        # Reported where it stands; the name may come from there.
        raise Reported
    if hasattr(builtins, name):
        return context.mistake(
            "GM0253",
            node,
            f"Python's `{name}` cannot be used in a kernel",
            label="not part of the language",
            hint=PYTHON.get(
                name,
                "of Python's own functions kernels have range, min, max, abs, pow, round, int, float, bool and len",
            ),
        )
    meant = close_match(name, context.known_names())
    if name in ALWAYS_IMPORTED:
        hint = f"write `{ALWAYS_IMPORTED[name]}` at the top of the file"
    elif name in DEVICE:
        hint = DEVICE[name]
    elif meant:
        hint = f"did you mean `{meant}`?"
    elif called:
        hint = f"define `{name}` in this file with typed parameters, or import it: `from .other import {name}`"
    else:
        hint = f"assign `{name}` before, or make it a parameter"
    return context.mistake("GM0245", node, f"the name `{name}` is not defined", label="not known", hint=hint)


def _not_assigned(context: Context, node: ast.Name) -> Mistake:
    name = node.id
    if name in context.matched:
        return context.mistake(
            "GM0246",
            node,
            f"the parameter `{name}` is the buffer `{context.matched[name]}` after its T.match_buffer",
            label="has no other value",
            hint=f"write `{context.matched[name]}` or `{context.matched[name]}.data`",
        )
    return context.mistake(
        "GM0246",
        node,
        f"`{name}` is read before anything is assigned to it",
        label="no value yet",
        hint=f"assign a first value to `{name}` before, outside of the loop or branch",
    )


def read_local(context: Context, node: ast.Name, local: Local) -> Expr:
    """A load of a local scalar; a mistake where nothing was assigned to it yet."""
    if local.name in context.poisoned:
        raise Reported
    if local.buffer is None:
        raise context.mistake(
            "GM0246",
            node,
            f"`{local.name}` is read before anything is assigned to it",
            label="no value yet",
            hint=f"assign a first value to `{local.name}` before, outside of the loop or branch",
            notes=(Note("it is assigned here", local.place),),
        )
    return Load(local.buffer, (), context.span(node))


def definition_value(context: Context, definition: Definition, node: ast.expr, name: str) -> Value:
    """What a definition at the top level of ``context.file`` stands for."""
    project, file = context.project, context.file
    if definition.kind == "import":
        return import_value(context, definition, name)
    if definition.kind == "function":
        return project.callee_of(file, name, definition, context)
    if definition.kind == "class":
        return ClassNamespace(file, name)
    from gristmill.script.constants import constant_of

    return constant_of(project, file, name, definition, context, node)


def import_value(context: Context, definition: Definition, name: str) -> Value:
    """What an imported name stands for; another file of the project is read when it is first needed."""
    module, level, inner = definition.module, definition.level, definition.name
    if definition.state == "done":
        return definition.value
    if definition.state == "wrong":
        raise Reported
    assert isinstance(definition.node, ast.alias)
    if definition.state == "folding":
        raise context.mistake(
            "GM0218",
            definition.node,
            f"the import of `{name}` leads back to itself",
            label="a circle",
            hint="define the name in one of the files, and import it in the others",
        )
    definition.state = "folding"
    try:
        definition.value = _import(context, definition, module, level, inner, name)
    except (Mistake, Reported):
        definition.state = "wrong"
        raise
    definition.state = "done"
    return definition.value


def _import(context: Context, definition: Definition, module: str, level: int, inner: str, name: str) -> Value:
    node = definition.node
    assert isinstance(node, ast.alias)
    if level == 0:
        if module == "math" or module.split(".")[0] in ("typing", "__future__", "collections"):
            if module != "math":
                return Foreign(name, f"the package `{module}`")
            return math_member(context, node, inner) if inner else Namespace("math")
        if module in (SCRIPT_MODULE, *TVM_MODULES):
            if inner == "":
                return Namespace("script")
            if inner not in _SCRIPT_NAMES:
                raise context.mistake(
                    "GM0214",
                    node,
                    f"`{module}` has no `{inner}`",
                    label="not known",
                    hint=suggestion(inner, [*_SCRIPT_NAMES], f"write `from {module} import tir as T, ir as I`"),
                )
            return Namespace(_SCRIPT_NAMES[inner])
        if module == "gristmill" and inner in ("", "script"):
            return Namespace("script" if inner else "gristmill")
        if module == "tvm":
            return Namespace("script" if inner == "script" else "tvm")
    from gristmill.script.imports import imported_file

    other = imported_file(context.project, context, node, module, level, inner)
    if other is None:
        return Foreign(name, f"the package `{module.split('.')[0]}`")
    imported, remaining = other
    if not remaining:
        return FileNamespace(imported)
    return file_member(context, imported, node, remaining)


def file_member(context: Context, file: File, node: ast.expr | ast.alias, name: str) -> Value:
    """A name of another file of the project."""
    definition = file.definitions.get(name)
    if definition is None:
        raise context.mistake(
            "GM0211",
            node,
            f"{file.name} does not define `{name}`",
            label="not defined there",
            hint=suggestion(name, [*file.definitions], f"it defines {', '.join([*file.definitions][:8]) or 'nothing'}"),
        )
    inner = Context(context.project, file, None)
    at = node if isinstance(node, ast.expr) else ast.copy_location(ast.Name(name), node)
    return definition_value(inner, definition, at, name)


def math_member(context: Context, node: ast.expr | ast.alias, name: str) -> Value:
    """A constant or function of Python's ``math``."""
    from gristmill.script.calls import MATH

    found = getattr(math, name, None)
    if isinstance(found, float):
        return found
    if name in MATH:
        return MATH[name]
    raise context.mistake(
        "GM0290",
        node,
        f"`math.{name}` cannot be used in a kernel",
        label="not known",
        hint=f"of `math`, kernels have pi, e, tau, inf, nan and, of constants, {', '.join(sorted(MATH))}",
    )


def namespace_member(context: Context, node: ast.Attribute, owner: Namespace) -> Value:
    """``T.name`` and the like."""
    from gristmill.script.calls import NAMESPACES, unknown_member

    path, name = owner.path, node.attr
    if path == "math":
        return math_member(context, node, name)
    if path == "tvm" or path == "gristmill":
        if name == "script":
            return Namespace("script")
        if path == "tvm" and name in ("tir", "tirx"):
            return Namespace("T")
        if path == "tvm" and name == "target":
            return Namespace("tvm.target")
    if path == "script":
        if name in _SCRIPT_NAMES:
            return Namespace(_SCRIPT_NAMES[name])
        return namespace_member(context, node, Namespace("I"))
    table = NAMESPACES.get(path, {})
    if name in table:
        return table[name]
    raise unknown_member(context, node, path, name)


def is_constant(value: Value) -> bool:
    """Whether a value may be a module constant."""
    if isinstance(value, tuple):
        return all(is_constant(item) for item in value)
    return value is None or isinstance(value, (int, float, str, DType, IntImm, FloatImm))


def explain_foreign(context: Context, node: ast.expr, value: Foreign) -> Mistake:
    from gristmill.script.calls import NAMESPACES

    hint = "use the functions of `T`, constants of this file, or helpers of files of this project"
    if isinstance(node, ast.Attribute):
        known = NAMESPACES["T"]
        if node.attr in FUNCTIONS:
            hint = FUNCTIONS[node.attr]
        elif node.attr in known:
            hint = f"write `T.{node.attr}`"
    return context.mistake(
        "GM0251",
        node,
        f"{describe(value)} cannot be used in a kernel: sources are read, never executed",
        label="not known to the compiler",
        hint=hint,
    )
