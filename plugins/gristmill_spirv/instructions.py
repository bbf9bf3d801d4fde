"""What the operands of instructions are, for showing modules as text.

One row an instruction. ``t`` is the type of the result and ``r`` the result, which come first; then ``i`` an id, ``n`` a
number, ``s`` a text, ``v`` the value of a constant, and the name of a kind of operand with its own words. What a star
follows may be there any number of times, what a question mark follows once or not at all. Operands after those of a row
are ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum, IntFlag

from gristmill_spirv import enumerants as kinds
from gristmill_spirv.enumerants import BuiltIn, Decoration, ExecutionMode, LoopControl, MemoryAccess, Op

ENUMERANTS: Mapping[str, type[IntEnum | IntFlag]] = {
    kind.__name__: kind
    for kind in (
        *(
            kinds.AddressingModel,
            kinds.Capability,
            kinds.CooperativeMatrixOperands,
            kinds.ExecutionModel,
            kinds.FunctionControl,
            kinds.GroupOperation,
        ),
        *(kinds.LoopControl, kinds.MemoryModel, kinds.PackedVectorFormat, kinds.SelectionControl, kinds.StorageClass),
        *(BuiltIn, Decoration, ExecutionMode, MemoryAccess),
    )
}
"""The kinds of operands by their names in rows."""

# By the kind as well: numbers of two kinds are equal.
MORE: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "Decoration": {
        Decoration.SpecId: ("n",),
        Decoration.ArrayStride: ("n",),
        Decoration.BuiltIn: ("BuiltIn",),
        Decoration.Binding: ("n",),
        Decoration.DescriptorSet: ("n",),
        Decoration.Offset: ("n",),
    },
    "ExecutionMode": {
        ExecutionMode.LocalSize: ("n", "n", "n"),
        ExecutionMode.LocalSizeId: ("i", "i", "i"),
        ExecutionMode.DenormPreserve: ("n",),
        ExecutionMode.DenormFlushToZero: ("n",),
        ExecutionMode.SignedZeroInfNanPreserve: ("n",),
        ExecutionMode.RoundingModeRTE: ("n",),
    },
    "LoopControl": {LoopControl.PartialCount: ("n",)},
    "MemoryAccess": {
        MemoryAccess.Aligned: ("n",),
        MemoryAccess.MakePointerAvailable: ("i",),
        MemoryAccess.MakePointerVisible: ("i",),
    },
}
"""The operands that a word brings with it."""

_ROWS = """
Name i s
MemberName i n s
String r s
Line i n n
Extension s
ExtInstImport r s
ExtInst t r i GLSL450
MemoryModel AddressingModel MemoryModel
EntryPoint ExecutionModel i s
ExecutionMode i ExecutionMode
ExecutionModeId i ExecutionMode
Capability Capability
TypeInt r n n
TypeFloat r n
TypeVector r i n
TypePointer r StorageClass i
TypeForwardPointer i StorageClass
Constant t r v
SpecConstant t r v
SpecConstantOp t r Op
Function t r FunctionControl i
Variable t r StorageClass
Load t r i MemoryAccess?
Store i i MemoryAccess?
ArrayLength t r i n
Decorate i Decoration
MemberDecorate i n Decoration
VectorShuffle t r i i n*
CompositeExtract t r i n*
CompositeInsert t r i i n*
LoopMerge i i LoopControl
SelectionMerge i SelectionControl
BranchConditional i i i n*
GroupNonUniformIAdd t r i GroupOperation i
GroupNonUniformFAdd t r i GroupOperation i
SDot t r i i PackedVectorFormat?
UDot t r i i PackedVectorFormat?
SUDot t r i i PackedVectorFormat?
SDotAccSat t r i i i PackedVectorFormat?
UDotAccSat t r i i i PackedVectorFormat?
SUDotAccSat t r i i i PackedVectorFormat?
CooperativeMatrixLoadKHR t r i i i MemoryAccess?
CooperativeMatrixStoreKHR i i i i MemoryAccess?
CooperativeMatrixMulAddKHR t r i i i CooperativeMatrixOperands?
"""
_TYPES = "TypeVoid TypeBool TypeArray TypeRuntimeArray TypeStruct TypeFunction TypeCooperativeMatrixKHR Label"
_EFFECTS = """
FunctionEnd ControlBarrier MemoryBarrier AtomicStore Branch Return ReturnValue Unreachable
"""


def _table() -> dict[Op, tuple[str, ...]]:
    found: dict[Op, tuple[str, ...]] = dict.fromkeys(Op, ("t", "r"))
    found |= {Op[name]: ("r",) for name in _TYPES.split()}
    found |= {Op[name]: () for name in _EFFECTS.split()}
    for row in _ROWS.strip().splitlines():
        name, *operands = row.split()
        found[Op[name]] = tuple(operands)
    return found


OPERANDS: Mapping[Op, tuple[str, ...]] = _table()
"""The rows. Instructions without one of their own have a result of a type, and operands that are ids."""


def word_of(kind: str, number: int) -> str:
    """The word for a number, as ``Uniform``, or of a mask the words in it, as ``Aligned|NonPrivatePointer``."""
    members = ENUMERANTS[kind]
    if issubclass(members, IntFlag):
        names: Iterable[str | None] = (member.name for member in members if member and member & number)
        return "|".join(filter(None, names)) or "None"
    name = members(number).name
    assert name is not None
    return name.removesuffix("_")


def brought_by(kind: str, number: int) -> tuple[str, ...]:
    """The operands that follow a number of a kind."""
    members, more = ENUMERANTS[kind], MORE.get(kind, {})
    if issubclass(members, IntFlag):
        return tuple(operand for member in members if member & number for operand in more.get(member, ()))
    return more.get(number, ())
