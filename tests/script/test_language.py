"""What kernels mean: types, names, loops, blocks, constants; as IR, and as the reference executor runs it."""

import ml_dtypes
import numpy as np
import pytest

from gristmill.errors import UserError
from gristmill.interp.executor import execute
from gristmill.ir import expr, stmt
from gristmill.ir.dtype import INT32, INT64
from gristmill.ir.equal import first_difference
from gristmill.ir.functor import walk
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_node
from gristmill.ir.verify import check
from gristmill.script import parse, parse_file, parse_source

HEADER = "from gristmill.script import tir as T, ir as I\nimport math\n"


def read(text, **options):
    parsed = parse_source(HEADER + text, "kernel.py", **options)
    check(parsed.module)
    assert first_difference(parsed.module, parse_module(print_node(parsed.module))) is None
    return parsed.module


def run(text, *arrays, name="f", **options):
    """Read a kernel, run it on the arrays, give back its result."""
    return execute(read(text, **options), name, list(arrays)).value


def nodes(module, kind):
    return [node for function in module.functions for node in walk(function) if isinstance(node, kind)]


def kernel(body, params='out: T.Buffer((8,), "int64")'):
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return f"@T.prim_func\ndef f({params}):\n{lines}\n"


def out(body, dtype="int64", **options):
    """What a body leaves in an ``out`` of eight elements that were 0."""
    array = np.zeros(8, dtype)
    run(kernel(body, f'out: T.Buffer((8,), "{np.dtype(dtype).name}")'), array, **options)
    return array.tolist()


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_name_assigned_once_is_a_binding():
    module = read(kernel("v = out[0] + 1\nout[1] = v"))
    assert len(nodes(module, stmt.Bind)) == 1
    assert not nodes(module, stmt.Allocate)


IF = "if out[0] > 0:\n    "


@pytest.mark.parametrize(
    "body",
    [
        IF + "v = out[0] + 5\nout[1] = v",
        IF + "v = 1\nelse:\n    out[0] = 1\nout[1] = v",
        "for i in range(out[0]):\n    v = i + 5\nout[1] = v",
        "for i in range(0):\n    v = i + 5\nout[1] = v",
        "for i, j in T.grid(2, out[0]):\n    v = i + 5\nout[1] = v",
        "while out[0] > 0:\n    v = out[0]\n    break\nout[1] = v",
        "while True:\n    if out[0] > 0:\n        break\n    v = out[0]\nout[1] = v",
        "for i in range(2):\n    if i == 0:\n        v = out[0] + 5\n    out[1] = v",
        "for i in range(2):\n    if i > out[0]:\n        continue\n    v = i + 5\nout[1] = v",
        "for i in range(2):\n    if i > out[0]:\n        break\n    v = i + 5\nout[1] = v",
        "for i in range(2):\n    if i == 1:\n        v = out[0] + 5\n    out[1] += v",
        "for i in range(4):\n    " + IF.replace("    ", "        ") + "v = out[i]\n    else:\n        v += 1",
    ],
)
def test_a_name_that_a_path_leaves_without_a_value_is_refused(body):
    with pytest.raises(UserError) as caught:
        read(kernel(body))
    (found,) = caught.value.diagnostics
    assert found.code == "GM0244"
    assert "`v = 0`" in found.hint
    assert [note.message for note in found.notes] == ["not every path comes by this assignment"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if out[0] > 0:\n    v = out[0]\nelse:\n    v = out[0] + 3\nout[1] = v", 3),
        ("if out[0] > 0:\n    v = out[0]\nelse:\n    return\nout[1] = v", 0),
        ("for i in range(3):\n    v = i + 5\nout[1] = v", 7),
        ("for i, j in T.grid(2, 3):\n    v = i + j\nout[1] = v", 3),
        ("for i in range(8, 2, -2):\n    v = i\nout[1] = v", 4),
        ("while True:\n    v = out[0] + 4\n    if v > 2:\n        break\nout[1] = v", 4),
        ("for i in range(2):\n    v = i + 5\n    if i > out[0]:\n        break\nout[1] = v", 6),
        ("for i in range(2):\n    if out[0] > 0:\n        continue\n    v = i + 5\n    v += 1\n    out[1] = v", 7),
        ("v = 1\nfor i in range(out[0]):\n    v = i\nout[1] = v", 1),
    ],
)
def test_a_name_that_every_path_assigns_has_a_value(body, expected):
    assert out(body)[1] == expected
    assert not any(
        isinstance(node.value, expr.IntImm) and node.value.value == 0 for node in nodes(read(kernel(body)), stmt.Store)
    )


def test_a_name_of_a_macro_without_a_value_is_told_with_the_call():
    macro = "@T.macro\ndef keep(out):\n    if out[0] > 0:\n        v = out[0] + 1\n    out[1] = v\n\n"
    with pytest.raises(UserError) as caught:
        read(macro + kernel("keep(out)"))
    (found,) = caught.value.diagnostics
    assert found.code == "GM0244"
    assert "inlined from this call" in [note.message for note in found.notes]


