"""Functions that nothing leads to are gone before anything about them is refused."""

from __future__ import annotations

from gristmill.ir.module import CallingConvention
from gristmill.passes.pipeline import PHASES
from gristmill.passes.remove_unused_functions import RemoveUnusedFunctions
from gristmill.testing.pass_equivalence import kernels

TEXT = """
@T.prim_func(private=True)
def used(x: T.int32) -> T.int32:
    return x + 1

@T.prim_func(private=True)
def through(x: T.int32) -> T.int32:
    return used(x)

@T.prim_func(private=True)
def unused(x: T.int32) -> T.int32:
    return also_unused(x)

@T.prim_func(private=True)
def also_unused(x: T.int32) -> T.int32:
    return used(x)

@T.prim_func
def f(a: T.Buffer((4,), "int32")):
    a[0] = through(1)
"""


def test_what_no_public_function_leads_to() -> None:
    module = kernels(TEXT)
    found = RemoveUnusedFunctions().run(module)
    assert [function.name for function in found.functions] == ["used", "through", "f"]
    assert all(function in module.functions for function in found.functions)
    assert RemoveUnusedFunctions().run(found) is found


def test_without_a_public_function_all_stay() -> None:
    module = kernels(TEXT[: TEXT.index("@T.prim_func\n")])
    assert RemoveUnusedFunctions().run(module) is module


def test_kernels_that_are_written_as_such_stay_with_what_they_call() -> None:
    module = kernels(TEXT)
    kernels_too = module.with_functions(
        function.with_facts(convention=CallingConvention.DEVICE_KERNEL) if function.name == "also_unused" else function
        for function in module.functions
    )
    found = RemoveUnusedFunctions().run(kernels_too)
    assert [function.name for function in found.functions] == ["used", "through", "also_unused", "f"]


def test_it_runs_before_what_refuses_code() -> None:
    names = [planned.kind.name for phase in PHASES for planned in phase.passes]
    assert names.index(RemoveUnusedFunctions.name) == 1
