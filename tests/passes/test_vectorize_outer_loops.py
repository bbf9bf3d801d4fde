"""Loops over sums as lanes of vectors: what changes and what stays, and equal results bit for bit, overlaps included."""

import numpy as np
import pytest

from gristmill.interp import ExecutionError, execute
from gristmill.ir.expr import Call, Ramp
from gristmill.ir.functor import walk
from gristmill.ir.stmt import For
from gristmill.ir.target import Target
from gristmill.ir.verify import check
from gristmill.passes.lower_blocks import LowerBlocks
from gristmill.passes.manager import Pipeline, RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.passes.vectorize_outer_loops import VectorizeOuterLoops
from gristmill.plugin.artifacts import Capabilities
from gristmill.plugin.protocols import PassContext
from gristmill.testing.pass_equivalence import check_pass, kernels, outcome_of, same_outcome, sizes_of
from gristmill.testing.sum_nests import random_sum_nest

WORK = VectorizeOuterLoops(vector_bytes=16)
SIZES = (0, 1, 3, 4, 5, 16, 23)


def after(before, work=WORK):
    """The module after the pass, verified."""
    return Pipeline.of([work]).run(before, RunOptions(verify=True))


def is_in_vectors(module):
    return any(isinstance(node, Ramp) for node in walk(module))


def questions(module):
    """How often the module asks whether memory is disjoint."""
    return sum(isinstance(node, Call) and node.op.name == "disjoint" for node in walk(module))


def test_before_and_expected():
    check_pass(
        WORK,
        """
        gristmill ir 1

        function @f<n: int64, k: int64>(a: float32[k], b: float32[k, n], c: float32[n]) {
          for j: int64 in 0 +: n {
            allocate total: float32[] in local
            total[] = 0.0
            for p: int64 in 0 +: k {
              total[] = total[] + a[p] * b[p, j]
            }
            c[j] = total[]
          }
        }
        """,
        """
        gristmill ir 1

        function @f<n: int64, k: int64>(
          a: float32[k] data ap: ptr<float32, global>, b: float32[k, n] data bp: ptr<float32, global>,
          c: float32[n] data cp: ptr<float32, global>
        ) {
          let reach: int64 = select(
            disjoint(ap, k * 4, cp, n * 4) as bool and disjoint(bp, k * n * 4, cp, n * 4) as bool, n, 0
          )
          for step: int64 in 0 +: reach // 16 unroll 1 vectorize false {
            let j: int64 = step * 16
            allocate total: float32[16] in local
            total[ramp(0, 1, 16)] = broadcast(0.0, 16)
            for p: int64 in 0 +: k unroll 1 vectorize false {
              total[ramp(0, 1, 16)] = total[ramp(0, 1, 16)] + broadcast(a[p], 16) * b[p, ramp(j, 1, 16)]
            }
            c[ramp(j, 1, 16)] = total[ramp(0, 1, 16)]
          }
          for step1: int64 in 0 +: reach % 16 // 4 unroll 1 vectorize false {
            let j1: int64 = reach // 16 * 16 + step1 * 4
            allocate total1: float32[4] in local
            total1[ramp(0, 1, 4)] = broadcast(0.0, 4)
            for p1: int64 in 0 +: k unroll 1 vectorize false {
              total1[ramp(0, 1, 4)] = total1[ramp(0, 1, 4)] + broadcast(a[p1], 4) * b[p1, ramp(j1, 1, 4)]
            }
            c[ramp(j1, 1, 4)] = total1[ramp(0, 1, 4)]
          }
          for j2: int64 in reach // 4 * 4 +: n - reach // 4 * 4 unroll 1 vectorize false {
            allocate total2: float32[] in local
            total2[] = 0.0
            for p2: int64 in 0 +: k unroll 1 vectorize false {
              total2[] = total2[] + a[p2] * b[p2, j2]
            }
            c[j2] = total2[]
          }
        }
        """,
    )