def test_a_name_assigned_again_is_a_local_scalar():
    module = read(kernel("v = out[0]\nv = v + 1\nout[1] = v"))
    (local,) = nodes(module, stmt.Allocate)
    assert (local.buffer.rank, local.buffer.dtype, local.buffer.scope.value) == (0, INT64, "local")


def test_named_constants_take_the_type_of_their_use():
    text = kernel(
        "eps = 0.5\nx[0] = x[1] + eps\ny[0] = y[1] + eps", 'x: T.Buffer((2,), "float64"), y: T.Buffer((2,), "float32")'
    )
    assert not nodes(read(text), stmt.Bind)


def test_both_branches_then_use():
    assert out("if out[0] == 0:\n    v = 3\nelse:\n    v = 4\nout[1] = v")[1] == 3


def test_a_name_first_assigned_in_a_loop_and_used_after():
    assert out("for i in range(4):\n    v = i * 2\nout[0] = v")[0] == 6


def test_temporaries_of_loops_are_their_own():
    module = read(
        kernel(
            "for i in T.parallel(4):\n"
            "    v = out[i]\n"
            "    v = v + 1\n"
            "    out[i] = v\n"
            "for j in T.parallel(4):\n"
            "    v = 2\n"
            "    v += 1\n"
            "    out[j + 4] = v"
        )
    )
    loops = nodes(module, stmt.For)
    assert all(any(isinstance(node, stmt.Allocate) for node in walk(loop)) for loop in loops)
    assert len(nodes(module, stmt.Allocate)) == 2


def test_two_loops_may_use_a_name_for_different_types():
    text = kernel(
        (
            "for i in range(4):\n"
            "    v = x[i] + 1\n"
            "    v = v * 2\n"
            "    x[i] = v\n"
            "for i in range(4):\n"
            "    v = out[i] + 1\n"
            "    v += 1\n"
            "    out[i] = v"
        ),
        'x: T.Buffer((4,), "float32"), out: T.Buffer((4,), "int32")',
    )
    x, result = np.arange(4, dtype="float32"), np.zeros(4, "int32")
    run(text, x, result)
    assert x.tolist() == [2, 4, 6, 8]
    assert result.tolist() == [2] * 4


def test_carried_through_a_serial_loop():
    assert out("total = 0\nfor i in range(5):\n    total += i\nout[0] = total")[0] == 10


def test_carried_between_iterations_is_declared_outside():
    assert out("last = 0\nfor i in range(5):\n    out[i] = last\n    last = i * i")[:5] == [0, 0, 1, 4, 9]


def test_swap():
    assert out("a = 1\nb = 2\nfor i in range(3):\n    a, b = b, a + b\nout[0], out[1] = a, b")[:2] == [5, 8]


def test_swap_of_elements():
    assert out("out[0] = 5\nout[1] = 7\nout[0], out[1] = out[1], out[0]")[:2] == [7, 5]


def test_chained_targets():
    assert out("a = out[0] = 3\nout[1] = a")[:2] == [3, 3]


def test_a_type_without_a_value():
    assert out("v: T.int64\nif out[0] == 0:\n    v = 3\nelse:\n    v = 5\nout[1] = v")[1] == 3


def test_let():
    module = read(kernel("v: T.let[T.int64] = out[0] + 1\nw: T.let = v * 2\nout[1] = w"))
    assert [node.var.name for node in nodes(module, stmt.Bind)] == ["v", "w"]


def test_inner_loops_shadow():
    assert out("for i in range(2):\n    for i in range(3):\n        out[i] += 1")[:4] == [2, 2, 2, 0]


def test_shadowing_keeps_a_parameter_named_like_python():
    assert run("@T.prim_func\ndef f(min: T.int64) -> T.int64:\n    return min + 1\n", 3) == 4


# Types ----------------------------------------------------------------------------------------------------------------

ALL = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
]


def parsed_or_refused(text, code):
    """The module, or None if it is refused with that code."""
    try:
        return parse_source(HEADER + text, "k.py").module
    except UserError as error:
        if error.code != code:
            raise
        return None


def meets(a, b):
    text = f'@T.prim_func\ndef f(a: T.{a}, b: T.{b}, out: T.Buffer((1,), "bool")):\n    out[0] = a == b\n'
    module = parsed_or_refused(text, "GM0261")
    if module is None:
        return None
    (equal,) = nodes(module, expr.Equal)
    return str(equal.a.dtype)


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_promotion(a, b):
    """Of integers, and of floats, what NumPy finds; NumPy's detours to float64 and its wider floats are refused."""
    found = meets(a, b)
    assert found == meets(b, a)
    x, y = (np.dtype(ml_dtypes.bfloat16 if one == "bfloat16" else one) for one in (a, b))
    if x.kind in "iub" and y.kind in "iub":
        expected = np.promote_types(x, y)
        wanted = None if expected.kind == "f" or (x.kind != y.kind and expected not in (x, y)) else expected.name
        assert found == wanted
    elif (x.kind in "iub") != (y.kind in "iub"):
        assert found == (b if x.kind in "iub" else a)
    elif {a, b} == {"float16", "bfloat16"}:
        assert found is None
    else:
        assert found == max(a, b, key=ALL.index)


