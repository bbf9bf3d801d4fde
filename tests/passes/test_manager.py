"""The pass manager: order, skipping, stopping, dumps, timings, faults with their reproducers, deep IR, bisecting."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import pytest

from gristmill.errors import Diagnostic, InternalError, Place, UserError
from gristmill.ir.dtype import INT32, VOID
from gristmill.ir.expr import Add, Expr, IntImm, Var
from gristmill.ir.functor import Mutator, walk
from gristmill.ir.module import Function, FunctionFacts, Module
from gristmill.ir.span import Span
from gristmill.ir.stmt import Evaluate, Seq
from gristmill.passes.manager import Pass, Pipeline, RunOptions, Step, bisect


def module_of(value: Expr) -> Module:
    return Module((Function("f", (), (), VOID, Evaluate(value), FunctionFacts(symbol="f")),))


@dataclass(frozen=True)
class AddToConstants(Pass):
    """Add to every constant.

    More text.
    """

    amount: int = 1

    def run(self, module: Module) -> Module:
        amount = self.amount

        class Adding(Mutator):
            def visit_IntImm(self, node: IntImm) -> IntImm:
                return replace(node, value=node.value + amount) if amount else node

        return Adding().visit(module)


@dataclass(frozen=True)
class Fail(Pass):
    """Fail on a node."""

    def run(self, module: Module) -> Module:
        for node in walk(module):
            if isinstance(node, IntImm):
                raise ZeroDivisionError("no reason")
        return module


@dataclass(frozen=True)
class BlameUser(Pass):
    """Find a mistake of the user."""

    def run(self, module: Module) -> Module:
        raise UserError(Diagnostic("GM0604", "twice"))


def constant(module: Module) -> int:
    return next(node.value for node in walk(module) if isinstance(node, IntImm))


def test_a_pass_is_named_after_its_class_and_summarised_by_its_docstring() -> None:
    assert AddToConstants.name == "add_to_constants"
    assert AddToConstants.summary == "Add to every constant."


def test_steps_run_in_order_and_unchanged_modules_stay_the_same_object() -> None:
    module = module_of(IntImm(1, INT32))
    outcome = Pipeline.of([AddToConstants(2), AddToConstants(0), AddToConstants(5)]).run_timed(module)
    assert constant(outcome.module) == 8
    assert [timing.changed for timing in outcome.timings] == [True, False, True]
    assert "(unchanged)" in outcome.table()
    assert outcome.table().splitlines()[-1].startswith("total")
    assert Pipeline.of([AddToConstants(0)]).run(module) is module


def test_optional_steps_can_be_skipped_and_runs_stopped() -> None:
    steps = (Step("a", AddToConstants(1)), Step("a", AddToConstants(10), optional=True), Step("a", Fail()))
    pipeline = Pipeline(steps)
    options = RunOptions(skip=frozenset({"add_to_constants"}), stop_after="add_to_constants")
    assert constant(pipeline.run(module_of(IntImm(1, INT32)), options)) == 2


def test_dumps_are_numbered_and_written_only_on_change(tmp_path) -> None:
    Pipeline.of([AddToConstants(0), AddToConstants(1)]).run(
        module_of(IntImm(1, INT32)), RunOptions(dump=tmp_path / "d")
    )
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["000_input.gmir", "002_add_to_constants.gmir"]


def test_a_fault_names_pass_node_place_and_reproducer(tmp_path) -> None:
    span = Span(Place("k.py", 3, 5, 3, 6))
    pipeline = Pipeline.of([AddToConstants(4), Fail()])
    with pytest.raises(InternalError) as caught:
        pipeline.run(module_of(IntImm(1, INT32, span)), RunOptions(reproducers=tmp_path))
    where = caught.value.where
    assert where.pass_name == "fail"
    assert where.place == span.place
    assert where.node == "5i32"
    assert "ZeroDivisionError: no reason" in str(caught.value)
    (path,) = tmp_path.iterdir()
    assert where.reproducer == str(path)
    text = path.read_text()
    assert "# pipeline: fail\n" in text
    assert "# failing: fail\n" in text


def test_the_users_mistakes_pass_through(tmp_path) -> None:
    with pytest.raises(UserError, match="twice"):
        Pipeline.of([BlameUser()]).run(module_of(IntImm(1, INT32)), RunOptions(reproducers=tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("levels", [900, 20_000])
def test_deep_ir_is_safe_and_the_recursion_limit_restored(levels: int) -> None:
    before = sys.getrecursionlimit()
    value: Expr = IntImm(1, INT32)
    leaf = Var("x", INT32)
    for _ in range(levels):
        value = Add(leaf, value)
    assert constant(Pipeline.of([AddToConstants(1)]).run(module_of(value))) == 2
    assert sys.getrecursionlimit() == before


def test_the_recursion_limit_is_restored_after_a_fault(tmp_path) -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(InternalError):
        Pipeline.of([Fail()]).run(module_of(IntImm(1, INT32)), RunOptions(reproducers=tmp_path))
    assert sys.getrecursionlimit() == before


def test_bisecting_finds_the_first_bad_optional_step() -> None:
    steps = tuple(Step("a", AddToConstants(amount), optional=True) for amount in (0, 2, 0, 3, 4))
    found = bisect(Pipeline(steps), module_of(IntImm(0, INT32)), lambda module: constant(module) < 5)
    assert found is steps[3]
    assert bisect(Pipeline(steps), module_of(IntImm(0, INT32)), lambda module: True) is None
    with pytest.raises(ValueError, match="without any optional"):
        bisect(Pipeline(steps), module_of(IntImm(0, INT32)), lambda module: False)


def test_observers_see_each_step() -> None:
    seen = []
    options = RunOptions(observe=lambda step, module, changed: seen.append((step.name, changed)))
    Pipeline.of([AddToConstants(0), AddToConstants(1)]).run(module_of(IntImm(1, INT32)), options)
    assert seen == [("add_to_constants", False), ("add_to_constants", True)]


def test_an_empty_module_runs() -> None:
    module = Module((Function("f", (), (), VOID, Seq(())),))
    assert Pipeline.of([AddToConstants()]).run(module) is module
