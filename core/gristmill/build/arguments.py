"""The arguments of public functions as kernel records and packs list them: names, types, and which arrays are written."""

from __future__ import annotations

from gristmill.ir.expr import CallExtern, CallFunction, CallPacked, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function, Module
from gristmill.ir.pointers import pointers_in
from gristmill.ir.stmt import Bind, Store, View
from gristmill.plugin.artifacts import KernelArgument


def arguments_of(function: Function, module: Module) -> tuple[KernelArgument, ...]:
    """The parameters of a function (before passes change them), in order.

    ``written`` holds for an array that the function may write: it stores to it, also through a view or in a function
    that it calls, or hands it to code outside of the module.
    """
    written = _written(function, {found.name: found for found in module.functions}, ())
    return tuple(
        KernelArgument(
            param.name, "buffer" if isinstance(param, Buffer) else "scalar", str(param.dtype), place in written
        )
        for place, param in enumerate(function.params)
    )


def _written(function: Function, functions: dict[str, Function], callers: tuple[str, ...]) -> frozenset[int]:
    """The places of the parameters that the function may write through."""
    origins: dict[Var, frozenset[int]] = {
        (param.data if isinstance(param, Buffer) else param): frozenset((place,))
        for place, param in enumerate(function.params)
    }
    found: set[int] = set()

    def origin(expr: Expr | None) -> frozenset[int]:
        """The parameters that a pointer may lead into."""
        places: set[int] = set()
        for var in pointers_in(expr) if expr is not None else ():
            places |= origins.get(var, frozenset())
        return frozenset(places)

    for node in walk(function.body):
        if isinstance(node, View) and node.source is not None:
            origins[node.buffer.data] = origin(node.source)
        elif isinstance(node, Bind) and node.var.dtype.is_handle:
            origins[node.var] = origin(node.value)
        elif isinstance(node, Store):
            found |= origins.get(node.buffer.data, frozenset())
        elif isinstance(node, (CallPacked, CallExtern)):
            found.update(*(origin(argument) for argument in node.args if argument.dtype.is_handle))
        elif isinstance(node, CallFunction):
            callee = functions.get(node.function)
            again = callee is None or callee.name in (*callers, function.name)
            # Of a function that is being looked at already nothing is known yet: it may write all.
            through = (
                frozenset(range(len(node.args)))
                if again or callee is None
                else _written(callee, functions, (*callers, function.name))
            )
            found.update(*(origin(node.args[place]) for place in through if node.args[place].dtype.is_handle))
    return frozenset(found)
