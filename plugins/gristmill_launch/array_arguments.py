"""Reading array arguments of a packed function: dtype, rank, device, sizes, strides, alignment, data.

First each array by itself (:func:`read_array`); then all of them together, for sizes may occur in several
(:func:`bind_sizes`); then what depends on sizes (:func:`check_layout`).

Arrays may overlap: no promise that they do not is made to the compiler, so the result is what the kernel's own loads
and stores say. A manifest that promises it (``no_alias``) is not checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gristmill.arith.size_equations import Equation, Solution, solve_sizes
from gristmill.codegen.packed_interface import packed_dtype
from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import (
    call,
    cast,
    const,
    disjunction,
    equal,
    greater_equal,
    less_equal,
)
from gristmill.ir.dtype import BOOL, HANDLE, INT32, INT64
from gristmill.ir.expr import Expr, IfThenElse, IntImm, Mul, Not, Var
from gristmill.ir.functor import substitute, walk
from gristmill.ir.host_interface import TypeIndex
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.readable import size_text
from gristmill.ir.span import place_of
from gristmill.ir.stmt import Bind, Stmt
from gristmill_launch.messages import Messages
from gristmill_launch.scalar_arguments import is_one_of


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array argument as the packed function knows it: its DLTensor, and a variable for each size and stride."""

    number: int
    param: Buffer
    text: str
    """How messages name it."""
    tensor: Var
    sizes: tuple[Var, ...]
    strides: tuple[Var, ...]

    @classmethod
    def of(cls, say: Messages, number: int, param: Buffer) -> ArrayArgument:
        return cls(
            number,
            param,
            say.argument(number, param.name),
            Var(f"{param.name}_tensor", HANDLE),
            tuple(Var(f"{param.name}_size_{place}", INT64) for place in range(param.rank)),
            tuple(Var(f"{param.name}_stride_{place}", INT64) for place in range(param.rank)),
        )

    @property
    def is_empty(self) -> Expr:
        """Whether it has no elements."""
        return disjunction(equal(size, 0) for size in self.sizes)


def read_array(
    say: Messages, args: Var, array: ArrayArgument, kind: Var, device_type: int, device_id: Var | None
) -> list[Stmt]:
    """Statements that check an array by itself and bind its DLTensor and sizes. ``kind`` is bound.

    ``device_id`` is the number of the device that the kernels are loaded on; None where there are none.
    """
    param, argument = array.param, array.text
    arrays = (TypeIndex.TENSOR, TypeIndex.DLTENSOR)
    wanted = f"an array of {param.dtype} with {_dimensions(param.rank)}"
    rank, dtype, device = (Var(f"{param.name}_{what}", INT32) for what in ("rank", "dtype", "device"))
    rank_text = f", but rank {param.rank} is expected"
    has_rank = say.check(equal(rank, param.rank), "ValueError", argument, " has rank ", rank, rank_text)
    return [
        say.wrong_kind(is_one_of(kind, arrays), args, array.number, param.name, wanted),
        Bind(array.tensor, call("packed_tensor", args, const(array.number, INT32), dtype=HANDLE)),
        Bind(dtype, call("tensor_dtype", array.tensor, dtype=INT32)),
        say.wrong_dtype(equal(dtype, packed_dtype(param.dtype)), array.tensor, argument, str(param.dtype)),
        Bind(rank, call("tensor_rank", array.tensor, dtype=INT32)),
        has_rank,
        Bind(device, call("tensor_device_type", array.tensor, dtype=INT32)),
        say.wrong_device(equal(device, device_type), device, argument, device_type),
        *_check_number(say, array, device_type, device_id),
        *(
            Bind(size, call("tensor_size", array.tensor, const(place, INT32), dtype=INT64))
            for place, size in enumerate(array.sizes)
        ),
    ]


def _check_number(say: Messages, array: ArrayArgument, device_type: int, device_id: Var | None) -> list[Stmt]:
    if device_id is None:
        return []
    number = Var(f"{array.param.name}_device_id", INT32)
    return [
        Bind(number, call("tensor_device_id", array.tensor, dtype=INT32)),
        say.wrong_device_number(number, device_id, array.text, device_type),
    ]


