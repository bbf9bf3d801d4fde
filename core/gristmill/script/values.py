"""What a name or an expression of a kernel can stand for while it is read.

Beside the classes here: IR expressions; ``int``, ``float`` and ``bool`` (numbers without a type yet, which take that of
the other side); ``str``; ``None``; tuples of values; :class:`~gristmill.ir.dtype.DType`; IR buffers and regions;
:class:`~gristmill.ir.target.Target`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gristmill.errors import Place
from gristmill.ir.dtype import DType
from gristmill.ir.expr import Expr, Var
from gristmill.ir.memory import Buffer, Region
from gristmill.ir.module import Function, FunctionFacts
from gristmill.ir.span import Span
from gristmill.ir.stmt import LoopHints, LoopKind, ThreadAxis

if TYPE_CHECKING:
    from gristmill.script.context import Context
    from gristmill.script.files import File

Value = Any
"""One of the above. Kept open: what is acceptable depends on the place, and every place checks."""

Number = int | float | bool


@dataclass(frozen=True, slots=True)
class Namespace:
    """``T``, ``T.axis``, ``I``, ``math``, ``tvm``: a dotted path whose attributes are looked up in tables."""

    path: str


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A name of the language that is called: ``T.exp``, ``range``, ``min``."""

    path: str
    handler: Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something of a Python package that kernels cannot use; ``origin`` says which."""

    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class FileNamespace:
    """A source file imported as a whole: ``from . import constants``."""

    file: File


@dataclass(frozen=True, slots=True)
class ClassNamespace:
    """A class marked ``@I.ir_module``: its functions by attribute."""

    file: File
    name: str


@dataclass(frozen=True, slots=True)
class ThreadVariable:
    """``T.env_thread("threadIdx.x")``: an axis of a launch without an extent yet."""

    axis: ThreadAxis


@dataclass(slots=True)
class Local:
    """A local scalar: a name assigned more than once. The buffer is made by the first assignment, which gives the type."""

    name: str
    place: Place
    """The first assignment in the text."""
    depth: int
    """How many loops and branches the declaration stands in."""
    buffer: Buffer | None = None
    first: Place | None = None
    """The assignment that gave the type."""


@dataclass(frozen=True, slots=True)
class Launch:
    """``T.launch_thread(axis, extent)``: the rest of the statement list runs on those threads."""

    axis: ThreadAxis
    extent: Expr
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Loops:
    """``range(...)``, ``T.grid(...)`` and the like, before the names of the loops are known."""

    kind: LoopKind
    bounds: tuple[tuple[Expr, Expr, int], ...]
    """Start, stop and step of each loop, the outermost first."""
    places: tuple[ast.expr, ...]
    thread: ThreadAxis | None = None
    hints: LoopHints = field(default_factory=LoopHints)


@dataclass(frozen=True, slots=True)
class Opening:
    """What only ``with`` takes: a block, its init, a binding, an attribute that changes nothing."""

    what: str
    """``block``, ``init``, ``let`` or ``nothing``."""
    name: str = ""
    value: Value = None


@dataclass(frozen=True, slots=True)
class Allocated:
    """What ``T.allocate`` gives in the classic spelling: a pointer that can also be indexed."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class BufferShape:
    """``A.shape``."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Method:
    """A bound method of a buffer or an expression, as ``A.vload`` or ``x.astype``."""

    name: str
    owner: Value


@dataclass(frozen=True, slots=True)
class LetType:
    """``T.let`` or ``T.let[T.int32]`` as an annotation."""

    dtype: DType | None


@dataclass(frozen=True, slots=True)
class Symbolic:
    """``T.int32()``: a new symbolic size, named by the assignment it stands in."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class PointerAnnotation:
    """``T.handle("float32", "global")`` as the type of a parameter."""

    element: DType | None
    scope: str


@dataclass(slots=True)
class Callee:
    """A function that is part of the module being made: its syntax, and as soon as they are known its parts."""

    name: str
    file: File
    node: ast.FunctionDef
    is_public: bool
    is_macro: bool = False
    owner: str = ""
    """The ``ir_module`` class it stands in, if any."""
    params: tuple[Var | Buffer, ...] = ()
    sizes: tuple[Var, ...] = ()
    returns: DType | None = None
    facts: FunctionFacts = field(default_factory=FunctionFacts)
    context: Context | None = None
    """What reading the signature left: the scope with parameters and sizes."""
    consumed: set[int] = field(default_factory=set)
    """Ids of statements of the body that belong to the signature (``T.match_buffer`` of a parameter)."""
    function: Function | None = None
    state: str = "new"
    """``new``, ``signing``, ``signed``, ``lowering``, ``done`` or ``wrong``."""


LONGEST_SYMBOL = 200
"""Characters of an exported name: with what is added for kernels, that is what loaders and drivers take."""


def is_symbol(name: str) -> bool:
    """Whether a function can be exported under a name: one of C, and not too long."""
    return name.isascii() and name.isidentifier() and len(name) <= LONGEST_SYMBOL


def describe(value: Value) -> str:
    """What a value is, in the user's words."""
    if isinstance(value, bool):
        return f"the constant {value}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 40 else "a text"
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return "a tuple"
    if isinstance(value, DType):
        return f"the type {value}"
    if isinstance(value, Buffer):
        return f"the buffer `{value.name}`"
    if isinstance(value, Allocated):
        return f"the buffer `{value.buffer.name}`"
    if isinstance(value, Region):
        return f"a part of the buffer `{value.buffer.name}`"
    if isinstance(value, Var) and value.dtype.is_handle:
        return f"the pointer `{value.name}`"
    if isinstance(value, Expr):
        return "nothing (the call has no result)" if value.dtype.is_void else f"a value of type {value.dtype}"
    if isinstance(value, Intrinsic):
        return f"the function `{value.path}`"
    if isinstance(value, Callee):
        return f"the function `{value.name}`"
    if isinstance(value, Namespace):
        return f"the module `{value.path}`"
    if isinstance(value, BufferShape):
        return f"the shape of `{value.buffer.name}`"
    if isinstance(value, Foreign):
        return f"`{value.name}` of {value.origin}"
    return f"a {type(value).__name__.lower()}"
