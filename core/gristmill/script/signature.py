"""Signatures: parameters, symbolic sizes, results; classic ``T.match_buffer`` of pointer parameters included."""

from __future__ import annotations

import ast

from gristmill.errors import Note
from gristmill.ir.dtype import FLOAT32, HANDLE, INT32, VOID, DType
from gristmill.ir.expr import Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.script.annotations import not_a_type, unquoted
from gristmill.script.calls.arguments import bind
from gristmill.script.context import Context
from gristmill.script.expressions import lower
from gristmill.script.problems import Mistake, Reported
from gristmill.script.shapes import layout, make_buffer
from gristmill.script.values import Callee, Intrinsic, PointerAnnotation, Symbolic, Value, describe


def read_signature(context: Context, callee: Callee) -> None:
    """Fill in parameters, sizes and (stated) result of a function. All parameters are tried.

    Raises Mistake, or Reported if all that is wrong is in ``context.problems`` already.
    """
    node = callee.node
    _refuse_other_parameters(context, callee)
    scope = context.scopes[0]
    found: dict[str, Var | Buffer] = {}
    is_wrong = False
    # Scalars first, so that shapes may use them wherever they stand.
    for arg in sorted(node.args.args, key=lambda one: _is_buffer(one.annotation)):
        try:
            param = _parameter(context, callee, arg)
        except (Mistake, Reported) as problem:
            context.problems.add(problem)
            is_wrong = True
            context.poisoned.add(arg.arg)
            continue
        found[arg.arg] = param
        scope[arg.arg] = param
    callee.returns = _result(context, callee)
    if is_wrong:
        raise Reported
    _match_pointers(context, callee, found)
    callee.params = tuple(found[arg.arg] for arg in node.args.args)
    callee.sizes = _sizes(callee.params)


def _refuse_other_parameters(context: Context, callee: Callee) -> None:
    args = callee.node.args
    other: ast.arg | ast.expr | None = args.vararg or args.kwarg
    what = f"`*{args.vararg.arg}`" if args.vararg else f"`**{args.kwarg.arg}`" if args.kwarg else ""
    if other is None and (args.kwonlyargs or args.posonlyargs):
        other = (args.kwonlyargs or args.posonlyargs)[0]
        what = "a parameter only by name" if args.kwonlyargs else "a parameter only by place"
    if other is None and args.defaults:
        other, what = args.defaults[0], "a default value"
    if other is not None:
        raise context.mistake(
            "GM0227",
            other,
            f"{what} cannot be part of a kernel's signature",
            label="not part of the language",
            hint="write plain parameters with types; every call gives all of them",
        )


def _is_buffer(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(part, (ast.Name, ast.Attribute))
        and (part.id if isinstance(part, ast.Name) else part.attr) == "Buffer"
        for part in ast.walk(annotation)
    )


def _parameter(context: Context, callee: Callee, arg: ast.arg) -> Var | Buffer:
    if arg.annotation is None:
        raise context.mistake(
            "GM0225",
            arg,
            f"the parameter `{arg.arg}` has no type",
            label="no type",
            hint=f'write `{arg.arg}: T.float32` for a number, `{arg.arg}: T.Buffer(("n",), "float32")` for a buffer',
        )
    annotation = unquoted(context, arg.annotation)
    if isinstance(annotation, ast.Call):
        function = lower(context, annotation.func)
        if isinstance(function, Intrinsic) and function.path in ("T.Buffer", "T.match_buffer"):
            return make_buffer(context, arg.arg, layout(context, annotation, named=True), arg)
    if isinstance(annotation, ast.Subscript):
        owner = lower(context, annotation.value)
        if isinstance(owner, Intrinsic) and owner.path == "T.Buffer":
            # T.Buffer[(8,), "float32"], the oldest spelling.
            items = annotation.slice
            listed = list(items.elts) if isinstance(items, ast.Tuple) else [items]
            if listed and isinstance(items, ast.Tuple) and not isinstance(listed[0], (ast.Tuple, ast.List)):
                listed = [items] if len(listed) != 2 else listed
            call = ast.copy_location(ast.Call(annotation.value, listed, []), annotation)
            return make_buffer(context, arg.arg, layout(context, call, named=True), arg)
    return _scalar_parameter(context, arg, annotation)


def _scalar_parameter(context: Context, arg: ast.arg, annotation: ast.expr) -> Var:
    value: Value
    if isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "bool"):
        raise not_a_type(context, annotation, annotation.id)
    if (
        isinstance(annotation, ast.Name)
        and annotation.id not in context.file.definitions
        and not context.has(annotation.id)
    ):
        from gristmill.script.calls.conversions import dtype_argument

        value = dtype_argument(context, ast.copy_location(ast.Constant(annotation.id), annotation))
    else:
        value = lower(context, annotation)
    span = context.span(arg)
    if isinstance(value, PointerAnnotation):
        if value.element is None:
            return Var(arg.arg, HANDLE, None, span)
        from gristmill.script.shapes import scope_of

        scope = Scope.GLOBAL
        if value.scope != "global":
            scope = scope_of(context, ast.copy_location(ast.Constant(value.scope), annotation))
        return Var(arg.arg, HANDLE, PointerType(value.element, scope), span)
    if isinstance(value, Symbolic):
        value = value.dtype
    if isinstance(value, DType) and not value.is_void:
        if value.lanes > 1:
            raise context.mistake(
                "GM0226",
                annotation,
                f"{value} is not the type of a parameter: vectors are passed in buffers",
                label=f"{value.lanes} lanes",
                hint=f'write `T.Buffer(("n",), "{value}")`',
            )
        return Var(arg.arg, value, None, span)
    if isinstance(value, str):
        from gristmill.script.calls.conversions import dtype_from_text

        return Var(arg.arg, dtype_from_text(context, annotation, value), None, span)
    if isinstance(value, Intrinsic) and value.path == "T.Buffer":
        raise context.mistake(
            "GM0226",
            annotation,
            "the buffer's shape and type are missing",
            label="no shape",
            hint='write `T.Buffer(("n",), "float32")`',
        )
    raise not_a_type(context, annotation, value)