def test_a_constant_extent_needs_no_more_loops_than_it_has_vectors():
    text = """
    @T.prim_func
    def f(b: T.Buffer(("k", {n}), "float32"), c: T.Buffer(({n},), "float32")):
        for j in range({n}):
            c[j] = 0.0
            for p in range(k):
                c[j] = c[j] + b[p, j]
    """
    extents = {16: 2, 17: 2, 20: 3, 3: 0}
    for extent, count in extents.items():
        module = after(kernels(text.format(n=extent)))
        outer = [
            node for node in walk(module) if isinstance(node, For) and any(isinstance(p, For) for p in walk(node.body))
        ]
        assert len(outer) == (count or 1)
        assert is_in_vectors(module) is bool(count)


ARRAYS = (
    'a: T.Buffer((4, "k"), "{t}"), b: T.Buffer(("k", "n"), "{t}"), c: T.Buffer((4, "n"), "{t}"), '
    'd: T.Buffer(("n + k",), "{t}")'
)


def nest(body, dtype="float32", head=""):
    """The module of a kernel, without blocks."""
    return LowerBlocks().run(kernels(kernel(body, dtype, head)))


def kernel(body, dtype="float32", head=""):
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return f"@T.prim_func\ndef f({ARRAYS.format(t=dtype)}{head}):\n{lines}\n".replace("{t}", dtype)


def arguments(n, k=6, dtype="float32", seed=5):
    source = np.random.default_rng(seed)
    made = []
    for shape in ((4, k), (k, n), (4, n), (n + k,)):
        if dtype.startswith("float"):
            made.append((source.standard_normal(shape) * 10.0 ** source.integers(-6, 6, shape)).astype(dtype))
        else:
            info = np.iinfo(dtype)
            made.append(source.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))
    return made


def agree(before, result, args):
    sizes = sizes_of(before.get("f"), args)
    first, second = outcome_of(before, "f", args, sizes), outcome_of(result, "f", args, sizes)
    assert same_outcome(first, second), (first, second)


SUM = """
for i in range(4):
    for j in range(n):
        total = T.{t}(0)
        for p in range(k):
            total = total + {term}
        {last}
"""


def summed(term, last="c[i, j] = total"):
    return SUM.replace("{term}", term).replace("{last}", last)


