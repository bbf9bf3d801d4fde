"""Lanes without a thread, and loops that would never end for them.

Mesa's drivers for processors run the threads of a block along x in vectors. Where a row of threads does not fill its last
vector, the lanes that are left go along with the others: their loads give 0, and their stores go nowhere. A loop that
memory ends does not end for them but after 65,535 iterations, and then that driver ends all further loops of the whole
vector. So where a loop may be one of these, the kernel's body stands under a condition that such lanes do not meet, as all
threads do. It has to be one that no driver can work out: rows of a single thread are launched as rows of two.
"""

from __future__ import annotations

import math

from gristmill.ir.effects import is_collective
from gristmill.ir.functor import walk
from gristmill.ir.stmt import Barrier, Break, For, LoopKind, Return, While
from gristmill_spirv.context import FunctionContext, KernelModule
from gristmill_spirv.enumerants import BuiltIn, Op
from gristmill_spirv.registers import word, word_constant
from gristmill_spirv.threads import block_sizes, input_variable

_MOST_LANES = 16
"""32-bit lanes of the widest vectors that these drivers use (of 512 bits)."""


def lanes_may_idle(state: KernelModule) -> bool:
    """Whether the kernel has to be kept from running in lanes without a thread.

    Kernels whose threads wait for each other are left as they are: all threads have to come to barriers, and the
    condition is one that drivers do not know to be true for all.
    """
    x, y, z = state.block
    if x and x % _MOST_LANES == 0:
        return False
    if x == 1 and not _has_room(state, 2, y, z):
        return False
    nodes = [node for function in state.functions() for node in walk(function.body)]
    if any(isinstance(node, Barrier) or is_collective(node) for node in nodes):
        return False
    has_loops = any(isinstance(node, For) and node.kind is not LoopKind.THREAD for node in nodes)
    return any(isinstance(node, (While, Break)) or (has_loops and isinstance(node, Return)) for node in nodes)


def has_a_thread(context: FunctionContext) -> int:
    """The condition that holds for all threads, and for no other lane."""
    writer, state = context.writer, context.kernel
    triple, condition = writer.module.vector(word(writer), 3), writer.module.type_bool()
    numbers = writer.value(Op.Load, triple, input_variable(state, BuiltIn.LocalInvocationId, triple, "threadIdx"))
    number = writer.value(Op.CompositeExtract, word(writer), numbers, 0)
    if state.block[0] == 1:
        return writer.value(Op.IEqual, condition, number, word_constant(writer, 0))
    return writer.value(Op.ULessThan, condition, number, block_sizes(state)[0])


def launched_size(size: tuple[int, int, int]) -> tuple[int, int, int]:
    """How many threads a block of such a kernel is launched with."""
    x, y, z = size
    return (2, y, z) if x == 1 else size


def _has_room(state: KernelModule, x: int, y: int, z: int) -> bool:
    profile = state.profile
    return 0 < math.prod((x, y, z)) <= profile.max_threads_per_block and x <= profile.max_block_size[0]