def _result(context: Context, callee: Callee) -> DType | None:
    """The stated result; None where it is found from the returns."""
    node = callee.node.returns
    if node is None:
        return None if _returns_value(callee.node) else VOID
    annotation = unquoted(context, node)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return VOID
    if isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "bool"):
        raise not_a_type(context, annotation, annotation.id)
    value: Value = None
    if not (
        isinstance(annotation, ast.Name)
        and not context.has(annotation.id)
        and annotation.id not in context.file.definitions
    ):
        value = lower(context, annotation)
    else:
        from gristmill.script.calls.conversions import dtype_argument

        value = dtype_argument(context, ast.copy_location(ast.Constant(annotation.id), annotation))
    if isinstance(value, DType) and value.lanes == 1 and not value.is_handle:
        return value
    raise context.mistake(
        "GM0232",
        node,
        f"the result of a function is one number, and this is {describe(value)}",
        label="not a result type",
        hint="write `-> T.float32` or the like; larger results go into a buffer parameter",
    )


def _returns_value(node: ast.FunctionDef) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Return) and part.value is not None:
            return not (isinstance(part.value, ast.Constant) and part.value.value is None)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in ("ret", "Return"):
            return bool(part.args)
    return False


# Classic pointer parameters -------------------------------------------------------------------------------------------


def _match_pointers(context: Context, callee: Callee, found: dict[str, Var | Buffer]) -> None:
    """``m = T.int32()`` and ``A = T.match_buffer(a, (m,))`` at the top of the body belong to the signature."""
    matched: dict[str, ast.stmt] = {}
    for statement in callee.node.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = list(zip(target.elts, statement.value.elts, strict=False))
        else:
            pairs = [(target, statement.value)]
        if all(_declares_size(context, name, value) for name, value in pairs):
            callee.consumed.add(id(statement))
        elif isinstance(target, ast.Name) and isinstance(statement.value, ast.Call):
            _match_pointer(context, callee, found, matched, statement, target, statement.value)


def _declares_size(context: Context, target: ast.expr, value: ast.expr) -> bool:
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
        return False
    if not isinstance(value.func, ast.Attribute) or (value.args and value.func.attr not in ("var", "Var", "dynamic")):
        return False
    if value.func.attr not in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "var",
        "Var",
        "dynamic",
    ):
        return False
    symbolic = lower(context, value)
    if not isinstance(symbolic, Symbolic):
        return False
    context.scopes[0][target.id] = Var(target.id, symbolic.dtype or INT32, span=context.span(target))
    context.declared_sizes[target.id] = value
    return True


def _match_pointer(
    context: Context,
    callee: Callee,
    found: dict[str, Var | Buffer],
    matched: dict[str, ast.stmt],
    statement: ast.stmt,
    target: ast.Name,
    call: ast.Call,
) -> None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "match_buffer":
        return
    first = call.args[0] if call.args else next((word.value for word in call.keywords if word.arg == "param"), None)
    if not isinstance(first, ast.Name) or first.id not in found:
        return
    if first.id in matched:
        raise context.mistake(
            "GM0240",
            call,
            f"the parameter `{first.id}` is matched twice",
            label="the second time",
            hint="give another view of the buffer: `T.decl_buffer(shape, dtype, data=A.data)`",
            notes=(Note("the first match is here", context.source.place(matched[first.id])),),
        )
    param = found[first.id]
    if not isinstance(param, Var) or not param.dtype.is_handle:
        raise context.mistake(
            "GM0240",
            first,
            f"`{first.id}` is {describe(param)}, and only parameters of type T.handle are matched",
            label="not a T.handle",
            hint=f"write `{first.id}: T.handle`",
        )
    bind(context, call, ("param", "shape"), (
        "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators",
        "logical_scope",
    ))  # fmt: skip
    inner = ast.copy_location(
        ast.Call(
            call.func, call.args[1:], [word for word in call.keywords if word.arg not in ("param", "logical_scope")]
        ),
        call,
    )
    described = layout(context, inner, named=True, dtype=FLOAT32)
    buffer = make_buffer(context, target.id, described, call)
    found[first.id] = buffer
    matched[first.id] = statement
    context.scopes[0][target.id] = buffer
    context.scopes[0].pop(first.id, None)
    context.matched[first.id] = target.id
    callee.consumed.add(id(statement))


def _sizes(params: tuple[Var | Buffer, ...]) -> tuple[Var, ...]:
    """The variables of shapes, strides and offsets that are no parameters, in order of first occurrence."""
    given = {param for param in params if isinstance(param, Var)}
    found: dict[Var, None] = {}
    for param in params:
        if isinstance(param, Buffer):
            for part in walk(param):
                if isinstance(part, Var) and part not in given:
                    found.setdefault(part)
    return tuple(found)