CHANGES = {
    "matrix product": summed("a[i, p] * b[p, j]"),
    "window": summed("d[j + p] * a[i, p]"),
    "in place": summed("a[i, p] * b[p, j]", "c[i, j] = c[i, j] + total"),
    "in place, all of it": summed("c[i, j] * b[p, j]", "c[i, j] = total"),
    "a column of its own, written": summed("b[p, j]", "b[0, j] = total"),
    "the index as a value": summed("T.Cast('{t}', j) * b[p, j]"),
    "a scan down the columns": """
for j in range(n):
    running = T.{t}(0)
    for p in range(k):
        running = running + b[p, j]
        b[p, j] = running
""",
    "least and greatest": """
for j in range(n):
    low = b[0, j]
    high = b[0, j]
    for p in range(k):
        low = T.min(low, b[p, j])
        high = T.max(high, b[p, j])
    c[0, j] = low
    c[1, j] = high
""",
    "product": """
for j in range(n):
    c[2, j] = T.{t}(1)
    for p in range(k):
        c[2, j] = c[2, j] * b[p, j]
""",
    "blocks": """
for i, j, p in T.grid(4, n, k):
    with T.block("c"):
        vi, vj, vp = T.axis.remap("SSR", [i, j, p])
        with T.init():
            c[vi, vj] = T.{t}(0)
        c[vi, vj] = c[vi, vj] + a[vi, vp] * b[vp, vj]
""",
    "local memory": """
for j in range(n):
    parts = T.alloc_buffer((3,), "{t}", scope="local")
    for q in range(3):
        parts[q] = b[q, j]
    for p in range(k):
        parts[1] = parts[1] + parts[0] * b[p, j] - parts[2]
    c[3, j] = parts[1]
""",
    "two loops deep": """
for j in range(n):
    total = T.{t}(0)
    for i in range(4):
        for p in range(k):
            total = total + a[i, p] * b[p, j]
    c[1, j] = total
""",
    "a branch that all take": """
for i in range(4):
    for j in range(n):
        total = T.{t}(0)
        for p in range(k):
            if a[i, p] > a[0, 0]:
                total = total + b[p, j]
            else:
                total = total - a[i, p]
        c[i, j] = total
""",
    "a start other than 0": """
for j in range(2, n):
    total = T.{t}(0)
    for p in range(k):
        total = total + b[p, j - 2] * b[p, j]
    c[1, j] = total
""",
    "a choice": """
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        total = total + T.Select(b[p, j] > a[0, p], b[p, j], a[1, p])
    c[1, j] = total
""",
    "a value declared outside": """
total = T.alloc_buffer((1,), "{t}", scope="local")
last = T.{t}(0)
for i in range(4):
    for j in range(n):
        total[0] = c[i, j]
        last = a[i, 0]
        for p in range(k):
            total[0] = total[0] + last * b[p, j]
            last = b[p, j]
        c[i, j] = total[0] - last
""",
    "names": """
for j in range(n):
    total = T.{t}(0)
    at = j + 1
    for p in range(k):
        row = k - 1 - p
        here = b[row, at - 1]
        total = total + here * here + d[at]
    c[1, at - 1] = total
""",
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "uint64"])
@pytest.mark.parametrize("body", CHANGES.values(), ids=CHANGES.keys())
def test_loops_over_sums_become_vectors(body, dtype):
    before = nest(body, dtype)
    result = after(before)
    # Of sums of integers side by side, code generators make vectors themselves.
    assert is_in_vectors(result) is not ("d[j + p]" in body and not dtype.startswith("float"))
    for n in SIZES:
        agree(before, result, arguments(n, dtype=dtype, seed=n))
    agree(before, result, arguments(9, k=4, dtype=dtype))
    assert after(result) is result


STAYS = {
    "the iteration before": summed("a[i, p]", "d[j + 1] = d[j] + total"),
    "another column": summed("c[i, 0] * b[p, j]"),
    "one element for all": summed("b[p, j]", "c[i, 0] = total"),
    "down a row": summed("a[i, p] * b[p, n - 1 - j]"),
    "every second": summed("b[p, j // 2]"),
    "a row each": """
for i in range(4):
    total = T.{t}(0)
    for p in range(k):
        total = total + a[i, p]
    c[i, 0] = total
""",
    "a bound that lanes differ in": summed("b[p, j]").replace("range(k)", "range(T.min(k, j))"),
    "a total over all": """
total = T.{t}(0)
for j in range(n):
    for p in range(k):
        total = total + b[p, j]
    c[0, j] = total
""",
    "a value that the next iteration sees": """
last = T.{t}(0)
for j in range(n):
    total = last
    last = b[0, j]
    for p in range(k):
        total = total + b[p, j]
    c[0, j] = total
""",
    "a value that is read afterwards": """
total = T.{t}(0)
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        total = total + b[p, j]
    c[0, j] = total
c[1, 0] = total
""",
    "a value that not all iterations set": """
total = T.{t}(0)
for j in range(n):
    if a[0, 0] > T.{t}(0):
        total = T.{t}(0)
    for p in range(k):
        total = total + b[p, j]
    c[0, j] = total
""",
    "a value of two elements": """
total = T.alloc_buffer((2,), "{t}", scope="local")
total[1] = T.{t}(0)
for j in range(n):
    total[0] = T.{t}(0)
    for p in range(k):
        total[0] = total[0] + b[p, j]
        total[1] = total[1] + b[p, j]
    c[0, j] = total[0] + total[1]
""",
    "branches": """
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        if b[p, j] > a[0, p]:
            total = total + b[p, j]
    c[0, j] = total
""",
    "break": """
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        if a[0, p] > 3:
            break
        total = total + b[p, j]
    c[0, j] = total
""",
    "return": """
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        total = total + b[p, j]
    if k > 7:
        return
    c[0, j] = total
""",
    "assert": """
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        total = total + b[p, j]
    assert k > 0, "none"
    c[0, j] = total
""",
    "while": """
for j in range(n):
    total = T.{t}(0)
    p = 0
    while p < k:
        total = total + b[p, j]
        p = p + 1
    c[0, j] = total
""",
    "an index that is read": """
for j in range(n):
    total = T.{t}(0)
    for p in range(k):
        total = total + b[p, T.min(T.Cast("int64", b[0, j]), j)]
    c[0, j] = total
""",
    "no sum": """
for j in range(n):
    for p in range(k):
        b[p, j] = b[p, j] * a[0, p]
""",
    "few iterations inside": """
for j in range(n):
    total = T.{t}(0)
    for p in range(4):
        total = total + b[p, j]
    c[0, j] = total
""",
    "a loop of threads": summed("b[p, j]").replace("j in range(n)", "j in T.parallel(n)"),
    "large local memory": """
for j in range(n):
    t = T.alloc_buffer((100,), "{t}", scope="local")
    for p in range(k):
        t[p] = b[p, j]
    t[0] = T.{t}(0)
    for p in range(k):
        t[0] = t[0] + t[k - 1 - p]
    c[0, j] = t[0]
""",
}


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS.keys())
def test_other_loops_stay(body):
    before = nest(body)
    assert after(before) is before


