"""What reading an expression or a statement needs to know: the file, the names in scope, what encloses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gristmill.errors import Note, Place
from gristmill.ir.dtype import INT32, INT64, DType
from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import Buffer, Region
from gristmill.ir.span import Span
from gristmill.ir.stmt import BlockAxis, LoopKind, MatchBuffer, Stmt
from gristmill.script.names import Plan
from gristmill.script.problems import Mistake, Problems, mistake
from gristmill.script.source import Positioned, Source
from gristmill.script.values import Callee, Local, Value

if TYPE_CHECKING:
    from gristmill.script.files import File
    from gristmill.script.project import Project


@dataclass(frozen=True, slots=True)
class Enclosing:
    """A loop or branch around the statement that is read."""

    what: str
    """``for``, ``while``, ``if`` or ``block``."""
    kind: LoopKind | None = None
    place: Place | None = None


@dataclass(slots=True)
class BlockParts:
    """What the statements at the start of a ``with T.block(...)`` gather."""

    axes: list[BlockAxis] = field(default_factory=list)
    predicate: Expr | None = None
    reads: tuple[Region, ...] | None = None
    writes: tuple[Region, ...] | None = None
    allocations: list[Buffer] = field(default_factory=list)
    matches: list[MatchBuffer] = field(default_factory=list)
    init: Stmt | None = None
    depth: int = 0
    """How many loops and branches deep its own statements stand."""


class Context:
    """The state of reading one function (or, with ``callee`` None, a constant of a file)."""

    def __init__(self, project: Project, file: File, callee: Callee | None) -> None:
        self.project = project
        self.file = file
        self.callee = callee
        self.scopes: list[dict[str, Value]] = [{}]
        self.statements: list[Stmt | Local] = []
        """The list being filled; a local scalar stands where its allocation goes."""
        self.target = ""
        """The name that the value being read will get."""
        self.sometimes = ""
        """What the expression stands in that is evaluated only sometimes, or again."""
        self.whole: ast.expr | None = None
        """The expression that is a whole statement, or all that one assigns."""
        self.is_dropped = False
        """Whether the value of that expression is not used."""
        self.loops: dict[Var, tuple[Expr, Expr]] = {}
        """Minimum and extent of the loop that binds a variable."""
        self.scalars: dict[Buffer, Local] = {}
        """The local scalars that have a type, by their memory."""
        self.enclosing: list[Enclosing] = []
        self.blocks: list[BlockParts] = []
        self.returns: DType | None = None
        self.hidden: dict[str, Place] = {}
        """Loop variables that are out of scope again, for a better message."""
        self.inlined_at: Span | None = None
        self.macros: list[str] = []
        self.plan = Plan()
        self.failed = False
        """Whether a statement of the function was wrong."""
        self.poisoned: set[str] = set()
        """Names that a wrong statement would have defined."""
        self.declared_sizes: dict[str, ast.expr] = {}
        """``m = T.int32()`` at the top of the function."""
        self.matched: dict[str, str] = {}
        """Pointer parameters that are matched, and the buffer of each."""

    @property
    def source(self) -> Source:
        return self.file.source

    @property
    def problems(self) -> Problems:
        return self.project.problems

    @property
    def is_tvmscript(self) -> bool:
        """Whether the file is read in TVM's own dialect."""
        return self.project.dialect == "tvmscript"

    @property
    def index_type(self) -> DType:
        """The type of index arithmetic whose operands state none."""
        return INT32 if self.is_tvmscript else INT64

    def span(self, node: Positioned) -> Span:
        found = self.source.span(node)
        return found if self.inlined_at is None else Span(found.place, self.inlined_at)

    def mistake(
        self,
        code: str,
        node: Positioned | Place | None,
        message: str,
        *,
        label: str = "",
        hint: str = "",
        notes: Sequence[Note] = (),
    ) -> Mistake:
        """A mistake at a node of this file, to raise; inside an inlined macro the calls are noted."""
        place = node if node is None or isinstance(node, Place) else self.source.place(node)
        if self.inlined_at is not None:
            notes = (*notes, Note("inlined from this call", self.inlined_at.place), *self.inlined_at.notes())
        return mistake(code, place, message, label=label, hint=hint, notes=notes)

    def segment(self, node: Positioned) -> str:
        return self.source.segment(node)

    def operand_text(self, node: Positioned) -> str:
        """The text of an expression for use beside an operator in a hint: in parentheses where it is one itself."""
        text = self.segment(node)
        compound = (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.UnaryOp)
        return f"({text})" if isinstance(node, compound) else text

    # Names ------------------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Value | None:
        """What a name of this function stands for here, the innermost scope first."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def has(self, name: str) -> bool:
        return any(name in scope for scope in self.scopes)

    def define(self, name: str, value: Value) -> None:
        """Let a name stand for a value until the innermost scope ends."""
        self.scopes[-1][name] = value

    def known_names(self) -> list[str]:
        """Every name that could be meant, for suggestions."""
        found = [name for scope in self.scopes for name in scope]
        return [*found, *self.file.definitions]

    # Statements -------------------------------------------------------------------------------------------------------

    def emit(self, statement: Stmt) -> None:
        self.statements.append(statement)

    @contextmanager
    def only_sometimes(self, where: str) -> Iterator[None]:
        """Expressions that are evaluated only sometimes: nothing may be put before their statement for them."""
        was, self.sometimes = self.sometimes, self.sometimes or where
        yield
        self.sometimes = was

    def local_of(self, name: str) -> Local | None:
        found = self.find(name)
        return found if isinstance(found, Local) else None

    def visible_variables(self) -> set[Var]:
        """Every variable that code written here may mention."""
        return {value for scope in self.scopes for value in scope.values() if isinstance(value, Var)}

    def visible_buffers(self) -> dict[Var, Buffer]:
        """The buffers that code written here may mention, by their data; of several views the outermost."""
        found: dict[Var, Buffer] = {}
        for scope in self.scopes:
            for value in scope.values():
                if isinstance(value, Buffer):
                    found.setdefault(value.data, value)
        return found

    @property
    def is_conditional(self) -> bool:
        """Whether the statement may run other than exactly once."""
        return any(one.what != "block" for one in self.enclosing)

    @property
    def block(self) -> BlockParts | None:
        """The block whose own statements are read, if nothing stands between."""
        if self.blocks and self.blocks[-1].depth == len(self.enclosing):
            return self.blocks[-1]
        return None
