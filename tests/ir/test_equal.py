"""Structural equality: names and identities of what is defined inside do not count, all else does."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import const
from gristmill.ir.dtype import FLOAT32, FLOAT64, INT32, INT64, VOID, DType
from gristmill.ir.equal import first_difference, structural_equal, structural_hash
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.node import Node
from gristmill.ir.op import OPS
from gristmill.testing.ir_samples import every_node, index, new_buffer, with_spans
from gristmill.testing.random_ir import RandomIR


def function(x: e.Var, y: e.Var, value: e.Expr) -> Function:
    return Function("f", (x, y), (), INT32, s.Return(value))


def test_definitions_correspond_one_to_one():
    a, b, c, d = (e.Var(name, INT32) for name in "abcd")
    assert structural_equal(function(a, b, a + b), function(c, d, c + d))
    assert structural_equal(function(a, b, a + b), function(b, a, b + a))
    assert not structural_equal(function(a, b, a + b), function(c, d, d + c))
    assert not structural_equal(function(a, b, a + b), function(c, d, c + c))
    assert not structural_equal(function(a, b, a + a), function(c, d, c + d))


def test_what_is_defined_outside_must_be_the_same():
    a, b = e.Var("a", INT32), e.Var("a", INT32)
    assert structural_equal(a + 1, a + 1)
    assert not structural_equal(a + 1, b + 1)
    bound = s.Seq((s.Bind(a, const(1, INT32)), s.Evaluate(b)))
    assert structural_equal(bound, s.Seq((s.Bind(e.Var("z", INT32), const(1, INT32)), s.Evaluate(b))))
    assert not structural_equal(bound, s.Seq((s.Bind(b, const(1, INT32)), s.Evaluate(b))))
    x, y = new_buffer("x", INT32, ()), new_buffer("x", INT32, ())
    assert structural_equal(e.Load(x, ()), e.Load(x, ()))
    assert not structural_equal(e.Load(x, ()), e.Load(y, ()))


def test_a_variable_may_be_defined_in_two_functions():
    a, b, c = (e.Var(name, INT32) for name in "abc")
    shared = Module((function(a, b, a), replace(function(a, b, a), name="g")))
    apart = Module((function(a, b, a), replace(function(c, b, c), name="g")))
    assert structural_equal(shared, apart)
    assert structural_hash(shared) == structural_hash(apart)
    first = every_node().functions[1]
    again = every_node().functions[1]
    shared, apart = Module((first, replace(first, name="g"))), Module((first, replace(again, name="g")))
    assert first_difference(shared, apart) is None
    assert structural_hash(shared) == structural_hash(apart)


def test_shapes_may_name_parameters_that_stand_further_on():
    def made() -> Function:
        n = e.Var("n", INT32)
        return Function("f", (new_buffer("x", INT32, (n,)), n), (), VOID, s.Seq(()))

    assert structural_equal(made(), made())


def test_views_share_their_memory():
    def made(first: bool) -> Function:
        x, y = new_buffer("x", INT32, (index(4),)), new_buffer("y", INT32, (index(4),))
        view = Buffer("v", INT32, (index(4),), x.data if first else y.data)
        return Function("f", (x, y), (), VOID, s.Seq((s.View(view),)))

    assert structural_equal(made(True), made(True))
    assert ".buffer.data" in (first_difference(made(True), made(False)) or "")


def test_floats_are_compared_by_value_and_sign():
    def imm(value: float) -> e.FloatImm:
        return e.FloatImm(value, FLOAT64)

    assert structural_equal(imm(float("nan")), imm(-float("nan")))
    assert structural_hash(imm(float("nan"))) == structural_hash(imm(float("nan")))
    assert not structural_equal(imm(0.0), imm(-0.0))
    assert not structural_equal(imm(1.0), e.FloatImm(1.0, FLOAT32))
    assert not structural_equal(e.IntImm(1, INT32), e.IntImm(1, INT64))


def test_spans_and_names_do_not_count():
    assert structural_equal(every_node(), with_spans(every_node()))
    assert structural_hash(every_node()) == structural_hash(with_spans(every_node()))


@pytest.mark.parametrize("seed", range(30))
def test_random_modules_equal_themselves_made_again(seed: int):
    a, b = RandomIR(seed).module(), RandomIR(seed).module()
    assert first_difference(a, b) is None
    assert structural_hash(a) == structural_hash(b)
    assert not structural_equal(a, RandomIR(seed + 1000).module())


def changed(value: Any) -> Any:
    """Another value of the same kind; None if there is none at hand."""
    if isinstance(value, Enum):
        return next(other for other in type(value) if other is not value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.25
    if isinstance(value, str):
        return value + "_other"
    if isinstance(value, DType):
        return INT64 if value != INT64 else FLOAT32
    if isinstance(value, PointerType):
        return replace(value, element=changed(value.element))
    if type(value).__name__ == "Op":
        return OPS["log"] if value.name != "log" else OPS["exp"]
    if isinstance(value, FunctionFacts):
        return replace(value, signature="other")
    if isinstance(value, s.LoopHints):
        return replace(value, unroll=77)
    if type(value) is tuple and value and not isinstance(value[0], Node):
        return value[:-1]
    return None


class ChangeOne(Mutator):
    """Replaces one node by a changed copy."""

    def __init__(self, old: Node, new: Node) -> None:
        super().__init__()
        self.old, self.new = old, new

    def visit(self, node: Node, /) -> Any:
        return self.new if node is self.old else super().visit(node)


def test_every_field_counts():
    module = every_node()
    seen = set()
    for node in walk(module):
        assert is_dataclass(node)
        for field in fields(node):
            counts = not (
                field.name in ("span", "data") or (field.name == "name" and isinstance(node, (e.Var, Buffer)))
            )
            other = changed(getattr(node, field.name)) if counts else None
            if other is None or isinstance(node, (e.Var, Buffer)) or (type(node), field.name) in seen:
                continue
            seen.add((type(node), field.name))
            different = ChangeOne(node, replace(node, **{field.name: other})).visit(module)
            assert different is not module
            assert first_difference(module, different), f"{type(node).__name__}.{field.name} does not count"
    assert len(seen) >= 32


def test_the_first_difference_is_named_with_both_pieces():
    a = e.Var("a", INT32)
    left = Module((function(a, a, a + 1),))
    right = Module((function(a, a, a + 2),))
    assert first_difference(left, right) == "functions[0].body.value.b.value: `1` against `2`"
    longer = Module((replace(left.functions[0], body=s.Seq((s.Return(a), s.Return(a)))),))
    assert (first_difference(left, longer) or "").startswith("functions[0].body: `return a + 1i32` against `seq {")
    assert first_difference(left, replace(left, functions=())) == "functions (length): `1` against `0`"


def test_depth_does_not_matter():
    def deep() -> e.Expr:
        found: e.Expr = const(1, INT32)
        for _ in range(100_000):
            found = e.Negate(found)
        return found

    a, b = deep(), deep()
    assert structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)
    assert not structural_equal(a, e.Negate(b))
