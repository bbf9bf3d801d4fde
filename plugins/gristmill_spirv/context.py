"""The state of a generation: what is known of a kernel's module, and of the function that is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gristmill.ir.dtype import DType
from gristmill.ir.expr import CallFunction, Expr, Var
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, Module
from gristmill.ir.span import Span
from gristmill.ir.stmt import Assert, Stmt, ThreadAxis
from gristmill_spirv.builder import ModuleBuilder
from gristmill_spirv.enumerants import BuiltIn
from gristmill_spirv.function_writer import FunctionWriter
from gristmill_spirv.places import Interface, Place
from gristmill_spirv.profile import Profile
from gristmill_spirv.refusals import refused_construct, refused_feature
from gristmill_spirv.registers import Lanes

if TYPE_CHECKING:
    from gristmill_spirv.matrices import Shape, TilePlace

FEATURE_OF_BITS = {8: "storage8", 16: "storage16"}


@dataclass(slots=True)
class KernelModule:
    """What all functions of one kernel's module share."""

    source: Module
    kernel: Function
    profile: Profile
    builder: ModuleBuilder
    interface: Interface
    block: tuple[int, int, int]
    """The threads of a block along x, y, z; 0 where the launch says."""
    instances: dict[tuple[object, ...], int] = field(default_factory=dict)
    """Ids of the functions written for helpers, by name and the fixed parts of their pointer arguments."""
    axes: dict[ThreadAxis, int] = field(default_factory=dict)
    """The number of the thread or block along each axis of the launch, a uint32."""
    features: set[str] = field(default_factory=set)
    """What the module needs of its device, by the names of the target's keys."""
    inputs: dict[BuiltIn, int] = field(default_factory=dict)
    """The variables that the device fills in (see :mod:`gristmill_spirv.threads`)."""
    sizes: tuple[int, int, int] | None = None
    """The ids of the numbers in ``block``; None before they are needed."""
    in_row: bool = False
    """Whether the threads of a block are launched as one row, so that they fill subgroups one after the other."""
    subgroup_size: int = 0
    """How many threads the module relies on subgroups to have; 0: it does not."""
    matrices: set[Shape] = field(default_factory=set)
    """The products of tiles of matrices that the module has."""
    asserts: list[Assert] = field(default_factory=list)
    """The asserts that report to the host; their numbers begin at 1."""
    assert_address: tuple[int, int] | None = None
    """The specialisation constants that say where they report; None without any."""
    shared_bytes: int = 0
    dynamic_element: int = 0
    """Bytes of an element of the dynamic shared array; 0 without one."""

    def functions(self) -> Iterator[Function]:
        """The kernel, and what it calls, each once."""
        waiting, seen = [self.kernel], {self.kernel.name}
        while waiting:
            function = waiting.pop()
            yield function
            for node in walk(function.body):
                if isinstance(node, CallFunction) and node.function not in seen:
                    seen.add(node.function)
                    callee = self.source.get(node.function)
                    waiting += [callee] if callee is not None else []

    def require(self, feature: str, what: str, span: Span | None) -> None:
        """Note that the module needs a feature. Raises Unsupported (GM0680) if the target does not have it."""
        if feature in self.features:
            return
        if feature not in self.profile.features:
            raise refused_feature(what, feature, self.profile.target, span)
        self.features.add(feature)

    def require_subgroups(self, what: str, span: Span | None) -> int:
        """Note that the module needs subgroups of the size that the target guarantees; the size.

        Raises Unsupported (GM0681) if the target guarantees none.
        """
        size = self.profile.subgroup_size
        if not size:
            remedy = "say how many threads its subgroups have, as `subgroup_size = 32`, in the target in kernels.toml"
            raise refused_construct(what, self.profile.target, remedy, span)
        self.subgroup_size = size
        return size

    def require_dtype(self, dtype: DType, span: Span | None) -> None:
        """What computing with an element type needs."""
        if dtype.bits == 64 and not dtype.is_handle:
            self.require("float64" if dtype.is_float else "int64", f"dtype `{dtype.element}`", span)

    def require_storage(self, dtype: DType, span: Span | None) -> None:
        """What an array of an element type in global memory needs."""
        self.require_dtype(dtype, span)
        if dtype.is_float and dtype.bits == 64:
            self.require("int64", f"an array of `{dtype.element}`", span)
        feature = FEATURE_OF_BITS.get(dtype.bits)
        if feature is not None:
            self.require(feature, f"an array of `{dtype.element}`", span)


@dataclass(slots=True)
class FunctionContext:
    """One function while it is written.

    ``evaluate`` and ``execute`` write the code of an expression and of a statement; ``values`` holds the lanes of
    variables in scope, ``places`` what pointers stand for.
    """

    kernel: KernelModule
    function: Function
    writer: FunctionWriter
    is_entry: bool
    values: dict[Var, Lanes] = field(default_factory=dict)
    places: dict[Var, Place] = field(default_factory=dict)
    tiles: dict[Var, TilePlace] = field(default_factory=dict)
    """The variables of tiles of matrices, by the data of their buffers."""
    bindings: dict[Var, Expr] = field(default_factory=dict)
    """The values that names stand for, as expressions."""
    evaluate: Callable[[Expr], Lanes] = field(init=False)
    execute: Callable[[Stmt], None] = field(init=False)

    @property
    def fast(self) -> bool:
        """Whether floats may be contracted."""
        return self.function.facts.fast_math
