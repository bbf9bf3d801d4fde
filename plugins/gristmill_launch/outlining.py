"""Making a kernel of a device region: its parameters, its body, and the launch that takes the region's place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gristmill.errors import Diagnostic, UserError
from gristmill.ir.build import constant_value, sequence
from gristmill.ir.dtype import VOID
from gristmill.ir.expr import Expr, Shuffle, Var
from gristmill.ir.functor import USES_BUFFER, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, FunctionFacts, LaunchParameters
from gristmill.ir.node import Node
from gristmill.ir.span import place_of
from gristmill.ir.stmt import (
    Allocate,
    Bind,
    Block,
    DeviceRegion,
    For,
    Launch,
    MatchBuffer,
    Return,
    Stmt,
    View,
)
from gristmill.passes.renewal import Renewal, defined_variables
from gristmill_launch.launch_parameters import plan_launch
from gristmill_launch.own_memory import HostMemory, with_own_memory


@dataclass(frozen=True, slots=True)
class Outlined:
    """A kernel, and the statement that launches it."""

    kernel: Function
    launch: Stmt


def outline(function: Function, region: DeviceRegion, memory: HostMemory, name: str) -> Outlined:
    """The kernel ``name`` for a region of a host function.

    Parameters are the variables that the region uses and does not define, also those that occur only in extents and
    shapes: pointers first, then scalars, each in the order in which the function defines them. Buffers from outside
    become views of the pointers, with their shape, strides, offset, scope and alignment. A vector is passed lane by
    lane. Nothing that the kernel defines is shared with the function.
    """
    owned = with_own_memory(region, memory)
    body = owned.body
    buffers = _outer_buffers(body)
    wanted = _free_variables(body, buffers)
    order = {var: number for number, var in enumerate(_definitions(function))}
    order.update({bind.var: len(order) + number for number, bind in enumerate(_binds(owned.before))})
    free = sorted(wanted, key=lambda var: order.get(var, len(order)))
    plan = plan_launch(function, body)

    params: list[Var] = []
    args: list[Expr] = []
    joined: list[Stmt] = []
    variables: dict[Var, Expr] = {}
    for var in (*(one for one in free if one.type.is_handle), *(one for one in free if not one.type.is_handle)):
        variables[var] = inner = replace(var)
        if not var.type.is_vector:
            params.append(inner)
            args.append(var)
            continue
        lanes = [Var(f"{var.name}_{lane}", var.type.element, None, var.span) for lane in range(var.type.lanes)]
        params += lanes
        args += [Shuffle((var,), (lane,)) for lane in range(var.type.lanes)]
        joined.append(Bind(inner, Shuffle(tuple(lanes), tuple(range(len(lanes))))))

    kernel_body = _KernelBody(function, body, variables)
    views: list[Stmt] = []
    for buffer in _in_order_of_definition(buffers, function):
        views.append(View(kernel_body.visit(buffer), None, buffer.span))
    kernel = Function(
        name,
        tuple(params),
        (),
        VOID,
        sequence(*joined, *views, kernel_body.visit(body), span=region.span),
        FunctionFacts(
            symbol=name,
            convention=CallingConvention.DEVICE_KERNEL,
            target=region.target,
            launch=LaunchParameters(tuple(plan.axes), plan.dynamic_shared is not None),
            no_alias=function.facts.no_alias and _are_arrays(function, free),
            fast_math=function.facts.fast_math,
        ),
        region.span or function.span,
    )
    launch = Launch(
        name,
        tuple(args),
        tuple(plan.axes),
        tuple(plan.extents),
        plan.dynamic_shared,
        None,
        region.span or function.span,
    )
    return Outlined(kernel, sequence(*owned.before, *plan.before, launch, span=region.span))


class _KernelBody(Renewal):
    """A copy of a region with new names; where a thread ends, nothing is returned."""

    def __init__(self, function: Function, body: Stmt, variables: dict[Var, Expr]) -> None:
        super().__init__(body, variables)
        self.function = function

    def visit_Return(self, node: Return) -> Any:
        if node.value is None:
            return node
        if constant_value(node.value) != 0:
            raise UserError(
                Diagnostic(
                    "GM0655",
                    f"this `return` ends a thread of a launch in `{self.function.name}`, so that its value goes nowhere",
                    place_of(node.span),
                    label="gives a value",
                    hint="store the value to an array, and write `return 0`",
                )
            )
        return replace(node, value=None)


def _outer_buffers(body: Stmt) -> list[Buffer]:
    """The buffers that the body uses and does not define, in order of first use."""
    defined: set[Buffer] = set()
    used: dict[Buffer, None] = {}
    for node in walk(body):
        if isinstance(node, (Allocate, View, MatchBuffer)):
            defined.add(node.buffer)
        elif isinstance(node, Block):
            defined.update(node.allocations)
        if isinstance(node, USES_BUFFER):
            used[node.buffer] = None
    return [buffer for buffer in used if buffer not in defined]


def _in_order_of_definition(buffers: list[Buffer], function: Function) -> list[Buffer]:
    params = [param for param in function.params if isinstance(param, Buffer)]
    inside = [node.buffer for node in walk(function.body) if isinstance(node, (Allocate, View, MatchBuffer))]
    places = {buffer: place for place, buffer in enumerate((*params, *inside))}
    return sorted(buffers, key=lambda found: places.get(found, len(places)))


def _free_variables(body: Stmt, buffers: list[Buffer]) -> set[Var]:
    inside = defined_variables(body)
    found = {node for root in (body, *buffers) for node in walk(root) if isinstance(node, Var)}
    found |= {buffer.data for buffer in buffers}
    found |= {node.buffer.data for node in walk(body) if isinstance(node, View)}
    return found - inside


def _definitions(function: Function) -> Iterator[Var]:
    """All variables of a function in the order in which it defines them."""
    for param in function.params:
        yield param.data if isinstance(param, Buffer) else param
    yield from function.sizes
    for node in walk(function.body):
        yield from _defined_by(node)


def _defined_by(node: Node) -> Iterator[Var]:
    if isinstance(node, (Bind, For)):
        yield node.var
    elif isinstance(node, (Allocate, View)):
        yield node.buffer.data


def _binds(statements: list[Stmt]) -> Iterator[Bind]:
    for statement in statements:
        if isinstance(statement, Bind):
            yield statement


def _are_arrays(function: Function, variables: list[Var]) -> bool:
    """Whether all pointers are array parameters or new memory, which a function without aliases keeps apart."""
    apart = {param.data for param in function.params if isinstance(param, Buffer)}
    apart |= {node.buffer.data for node in walk(function.body) if isinstance(node, Allocate)}
    return all(var in apart for var in variables if var.type.is_handle)