def stores(source, target):
    text = f'@T.prim_func\ndef f(a: T.{source}, out: T.Buffer((1,), "{target}")):\n    out[0] = a\n'
    return parsed_or_refused(text, "GM0262") is not None


@pytest.mark.parametrize("source", ALL)
def test_only_lossless_stores(source):
    for target in ALL:
        a, b = (np.dtype(ml_dtypes.bfloat16 if one == "bfloat16" else one) for one in (source, target))
        if "bfloat16" in (source, target):
            expected = source == target or (source, target) in {
                ("bfloat16", "float32"), ("bfloat16", "float64"), ("bool", "bfloat16"), ("int8", "bfloat16"),
                ("uint8", "bfloat16"),
            }  # fmt: skip
        else:
            expected = np.can_cast(a, b, "safe") and not (a.kind in "iu" and a.itemsize == 8 and b.kind == "f")
        assert stores(source, target) == expected, (source, target)


def test_literals_take_the_other_sides_type():
    text = kernel(
        "x[0] = x[1] * 2 + 1.5\nu[0] = u[1] + 255\nh[0] = h[1] / 3",
        'x: T.Buffer((2,), "float64"), u: T.Buffer((2,), "uint8"), h: T.Buffer((2,), "float16")',
    )
    module = read(text)
    assert not nodes(module, expr.Cast)


def test_index_arithmetic_is_int64():
    module = read(kernel("for i in range(n):\n    out[i * 2] = i", 'out: T.Buffer((8,), "int64"), n: T.int32'))
    (loop,) = nodes(module, stmt.For)
    assert loop.var.dtype == INT64
    (store,) = nodes(module, stmt.Store)
    assert store.indices[0].dtype == INT64


def test_shift_amounts_keep_their_meaning():
    text = kernel(
        "for i in range(8):\n    out[i] = x[0] >> (i * s)",
        'x: T.Buffer((1,), "uint8"), out: T.Buffer((8,), "uint8"), s: T.int64',
    )
    for step in (1, 37, 64, 256, -1):
        result = np.zeros(8, "uint8")
        run(text, np.array([0xF0], "uint8"), result, step)
        assert result.tolist() == [0xF0 >> (i * step) if 0 <= i * step < 8 else 0 for i in range(8)]


def test_comparison_chains_and_logic():
    assert out("for i in range(8):\n    if 2 <= i < 5 and not i == 3 or i == 7:\n        out[i] = 1") == [
        0,
        0,
        1,
        0,
        1,
        0,
        0,
        1,
    ]


def test_ternary_evaluates_one_side():
    assert out("for i in range(8):\n    out[i] = out[i + 1] + 1 if i + 1 < 8 else 9")[7] == 9


def test_powers():
    assert out("v = out[0] + 3\nout[1] = v ** 2\nout[2] = v ** 3\nout[3] = 2 ** 5\nout[4] = v ** 0\nout[5] = v ** 1")[
        1:6
    ] == [9, 27, 32, 1, 3]
    module = read(kernel("x[0] = x[1] ** 0.5 + x[1] ** y", 'x: T.Buffer((2,), "float32"), y: T.float32'))
    assert [node.op.name for node in nodes(module, expr.Call)] == ["pow", "pow"]


def test_divisions():
    assert out(
        "v = out[0] - 7\n"
        "out[1] = v // 2\n"
        "out[2] = v % 2\n"
        "out[3] = T.truncdiv(v, 2)\n"
        "out[4] = T.truncmod(v, 2)\n"
        "out[5] = T.ceildiv(v, 2)"
    )[1:6] == [-4, 1, -3, -1, -3]


def test_python_functions():
    assert out(
        "v = out[0] - 7\n"
        "out[1] = abs(v)\n"
        "out[2] = min(v, 3, 1)\n"
        "out[3] = max(v, 3)\n"
        "out[4] = int(2.9)\n"
        "out[5] = round(2.5)\n"
        "out[6] = len((1, 2))"
    )[1:7] == [7, -7, 3, 2, 2, 2]


def test_special_floats():
    found = out(
        (
            'out[0] = T.float32("inf")\n'
            'out[1] = T.infinity("float32")\n'
            'out[2] = T.max_value("float32")\n'
            'out[3] = float("-inf")\n'
            "out[4] = math.pi"
        ),
        "float32",
    )
    assert found[:4] == [np.inf, np.inf, float(np.finfo("float32").max), -np.inf]
    assert found[4] == np.float32(np.pi)


