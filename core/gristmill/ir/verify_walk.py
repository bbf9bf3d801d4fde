"""How the verifier walks an expression: types from the leaves up, over an explicit stack; and how it reports."""

from __future__ import annotations

from enum import Enum

from gristmill.errors import Diagnostic
from gristmill.ir import expr as e
from gristmill.ir.dtype import VOID, DType
from gristmill.ir.functor import Functor, children
from gristmill.ir.memory import Buffer
from gristmill.ir.module import CallingConvention, Function, Module
from gristmill.ir.node import Node
from gristmill.ir.op import Operands
from gristmill.ir.span import Span

DIAGNOSTICS_AT_MOST = 100
_SHOWN_CHARACTERS = 80


class Use(Enum):
    """What an expression stands for in its place."""

    VALUE = 0
    POINTER = 1
    """A pointer binding: :class:`~gristmill.ir.expr.AddressOf` may stand here."""
    ARGUMENT = 2
    """An argument of a call: buffers and addresses too."""
    FOREIGN = 3
    """An argument of a packed or extern call: texts too."""
    MESSAGE = 4
    """A part of the message of an assert: texts made at run time."""
    TILE = 5
    """An operand of an operation on matrices: addresses, of tiles too."""


def shown(node: Node) -> str:
    """A node in a message, cut short."""
    text = repr(node).partition("\n")[0]
    return f"`{text}`" if len(text) <= _SHOWN_CHARACTERS else f"`{text[:_SHOWN_CHARACTERS]}...`"


class VerifierWalk(Functor[DType]):
    """Walks expressions of one function. A ``visit_`` method gets a node whose operands' types are in ``types``."""

    def __init__(self, module: Module, function: Function, diagnostics: list[Diagnostic]) -> None:
        self.module = module
        self.function = function
        self.functions = {found.name: found for found in module.functions}
        self.diagnostics = diagnostics
        self.where: Span | None = function.span
        self.visible: set[Node] = set()
        self.in_thread_loop = False
        self.device_calls: dict[str, Span | None] = {}
        """Functions called by code of a device, with the place of a call."""
        self.types: tuple[DType, ...] = ()
        self.use = Use.VALUE
        self.bound: e.Expr | None = None
        """The value of the binding that is checked."""

    def report(self, code: str, message: str, node: Node | None = None, hint: str = "") -> None:
        span: Span | None = getattr(node, "span", None) if not isinstance(node, e.Var) else None
        span = span or self.where
        if len(self.diagnostics) < DIAGNOSTICS_AT_MOST:
            place, notes = (None, ()) if span is None else (span.place, span.notes())
            message = f"in function `{self.function.name}`: {message}" if place is None else message
            self.diagnostics.append(Diagnostic(code, message, place, hint=hint, notes=notes))

    @property
    def in_unordered_loop(self) -> bool:
        """Whether this is in a loop of one thread whose iterations have no order, or go in lock step."""
        raise NotImplementedError

    @property
    def is_device_code(self) -> bool:
        return self.in_thread_loop or self.function.facts.convention is CallingConvention.DEVICE_KERNEL

    # Walking

    def expression(self, root: e.Expr, use: Use = Use.VALUE) -> DType:
        """Check an expression; its type (a likely one where it is wrong)."""
        work: list[tuple[e.Expr, Use, int]] = [(root, use, -1)]
        types: list[DType] = []
        while work:
            node, use, operands = work.pop()
            if operands < 0:
                if not self.is_well_made(node):
                    types.append(VOID)
                    continue
                found = list(children(node))
                work.append((node, use, len(found)))
                below = _use_of_operands(node)
                work.extend((child, below, -1) for child in reversed(found))  # type: ignore[misc]
            else:
                self.types = tuple(types[len(types) - operands :])
                del types[len(types) - operands :]
                self.use = use
                types.append(self.visit(node))
        return types[0]

    def is_well_made(self, node: object) -> bool:
        """Whether this is an expression with an operand in every place of one."""
        if not isinstance(node, e.Expr) or type(node) not in self.table:
            self.report("GM0446", f"an expression is expected, not {_kind(node)}")
            return False
        if not isinstance(getattr(node, "buffer", None), (Buffer, type(None))):
            self.report("GM0446", f"`buffer` of {type(node).__name__} is not a buffer", node)
            return False
        for name in node.CHILDREN:
            value = getattr(node, name)
            operands = value if name in ("args", "indices", "vectors") else (value,)
            if type(operands) is not tuple or not all(isinstance(operand, e.Expr) for operand in operands):
                self.report("GM0446", f"`{name}` of {type(node).__name__} is not made of expressions", node)
                return False
        return True

    def no_void(self, node: e.Expr) -> bool:
        """Report an operand that is no value; whether all are."""
        if any(dtype.is_void for dtype in self.types):
            self.report("GM0414", f"an operand of {shown(node)} is a call that gives no value", node)
            return False
        return True


def _use_of_operands(node: e.Expr) -> Use:
    if isinstance(node, (e.CallExtern, e.CallPacked)):
        return Use.FOREIGN
    takes_addresses = isinstance(node, e.Call) and node.op.operands in (Operands.ANY, Operands.ATOMIC)
    if isinstance(node, e.Call) and node.op.operands is Operands.MATRIX:
        return Use.TILE
    if isinstance(node, e.CallFunction) or takes_addresses:
        return Use.ARGUMENT
    return Use.VALUE


def _kind(found: object) -> str:
    return "nothing" if found is None else type(found).__name__
