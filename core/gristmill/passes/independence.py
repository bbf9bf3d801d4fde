"""Whether the iterations of a loop can see each other's writes; if not, any order of them gives the same result."""

from __future__ import annotations

from gristmill.arith.simplify import Simplifier
from gristmill.ir.expr import AddressOf, BufferRef, Call, CallExtern, CallFunction, CallPacked, Expr, Load, Var
from gristmill.ir.functor import walk
from gristmill.ir.module import Function
from gristmill.ir.stmt import Allocate, Assert, Barrier, Bind, DeviceRegion, For, Launch, Return, Store, View
from gristmill.passes.renewal import defined_variables

_OPAQUE = (
    AddressOf,
    BufferRef,
    CallExtern,
    CallFunction,
    CallPacked,
    View,
    Assert,
    Barrier,
    DeviceRegion,
    Launch,
    Return,
)


def iterations_are_independent(loop: For, function: Function) -> bool:
    """Whether each iteration writes only elements that no other iteration reads or writes.

    Proven for a simple and common case: all accesses to written memory use one index, a multiple of the loop variable
    plus what is the same in all iterations; and written memory is not also reached by another name.
    """
    accesses: dict[Var, list[tuple[Expr, ...]]] = {}
    written: set[Var] = set()
    own: set[Var] = set()
    for node in walk(loop.body):
        if isinstance(node, _OPAQUE) or (isinstance(node, Call) and not node.op.pure):
            return False
        if isinstance(node, Allocate):
            own.add(node.buffer.data)
        elif isinstance(node, (Load, Store)):
            accesses.setdefault(node.buffer.data, []).append((node.buffer, *node.indices))  # type: ignore[arg-type]
            if isinstance(node, Store):
                written.add(node.buffer.data)
    shared = set(accesses) - own
    written -= own
    if not written:
        return True
    if len(shared) > 1 and not function.facts.no_alias and not written <= new_memory(function):
        return False
    inside = defined_variables(loop.body)
    simplifier = Simplifier()
    return all(_is_one_element_each(accesses[data], loop.var, inside, simplifier) for data in written)


def new_memory(function: Function) -> set[Var]:
    """Data of allocations, which is reached by no other name as long as its address is not taken."""
    found, taken = set(), set()
    for node in walk(function.body):
        if isinstance(node, Allocate):
            found.add(node.buffer.data)
        elif isinstance(node, (AddressOf, BufferRef)):
            taken.add(node.buffer.data)
        elif isinstance(node, Bind) and isinstance(node.value, Var) and node.value.dtype.is_handle:
            taken.add(node.value)
        elif isinstance(node, View) and node.source is not None:
            taken.update(part for part in walk(node.source) if isinstance(part, Var))
        elif isinstance(node, (CallFunction, CallExtern, CallPacked)):
            taken.update(part for part in node.args if isinstance(part, Var))
    return found - taken


def _is_one_element_each(accesses: list[tuple[Expr, ...]], var: Var, inside: set[Var], simplifier: Simplifier) -> bool:
    """Whether all accesses are to one element, another one for each value of the variable."""
    buffer, *indices = accesses[0]
    if len(indices) != 1:
        return False
    for other_buffer, *other in accesses[1:]:
        if other_buffer is not buffer or len(other) != 1 or not simplifier.same(other[0], indices[0]):
            return False
    index = simplifier.simplify(indices[0])
    if index.dtype.lanes > 1 or not index.dtype.is_integer or index.dtype.bits < 64:
        return False
    climbs = False
    for atom, coefficient in simplifier.form(index).terms.values():
        variables = {node for node in walk(atom) if isinstance(node, Var)}
        if atom is var or _is_cast_of(atom, var):
            # Values of the variable are less than 2**32 apart, so such multiples stay apart modulo 2**64.
            climbs = abs(coefficient) < 1 << 31
        elif var in variables or variables & inside or any(isinstance(node, Load) for node in walk(atom)):
            return False
    return climbs


def _is_cast_of(atom: Expr, var: Var) -> bool:
    return getattr(atom, "value", None) is var and atom.dtype.is_integer and atom.dtype.bits >= var.dtype.bits