def test_conversions():
    assert out(
        "x = T.float32(-1.5)\n"
        "out[0] = T.int64(x)\n"
        'out[1] = T.cast(x, "int64")\n'
        'out[2] = x.astype("int64")\n'
        'out[3] = T.Cast("int64", T.bool(x))\n'
        'out[4] = T.reinterpret("int32", x)'
    )[:5] == [-1, -1, -1, 1, np.float32(-1.5).view("int32")]


# Loops and control ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bounds", [(8,), (2, 8), (0, 8, 3), (7, -1, -1), (7, 0, -3), (5, 5), (5, 2), (2, 5, -1), (-3, 5, 2), (0, 8, 100)]
)
def test_ranges(bounds):
    text = ", ".join(map(str, bounds))
    expected = list(range(*bounds))
    found = out(f"count = 0\nfor i in range({text}):\n    out[count] = i\n    count += 1")
    assert found[: len(expected)] == expected
    assert found[len(expected) :] == [0] * (8 - len(expected))
    # The same with bounds that are known only when it runs.
    names = ["start", "stop", "step"][: len(bounds)] if len(bounds) > 1 else ["stop"]
    params = ", ".join(f"{name}: T.int32" for name in names if name != "step")
    inner = ", ".join(str(bounds[2]) if name == "step" else name for name in names)
    array = np.zeros(8, "int64")
    dynamic = kernel(
        f"count = 0\nfor i in range({inner}):\n    out[count] = i\n    count += 1",
        f'out: T.Buffer((8,), "int64"), {params}',
    )
    run(dynamic, array, *[value for name, value in zip(names, bounds, strict=True) if name != "step"])
    assert array.tolist() == found


def test_loop_kinds_and_hints():
    module = read(
        kernel(
            "for i in T.parallel(8):\n"
            "    out[i] = 1\n"
            "for i in T.vectorized(8):\n"
            "    out[i] = 2\n"
            "for i in T.unroll(8):\n"
            "    out[i] = 3\n"
            'for i in T.serial(8, annotations={"unroll": 4, "vectorize": True, "vector_width": 8}):\n    out[i] = 4'
        )
    )
    loops = nodes(module, stmt.For)
    assert [loop.kind.value for loop in loops] == ["parallel", "vectorized", "unrolled", "serial"]
    assert loops[-1].hints == stmt.LoopHints(4, 8, True)


def test_grid_with_ranges():
    assert out("for i, j in T.grid(2, (1, 3)):\n    out[i * 4 + j] = i * 10 + j") == [0, 1, 2, 0, 0, 11, 12, 0]


def test_break_and_continue_and_while():
    assert out(
        "i = 0\nwhile True:\n    i += 1\n    if i == 3:\n        continue\n    if i > 5:\n        break\n    out[i] = i"
    ) == [0, 1, 2, 0, 4, 5, 0, 0]


def test_early_return():
    assert out("for i in range(8):\n    if i == 3:\n        return\n    out[i] = 1") == [1, 1, 1, 0, 0, 0, 0, 0]


def test_constants_choose_branches():
    text = "MODE = 'fast'\nN = 3\n" + kernel("if N > 2 and MODE == 'fast':\n    out[0] = 1\nelse:\n    out[0] = x")
    array = np.zeros(8, "int64")
    run(text, array)
    assert array[0] == 1
    with pytest.raises(UserError) as caught:
        read(text, params={"MODE": "slow"})
    assert caught.value.code == "GM0245"


def test_asserts():
    text = kernel(
        'assert n > 0\nassert n < 5, f"n is {n}, not {1 + 1}"\nassert n != 3, ("ValueError", ["n: ", n])', "n: T.int32"
    )
    found = [
        (node.kind, [part if isinstance(part, str) else "?" for part in node.message])
        for node in nodes(read(text), stmt.Assert)
    ]
    assert found == [
        ("AssertionError", ["assertion failed: n > 0"]),
        ("AssertionError", ["n is ", "?", ", not ", "2"]),
        ("ValueError", ["n: ", "?"]),
    ]


# Constants and files --------------------------------------------------------------------------------------------------


def test_folding():
    text = (
        "A = 3\n"
        "B, C = A * 2 + 1, (A, 4.5)\n"
        "D: int = -A // 2\n"
        "E = C[1] * 2\n"
        "F = C + (1,)\n"
        "G = math.sqrt(16)\n"
        "H = A if B > 3 else 0\n"
    )
    assert out_with(
        text, "out[0] = B\nout[1] = C[0]\nout[2] = D\nout[3] = int(E)\nout[4] = len(F)\nout[5] = int(G)\nout[6] = H"
    ) == [7, 3, -2, 9, 3, 4, 3, 0]


def out_with(header, body, **options):
    array = np.zeros(8, "int64")
    run(header + kernel(body), array, **options)
    return array.tolist()


