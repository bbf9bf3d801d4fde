"""The operations that :class:`~gristmill.ir.expr.Call` names: mathematics, bit counting, and what lowering needs.

One table, :data:`OPS`. An operation says how many operands it takes, which types they may have, what type comes out,
whether the result is exact or bounded, and what it means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Exactness(Enum):
    """How close back ends must come to the executor."""

    EXACT = "exact"
    """Bit-equal (all NaNs count as one value)."""
    BOUNDED = "bounded"
    """Within the ulp that docs/numerics.md states."""


class Operands(Enum):
    """Which types the operands may have."""

    FLOAT = "float"
    """Floats, all of one type, any lanes."""
    INTEGER = "integer"
    """Integers, all of one type, any lanes."""
    NUMBER = "number"
    """Integers or floats, all of one type, any lanes."""
    WORD = "word"
    """Integers of 32 bits, all of one type, any lanes."""
    BOOL = "bool"
    WARP = "warp"
    """A scalar to exchange, how far or from which lane (int32) where the operation has three, and the constant width."""
    ATOMIC = "atomic"
    """The address of an element, and values of its type."""
    MATRIX = "matrix"
    """Addresses of tiles and of elements of memory, what the operation's text says, and the constant width."""
    ANY = "any"
    """What the operation's own text says."""


class Result(Enum):
    """What type comes out."""

    SAME = "same"
    """That of the operands."""
    BOOL = "bool"
    """``bool`` with their lanes."""
    STATED = "stated"
    """The type that the call node states."""
    ELEMENT = "element"
    """That of the element whose address the first operand is."""
    VOID = "void"
    """None: the operation gives no value."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation, compared by value.

    ``arity`` counts operands; ``pure``: no effect, and safe to repeat or drop; ``stated``: where the result type is
    stated by the call, the name of the only one that is right.
    """

    name: str
    arity: int
    operands: Operands
    result: Result
    exactness: Exactness
    meaning: str
    pure: bool = True
    stated: str = ""

    def __str__(self) -> str:
        return self.name


def _table(groups: Iterable[Iterable[Op]]) -> Mapping[str, Op]:
    return MappingProxyType({op.name: op for group in groups for op in group})


def _bounded(name: str, meaning: str, arity: int = 1) -> Op:
    return Op(name, arity, Operands.FLOAT, Result.SAME, Exactness.BOUNDED, meaning)


def _exact(name: str, meaning: str, operands: Operands, arity: int = 1, result: Result = Result.SAME) -> Op:
    return Op(name, arity, operands, result, Exactness.EXACT, meaning)


MATHEMATICS = (
    _bounded("exp", "e to the power a"),
    _bounded("exp2", "2 to the power a"),
    _bounded("log", "natural logarithm; of 0 -inf, of a negative number NaN"),
    _bounded("log2", "logarithm to base 2; of 0 -inf, of a negative number NaN"),
    _bounded("sqrt", "square root; of -0 -0, of a negative number NaN"),
    _bounded("rsqrt", "1 / sqrt(a); of +0 inf, of -0 -inf, of a negative number NaN"),
    _bounded("sin", "sine of a in radians; of an infinity NaN"),
    _bounded("cos", "cosine of a in radians; of an infinity NaN"),
    _bounded("tanh", "hyperbolic tangent"),
    _bounded("sigmoid", "1 / (1 + exp(-a))"),
    _bounded("pow", "a to the power b, as C's pow in every special case (IEEE 754 section 9.2.1)", 2),
    _exact("floor", "the greatest whole number not over a", Operands.FLOAT),
    _exact("ceil", "the least whole number not under a", Operands.FLOAT),
    _exact("round", "the nearest whole number, halves to even", Operands.FLOAT),
    _exact("trunc", "a without its fraction", Operands.FLOAT),
    _exact("abs", "the magnitude; of the least integer itself", Operands.NUMBER),
    _exact(
        "fmod", "a - b * trunc(a / b), exactly, with the sign of a; NaN for b zero or a infinite", Operands.FLOAT, 2
    ),
    _exact("fma", "a * b + c rounded once", Operands.FLOAT, 3),
    _exact("copysign", "the magnitude of a with the sign bit of b; either sign for a NaN b", Operands.FLOAT, 2),
    _exact("isnan", "whether a is a NaN", Operands.FLOAT, result=Result.BOOL),
    _exact("isinf", "whether a is an infinity", Operands.FLOAT, result=Result.BOOL),
    _exact("isfinite", "whether a is neither a NaN nor an infinity", Operands.FLOAT, result=Result.BOOL),
)

BITS = (
    _exact("popcount", "how many bits are set", Operands.INTEGER),
    _exact("clz", "how many zero bits stand above the highest set one; of 0 the width", Operands.INTEGER),
    _exact("ctz", "how many zero bits stand below the lowest set one; of 0 the width", Operands.INTEGER),
)

DOT_PRODUCTS = (
    _exact(
        "dot4",
        "c and the four products of the bytes of a with those of b, which are signed in int32 and unsigned in uint32; wraps",
        Operands.WORD,
        3,
    ),
    _exact(
        "dot4_mixed",
        "c and the four products of the bytes of a, which are signed, with those of b, which are not; wraps",
        Operands.WORD,
        3,
    ),
)

