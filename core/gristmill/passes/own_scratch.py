"""Scratch values that a function declares outside a loop, and that each iteration of the loop sets before it reads them.

Before::

    allocate acc: float32[1]
    for j in range(n):
        acc[0] = 0.0
        ...

After::

    allocate acc: float32[1]                    ; unused now
    for j in range(n):
        allocate acc: float32[1]
        acc[0] = 0.0
        ...

Nothing goes from one iteration to the next then, so that they may run in another order, or at the same time.
"""

from __future__ import annotations

from dataclasses import replace

from gristmill.ir.build import constant_value, sequence
from gristmill.ir.expr import Load, Var
from gristmill.ir.functor import USES_BUFFER, substitute, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.stmt import Allocate, For, Seq, Stmt, Store, View
from gristmill.passes.independence import new_memory


def with_own_scratch(loop: For, function: Function) -> For:
    """The loop with an allocation in its body for each scratch value of one element; the same loop if there is none."""
    found = [buffer for buffer in _set_first(loop) if _is_of_loop(buffer, loop, function)]
    if not found:
        return loop
    own = {buffer: _renewed(buffer) for buffer in found}
    body = substitute(loop.body, {}, own)
    return replace(loop, body=sequence(*(Allocate(buffer, buffer.span) for buffer in own.values()), body))


def _renewed(buffer: Buffer) -> Buffer:
    data = buffer.data
    return replace(buffer, data=Var(data.name, data.type, data.pointer, data.span))


def _set_first(loop: For) -> list[Buffer]:
    """Buffers of one element that a statement of the body stores to, always, before anything of the body reads them."""
    found: list[Buffer] = []
    touched: set[Buffer] = set()
    for statement in loop.body.body if isinstance(loop.body, Seq) else (loop.body,):
        if isinstance(statement, Store) and statement.buffer not in touched and _sets(statement):
            found.append(statement.buffer)
        touched.update(part.buffer for part in walk(statement) if isinstance(part, USES_BUFFER))
    return found


def _sets(store: Store) -> bool:
    """Whether the store sets all that the buffer has, one element, to what does not depend on it."""
    buffer = store.buffer
    if buffer.strides or buffer.offset is not None or buffer.dtype.is_vector:
        return False
    if any(constant_value(size) != 1 for size in buffer.shape):
        return False
    return all(part.buffer is not buffer for part in walk(store) if isinstance(part, Load))


def _is_of_loop(buffer: Buffer, loop: For, function: Function) -> bool:
    """Whether the function allocates the buffer outside the loop, and nothing outside the loop reads its memory."""
    if buffer.data not in new_memory(function):
        return False
    if any(isinstance(node, Allocate) and node.buffer is buffer for node in walk(loop.body)):
        return False
    if any(isinstance(node, View) and node.buffer.data is buffer.data for node in walk(function.body)):
        return False
    return _reads(buffer, function.body) == _reads(buffer, loop.body)


def _reads(buffer: Buffer, body: Stmt) -> int:
    """How many nodes may read the buffer: all that use it but stores."""
    return sum(
        isinstance(node, USES_BUFFER) and node.buffer is buffer and not isinstance(node, Store) for node in walk(body)
    )