def test_params_override_constants():
    header = "N = 3\nM = N * 2\nSCALE = T.float32(0.5)\nSIZES = (1, 2)\n"
    body = "out[0] = N\nout[1] = M\nout[2] = len(SIZES)\nout[3] = int(SCALE)"
    assert out_with(header, body)[:4] == [3, 6, 2, 0]
    assert out_with(header, body, params={"N": 5, "SIZES": (7, 8, 9), "SCALE": 2})[:4] == [5, 10, 3, 2]


def test_files(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "shared.py").write_text(
        "from gristmill.script import tir as T\nfrom .base import STEP\nOFFSET = STEP + 1\n"
        "def helper(v: T.int64) -> T.int64:\n    return v + OFFSET\n"
        "@T.prim_func\ndef public(v: T.int64) -> T.int64:\n    return helper(v)\n"
    )
    (tmp_path / "pkg" / "base.py").write_text("STEP = 10\n")
    (tmp_path / "top.py").write_text("FACTOR = 100\n")
    (tmp_path / "pkg" / "kernels.py").write_text(
        HEADER
        + (
            "from .shared import helper as add, public\n"
            "from . import base\n"
            "from top import FACTOR\n"
            "import pkg.base as again\n"
        )
        + "def helper(v: T.int64) -> T.int64:\n    return v * 2\n"
        + kernel(
            "out[0] = add(1)\nout[1] = helper(1)\nout[2] = base.STEP\nout[3] = FACTOR + again.STEP\nout[4] = public(2)"
        )
    )
    parsed = parse_file(tmp_path / "pkg" / "kernels.py", root=tmp_path)
    check(parsed.module)
    array = np.zeros(8, "int64")
    execute(parsed.module, "f", [array])
    assert array[:5].tolist() == [12, 2, 10, 110, 13]
    assert [function.name for function in parsed.module.public] == ["f"]
    assert {str(path).rsplit("/", 1)[1] for path in parsed.imported} == {"shared.py", "base.py", "top.py"}
    assert set(parsed.sources) == {*parsed.imported, str(tmp_path / "pkg" / "kernels.py")}


def test_chosen_functions():
    text = "def a(v: T.int64) -> T.int64:\n    return v\n" + "".join(
        f"@T.prim_func\ndef {name}(v: T.int64) -> T.int64:\n    return {call}(v)\n"
        for name, call in (("f", "a"), ("g", "f"), ("h", "f"))
    )
    module = read(text, functions=["g"])
    assert [(function.name, function.facts.symbol) for function in module.functions] == [
        ("a", None),
        ("f", None),
        ("g", "g"),
    ]


def test_unused_helpers_are_left_out():
    text = "def reference(x):\n    return numpy.sum(x)\n" + kernel("out[0] = 1")
    assert [function.name for function in read(text).functions] == ["f"]


def test_private_functions():
    text = (
        "@T.prim_func\n"
        "def _a(v: T.int64) -> T.int64:\n"
        "    return v\n"
        "@T.prim_func(private=True)\n"
        "def b(v: T.int64) -> T.int64:\n"
        "    return _a(v)\n"
    ) + kernel("out[0] = b(3)")
    module = read(text)
    assert [(function.name, function.facts.symbol) for function in module.functions] == [
        ("_a", None),
        ("b", None),
        ("f", "f"),
    ]


# Functions ------------------------------------------------------------------------------------------------------------


def test_recursion():
    text = (
        "def fib(n: T.int64) -> T.int64:\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n"
        + kernel("for i in range(8):\n    out[i] = fib(i)")
    )
    array = np.zeros(8, "int64")
    run(text, array)
    assert array.tolist() == [0, 1, 1, 2, 3, 5, 8, 13]


def test_mutual_recursion_and_bool_results():
    text = (
        "def even(n: T.int64) -> T.bool:\n    if n == 0:\n        return True\n    return odd(n - 1)\n"
        "def odd(n: T.int64) -> T.bool:\n    if n == 0:\n        return False\n    return even(n=n - 1)\n"
        + kernel("for i in range(8):\n    out[i] = even(i)")
    )
    array = np.zeros(8, "int64")
    run(text, array)
    assert array.tolist() == [1, 0] * 4


def test_results_are_inferred():
    text = "def a(v: T.float32):\n    return v > 1\n" + kernel("out[0] = a(2)")
    assert str(read(text).get("a").returns) == "bool"


def test_buffers_for_helpers():
    text = (
        'def fill(dst: T.Buffer(("n",), "int64"), v: T.int64):\n    for i in range(n):\n        dst[i] = v + n\n'
        + kernel("fill(out, 3)")
    )
    array = np.zeros(8, "int64")
    run(text, array)
    assert array.tolist() == [11] * 8


