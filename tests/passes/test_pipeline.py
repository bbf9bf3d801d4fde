"""The pipeline: phases, passes of plugins in their places, what can be left out."""

import pytest

from gristmill.errors import PluginError, UserError
from gristmill.ir.target import Target
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.options import parse_passes
from gristmill.passes.pipeline import PHASES, build_pipeline, known_passes, phase_names
from gristmill.passes.simplify import Simplify
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext, PassEntry
from gristmill.testing.pass_equivalence import kernels, outcome_of, same_outcome

CONTEXT = PassContext(Target("cpu"), Capabilities(native_operations=frozenset({"sqrt"})))


class Nothing:
    """A pass of a plugin that does nothing."""

    def __init__(self, name):
        self.name = name

    def run(self, module):
        return module


def entry(name, phase="loops", **more):
    return PassEntry(name, phase, lambda context: Nothing(name), "do nothing", **more)


def names(pipeline, phase=None):
    return [step.name for step in pipeline.steps if phase in (None, step.phase)]


def test_every_step_says_why_it_stands_where_it_does():
    for phase in PHASES:
        assert phase.purpose.endswith(".")
        for planned in phase.passes:
            assert planned.reason
            assert planned.kind.summary.endswith(".")


def test_phases_are_in_order():
    order = phase_names()
    assert order.index("schedule") < order.index("blocks") < order.index("split") < order.index("host")
    assert order.index("host") < order.index("memory") < order.index("loops")
    steps = build_pipeline(CONTEXT).steps
    places = [order.index(step.phase) for step in steps]
    assert places == sorted(places)


def test_level_0_leaves_optional_passes_out():
    plain = PassContext(CONTEXT.target, CONTEXT.capabilities, {"optimization": 0})
    left_out = set(names(build_pipeline(CONTEXT))) - set(names(build_pipeline(plain)))
    assert left_out == {
        *("vectorize_outer_loops", "simplify", "unroll_loops", "inline_functions", "guard_arithmetic"),
        "remove_dead_code",
    }


def test_passes_for_devices_run_for_devices_only():
    device = PassContext(Target("reference"), Capabilities(is_device=True))
    more = [name for name in names(build_pipeline(device), "blocks") if name not in names(build_pipeline(CONTEXT))]
    assert more == [
        *("lower_thread_reductions", "inline_memory_functions", "hoist_shared_memory", "reuse_shared_memory"),
        *("insert_barriers", "lay_out_dynamic_memory"),
    ]
    assert names(build_pipeline(device), "blocks")[:2] == ["lower_thread_reductions", "lower_blocks"]


def test_required_passes_of_plugins_run_and_optional_ones_where_chosen():
    entries = [entry("needed", required=True), entry("acme.extra")]
    assert "needed" in names(build_pipeline(CONTEXT, entries), "loops")
    assert "acme.extra" not in names(build_pipeline(CONTEXT, entries))
    assert "acme.extra" in names(build_pipeline(CONTEXT, entries, ["acme.extra"]), "loops")


def test_order_within_a_phase():
    entries = [
        entry("last", after=("vectorize_loops",), required=True),
        entry("first", before=("inline_functions",), required=True),
        entry("second", after=("first",), before=("inline_functions",), required=True),
    ]
    found = names(build_pipeline(CONTEXT, entries), "loops")
    assert found.index("first") < found.index("second") < found.index("inline_functions")
    assert found.index("vectorize_loops") < found.index("last")


def test_a_neighbour_that_does_not_run_puts_no_constraint():
    entries = [entry("a"), entry("b", after=("a",), required=True)]
    assert "b" in names(build_pipeline(CONTEXT, entries))


def test_a_chosen_pass_that_no_plugin_offers():
    with pytest.raises(UserError, match=r"did you mean `acme\.extra`") as caught:
        build_pipeline(CONTEXT, [entry("acme.extra")], ["acme.xtra"])
    assert caught.value.code == "GM0602"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("a", phase="lops")], "the phase `lops`"),
        ([entry("a"), entry("a")], "two passes are named `a`"),
        ([entry("simplify")], "two passes are named `simplify`"),
        ([entry("a", after=("b",))], "beside `b`"),
        (
            [entry("a", after=("b",), required=True), entry("b", after=("a",), required=True)],
            "must each run after another",
        ),
    ],
)
def test_broken_plugins(entries, words):
    with pytest.raises(PluginError, match=words):
        build_pipeline(CONTEXT, entries)


def test_the_text_of_a_pipeline_makes_it_again():
    pipeline = build_pipeline(CONTEXT)
    again = parse_passes(pipeline.text(), known_passes())
    assert [step.work for step in pipeline.steps] == list(again)


MIXED = """
@T.prim_func(private=True)
def half(x: T.int64) -> T.int64:
    if x < 0:
        return 0 - x // 2
    return x // 2

@T.prim_func
def f(a: T.Buffer((4, 8), "int64"), b: T.Buffer((4, 8), "int64")):
    for i in range(4):
        for j in T.vectorized(8):
            b[i, j] = a[i, j] * 3 + j
    for i in T.parallel(4):
        for j in T.unroll(8):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = b[vi, vj] + half(a[vi, 7 - vj])
"""


@pytest.mark.parametrize("optimization", [0, 3])
def test_results_stay_after_every_step(optimization):
    import numpy as np

    module = kernels(MIXED)
    args = [np.arange(-16, 16).reshape(4, 8), np.zeros((4, 8), "int64")]
    expected = outcome_of(module, "f", args)
    seen = []

    def observe(step, result, changed):
        assert same_outcome(outcome_of(result, "f", args), expected), step.name
        seen.append(step.name)

    context = PassContext(CONTEXT.target, CONTEXT.capabilities, {"optimization": optimization})
    build_pipeline(context).run(module, RunOptions(verify=True, observe=observe))
    assert "vectorize_loops" in seen


def test_a_pipeline_of_chosen_passes():
    assert names(Pipeline.of([Simplify(), Simplify()])) == ["simplify", "simplify"]


def test_a_stretch_of_phases() -> None:
    context = PassContext(Target("cpu"), Capabilities())
    whole = build_pipeline(context)
    first = build_pipeline(context, phases=("symbols", "blocks"))
    rest = build_pipeline(context, phases=[name for name in phase_names() if name not in ("symbols", "blocks")])
    assert [step.name for step in (*first.steps, *rest.steps)] == [step.name for step in whole.steps]
    assert {step.phase for step in first.steps} == {"symbols", "blocks"}