HINTS = (_exact("likely", "a itself, which is usually true", Operands.BOOL),)

# What "guard_arithmetic" leaves of integer division and shifts: partial operations that machines have. The executor
# reports a broken precondition, so it checks the pass that removed the guard.
PARTIAL = (
    _exact("quotient", "a / b rounded towards zero; b is not 0, and not -1 with a = MIN", Operands.INTEGER, 2),
    _exact("remainder", "a - b * quotient(a, b); b is not 0, and not -1 with a = MIN", Operands.INTEGER, 2),
    _exact("shift_left", "a << b; 0 <= b < width", Operands.INTEGER, 2),
    _exact("shift_right", "a >> b, arithmetic if signed; 0 <= b < width", Operands.INTEGER, 2),
)

# What a pass asks at run time before it relies on where arrays of the caller lie.
MEMORY = (
    Op(
        "disjoint",
        4,
        Operands.ANY,
        Result.STATED,
        Exactness.EXACT,
        "bool: whether the int64 b bytes from the pointer a on and the int64 d bytes from the pointer c on have no byte "
        "in common; no bytes have none in common with any, and a negative number of bytes counts as none",
        stated="bool",
    ),
    Op(
        "aligned",
        2,
        Operands.ANY,
        Result.STATED,
        Exactness.EXACT,
        "bool: whether the address that the pointer a holds is a multiple of b, a constant int64 power of two",
        stated="bool",
    ),
)

WARP_WIDTH_AT_MOST = 64
"""The widest exchange between threads: no device has larger warps (AMD's wave64)."""


def _warp(name: str, meaning: str, arity: int = 3, result: Result = Result.SAME, stated: str = "") -> Op:
    return Op(name, arity, Operands.WARP, result, Exactness.EXACT, meaning, pure=False, stated=stated)


# Exchanges between threads that run side by side, without memory. The last operand is the width, a constant power of
# two up to 64: the threads of a block, counted with x fastest, then y, then z, are cut into groups of so many (the last
# may have fewer), and a thread's number in its group is its lane. All threads of a group that have not ended come to an
# exchange together. It orders no accesses to memory. Outside of launches a thread is alone in its group. A target has
# exchanges up to the width of its warps; their meaning does not depend on it. An exchange is the whole value of a
# binding, so that no pass moves it to where only some threads come by.
_LANE = "a of the lane {}; the thread's own a if no thread has that lane"
_VOTE = "Of the threads of the group that have not ended"
WARP = (
    _warp("warp_shuffle", _LANE.format("b mod width")),
    _warp("warp_shuffle_xor", _LANE.format("whose number is this thread's with the bits of b flipped")),
    _warp("warp_shuffle_up", _LANE.format("b below this one, in its group")),
    _warp("warp_shuffle_down", _LANE.format("b above this one, in its group")),
    _warp(
        "warp_ballot", f"uint64: {_VOTE.lower()}, bit i says whether a is true in lane i", 2, Result.STATED, "uint64"
    ),
    _warp("warp_any", f"{_VOTE}: whether a is true in one", 2, Result.BOOL),
    _warp("warp_all", f"{_VOTE}: whether a is true in all", 2, Result.BOOL),
)


def _atomic(name: str, meaning: str, operands: int = 1, result: Result = Result.ELEMENT) -> Op:
    return Op(name, operands + 1, Operands.ATOMIC, result, Exactness.EXACT, meaning, pure=False)


# Operations on one element of memory that no other thread's access comes into. The first operand is the address of the
# element, a scalar in global or shared memory; the others are evaluated before, and have its type: int32, uint32, int64,
# uint64, of the first four also float32 and float64. The value is what the element held before. They order no other
# accesses ("relaxed"): an atomic operation on an element races with no other, but with plain accesses to it. In which
# order threads come is not stated; so sums of floats are rounded in an order that may differ from run to run. One is the
# whole value of a binding or of an Evaluate, so that no pass repeats, moves or drops it.
_OLD = "stores {} at a, and gives what was there"
ATOMICS = (
    _atomic("atomic_load", "gives what is at a", 0),
    _atomic("atomic_store", "stores b at a, and gives nothing", 1, Result.VOID),
    _atomic("atomic_exchange", _OLD.format("b")),
    _atomic("atomic_add", _OLD.format("the sum of that and b (integers wrap)")),
    _atomic("atomic_min", _OLD.format("the lesser of that and b")),
    _atomic("atomic_max", _OLD.format("the greater of that and b")),
    _atomic("atomic_and", _OLD.format("the bits that both that and b have")),
    _atomic("atomic_or", _OLD.format("the bits that either has, that or b")),
    _atomic("atomic_xor", _OLD.format("the bits that one of that and b has")),
    _atomic("atomic_compare_exchange", "stores c at a if b is there, and gives what was there", 2),
)
ATOMICS_OF_FLOATS = frozenset(("atomic_load", "atomic_store", "atomic_exchange", "atomic_add"))
"""The atomic operations that floats have, too."""
ATOMICS_IN_ANY_ORDER = frozenset(("atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor"))
"""Of integers, each of these leaves the same in memory in whatever order threads come, if it is the only one there."""


