"""Index arithmetic in 32 bits: the same results where the check before the launch lets it through, and only there."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from gristmill.interp import ExecutionError, Executor
from gristmill.ir.build import const, less_equal
from gristmill.ir.dtype import INT32, INT64
from gristmill.ir.expr import (
    Add,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Cast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IfThenElse,
    Max,
    Min,
    Mod,
    Mul,
    Negate,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
)
from gristmill.ir.functor import walk
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module
from gristmill.ir.stmt import Assert, Return
from gristmill.ir.target import Target
from gristmill.ir.verify import verify
from gristmill.passes.index_reach import GREATEST, LEAST, End, Reaches
from gristmill.passes.narrow_helpers import Helpers
from gristmill.passes.narrow_indices import NarrowIndices
from gristmill.passes.narrow_kernel import KernelNarrowing
from gristmill.passes.pipeline import PHASES
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext

EXAMPLE = """gristmill ir 1

function @f<n: int64>(x: float32[n] data x_data: ptr<float32, global>, by: int64)
  symbol "f"
{
  launch @f_kernel(x_data, n, by + 1) over blockIdx.x = n
}

function @f_kernel(x_data: ptr<float32, global>, n: int64, by: int64)
  symbol "f_kernel"
  convention kernel
  target "gpu"
  launch (blockIdx.x)
{
  view x: float32[n] over x_data
  for b: int64 in 0 +: n thread on blockIdx.x {
    x[(b + @place(b, by) as int64 * n) % n] = 1.0
  }
}