def _dimensions(rank: int) -> str:
    return f"{rank} dimension{'' if rank == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _Stated:
    """One thing that a parameter states about an array: the pattern, what it is a pattern of, and the actual value."""

    array: ArrayArgument
    what: str
    """``size`` or ``stride`` or ``offset``."""
    place: int
    pattern: Expr
    actual: Expr

    @property
    def origin(self) -> str:
        return f"{'dimension' if self.what == 'size' else 'stride'} {self.place} of `{self.array.param.name}`"


def bind_sizes(
    say: Messages, function: Function, arrays: Sequence[ArrayArgument], known: Mapping[Var, Var]
) -> tuple[list[Stmt], dict[Var, Var]]:
    """Statements that find the symbolic sizes and check all that the parameters say about sizes and declared strides.

    ``known`` maps the scalar parameters to their variables. Returns the statements, and all the function's variables
    with those that stand for them. Raises UserError (GM0650) for a size that the arguments do not determine.
    """
    stated = _stated(arrays)
    solution = solve_sizes([Equation(one.pattern, one.actual) for one in stated], function.sizes)
    if solution.unsolved:
        raise _undetermined(function, solution, stated)
    names = dict(known)
    statements: list[Stmt] = _read_strides(arrays)
    sizes_only = {var for one in stated if one.what == "size" for var in walk(one.pattern) if isinstance(var, Var)}
    origins: dict[Var, str] = {}
    for binding in solution.bindings:
        var, source = binding.var, stated[binding.equation]
        own = Var(var.name, var.dtype, span=var.span)
        value = substitute(binding.value, names)
        if not binding.direct or var.dtype != INT64:
            least = max(var.dtype.minimum, 0) if var in sizes_only else var.dtype.minimum
            wide = Var(f"{var.name}_found", INT64)
            statements.append(Bind(wide, value))
            statements += _check_found(say, var, wide, least, source)
            value = cast(wide, var.dtype)
        statements.append(Bind(own, value))
        names[var] = own
        origins[var] = source.origin
    for param, own in known.items():
        origins[param] = f"argument `{own.name}`"
    statements += [_check(say, stated[index], names, origins) for index in solution.checks]
    return statements, names


def _check_found(say: Messages, var: Var, wide: Var, least: int, source: _Stated) -> list[Stmt]:
    """Check that what was found for a size is one, and fits the size's type."""
    limits = []
    if least > INT64.minimum:
        limits.append((greater_equal(wide, least), f"at least {least}"))
    if var.dtype.maximum < INT64.maximum:
        limits.append((less_equal(wide, var.dtype.maximum), f"at most {var.dtype.maximum}"))
    given = (source.array.text, f" has {source.what} ", source.actual, f" in dimension {source.place}")
    would = f" (`{size_text(source.pattern)}`), so `{var.name}` would be "
    return [say.check(holds, "ValueError", *given, would, wide, f", but it must be {limit}") for holds, limit in limits]


def _stated(arrays: Sequence[ArrayArgument]) -> list[_Stated]:
    """All equations: sizes of all arrays before strides, which may use them; an offset is 0, for data comes with it."""
    sizes = [
        _Stated(array, "size", place, size, array.sizes[place])
        for array in arrays
        for place, size in enumerate(array.param.shape)
    ]
    strides = [
        _Stated(array, "stride", place, stride, array.strides[place])
        for array in arrays
        for place, stride in enumerate(array.param.strides)
    ]
    offsets = [
        _Stated(array, "offset", 0, array.param.offset, const(0, INT64))
        for array in arrays
        if array.param.offset is not None
    ]
    return [*sizes, *strides, *offsets]


def _read_strides(arrays: Sequence[ArrayArgument]) -> list[Stmt]:
    """Bind the strides of arrays whose parameters declare some; an array that states none is compact."""
    found: list[Stmt] = []
    for array in arrays:
        if not array.param.strides:
            continue
        stated = Var(f"{array.param.name}_has_strides", BOOL)
        found.append(Bind(stated, call("tensor_has_strides", array.tensor, dtype=BOOL)))
        for place, stride in enumerate(array.strides):
            actual = call("tensor_stride", array.tensor, const(place, INT32), dtype=INT64)
            found.append(Bind(stride, IfThenElse(stated, actual, _compact(array, place))))
    return found


