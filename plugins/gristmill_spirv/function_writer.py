"""Writing one SPIR-V function: blocks in structured control flow, values, and local variables at its start.

What SPIR-V asks of control flow (section 2.11, "Structured Control Flow") holds by construction: every branch goes
through :meth:`FunctionWriter.selection`, :meth:`FunctionWriter.loop` or a jump to the merge or continue block of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gristmill_spirv.builder import ModuleBuilder, Section
from gristmill_spirv.enumerants import LoopControl, Op, SelectionControl, StorageClass


@dataclass(frozen=True, slots=True)
class LoopLabels:
    """Where ``break`` and ``continue`` of a loop go."""

    merge: int
    next: int


class FunctionWriter:
    """One function while it is written; :meth:`finish` puts it into the module.

    After a terminator (return, break, continue) :attr:`is_open` is false, and what is written until the next label is
    dropped: it can never run.
    """

    def __init__(self, module: ModuleBuilder, returns: int, params: Sequence[int]) -> None:
        self.module = module
        self.id = module.new_id()
        self.returns = returns
        self._type = module.function_type(returns, params)
        self.params = [module.new_id() for _ in params]
        self._param_types = list(params)
        self._variables: list[int] = []
        self._words: list[int] = []
        self._entry = module.new_id()
        self.block = self._entry
        self.is_open = True
        self.loops: list[LoopLabels] = []

    # Instructions

    def effect(self, op: Op, *operands: int) -> None:
        """An instruction without a result."""
        if self.is_open:
            self._words.append(len(operands) + 1 << 16 | op)
            self._words.extend(operands)

    def value(self, op: Op, type_: int, *operands: int) -> int:
        """An instruction with a result; its id."""
        found = self.module.new_id()
        if self.is_open:
            self._words.append(len(operands) + 3 << 16 | op)
            self._words.append(type_)
            self._words.append(found)
            self._words.extend(operands)
        return found

    def variable(self, pointee: int) -> int:
        """A variable of this function (storage class Function), declared at its start; not initialised."""
        pointer = self.module.pointer(StorageClass.Function, pointee)
        found = self.module.new_id()
        self._variables += (4 << 16 | Op.Variable, pointer, found, StorageClass.Function)
        return found

    # Blocks

    def label(self, block: int) -> None:
        """Begin a block. The one before must be ended."""
        assert not self.is_open
        self.is_open = True
        self.block = block
        self._words += (2 << 16 | Op.Label, block)

    def end(self, op: Op, *operands: int) -> None:
        """End the block with a terminator."""
        self.effect(op, *operands)
        self.is_open = False

    def branch(self, target: int) -> None:
        self.end(Op.Branch, target)

    def selection(self, condition: int, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        """Run one of two pieces of code. Where both have ended the function is left, the code after can never run."""
        if not self.is_open:
            return
        merge, first = self.module.new_id(), self.module.new_id()
        second = self.module.new_id() if otherwise is not None else merge
        self.effect(Op.SelectionMerge, merge, SelectionControl.None_)
        self.end(Op.BranchConditional, condition, first, second)
        reached = otherwise is None
        self.label(first)
        then()
        if self.is_open:
            reached = True
            self.branch(merge)
        if otherwise is not None:
            self.label(second)
            otherwise()
            if self.is_open:
                reached = True
                self.branch(merge)
        self.label(merge)
        if not reached:
            self.end(Op.Unreachable)

    def choice(self, type_: int, condition: int, then: Callable[[], int], otherwise: Callable[[], int]) -> int:
        """The value of one of two pieces of code, of which only that one runs."""
        return self.choices(type_, condition, lambda: (then(),), lambda: (otherwise(),))[0]

    def choices(
        self,
        type_: int,
        condition: int,
        then: Callable[[], tuple[int, ...]],
        otherwise: Callable[[], tuple[int, ...]],
    ) -> tuple[int, ...]:
        """As :meth:`choice`, for several values of one type."""
        arms: list[tuple[tuple[int, ...], int]] = []

        def arm(code: Callable[[], tuple[int, ...]]) -> Callable[[], None]:
            def run() -> None:
                arms.append((code(), self.block))

            return run

        if not self.is_open:
            return then()
        self.selection(condition, arm(then), arm(otherwise))
        (first, first_block), (second, second_block) = arms
        return tuple(
            self.value(Op.Phi, type_, a, first_block, b, second_block) for a, b in zip(first, second, strict=True)
        )

    @contextmanager
    def loop(self, condition: Callable[[], int], step: Callable[[], None] | None = None) -> Iterator[None]:
        """A loop around what is written in the context: ``condition`` before each iteration, ``step`` after it.

        Its counter is a variable, or made by :meth:`counted`.
        """
        if not self.is_open:
            self.loops.append(LoopLabels(0, 0))
            yield
            self.loops.pop()
            return
        header, test, body = (self.module.new_id() for _ in range(3))
        labels = LoopLabels(self.module.new_id(), self.module.new_id())
        self.branch(header)
        self.label(header)
        self.effect(Op.LoopMerge, labels.merge, labels.next, LoopControl.None_)
        self.branch(test)
        self.label(test)
        wanted = condition()
        self.end(Op.BranchConditional, wanted, body, labels.merge)
        with self._body(labels, body):
            yield
        if step is not None:
            step()
        self.branch(header)
        self.label(labels.merge)

    @contextmanager
    def counted(
        self, type_: int, start: int, less_than: Callable[[int], int], advance: Callable[[int], int], unroll: int
    ) -> Iterator[int]:
        """A loop whose counter is a phi of the header: the counter's id is what the context gives.

        ``less_than`` writes the condition for a counter, ``advance`` the counter of the next iteration. ``unroll``: 0 for
        no wish, -1 to repeat the body for all iterations, or how many times to repeat it.
        """
        if not self.is_open:
            self.loops.append(LoopLabels(0, 0))
            yield start
            self.loops.pop()
            return
        header, test, body = (self.module.new_id() for _ in range(3))
        labels = LoopLabels(self.module.new_id(), self.module.new_id())
        counter, following = self.module.new_id(), self.module.new_id()
        before = self.block
        self.branch(header)
        self.label(header)
        self._words += (7 << 16 | Op.Phi, type_, counter, start, before, following, labels.next)
        control: tuple[int, ...] = (LoopControl.Unroll if unroll < 0 else LoopControl.None_,)
        if unroll > 1 and self.module.version >= (1, 4):
            control = LoopControl.PartialCount, unroll
        self.effect(Op.LoopMerge, labels.merge, labels.next, *control)
        self.branch(test)
        self.label(test)
        wanted = less_than(counter)
        self.end(Op.BranchConditional, wanted, body, labels.merge)
        with self._body(labels, body):
            yield counter
        made = advance(counter)
        # The phi names the next counter before it is written.
        self._words += (4 << 16 | Op.CopyObject, type_, following, made)
        self.branch(header)
        self.label(labels.merge)

    @contextmanager
    def once(self) -> Iterator[None]:
        """Code in which ``continue`` (and ``break``) go to its end."""
        if not self.is_open:
            self.loops.append(LoopLabels(0, 0))
            yield
            self.loops.pop()
            return
        header, body = self.module.new_id(), self.module.new_id()
        labels = LoopLabels(self.module.new_id(), self.module.new_id())
        self.branch(header)
        self.label(header)
        self.effect(Op.LoopMerge, labels.merge, labels.next, LoopControl.None_)
        self.branch(body)
        with self._body(labels, body):
            yield
        self.end(Op.BranchConditional, self.module.constant_bool(False), header, labels.merge)
        self.label(labels.merge)

    @contextmanager
    def _body(self, labels: LoopLabels, block: int) -> Iterator[None]:
        """The body of a loop, from its block to where the block begins in which the loop goes on."""
        self.label(block)
        self.loops.append(labels)
        yield
        self.loops.pop()
        if self.is_open:
            self.branch(labels.next)
        self.label(labels.next)

    def leave_loop(self) -> None:
        """``break``"""
        self.branch(self.loops[-1].merge)

    def next_iteration(self) -> None:
        """``continue``"""
        self.branch(self.loops[-1].next)

    def finish(self) -> None:
        """Put the function into the module. The last block must be ended."""
        assert not self.is_open
        words = [5 << 16 | Op.Function, self.returns, self.id, 0, self._type]
        for type_, param in zip(self._param_types, self.params, strict=True):
            words += (3 << 16 | Op.FunctionParameter, type_, param)
        words += (2 << 16 | Op.Label, self._entry)
        words += self._variables
        words += self._words
        words.append(1 << 16 | Op.FunctionEnd)
        self.module.extend(Section.FUNCTIONS, words)
