"""Dispatch that is checked for completeness, walking, and rewriting that keeps what does not change."""

from __future__ import annotations

import pytest

from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir.build import const
from gristmill.ir.dtype import FLOAT32, INT32, INT64
from gristmill.ir.equal import structural_equal
from gristmill.ir.functor import ALL_NODES, EXPRESSIONS, STATEMENTS, Functor, Mutator, substitute, walk
from gristmill.ir.memory import Buffer
from gristmill.ir.module import Function
from gristmill.ir.node import Node
from gristmill.testing.ir_samples import every_node, index, new_buffer


def test_a_forgotten_class_is_an_error_when_the_functor_is_defined():
    with pytest.raises(TypeError, match=r"Forgetful has no visit_ method for: .*IntImm"):

        class Forgetful(Functor[None], over=EXPRESSIONS):
            def visit_Var(self, node: e.Var) -> None: ...


def test_the_method_of_the_nearest_base_class_is_called():
    class Name(Functor[str], over=EXPRESSIONS):
        def visit_Expr(self, node: e.Expr) -> str:
            return "expression"

        def visit_BinaryExpr(self, node: e.BinaryExpr) -> str:
            return "binary"

        def visit_Add(self, node: e.Add) -> str:
            return "add"

    class Longer(Name):
        def visit_Sub(self, node: e.Sub) -> str:
            return "sub"

    x = e.Var("x", INT32)
    assert [Longer().visit(node) for node in (x, x * x, x + x, x - x, -x)] == [
        "expression", "binary", "add", "sub", "expression"
    ]  # fmt: skip


def test_the_lists_of_classes_are_whole():
    assert e.Add in EXPRESSIONS
    assert e.BinaryExpr not in EXPRESSIONS
    assert s.Launch in STATEMENTS
    assert {Buffer, Function, s.BlockAxis, s.MatchBuffer} <= set(ALL_NODES)
    assert len(set(ALL_NODES)) == len(ALL_NODES)


def test_children_name_fields_of_nodes():
    for kind in ALL_NODES:
        assert set(kind.CHILDREN) <= set(kind.__dataclass_fields__)
        assert "span" in kind.__dataclass_fields__


def test_nodes_are_frozen_and_compared_by_identity():
    x = e.Var("x", INT32)
    with pytest.raises((AttributeError, TypeError)):
        x.name = "y"
    assert x != e.Var("x", INT32)
    assert len({x, e.Var("x", INT32), x}) == 2


def test_walking_visits_parents_first_and_in_order():
    x, y = e.Var("x", INT32), e.Var("y", INT32)
    found = x + y * x
    assert [type(node).__name__ for node in walk(found)] == ["Add", "Var", "Mul", "Var", "Var"]
    deep: Node = x
    for _ in range(50_000):
        deep = e.Negate(deep)
    assert sum(1 for _ in walk(deep)) == 50_001


def test_the_identity_transform_returns_the_same_objects():
    module = every_node()
    assert Mutator().visit(module) is module


def test_a_change_rebuilds_the_way_to_it_and_nothing_else():
    class Double(Mutator):
        def visit_FloatImm(self, node: e.FloatImm) -> e.Expr:
            return const(node.value * 2, node.type)

    module = every_node()
    changed = Double().visit(module)
    assert changed is not module
    assert changed.functions[4] is not module.functions[4]
    assert changed.functions[5] is module.functions[5]
    assert not structural_equal(changed, module)


def test_uses_follow_a_buffer_that_was_rewritten():
    n = e.Var("n", INT64)
    x = new_buffer("x", FLOAT32, (n,))
    body = s.Seq((s.Allocate(x), s.Store(x, (index(0),), e.Load(x, (index(1),))), s.Evaluate(e.BufferRef(x))))
    changed = substitute(body, {n: index(8)})
    buffer = changed.body[0].buffer
    assert buffer is not x
    assert buffer.data is x.data
    assert repr(buffer.shape[0]) == "8"
    assert changed.body[1].buffer is buffer
    assert changed.body[1].value.buffer is buffer
    assert changed.body[2].value.buffer is buffer


def test_substitution_of_a_data_variable_and_of_buffers():
    x, y = new_buffer("x", FLOAT32, ()), new_buffer("y", FLOAT32, ())
    store = s.Store(x, (), const(1.0, FLOAT32))
    assert substitute(store, {}, {x: y}).buffer is y
    fresh = e.Var("fresh", x.data.type)
    view = s.View(Buffer("v", FLOAT32, (), x.data))
    assert substitute(view, {x.data: fresh}).buffer.data is fresh
    assert substitute(store, {fresh: const(1, INT32)}) is store


def test_sequences_become_flat_and_lose_what_is_empty():
    class Drop(Mutator):
        def visit_Break(self, node: s.Break) -> s.Stmt:
            return s.Seq(())

        def visit_Continue(self, node: s.Continue) -> s.Stmt:
            return s.Seq((s.Return(), s.Return()))

    body = s.Seq((s.Break(), s.Continue(), s.Barrier(s.BarrierScope.WARP)))
    assert [type(found).__name__ for found in Drop().visit(body).body] == ["Return", "Return", "Barrier"]
    assert type(Drop().visit(s.Seq((s.Break(), s.Return())))).__name__ == "Return"
    branch = s.If(e.IntImm(1, INT32), s.Return(), s.Break())
    assert Drop().visit(branch).otherwise is None