WIDTHS = """
gristmill ir 1

function @f<n: {t}>(b: float32[90, n], c: float32[n], start: {t}) {{
  for j: {t} in {first} +: n{hint} {{
    c[{index}] = 0.0
    for p: int64 in 0 +: 90 {{
      c[{index}] = c[{index}] + b[p, {index}]
    }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("dtype", "first", "index", "hint", "changes"),
    [
        ("int64", "start", "j - start", "", True),
        ("int32", "0i32", "j", "", True),
        ("int32", "0i32", "int64(j)", "", True),
        ("int32", "start", "j - start", "", True),
        # The variable may wrap within its type, which is not a step of one in a wider type.
        ("int32", "start", "int64(j) - int64(start)", "", False),
        ("uint32", "0u32", "j", "", True),
        ("uint32", "start", "j - start", "", False),
        ("int64", "0", "int32(j)", "", True),
        ("int16", "0i16", "j", "", False),
        ("int64", "0", "j", " vectorize false", False),
        ("int64", "0", "j", " unroll 2", False),
        ("int64", "0", "j * 2 - j", "", True),
        ("int64", "0", "n - 1 - j", "", False),
    ],
)
def test_types_of_indices_and_wishes(dtype, first, index, hint, changes):
    before = kernels(WIDTHS.format(t=dtype, first=first, index=index, hint=hint))
    check(before)
    result = after(before)
    assert is_in_vectors(result) is changes
    source = np.random.default_rng(7)
    for n in SIZES:
        start = 3 if "start" in index else 0
        args = [source.standard_normal((90, n)).astype(np.float32), np.zeros(n, np.float32), start]
        agree(before, result, args)


def test_one_memory_under_two_names_stays():
    before = kernels(
        """
        gristmill ir 1

        function @f(a: float32[40, 9] data p: ptr<float32, global>) {
          view b: float32[360] over p
          for j: int64 in 0 +: 9 {
            for i: int64 in 0 +: 40 {
              b[j] = b[j] + a[i, j]
            }
          }
        }
        """
    )
    assert after(before) is before


def test_strided_arrays_stay():
    text = kernel(
        CHANGES["matrix product"].replace("{t}", "float32"), head=', s: T.int64, e: T.Buffer((4, 9), "float32")'
    )
    assert is_in_vectors(after(kernels(text)))
    strided = text.replace('c: T.Buffer((4, "n"), "float32")', 'c: T.Buffer((4, "n"), "float32", strides=(s, 1))')
    assert strided != text
    before = kernels(strided)
    assert after(before) is before


def test_memory_of_the_function_itself_is_not_asked_about():
    text = """
    @T.prim_func
    def f(b: T.Buffer(("k", 40), "float32"), c: T.Buffer((40,), "float32")):
        t = T.alloc_buffer((40,), "float32")
        for j in range(40):
            total = T.float32(0)
            for p in range(k):
                total = total + b[p, j]
            t[j] = total
        for j in range(40):
            c[j] = t[j]
    """
    before = kernels(text)
    result = after(before)
    assert is_in_vectors(result)
    assert questions(result) == 0
    agree(before, result, [np.random.default_rng(1).random((6, 40), np.float32), np.zeros(40, np.float32)])


def test_a_function_that_rules_out_overlap_is_not_asked_either():
    before = nest(CHANGES["matrix product"])
    assert questions(after(before)) > 0
    promised = before.with_functions(function.with_facts(no_alias=True) for function in before.functions)
    assert is_in_vectors(after(promised))
    assert questions(after(promised)) == 0


@pytest.mark.parametrize("offset", [0, 1, 3, 4, 16, 19, 20, 37, 38, 40])
@pytest.mark.parametrize("name", ["matrix product", "in place", "blocks", "window"])
def test_arrays_that_overlap(name, offset):
    """The result lies over what is read, at any distance: as one iteration after the other has it."""
    before = nest(CHANGES[name])
    result = after(before)
    n, k = 19, 6
    for target in (1, 3):
        whole = np.random.default_rng(offset).standard_normal(4 * k + k * n + 4 * n + n + k + 200).astype(np.float32)
        outcomes = []
        for module in (before, result):
            memory = whole.copy()
            shapes = [(4, k), (k, n), (4, n), (n + k,)]
            starts = [0, 4 * k, 4 * k + k * n, 4 * k + k * n + 4 * n]
            starts[2] = starts[target] + offset
            views = [
                memory[start : start + shape[0] * shape[-1] if len(shape) == 2 else start + shape[0]].reshape(shape)
                for start, shape in zip(starts, shapes, strict=True)
            ]
            run_in_place(module, views)
            outcomes.append(memory)
        assert outcomes[0].tobytes() == outcomes[1].tobytes()


def run_in_place(module, args):
    execute(module, "f", args)


@pytest.mark.parametrize("case", range(5))
def test_random_loops_over_sums(case):
    changed = 0
    for seed in range(case * 60, case * 60 + 60):
        nest = random_sum_nest(seed)
        before = kernels(nest.text)
        result = after(before, VectorizeOuterLoops(vector_bytes=(16, 32, 64)[seed % 3]))
        if result is before:
            continue
        changed += 1
        for overlap in (False, True):
            print(f"seed {seed}, overlap {overlap}\n{nest.text}")
            one, other = nest.arguments(overlap), nest.arguments(overlap)
            try:
                run_in_place(before, one)
            except ExecutionError as error:
                print(f"not run: {error}")
                continue
            run_in_place(result, other)
            assert same_outcome(one, other)
    assert changed >= 3


def test_options_follow_from_the_target():
    for capabilities, expected in (
        (Capabilities(vector_bytes=32), 32),
        (Capabilities(vector_bytes=16, is_device=True), 0),
    ):
        context = PassContext(Target("cpu"), capabilities)
        assert VectorizeOuterLoops.values_for(context) == {"vector_bytes": expected}
    before = nest(CHANGES["matrix product"])
    assert after(before, VectorizeOuterLoops(vector_bytes=0)) is before
    plain = PassContext(Target("cpu"), Capabilities(), {"optimization": 0})
    assert "vectorize_outer_loops" not in [step.name for step in build_pipeline(plain).steps]
    assert "vectorize_outer_loops" in [
        step.name for step in build_pipeline(PassContext(Target("cpu"), Capabilities())).steps
    ]
