"""Reading scalar arguments of a packed function: which Python values they take, and which values fit.

An integer parameter takes an int or a bool that its type can hold; a bool parameter a bool or an int (not zero is
true); a float parameter a float, an int or a bool, rounded to its type; a pointer parameter a pointer, None (null) or
an array (its data).
"""

from __future__ import annotations

from gristmill.ir.build import call, cast, conjunction, const, disjunction, equal, greater_equal, less_equal, not_equal
from gristmill.ir.dtype import BOOL, FLOAT64, HANDLE, INT32, INT64, UINT64, DType
from gristmill.ir.expr import Expr, IfThenElse, Or, Var
from gristmill.ir.host_interface import TypeIndex
from gristmill.ir.stmt import Bind, If, Stmt
from gristmill_launch.messages import Messages

_INTEGERS = (TypeIndex.INT, TypeIndex.BOOL)
_NUMBERS = (*_INTEGERS, TypeIndex.FLOAT)
_ARRAYS = (TypeIndex.TENSOR, TypeIndex.DLTENSOR)


def is_one_of(kind: Var, indices: tuple[TypeIndex, ...]) -> Expr:
    return disjunction(equal(kind, int(index)) for index in indices)


def read_scalar(say: Messages, args: Var, number: int, param: Var, into: Var, kind: Var) -> list[Stmt]:
    """Statements that check argument ``number`` for ``param`` and bind its value to ``into``; ``kind`` is bound."""
    dtype = param.dtype
    index = const(number, INT32)
    if dtype.is_handle:
        return _read_pointer(say, args, number, into, kind)
    if dtype.is_float:
        whole = call("packed_int", args, index, dtype=INT64)
        real = call("packed_float", args, index, dtype=FLOAT64)
        value = IfThenElse(equal(kind, int(TypeIndex.FLOAT)), real, cast(whole, FLOAT64))
        return [
            say.wrong_kind(is_one_of(kind, _NUMBERS), args, number, param.name, f"a number ({dtype})"),
            Bind(into, cast(value, dtype)),
        ]
    if dtype.is_bool:
        return [
            say.wrong_kind(is_one_of(kind, _INTEGERS), args, number, param.name, "a bool"),
            Bind(into, not_equal(call("packed_int", args, index, dtype=INT64), 0)),
        ]
    return _read_integer(say, args, number, into, kind, dtype)


def _read_integer(say: Messages, args: Var, number: int, into: Var, kind: Var, dtype: DType) -> list[Stmt]:
    index, argument = const(number, INT32), say.argument(number, into.name)
    wanted = f"an integer ({dtype})"
    limits = f"from {dtype.minimum} to {dtype.maximum}"
    whole = Var(f"{into.name}_given", INT64)
    read = Bind(whole, call("packed_int", args, index, dtype=INT64))
    is_big = equal(kind, int(TypeIndex.BIG_INT))
    accepted = (*_INTEGERS, TypeIndex.BIG_INT)
    found: list[Stmt] = [say.wrong_kind(is_one_of(kind, accepted), args, number, into.name, wanted)]
    must = f" must be {wanted} {limits}, "
    too_big = (argument, must, "and an int beyond 64 bits was given")
    if dtype == UINT64:
        # An int from 2**63 on comes as an object; a smaller one as an int64.
        fits = call("packed_big_fits", args, index, dtype=BOOL)
        big = call("packed_big", args, index, dtype=UINT64)
        value = call("packed_int", args, index, dtype=INT64)
        return [
            *found,
            If(is_big, say.check(fits, "ValueError", *too_big)),
            say.check(Or(is_big, greater_equal(value, 0)), "ValueError", argument, must, "not ", value),
            Bind(into, IfThenElse(is_big, big, cast(value, UINT64))),
        ]
    found += [say.check(not_equal(kind, int(TypeIndex.BIG_INT)), "ValueError", *too_big), read]
    if dtype.bits < 64:
        inside = conjunction([greater_equal(whole, dtype.minimum), less_equal(whole, dtype.maximum)])
        found.append(say.check(inside, "ValueError", argument, must, "not ", whole))
    return [*found, Bind(into, cast(whole, dtype))]


def _read_pointer(say: Messages, args: Var, number: int, into: Var, kind: Var) -> list[Stmt]:
    index = const(number, INT32)
    accepted = (TypeIndex.NONE, TypeIndex.POINTER, *_ARRAYS)
    tensor = call("packed_tensor", args, index, dtype=HANDLE)
    value = IfThenElse(
        is_one_of(kind, _ARRAYS),
        call("tensor_data", tensor, dtype=HANDLE),
        call("packed_pointer", args, index, dtype=HANDLE),
    )
    return [
        say.wrong_kind(is_one_of(kind, accepted), args, number, into.name, "a pointer, an array or None"),
        Bind(into, value),
    ]
