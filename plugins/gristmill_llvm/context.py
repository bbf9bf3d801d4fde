"""The state of a generation: what is known of the module, and of the function that is being written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, Var
from gristmill.ir.module import Extern, Function, Module
from gristmill.ir.stmt import Stmt
from gristmill_llvm.messages import MessageTable
from gristmill_llvm.profile import Profile
from gristmill_llvm.types import register_type
from gristmill_llvm.writer import UNLIKELY, FunctionWriter, ModuleWriter


@dataclass(frozen=True, slots=True)
class Signature:
    """How a function of the module is called in LLVM IR.

    A function that can fail gives an ``i32``, 0 for success, and stores its result through a last pointer parameter.
    """

    name: str
    """With ``@``."""
    parameters: tuple[str, ...]
    returns: DType
    fails: bool

    @property
    def result(self) -> str:
        return "i32" if self.fails else register_type(self.returns)


@dataclass(slots=True)
class Generation:
    """What all functions of one module share."""

    module: Module
    profile: Profile
    writer: ModuleWriter
    signatures: dict[str, Signature]
    externs: dict[str, Extern]
    stack_budgets: Mapping[str, int]
    """How many bytes of buffers each function may keep on the stack."""
    support: set[str] = field(default_factory=set)
    """Names of the support functions that the text calls."""
    kernels: tuple[str, ...] = ()
    """The kernels that the module launches, in the order of the context table."""
    launching: frozenset[str] = frozenset()
    """The functions that take the context table."""
    messages: MessageTable = field(default_factory=MessageTable)
    """The messages of the errors that the module raises."""


@dataclass(slots=True)
class Loop:
    """Where break and continue go, and how many cleanups were pending when the loop began."""

    leave: str
    next: str
    cleanups: int


@dataclass(slots=True)
class FunctionContext:
    """One function while it is written.

    ``evaluate`` and ``execute`` write the code of an expression and of a statement; ``values`` holds the operands of
    variables in scope; ``cleanups`` write what must be done when control leaves the scopes that it is in now.
    """

    generation: Generation
    function: Function
    signature: Signature
    writer: FunctionWriter
    values: dict[Var, str] = field(default_factory=dict)
    pointers: dict[Var, str] = field(default_factory=dict)
    """LLVM types of pointer variables that are not plain ``ptr``."""
    loops: list[Loop] = field(default_factory=list)
    cleanups: list[Callable[[], None]] = field(default_factory=list)
    evaluate: Callable[[Expr], str] = field(init=False)
    execute: Callable[[Stmt], None] = field(init=False)
    stack_bytes: int = 0
    device_buffers: frozenset[Var] = frozenset()
    """Pointers to the buffers that are allocated on the device."""
    raised: list[tuple[str, str]] = field(default_factory=list)
    """(where the message begins, block it comes from) of jumps to the shared block that raises."""
    failed: bool = False
    """Whether a jump to the shared block that returns failure was written."""
    message_values: int = 0
    """The most values that an error message of the function has."""

    @property
    def profile(self) -> Profile:
        return self.generation.profile

    @property
    def module(self) -> ModuleWriter:
        return self.generation.writer

    def clean_up(self, down_to: int = 0) -> None:
        """Write the cleanups that are pending above a depth, last first; they stay pending for other ways out."""
        for cleanup in reversed(self.cleanups[down_to:]):
            cleanup()

    def fail(self) -> None:
        """Leave the function with failure; the error has been raised already."""
        self.clean_up()
        self.failed = True
        self.writer.branch(FAIL)

    def fail_if(self, condition: str) -> None:
        """Leave the function with failure if the ``i1`` is true."""
        writer = self.writer
        bad, good = writer.new_label("failed"), writer.new_label("go.on")
        writer.branch_if(condition, bad, good, UNLIKELY)
        writer.block(bad)
        self.fail()
        writer.block(good)


FAIL = "fail"
"""Label of the shared block that returns failure."""
RAISE = "raise"
"""Label of the shared block that raises an error and goes on to FAIL."""
