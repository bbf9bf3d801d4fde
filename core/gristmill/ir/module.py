"""Functions and modules, and the facts about a function that are not in its body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from gristmill.ir.dtype import VOID, DType
from gristmill.ir.expr import Var
from gristmill.ir.memory import Buffer
from gristmill.ir.node import Node, node
from gristmill.ir.span import Span
from gristmill.ir.stmt import Stmt, ThreadAxis
from gristmill.ir.target import Target


class CallingConvention(Enum):
    """How a function is called."""

    PLAIN = "plain"
    """As written: buffers and scalars in, one scalar or nothing out."""
    PACKED_HOST = "packed"
    """The TVM FFI C ABI: parameters (self, args, count, result), an int32 out that is 0 for success."""
    DEVICE_KERNEL = "kernel"
    """A kernel that a :class:`~gristmill.ir.stmt.Launch` starts; returns nothing."""


@dataclass(frozen=True, slots=True)
class LaunchParameters:
    """What a launch of a kernel passes beyond its arguments: sizes along these axes, in this order, then (if
    ``dynamic_shared``) the bytes of dynamic shared memory."""

    axes: tuple[ThreadAxis, ...] = ()
    dynamic_shared: bool = False


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What is known of a function beside its body.

    ``symbol`` is the exported name; None for a private helper. ``declaration``: this only says how a kernel is launched
    whose code is in another part, and its body is empty. ``signature`` is the Python-like text of the public function as
    its author wrote it, for messages; ``summary`` is the first line of its docstring. ``release_gil``: None leaves it to
    the cost estimate.
    """

    symbol: str | None = None
    convention: CallingConvention = CallingConvention.PLAIN
    target: Target | None = None
    launch: LaunchParameters | None = None
    declaration: bool = False
    no_alias: bool = False
    fast_math: bool = False
    release_gil: bool | None = None
    signature: str = ""
    summary: str = ""


@node
class Function(Node):
    """A function: parameters, symbolic sizes, result type, body.

    ``sizes`` are the variables that occur in shapes, strides and offsets of buffer parameters without being parameters
    themselves, in order of first occurrence; a call binds them by solving the shape equations of its arguments, and
    arguments that contradict each other are refused. A parameter buffer defines its ``data`` variable. A function
    that reaches its end without :class:`~gristmill.ir.stmt.Return` returns 0 of its result type.
    """

    name: str
    params: tuple[Var | Buffer, ...]
    sizes: tuple[Var, ...]
    returns: DType
    body: Stmt
    facts: FunctionFacts = FunctionFacts()
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("sizes", "params", "body")

    @property
    def is_public(self) -> bool:
        return self.facts.symbol is not None

    @property
    def returns_value(self) -> bool:
        return self.returns != VOID

    def with_body(self, body: Stmt) -> Function:
        """This function with another body; the same object if it is the same body."""
        return self if body is self.body else replace(self, body=body)

    def with_facts(self, **changes: object) -> Function:
        """This function with some of its facts changed."""
        return replace(self, facts=replace(self.facts, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Extern:
    """A C symbol that the manifest declares, and the library that has it."""

    symbol: str
    library: str


@node
class Module(Node):
    """Functions that may call each other by name (names are unique), in the order of the source."""

    functions: tuple[Function, ...]
    externs: tuple[Extern, ...] = ()
    span: Span | None = None

    CHILDREN: ClassVar[tuple[str, ...]] = ("functions",)

    def get(self, name: str) -> Function | None:
        """The function of that name."""
        return next((function for function in self.functions if function.name == name), None)

    @property
    def public(self) -> tuple[Function, ...]:
        return tuple(function for function in self.functions if function.is_public)

    def with_functions(self, functions: Iterable[Function]) -> Module:
        """This module with other functions; the same object if all are the same objects in the same order."""
        found = tuple(functions)
        if len(found) == len(self.functions) and all(a is b for a, b in zip(found, self.functions, strict=True)):
            return self
        return replace(self, functions=found)
