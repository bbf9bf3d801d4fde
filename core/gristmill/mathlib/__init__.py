"""Mathematics written once, as IR: what a target without an instruction for an operation calls instead.

``function_for("exp", FLOAT32)`` is a private helper ``math_exp_float32(x)`` that a pass adds to the module, turning the
:class:`~gristmill.ir.expr.Call` of the operation into a :class:`~gristmill.ir.expr.CallFunction`. The functions

* are straight-line code (no branch, no loop, no call), so that LLVM vectorises a loop that they are inlined into (all
  but ``fmod`` of float64, which has a loop);
* take vectors as well (``math_exp_float32x8``), lane by lane;
* are right under the exact semantics of the IR: every rounding counts, nothing may be contracted or reassociated, and
  they must not be compiled with fast math;
* stay within 4 units in the last place over all of float32 and float64 (tests/mathlib,
  benchmarks/mathlib_accuracy.py), special values as :mod:`gristmill.ir.op` says; those that the operation table calls
  exact are exact.

All but ``dot4`` and ``dot4_mixed``, of integers, exist for float32 and float64. The functions of float32 use no float64
(``fma`` only where it may), but ``sin``, ``cos`` and ``fmod`` use 64-bit integers.

A back end passes the operations that its machine has (:data:`USUALLY_NATIVE` and perhaps more) to the pass, and those
stay calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from gristmill.ir.dtype import FLOAT32, DType
from gristmill.ir.module import Function
from gristmill.mathlib import (
    exponential,
    fused,
    integer_dot,
    logarithm,
    power,
    remainder,
    root,
    rounding,
    trigonometric,
)
from gristmill.mathlib.body import function_name

__all__ = ["USUALLY_NATIVE", "function_for", "function_name", "library"]

USUALLY_NATIVE = frozenset({"sqrt", "floor", "ceil", "round", "trunc", "abs", "copysign", "fma", "isnan"})
"""Operations that most machines have as an instruction or two; a code generator names its own set."""

_MAKERS: Mapping[str, Callable[[DType], Function | None]] = MappingProxyType(
    {
        "exp": exponential.exp,
        "exp2": exponential.exp2,
        "sigmoid": exponential.sigmoid,
        "tanh": exponential.tanh,
        "log": logarithm.log,
        "log2": logarithm.log2,
        "pow": power.power,
        "fma": fused.fma,
        "fmod": remainder.fmod,
        "sin": trigonometric.sin,
        "cos": trigonometric.cos,
        "sqrt": root.sqrt,
        "rsqrt": root.rsqrt,
        "floor": rounding.floor,
        "ceil": rounding.ceil,
        "round": rounding.round_,
        "trunc": rounding.trunc,
        "abs": rounding.abs_,
        "copysign": rounding.copysign,
        "isnan": rounding.isnan,
        "isinf": rounding.isinf,
        "isfinite": rounding.isfinite,
    }
)


def function_for(op_name: str, dtype: DType, *, float64: bool = True) -> Function | None:
    """The function that computes an operation on operands of ``dtype`` (lanes and all); None if there is none.

    Its name is ``function_name(op_name, dtype)``, it takes the operands of the operation in order, and it calls
    nothing. A new one is made each time: add one to a module once. ``float64`` False is for machines without that type:
    the functions of other types are then written without it.
    """
    if op_name == "fma":
        return fused.fma(dtype, float64)
    if op_name in ("dot4", "dot4_mixed"):
        return (integer_dot.dot4 if op_name == "dot4" else integer_dot.dot4_mixed)(dtype)
    maker = _MAKERS.get(op_name)
    return None if maker is None else maker(dtype)


def library(names: Iterable[str] | None = None, dtype: DType = FLOAT32) -> list[Function]:
    """The functions for these operations, or for all that there are, in one type. Raises KeyError for one that is not."""
    wanted = _MAKERS if names is None else names
    found = [(name, function_for(name, dtype)) for name in wanted]
    if names is not None and (missing := [name for name, function in found if function is None]):
        raise KeyError(f"no library function for {', '.join(missing)} in {dtype}")
    return [function for _, function in found if function is not None]