def _matrix(name: str, arity: int, meaning: str, exactness: Exactness = Exactness.EXACT) -> Op:
    return Op(name, arity, Operands.MATRIX, Result.VOID, exactness, meaning, pure=False)


# Operations on tiles of matrices, which the threads of a group hold together. Groups and width are those of WARP; here all
# threads of a group come together, none missing and none ended, with the same operands, and the operation happens once for
# all of them. A tile is given by the address of its first element in a buffer of one of the scopes MATRIX_SCOPES. Element
# [i, j] of a tile in memory lies i * stride + j elements behind the address, where "by_column" is true i + j * stride. What a
# group reads or writes there is ordered with what any thread does, also one of the group, by barriers alone. Integers wrap;
# of floats the products are exact, and they and the element of c are added in any order, with or without rounding to the type
# of d after each addition. Outside of launches a thread is alone in its group.
MATRIX = (
    _matrix("matrix_fill", 3, "sets all elements of the tile a to b; the width c"),
    _matrix("matrix_load", 5, "loads the tile a from the memory at b: stride c (int32), by_column d (bool), width e"),
    _matrix("matrix_multiply", 5, "sets the tile a to b @ c + d; the width e", Exactness.BOUNDED),
    _matrix("matrix_store", 5, "stores the tile b to the memory at a: stride c (int32), by_column d (bool), width e"),
)


def _packed(name: str, arity: int, meaning: str, pure: bool = True) -> Op:
    """An operation of the packed interface; its meaning begins with its result type."""
    stated = meaning.partition(":")[0]
    return Op(name, arity, Operands.ANY, Result.STATED, Exactness.EXACT, meaning, pure, stated)


# The packed host interface (TVM FFI C ABI, tvm/ffi/c_api.h): arguments are an array of TVMFFIAny, tensors are DLTensor.
PACKED_INTERFACE = (
    _packed("packed_is_null", 1, "bool: whether the array of arguments a is a null pointer"),
    _packed("packed_kind", 2, "int32: type index of argument b of the array a"),
    _packed(
        "packed_kind_text",
        2,
        "handle: what a value as argument b of the array a is called, a text for a message (gristmill.ir.packed_texts)",
    ),
    _packed("packed_int", 2, "int64: argument b of the array a, an int or a bool"),
    _packed("packed_float", 2, "float64: argument b of the array a, a float"),
    _packed(
        "packed_big_fits",
        2,
        "bool: whether argument b of the array a, a BigInt object (an integer beyond int64), is from 2**63 to 2**64 - 1",
    ),
    _packed("packed_big", 2, "uint64: argument b of the array a, a BigInt object from 2**63 to 2**64 - 1"),
    _packed("packed_pointer", 2, "handle: argument b of the array a, an opaque pointer"),
    _packed(
        "packed_tensor",
        2,
        "handle: the DLTensor of argument b of the array a (a tensor object's, or a DLTensor itself)",
    ),
    _packed(
        "packed_return", 2, "void: store b into the result a, with the type index that b's type asks for", pure=False
    ),
    _packed("tensor_rank", 1, "int32: number of dimensions of the DLTensor a"),
    _packed("tensor_dtype", 1, "int32: code | bits << 8 | lanes << 16 of the DLTensor a"),
    _packed(
        "tensor_dtype_text",
        1,
        "handle: what the dtype of the DLTensor a is called, a text for a message (gristmill.ir.packed_texts)",
    ),
    _packed("tensor_size", 2, "int64: size of dimension b of the DLTensor a"),
    _packed("tensor_has_strides", 1, "bool: whether the DLTensor a states strides"),
    _packed(
        "tensor_stride", 2, "int64: stride of dimension b of the DLTensor a, in elements; only where it states strides"
    ),
    _packed("tensor_data", 1, "handle: data pointer of the DLTensor a, its byte offset added"),
    _packed("tensor_is_null", 1, "bool: whether the data pointer of the DLTensor a is null"),
    _packed(
        "tensor_is_aligned",
        2,
        "bool: whether the data of the DLTensor a, its byte offset added, is a multiple of b bytes",
    ),
    _packed("tensor_device_type", 1, "int32: DLDeviceType of the DLTensor a"),
    _packed("tensor_device_id", 1, "int32: device number of the DLTensor a"),
    _packed(
        "context_device_id",
        1,
        "int32: device number of the device that a function launches on, of its context a; where a is null it fails",
    ),
)

MESSAGE_TEXTS = frozenset(("packed_kind_text", "tensor_dtype_text"))
"""Operations whose value is a text, and which stand only as parts of the message of an assert."""

OPS: Mapping[str, Op] = _table(
    (MATHEMATICS, BITS, DOT_PRODUCTS, HINTS, PARTIAL, MEMORY, WARP, ATOMICS, MATRIX, PACKED_INTERFACE)
)