def test_sizes():
    text = (
        "@T.prim_func\n"
        'def f(a: T.Buffer(("n + 1", "m"), "float32"), b: T.Buffer((K, "n"), "float32", strides=("s", 1)), '
        'k: T.int32, c: T.Buffer(("k",), "int8")):\n'
        "    c[0] = T.int8(n + m + s)\n"
    )
    (function,) = read("K = 4\n" + text).functions
    assert [(size.name, size.dtype) for size in function.sizes] == [("n", INT64), ("m", INT64), ("s", INT64)]
    assert function.params[3].shape[0] is function.params[2]
    assert function.facts.signature == (
        "f(a: Buffer((n + 1, m), float32), b: Buffer((4, n), float32, strides=(s, 1)), k: int32, c: Buffer((k,), int8))"
    )


@pytest.mark.parametrize(
    ("docstring", "summary"),
    [
        ('"""Adds one."""', "Adds one."),
        ('"""\n    Adds\tone,\n    or two.\n\n    Slowly.\n    """', "Adds one,"),
        (r'"\x1b[2Jä\ud800"', r"\x1b[2Jä\ud800"),
        ('""', ""),
        ("pass", ""),
        ('n = 1\n    "no docstring"', ""),
    ],
)
def test_the_first_line_of_the_docstring_is_the_summary(docstring, summary):
    body = f'(x: T.Buffer((4,), "int32")):\n    {docstring}\n    x[0] = 1\n'
    functions = read(f"@T.prim_func\ndef f{body}@T.prim_func\ndef _g{body}").functions
    assert {function.name: function.facts.summary for function in functions} == {"f": summary, "_g": ""}


def test_sizes_of_the_file():
    text = "n = T.int32()\n" + kernel("for i in range(n):\n    a[i] = 1", 'a: T.Buffer((n,), "int64")')
    (function,) = read(text).functions
    assert [(size.name, size.dtype) for size in function.sizes] == [("n", INT32)]


def test_scalars_of_every_type():
    params = ", ".join(f"p{index}: T.{name}" for index, name in enumerate(ALL))
    module = read(f"@T.prim_func\ndef f({params}):\n    pass\n")
    assert [str(param.dtype) for param in module.functions[0].params] == ALL


def test_annotations_in_quotes():
    text = (
        "@T.prim_func\n"
        "def f(v: 'T.int32', w: 'int64', x: 'T.Buffer((\"n\",), \"int64\")') -> 'T.int64':\n"
        "    x[0] = v\n"
        "    return w\n"
    )
    (function,) = read(text).functions
    assert function.facts.signature == "f(v: int32, w: int64, x: Buffer((n,), int64)) -> int64"


# Buffers and blocks ---------------------------------------------------------------------------------------------------


def test_views():
    body = (
        'a = T.decl_buffer((2, 4), "int64", data=out.data)\n'
        'b = T.decl_buffer((4,), "int64", data=out.data, elem_offset=4)\n'
        "for i, j in T.grid(2, 4):\n"
        "    a[i, j] = i * 4 + j\n"
        "b[3] = 70"
    )
    assert out(body) == [0, 1, 2, 3, 4, 5, 6, 70]


def test_what_a_buffer_knows_of_itself():
    out = np.zeros(8, np.int64)
    params = """x: T.Buffer((2, "n", 4), "float32"), y: T.Buffer((3, 5), "int8"), z: T.Buffer((), "int8"),
        s: T.Buffer((3, 5), "int8", strides=(7, 1)), out: T.Buffer((8,), "int64")"""
    body = """
out[0], out[1], out[2] = x.strides[0], x.strides[1], x.strides[2]
out[3], out[4] = y.strides[0], s.strides[0]
out[5], out[6], out[7] = len(x.shape), len(z.shape), len(x.strides)
"""
    room = np.zeros(19, np.int8)
    strided = np.lib.stride_tricks.as_strided(room, (3, 5), (7, 1))
    run(
        kernel(body, params),
        np.zeros((2, 6, 4), np.float32),
        np.zeros((3, 5), np.int8),
        np.int8([0])[0:1].reshape(()),
        strided,
        out,
    )
    assert out.tolist() == [24, 4, 1, 5, 7, 3, 0, 3]


def test_view_of_an_address():
    assert out('p = T.address_of(out[4])\na = T.decl_buffer((4,), "int64", data=p)\na[1] = 5') == [
        0,
        0,
        0,
        0,
        0,
        5,
        0,
        0,
    ]


def test_vector_slices():
    assert out("for i in range(2):\n    out[i * 4 : i * 4 + 4] = T.Ramp(i, 2, 4)\nout[0:8:4] = out[0:2] + 1") == [
        1,
        2,
        4,
        6,
        3,
        3,
        5,
        7,
    ]


def test_vector_lanes():
    assert out(
        "v = T.Ramp(T.int64(5), 1, 4)\n"
        "out[0] = T.Shuffle([v], [2])\n"
        "out[1:3] = T.vectorhigh(v)\n"
        "out[4:8] = T.Shuffle([v, v], [0, 7, 1, 6])"
    ) == [7, 7, 8, 0, 5, 8, 6, 7]