function @place(b: int64, by: int64) -> int64
{
  if b == 0 {
    return 0
  }
  return b * by
}
"""


def example() -> Module:
    module = parse_module(EXAMPLE, "example.gmir")
    verify(module)
    return module


def test_the_kernel_has_no_int64_left() -> None:
    module = NarrowIndices(target="gpu:small").run(example())
    verify(module)
    kernel = print_module(Module((module.get("f_kernel"), *module.functions[3:])))  # type: ignore[arg-type]
    assert "int64" not in kernel
    assert "x[(b + @place_narrow_1(b, by) as int32 * n) % n] = 1.0" in kernel
    assert "@place_narrow_1(b: int32, by: int32) -> int32" in kernel
    (checked,) = [node for node in walk(module.functions[0].body) if isinstance(node, Assert)]
    assert checked.kind == "ValueError"
    assert checked.message[0] == "f: indices would need more than 32 bits, and gpu:small has no int64"
    assert [part.name for part in checked.message if isinstance(part, Var)] == ["n", "by"]


@pytest.mark.parametrize(
    ("size", "by", "message"),
    [
        (8, 5, ""),
        (8, -3, ""),
        (1, 2**31 - 2, ""),
        (9, 2**24, ""),
        (9, 2**28, "gpu:small has no int64; `n` is 9, `by` is 268435456"),
        (3, 2**31, "`n` is 3, `by` is 2147483648"),
        (3, 2**62, "`by` is 4611686018427387904"),
        (3, -(2**31) - 2, "`by` is -2147483650"),
        (0, 2**40, ""),
    ],
)
def test_what_the_host_lets_through(size: int, by: int, message: str) -> None:
    """Also what would launch nothing. The executor runs both, and does not wait for the sizes that a device has."""
    module = NarrowIndices(target="gpu:small").run(example())
    given, wanted = np.zeros(size, np.float32), np.zeros(size, np.float32)
    if message:
        with pytest.raises(ExecutionError) as caught:
            Executor(module).call("f", [given, by])
        assert message in str(caught.value)
        assert not given.any()
        return
    Executor(module).call("f", [given, by])
    Executor(example()).call("f", [wanted, by])
    np.testing.assert_array_equal(given, wanted)


def test_devices_with_int64_keep_it() -> None:
    module = example()
    assert NarrowIndices(width="wide").run(module) is module
    small, slow = Capabilities(dtypes=frozenset({INT32})), Capabilities(slow_int64=True)
    for capabilities, asked, width in (
        (Capabilities(), "auto", "wide"),
        (Capabilities(), "both", "both"),
        (slow, "auto", "both"),
        (slow, "narrow", "narrow"),
        (slow, "wide", "wide"),
        # What the device does not have cannot be asked for.
        (small, "auto", "narrow"),
        (small, "wide", "narrow"),
    ):
        options = NarrowIndices.values_for(PassContext(Target("gpu"), capabilities, {"indices": asked}))
        assert options == {"width": width, "target": "gpu", "limit": GREATEST, "has_int64": capabilities is not small}
    with pytest.raises(ValueError, match="narrow, both or wide, not 'either'"):
        NarrowIndices(width="either").run(module)
    assert any(planned.kind is NarrowIndices and planned.devices for phase in PHASES for planned in phase.passes)


def test_values_of_int64_stay() -> None:
    text = EXAMPLE.replace("x[(b + @place(b, by) as int64 * n) % n] = 1.0", "x[b] = float32(popcount(by) as int64)")
    module = NarrowIndices().run(parse_module(text, "example.gmir"))
    verify(module)
    assert "popcount(int64(by))" in print_module(module)


def test_gathered_indices_need_no_proof() -> None:
    """What an array gives may be any number; an index is within its array, and wraps on the way to it."""
    text = EXAMPLE.replace(
        "x[(b + @place(b, by) as int64 * n) % n] = 1.0", "x[b] = x[int64(int32(b)) * 4 - int64(int32(b)) * 3]"
    )
    module = NarrowIndices().run(parse_module(text, "example.gmir"))
    assert "x[b * 4i32 - b * 3i32]" in print_module(module)


# Random expressions ---------------------------------------------------------------------------------------------------

BINARY = (Add, Sub, Mul, Min, Max, Div, FloorDiv, Mod, FloorMod, BitAnd, BitOr, BitXor)


def random_expression(chance: random.Random, variables: list[Var], depth: int) -> Expr:
    if depth == 0 or chance.random() < 0.1:
        if chance.random() < 0.6:
            return chance.choice(variables)
        return const(chance.choice((0, 1, 2, 3, 7, 32, 255, -1, -5, 65536, 2**31 - 1, -(2**31), 2**20)), INT64)
    a = random_expression(chance, variables, depth - 1)
    b = random_expression(chance, variables, depth - 1)
    match chance.randrange(20):
        case 0:
            return Negate(a)
        case 1:
            return BitNot(a)
        case 2:
            return ShiftLeft(a, const(chance.randrange(12), INT64))
        case 3:
            return ShiftRight(a, b)
        case 4:
            return Select(less_equal(a, b), b, a)
        case 5:
            return IfThenElse(less_equal(a, b), a, b)
        case 6:
            return Cast(INT64, Cast(INT32, a))
        case _:
            return chance.choice(BINARY)(a, b)


def value_of(end: End, values: dict[Var, float]) -> float:
    """An end of a reach, given those of the names in it and of the parameters."""
    if isinstance(end, float):
        return end
    match end:
        case Var():
            return values[end]
        case FloatImm():
            return end.value
        case Cast():
            return float(values[end.value])  # type: ignore[index]
        case Add():
            return value_of(end.a, values) + value_of(end.b, values)
        case Sub():
            return value_of(end.a, values) - value_of(end.b, values)
        case Mul():
            return value_of(end.a, values) * value_of(end.b, values)
        case Min():
            return min(value_of(end.a, values), value_of(end.b, values))
        case Div():
            return value_of(end.a, values) / value_of(end.b, values)
        case Max():
            return max(value_of(end.a, values), value_of(end.b, values))
    raise AssertionError(end)


def returning(value: Expr, params: tuple[Var, ...]) -> Executor:
    function = Function("f", params, (), value.dtype, Return(value), FunctionFacts(symbol="f"))
    return Executor(Module((function,)))


def holds(reaches: Reaches, values: dict[Var, float]) -> bool:
    """Whether the conditions let arguments through."""
    for var, value in reaches.names:
        values[var] = value_of(value, values)
    return all(value_of(each.a, values) <= value_of(each.b, values) for each in reaches.conditions)  # type: ignore[attr-defined]


@pytest.mark.parametrize("block", range(6))
def test_random_expressions(block: int) -> None:
    """Where the conditions hold, the value lies in its reach, and int32 gives it."""
    let_through = followed = 0
    for seed in range(100 * block, 100 * block + 100):
        chance = random.Random(seed)
        variables = [Var(name, INT64) for name in ("a", "b", "n")]
        expression = random_expression(chance, variables, 4)
        narrowing = KernelNarrowing(frozenset({variables[2]}), Helpers(Module(())))
        narrow = tuple(narrowing.parameter(var) for var in variables)
        found = narrowing.exact(expression)
        if found is None:
            continue
        followed += 1
        wide = returning(expression, tuple(variables))
        small = returning(found[0], narrow)
        for _ in range(8):
            limit = chance.choice((4, 100, 40000, 2**31, 2**33))
            given = [chance.randrange(-limit, limit), chance.randrange(-limit, limit), chance.randrange(limit)]
            values: dict[Var, float] = dict(zip(variables, map(float, given), strict=True))
            if not holds(narrowing.reaches, values):
                continue
            let_through += 1
            value = wide.call("f", list(given)).value
            arguments: list[Any] = list(given)
            told = f"seed {seed}, {given}"
            assert LEAST <= value <= GREATEST, told
            assert small.call("f", arguments).value == value, told
            assert value_of(found[1].low, values) <= value <= value_of(found[1].high, values), told
            assert value >= 0 or not found[1].natural, told
    assert followed > 30
    assert let_through > 40
