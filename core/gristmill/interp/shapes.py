"""Binding a function's symbolic sizes: solving the shape equations of its arguments.

Each size, stride and offset that a buffer parameter states is an equation between an expression of sizes and a number
that the argument has. An equation with one unknown gives it (whatever the order: ``n + 1`` before ``n``); then all
equations must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gristmill.errors import Note
from gristmill.interp import integers
from gristmill.interp.memory import Pointer, Tensor
from gristmill.interp.reports import ExecutionError, Site, counted, listed, report
from gristmill.ir import expr as e
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.printer import print_node


class Unknown(Exception):
    """An expression uses a size that has no value, or an operation that shapes do not have."""


def evaluate(node: e.Expr, sizes: Mapping[e.Var, int]) -> int:
    """The value of an integer expression over sizes. Raises Unknown."""
    match node:
        case e.IntImm():
            return node.value
        case e.Var():
            if node not in sizes:
                raise Unknown
            return sizes[node]
        case e.Cast():
            found = evaluate(node.value, sizes)
            if node.type.is_float or node.value.dtype.is_float:
                raise Unknown
            return node.type.wrap(found)
        case e.Negate():
            return node.dtype.wrap(-evaluate(node.a, sizes))
        case e.BinaryExpr():
            return _binary(type(node), evaluate(node.a, sizes), evaluate(node.b, sizes), node)
    raise Unknown


def _binary(kind: type[e.Expr], a: int, b: int, node: e.BinaryExpr) -> int:
    dtype = node.dtype
    if kind is e.Add:
        return dtype.wrap(a + b)
    if kind is e.Sub:
        return dtype.wrap(a - b)
    if kind is e.Mul:
        return dtype.wrap(a * b)
    if kind is e.Min:
        return min(a, b)
    if kind is e.Max:
        return max(a, b)
    if kind is e.FloorDiv:
        return integers.divide_floor(a, b, dtype.maximum)
    if kind is e.FloorMod:
        return integers.remainder_floor(a, b)
    if kind is e.Div:
        return integers.divide_towards_zero(a, b, dtype.maximum)
    if kind is e.Mod:
        return integers.remainder_towards_zero(a, b)
    raise Unknown


def solve(node: e.Expr, target: int, sizes: Mapping[e.Var, int]) -> tuple[e.Var, int] | None:
    """The one unknown of ``node == target`` and its value, where inverting the operations gives it."""
    while True:
        if isinstance(node, e.Var):
            return None if node in sizes else (node, target)
        if isinstance(node, e.Cast):
            node = node.value
            continue
        if isinstance(node, e.Negate):
            node, target = node.a, -target
            continue
        if not isinstance(node, (e.Add, e.Sub, e.Mul)):
            return None
        left = _value(node.a, sizes)
        right = _value(node.b, sizes)
        if (left is None) == (right is None):
            return None
        known = right if left is None else left
        assert known is not None
        if isinstance(node, e.Mul):
            if known == 0 or target % known:
                return None
            target //= known
        elif isinstance(node, e.Add):
            target -= known
        else:
            target = target + known if left is None else known - target
        node = node.a if left is None else node.b


def _value(node: e.Expr, sizes: Mapping[e.Var, int]) -> int | None:
    try:
        return evaluate(node, sizes)
    except Unknown:
        return None


@dataclass(frozen=True, slots=True)
class Equation:
    """A size (or the like) that a parameter states, and what the argument has."""

    buffer: Buffer
    what: str
    stated: e.Expr
    given: int


class Binder:
    """Checks the arguments of one function, and binds its sizes."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.buffers = [param for param in function.params if isinstance(param, Buffer)]
        self.scalars = [param for param in function.params if not isinstance(param, Buffer)]

    def bind(self, tensors: Sequence[object], scalars: Sequence[int], site: Site | None) -> tuple[int, ...]:
        """The values of the function's sizes. ``site`` is the call's; None for a call from outside."""
        sizes: dict[e.Var, int] = dict(zip(self.scalars, scalars, strict=True))
        equations: list[Equation] = []
        for buffer, tensor in zip(self.buffers, tensors, strict=True):
            if isinstance(tensor, Tensor):
                equations.extend(self.equations(buffer, tensor, site))
            elif not isinstance(tensor, Pointer):
                raise self.refuse(
                    "GM0510", f"`{buffer.name}` is a buffer, and the argument is {tensor!r}", buffer, site
                )
        open_equations = equations
        while open_equations:
            later = []
            for equation in open_equations:
                found = solve(equation.stated, equation.given, sizes)
                if found is None:
                    later.append(equation)
                else:
                    sizes[found[0]] = found[1]
            if len(later) == len(open_equations):
                break
            open_equations = later
        for equation in equations:
            self.check(equation, sizes, site)
        missing = [size.name for size in self.function.sizes if size not in sizes]
        if missing:
            raise self.refuse(
                "GM0511",
                f"the arguments do not determine the size{'s' if len(missing) > 1 else ''} `{'`, `'.join(missing)}`",
                self.function,
                site,
                hint="state the size alone in the shape of one of the buffers",
            )
        return tuple(sizes[size] for size in self.function.sizes)

    def equations(self, buffer: Buffer, tensor: Tensor, site: Site | None) -> Iterable[Equation]:
        if tensor.dtype != buffer.dtype:
            raise self.refuse(
                "GM0510",
                f"`{buffer.name}` has elements of {buffer.dtype}, and the argument {tensor.dtype}",
                buffer,
                site,
            )
        if len(tensor.shape) != buffer.rank:
            raise self.refuse(
                "GM0510",
                f"`{buffer.name}` has {counted(buffer.rank, 'dimension')}, "
                f"and the argument {len(tensor.shape)} (its shape is {listed(tensor.shape)})",
                buffer,
                site,
            )
        for dimension, (stated, given) in enumerate(zip(buffer.shape, tensor.shape, strict=True)):
            yield Equation(buffer, f"size of dimension {dimension}", stated, given)
        if buffer.strides:
            for dimension, (stated, given) in enumerate(zip(buffer.strides, tensor.strides, strict=True)):
                # Where there is at most one element along a dimension, its stride is never used.
                if tensor.shape[dimension] > 1 or any(isinstance(part, e.Var) for part in walk(stated)):
                    yield Equation(buffer, f"stride of dimension {dimension}", stated, given)
        elif not tensor.is_compact:
            raise self.refuse(
                "GM0510",
                f"`{buffer.name}` must lie row-major without gaps, and the argument has the strides "
                f"{listed(tensor.strides)} for the shape {listed(tensor.shape)}",
                buffer,
                site,
                hint="pass a contiguous array, or declare strides",
            )
        if buffer.offset is not None:
            # A tensor's data pointer is that of element 0.
            yield Equation(buffer, "offset", buffer.offset, 0)

    def check(self, equation: Equation, sizes: Mapping[e.Var, int], site: Site | None) -> None:
        try:
            stated = evaluate(equation.stated, sizes)
        except Unknown:
            text = print_node(equation.stated)
            raise self.refuse(
                "GM0511",
                f"the {equation.what} of `{equation.buffer.name}` is {equation.given}, "
                f"and `{text}` cannot have that value{f' with {_sizes(sizes)}' if sizes else ''}",
                equation.buffer,
                site,
            ) from None
        if stated != equation.given:
            text = print_node(equation.stated)
            meaning = text if text == str(stated) else f"{text} = {stated}"
            raise self.refuse(
                "GM0511",
                f"the {equation.what} of `{equation.buffer.name}` must be {meaning}, and the argument's is {equation.given}",
                equation.buffer,
                site,
                notes=(Note(f"the other arguments give {_sizes(sizes)}"),) if sizes else (),
            )

    def refuse(
        self,
        code: str,
        message: str,
        node: Buffer | Function,
        site: Site | None,
        hint: str = "",
        notes: tuple[Note, ...] = (),
    ) -> ExecutionError:
        """The report of a wrong argument: at the call, or at the parameter for a call from outside."""
        where = site if site is not None else Site(self.function.name, node.span or self.function.span, "")
        signature = self.function.facts.signature
        if signature:
            notes = (*notes, Note(f"the function is `{signature}`"))
        return report(code, f"wrong argument of `{self.function.name}`: {message}", where, hint=hint, notes=notes)


def _sizes(sizes: Mapping[e.Var, int]) -> str:
    return ", ".join(f"{size.name} = {value}" for size, value in sizes.items())