def test_a_block_finds_its_reads_and_writes():
    text = kernel(
        "for i, j, k in T.grid(4, 4, 4):\n"
        '    with T.block("mm"):\n'
        '        vi, vj, vk = T.axis.remap("SSR", [i, j, k])\n'
        "        with T.init():\n"
        "            C[vi, vj] = 0\n"
        "        C[vi, vj] += A[vi, vk] * B[vk, vj]\n"
        "for i in range(4):\n"
        '    with T.block("rows"):\n'
        "        vi = T.axis.spatial(4, i)\n"
        "        for j in range(4):\n"
        "            A[vi, j] = B[vi, 0] + 1",
        'A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")',
    )
    first, second = nodes(read(text), stmt.Block)
    assert [(region.buffer.name) for region in first.reads] == ["A", "B"]
    assert [(region.buffer.name) for region in first.writes] == ["C"]
    assert [axis.kind.value for axis in first.axes] == ["spatial", "spatial", "reduce"]
    assert [axis.var.name for axis in first.axes] == ["vi", "vj", "vk"]
    (written,) = second.writes
    assert [one.extent.value for one in written.ranges] == [1, 4]
    a, b, c = np.random.default_rng(0).random((3, 4, 4)).astype("float32")
    expected = a @ b
    run(text, a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5)


def test_a_block_counts_what_it_does_through_views():
    text = kernel(
        'with T.block("b"):\n'
        '    v = T.decl_buffer((2, 4), "int64", data=out.data)\n'
        "    for i in range(4):\n"
        "        v[1, i] = i"
    )
    (block,) = nodes(read(text), stmt.Block)
    assert [(region.buffer.name, region.ranges[0].extent.value) for region in block.writes] == [("out", 8)]
    assert block.reads == ()


def test_blocks_own_their_buffers():
    text = kernel(
        'with T.block("b"):\n'
        '    t = T.alloc_buffer((4,), "int64")\n'
        '    m = T.match_buffer(out[4:8], (4,), "int64")\n'
        "    for i in range(4):\n"
        "        t[i] = i\n"
        "        m[i] = t[i] * 2"
    )
    (block,) = nodes(read(text), stmt.Block)
    assert [buffer.name for buffer in block.allocations] == ["t"]
    assert [(region.buffer.name, region.ranges[0].minimum.value) for region in block.writes] == [("out", 4)]
    array = np.zeros(8, "int64")
    run(text, array)
    assert array.tolist() == [0, 0, 0, 0, 0, 2, 4, 6]


def test_device_kernels():
    text = (
        "@T.prim_func\n"
        'def f(a: T.Buffer(("n",), "float32")):\n'
        '    bx = T.launch_thread("blockIdx.x", T.ceildiv(n, 64))\n'
        '    tx = T.launch_thread("threadIdx.x", 64)\n'
        '    s = T.alloc_shared((64,), "float32")\n'
        "    i = bx * 64 + tx\n"
        "    s[tx] = a[i]\n"
        "    T.syncthreads()\n"
        "    a[i] = s[63 - tx]\n"
    )
    a = np.arange(128, dtype="float32")
    run(text, a)
    assert a.tolist() == [*range(63, -1, -1), *range(127, 63, -1)]


# Python users ---------------------------------------------------------------------------------------------------------


def test_the_kernel_of_the_design():
    text = """
RADIUS = 2

@T.prim_func
def blur_rows(src: T.Buffer(("h", "w"), "float32"), dst: T.Buffer(("h", "w"), "float32")):
    for y, x in T.grid(h, w):
        total = T.float32(0)
        for k in range(-RADIUS, RADIUS + 1):
            total = total + src[y, T.min(T.max(x + k, 0), w - 1)]
        dst[y, x] = total / (2 * RADIUS + 1)
"""
    src = np.random.default_rng(1).random((5, 9)).astype("float32")
    dst = np.zeros_like(src)
    run(text, src, dst, name="blur_rows")
    padded = np.pad(src, ((0, 0), (2, 2)), mode="edge")
    np.testing.assert_allclose(dst, sum(padded[:, k : k + 9] for k in range(5)) / 5, rtol=1e-5)
    module = read(text)
    assert (
        module.functions[0].facts.signature == "blur_rows(src: Buffer((h, w), float32), dst: Buffer((h, w), float32))"
    )
    check(read(text, params={"RADIUS": 4}))


def test_parse_takes_text_functions_and_classes():
    from gristmill.script import ir as I
    from gristmill.script import tir as T

    @T.prim_func
    def kernel(x: T.Buffer(("n",), "float32")):
        for i in range(n):  # noqa: F821
            x[i] = 1

    @I.ir_module
    class Module:
        @T.prim_func
        def f(x: T.Buffer((8,), "float32")):
            x[0] = 1

    assert parse(kernel).functions[0].name == "kernel"
    assert parse(Module).functions[0].name == "f"
    assert (
        parse("from gristmill.script import tir as T\n@T.prim_func\ndef g(n: T.int32):\n    pass").functions[0].name
        == "g"
    )