def _compact(array: ArrayArgument, place: int) -> Expr:
    """The stride of a dimension in row-major order."""
    found: Expr | None = None
    for size in array.sizes[place + 1 :]:
        found = size if found is None else Mul(found, size)
    return const(1, INT64) if found is None else found


def _check(say: Messages, one: _Stated, names: Mapping[Var, Var], origins: Mapping[Var, str]) -> Stmt:
    value = cast(substitute(one.pattern, names), INT64)
    holds: Expr = equal(one.actual, value)
    where = ", but " if one.what == "offset" else f" in dimension {one.place}, but "
    if one.what == "stride":
        # With fewer than two elements along a dimension its stride means nothing, and arrays hold any number there.
        holds = disjunction([holds, less_equal(one.array.sizes[one.place], 1), one.array.is_empty])
    given = (one.array.text, f" has {one.what} ", one.actual)
    pattern = size_text(one.pattern)
    if isinstance(one.pattern, IntImm):
        return say.check(holds, "ValueError", *given, f"{where}{pattern} is expected")
    used = dict.fromkeys(var for var in walk(one.pattern) if isinstance(var, Var))
    if isinstance(one.pattern, Var):
        source = f" (from {origins[one.pattern]})"
        return say.check(holds, "ValueError", *given, f"{where}`{pattern}` is ", value, source)
    parts: list[str | Expr] = []
    for var in used:
        parts += ["; " if parts else " (", f"`{var.name}` is ", names[var], f" from {origins[var]}"]
    return say.check(holds, "ValueError", *given, f"{where}`{pattern}` is ", value, *parts, ")" if parts else "")


def check_layout(say: Messages, array: ArrayArgument) -> list[Stmt]:
    """Statements that check strides (compact where the parameter declares none), alignment, and that there is data."""
    found: list[Stmt] = []
    param = array.param
    if not param.strides and param.rank:
        stated = Var(f"{param.name}_has_strides", BOOL)
        found.append(Bind(stated, call("tensor_has_strides", array.tensor, dtype=BOOL)))
        for place in reversed(range(param.rank)):
            stride = call("tensor_stride", array.tensor, const(place, INT32), dtype=INT64)
            compact = _compact(array, place)
            # As above: the stride of a dimension with fewer than two elements means nothing.
            holds = disjunction(
                [Not(stated), equal(stride, compact), less_equal(array.sizes[place], 1), array.is_empty]
            )
            found.append(
                say.check(
                    holds,
                    "ValueError",
                    array.text,
                    " has stride ",
                    stride,
                    f" in dimension {place}, but ",
                    compact,
                    " is expected: it must be compact, in row-major order (as numpy.ascontiguousarray makes it)",
                )
            )
    alignment = param.alignment or param.dtype.bytes
    if alignment > 1:
        aligned = call("tensor_is_aligned", array.tensor, const(alignment, INT64), dtype=BOOL)
        found.append(
            say.check(
                disjunction([aligned, array.is_empty]),
                "ValueError",
                array.text,
                f" has data that is not aligned to {alignment} bytes",
            )
        )
    null = call("tensor_is_null", array.tensor, dtype=BOOL)
    found.append(
        say.check(
            disjunction([Not(null), array.is_empty]),
            "ValueError",
            array.text,
            " has no data (its pointer is null), though it has elements",
        )
    )
    return found


def _undetermined(function: Function, solution: Solution, stated: Sequence[_Stated]) -> UserError:
    found = []
    for var in solution.unsolved:
        uses = [size_text(one.pattern) for one in stated if any(part is var for part in walk(one.pattern))]
        listed = ", ".join(f"`{use}`" for use in dict.fromkeys(uses))
        where = f"it occurs only in {listed}" if listed else "no argument's shape has it"
        found.append(
            Diagnostic(
                "GM0650",
                f"the size `{var.name}` of `{function.name}` cannot be found from the arguments: {where}",
                place_of(var.span or function.span),
                hint=f"use `{var.name}` by itself (or times a number, plus a number) as a size of some argument, "
                f"or pass it: `{var.name}: T.int64`",
            )
        )
    return UserError(found)