def test_parse_keeps_the_lines_of_the_file():
    from gristmill.script import tir as T

    @T.prim_func
    def wrong(x: T.Buffer((8,), "float32")):
        x[0] = x[9]

    with pytest.raises(UserError) as caught:
        parse(wrong)
    place = caught.value.diagnostics[0].place
    line = wrong.__wrapped__.__code__.co_firstlineno + 2
    assert (place.file, place.line) == (__file__, line)


def test_kernel_files_can_be_imported(tmp_path):
    """Python imports a kernel file without executing a kernel, and without loading the compiler."""
    import subprocess
    import sys

    (tmp_path / "kernels.py").write_text(
        HEADER
        + 'N = 4\nSCALE = T.float32(0.5) * 2\nLIMIT = T.max_value("float32")\nn = T.int32()\n'
        + (
            "@T.prim_func\n"
            'def f(x: T.Buffer(("n", N), "float32"), p: T.handle("float32"), v: T.int32) -> T.int32:\n'
            "    return v\n"
        )
        + "@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n    def g(v: T.int32):\n        pass\n"
    )
    script = (
        "import sys, kernels; assert 'gristmill.script.parsing' not in sys.modules; assert 'numpy' not in sys.modules; "
        "assert 'gristmill.ir' not in sys.modules; print(kernels.f, kernels.f.__name__, kernels.Module.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "<kernel f> f Module\n"
    parsed = parse_file(tmp_path / "kernels.py", root=tmp_path)
    assert [function.name for function in parsed.module.functions] == ["f", "g"]


def test_nothing_is_executed(tmp_path):
    marker = tmp_path / "executed"
    text = (
        f"import pathlib\npathlib.Path({str(marker)!r}).touch()\nN = pathlib.Path({str(marker)!r}).touch()\n"
        + kernel("out[0] = 1")
    )
    read(text)
    assert not marker.exists()


def test_unknown_dialects_are_refused():
    with pytest.raises(ValueError, match="gristmill, tvmscript"):
        parse_source("", "k.py", dialect="cuda")


@pytest.mark.parametrize("constant", ['"float32"', "T.float32"])
def test_a_type_as_a_constant_that_params_replace(constant):
    text = f"""
DTYPE = {constant}

@T.prim_func
def f(x: T.Buffer(("n",), DTYPE), out: T.Buffer((1,), DTYPE), by: DTYPE):
    total = T.cast(0, DTYPE)
    for i in range(n):
        total += x[i].astype(DTYPE)
    out[0] = total * by
"""
    assert "x: Buffer((n,), float32)" in read(text).functions[0].facts.signature
    for dtype in ("float64", "float16", "int32"):
        array, found = np.arange(5, dtype=dtype), np.zeros(1, dtype)
        run(text, array, found, 2, params={"DTYPE": dtype})
        assert found[0] == 20
    for wrong in ("float65", 32, "handle"):
        with pytest.raises(UserError, match=r"GM0216|GM0228|GM0226|GM0229"):
            read(text, params={"DTYPE": wrong})


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.parallel(8):\n    if i == 0:\n        out[0] = i",
        "for i in T.parallel(8):\n    if i > 0:\n        continue\n    out[0] = i",
        "for i in T.parallel(8):\n    for j in range(i, i + 1):\n        out[j] = 1",
        "for i in T.parallel(8):\n    k = i + 0\n    out[k] = 1",
        "for i in T.parallel(8):\n    k = i\n    k += 0\n    out[k] = 1",
        "for i in T.parallel(8):\n    own = T.alloc_buffer((4,), 'int64')\n    own[0] = i\n    out[i] = own[0]",
        "for i in T.parallel(8):\n    one = T.decl_buffer((1,), 'int64', data=out.data, elem_offset=i)\n    one[0] = i",
        "for i in T.parallel(1):\n    out[0] = 1",
        "for i in range(8):\n    for j in T.parallel(8):\n        out[j] = i",
    ],
)
def test_parallel_writes_that_may_be_of_one_iteration_each(body):
    out(body)


@pytest.mark.parametrize(
    "body",
    [
        "for i in T.parallel(8):\n    out[0] = i",
        "for i in T.parallel(8):\n    for j in T.parallel(8):\n        out[j] = i",
        "for i in T.parallel(8):\n    for j in range(8):\n        k = 7 - j\n        out[k] += i",
        "all = T.alloc_buffer((), 'int64')\nfor i in T.parallel(out[0]):\n    all[()] = i",
    ],
)
def test_parallel_writes_of_one_element_by_all_iterations(body):
    with pytest.raises(UserError, match="GM0259"):
        out(body)
