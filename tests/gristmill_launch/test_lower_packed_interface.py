"""The packed host interface: every check with its message, and what goes through, in the executor and compiled.

Each case of the tables runs twice: on the reference executor right after the pass, and as machine code after the whole
pipeline. Both must raise the same Python error with the same words.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import gristmill_cpu.plugin
import gristmill_launch.plugin
import gristmill_llvm.plugin
from gristmill.errors import UserError
from gristmill.interp import AssertionFailed, execute_packed
from gristmill.ir import verify
from gristmill.ir.dtype import FLOAT32
from gristmill.ir.module import CallingConvention, Module
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module
from gristmill.ir.target import parse_target
from gristmill.passes.manager import RunOptions
from gristmill.passes.pipeline import build_pipeline
from gristmill.plugin.artifacts import Blob
from gristmill.plugin.protocols import GenerateOptions, PassContext
from gristmill.plugin.registry import Registry
from gristmill.runtime.dlpack import tensor_over
from gristmill_launch.lower_packed_interface import LowerPackedInterface

tvm_ffi = pytest.importorskip("tvm_ffi")

SOURCE = """gristmill ir 1

function @nothing()
  symbol "nothing"
{
}

function @one(a: int32)
  symbol "one"
{
}

function @scale<n: int64>(x: float32[n], factor: float32) -> int64
  symbol "scale"
{
  for i: int64 in 0 +: n {
    x[i] = x[i] * factor
  }
  return n
}

function @pair<h: int64, w: int64>(src: float32[h, w], dst: float32[h, w + 1])
  symbol "pair"
  signature "pair(src: Tensor[h, w], dst: Tensor[h, w + 1])"
{
  for y: int64 in 0 +: h {
    for x: int64 in 0 +: w {
      dst[y, x] = src[y, x]
    }
  }
}

function @later<n: int64>(big: int32[n + 1], even: int32[n * 2], plain: int32[n]) -> int64
  symbol "later"
{
  return n
}

function @half<n: int64>(even: int32[n * 2], fixed: int32[3, 4]) -> int64
  symbol "half"
{
  return n
}

function @narrow<s: int32>(a: int8[s], b: int8[s + 1i32]) -> int32
  symbol "narrow"
{
  return s
}

function @given(n: int64, a: int8[n, 2]) -> int64
  symbol "given"
{
  return n
}

function @strided<n: int64, s: int64>(a: float64[n, 4] strides [s, 1], b: float64[n]) -> int64
  symbol "strided"
{
  return s
}

function @scalars(a: int8, b: uint16, c: int64, d: uint64, e: bool, f: float32, g: float64) -> float64
  symbol "scalars"
{
  return float64(a) + float64(b) + float64(c) + float64(d) + float64(e) + float64(f) + g
}

function @zero(a: float32[])
  symbol "zero"
{
}

function @shifted<n: int64>(a: int32[n], b: int32[n])
  symbol "shifted"
{
  for i: int64 in 0 +: n {
    b[i] = a[i] + 1i32
  }
}

function @widest(a: uint64) -> uint64
  symbol "widest"
{
  return a
}

function @truth(a: int32) -> bool
  symbol "truth"
{
  return a > 3i32
}
"""


@cache
def lowered() -> Module:
    """The module right after the pass, verified."""
    module = parse_module(SOURCE)
    verify.check(module)
    found = LowerPackedInterface().run(module)
    verify.check(found, after="lower_packed_interface")
    return found


REGISTRY = Registry.of([gristmill_llvm.plugin, gristmill_launch.plugin, gristmill_cpu.plugin])


@cache
def generated() -> Blob:
    """The machine code of the module."""
    kind = REGISTRY.target_kind("cpu")
    target = kind.resolve(parse_target("cpu:x86-64-v2"))
    context = PassContext(target, kind.capabilities(target))
    pipeline = build_pipeline(context, REGISTRY.pass_entries())
    module = pipeline.run(parse_module(SOURCE), RunOptions(verify=True))
    (blob,) = REGISTRY.code_generator(kind.generator).generate(module, target, GenerateOptions())
    return blob


@cache
def compiled() -> Any:
    """The machine code of the module, loaded."""
    blob = generated()
    device = REGISTRY.runtime("cpu").open(0)
    return device.load(memoryview(blob.data), blob.entry_points, blob.kernels)


def run_executor(function: str, args: Sequence[Any]) -> Any:
    return execute_packed(lowered(), f"__tvm_ffi_{function}", args).value


def run_compiled(function: str, args: Sequence[Any]) -> Any:
    return compiled().function(f"__tvm_ffi_{function}")(*args)


def refusal_of_executor(function: str, args: Sequence[Any]) -> tuple[str, str]:
    with pytest.raises(AssertionFailed) as caught:
        run_executor(function, args)
    return caught.value.kind, caught.value.message


def refusal_of_machine_code(function: str, args: Sequence[Any]) -> tuple[str, str]:
    with pytest.raises((TypeError, ValueError)) as caught:
        run_compiled(function, args)
    return type(caught.value).__name__, str(caught.value)


BOTH = [pytest.param(refusal_of_executor, id="executor"), pytest.param(refusal_of_machine_code, id="machine code")]
RUN_BOTH = [pytest.param(run_executor, id="executor"), pytest.param(run_compiled, id="machine code")]


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def i32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.int32)


def unaligned() -> np.ndarray:
    return np.zeros(17, np.uint8)[1:].view(np.float32)


NUMBERS = (1, 2, 3, 4, True, 1.5, 2.5)


def numbers(place: int, value: object) -> tuple[object, ...]:
    return (*NUMBERS[:place], value, *NUMBERS[place + 1 :])


ARRAY = "argument `x` (number 1) must be an array of float32 with 1 dimension, and "
INT8 = "argument `a` (number 1) must be an integer (int8)"
UINT64 = "argument `d` (number 4) must be an integer (uint64) from 0 to 18446744073709551615, "
COMPACT = " is expected: it must be compact, in row-major order (as numpy.ascontiguousarray makes it)"

REFUSED: dict[str, tuple[str, Callable[[], Sequence[Any]], str, str]] = {
    # Counts.
    "too many": ("nothing", lambda: (1,), "TypeError", "no arguments are expected, not 1"),
    "too few": ("one", lambda: (), "TypeError", "1 argument is expected, not 0"),
    "one missing": ("pair", lambda: (f32(2, 2),), "TypeError", "2 arguments are expected, not 1"),
    # Kinds, arrays.
    "None for an array": ("scale", lambda: (None, 1.0), "TypeError", ARRAY + "None was given"),
    "bool for an array": ("scale", lambda: (True, 1.0), "TypeError", ARRAY + "a bool was given"),
    "int for an array": ("scale", lambda: (1, 1.0), "TypeError", ARRAY + "an int was given"),
    "float for an array": ("scale", lambda: (1.0, 1.0), "TypeError", ARRAY + "a float was given"),
    "str for an array": ("scale", lambda: ("text", 1.0), "TypeError", ARRAY + "a str was given"),
    "huge int for an array": ("scale", lambda: (1 << 70, 1.0), "TypeError", ARRAY + "an int beyond 64 bits was given"),
    # Kinds, scalars.
    "array for a float": (
        "scale",
        lambda: (f32(2), f32(2)),
        "TypeError",
        "argument `factor` (number 2) must be a number (float32), and an array was given",
    ),
    "None for a float": (
        "scale",
        lambda: (f32(2), None),
        "TypeError",
        "argument `factor` (number 2) must be a number (float32), and None was given",
    ),
    "huge int for a float": (
        "scale",
        lambda: (f32(2), 1 << 70),
        "TypeError",
        "argument `factor` (number 2) must be a number (float32), and an int beyond 64 bits was given",
    ),
    "float for an int": ("scalars", lambda: numbers(0, 1.0), "TypeError", INT8 + ", and a float was given"),
    "str for an int": ("scalars", lambda: numbers(0, "1"), "TypeError", INT8 + ", and a str was given"),
    "array for an int": ("scalars", lambda: numbers(0, i32(1)), "TypeError", INT8 + ", and an array was given"),
    "float for a bool": (
        "scalars",
        lambda: numbers(4, 1.0),
        "TypeError",
        "argument `e` (number 5) must be a bool, and a float was given",
    ),
    # Ranges.
    "over int8": ("scalars", lambda: numbers(0, 300), "ValueError", INT8 + " from -128 to 127, not 300"),
    "under int8": ("scalars", lambda: numbers(0, -129), "ValueError", INT8 + " from -128 to 127, not -129"),
    "huge for int8": (
        "scalars",
        lambda: numbers(0, 1 << 64),
        "ValueError",
        INT8 + " from -128 to 127, and an int beyond 64 bits was given",
    ),
    "negative for uint16": (
        "scalars",
        lambda: numbers(1, -1),
        "ValueError",
        "argument `b` (number 2) must be an integer (uint16) from 0 to 65535, not -1",
    ),
    "huge for int64": (
        "scalars",
        lambda: numbers(2, 1 << 63),
        "ValueError",
        "argument `c` (number 3) must be an integer (int64) from -9223372036854775808 to 9223372036854775807, "
        "and an int beyond 64 bits was given",
    ),
    "negative for uint64": ("scalars", lambda: numbers(3, -4), "ValueError", UINT64 + "not -4"),
    "over uint64": (
        "scalars",
        lambda: numbers(3, 1 << 64),
        "ValueError",
        UINT64 + "and an int beyond 64 bits was given",
    ),
    "far under int64": (
        "scalars",
        lambda: numbers(3, -(1 << 63) - 1),
        "ValueError",
        UINT64 + "and an int beyond 64 bits was given",
    ),
    # Element types and ranks.
    **{
        f"{name} elements": (
            "scale",
            lambda name=name: (np.ones(3, name), 1.0),
            "TypeError",
            f"argument `x` (number 1) has dtype {name}, but float32 is expected",
        )
        for name in ("float64", "float16", "int32", "uint8", "bool")
    },
    "rank 2 for 1": (
        "scale",
        lambda: (f32(2, 2), 1.0),
        "ValueError",
        "argument `x` (number 1) has rank 2, but rank 1 is expected",
    ),
    "rank 1 for 0": (
        "zero",
        lambda: (f32(1),),
        "ValueError",
        "argument `a` (number 1) has rank 1, but rank 0 is expected",
    ),
    # Sizes.
    "another size by name": (
        "pair",
        lambda: (f32(2, 3), f32(3, 4)),
        "ValueError",
        "argument `dst` (number 2) has size 3 in dimension 0, but `h` is 2 (from dimension 0 of `src`)",
    ),
    "another size by expression": (
        "pair",
        lambda: (f32(2, 3), f32(2, 3)),
        "ValueError",
        "argument `dst` (number 2) has size 3 in dimension 1, but `w + 1` is 4 (`w` is 3 from dimension 1 of `src`)",
    ),
    "another fixed size": (
        "half",
        lambda: (i32(4), i32(3, 5)),
        "ValueError",
        "argument `fixed` (number 2) has size 5 in dimension 1, but 4 is expected",
    ),
    "contradiction with an expression before": (
        "later",
        lambda: (i32(5), i32(8), i32(3)),
        "ValueError",
        "argument `plain` (number 3) has size 3 in dimension 0, but `n` is 4 (from dimension 0 of `big`)",
    ),
    "odd for even": (
        "half",
        lambda: (i32(5), i32(3, 4)),
        "ValueError",
        "argument `even` (number 1) has size 5 in dimension 0, but `n * 2` is 4 (`n` is 2 from dimension 0 of `even`)",
    ),
    "no size less than none": (
        "later",
        lambda: (i32(0), i32(0), i32(0)),
        "ValueError",
        "argument `big` (number 1) has size 0 in dimension 0 (`n + 1`), so `n` would be -1, but it must be at least 0",
    ),
    "another size than a scalar says": (
        "given",
        lambda: (4, np.zeros((3, 2), np.int8)),
        "ValueError",
        "argument `a` (number 2) has size 3 in dimension 0, but `n` is 4 (from argument `n`)",
    ),
    # Strides, alignment.
    "every other element": (
        "scale",
        lambda: (f32(6)[::2], 1.0),
        "ValueError",
        f"argument `x` (number 1) has stride 2 in dimension 0, but 1{COMPACT}",
    ),
    "transposed": (
        "pair",
        lambda: (f32(3, 2).T, f32(2, 4)),
        "ValueError",
        f"argument `src` (number 1) has stride 2 in dimension 1, but 1{COMPACT}",
    ),
    "padded rows": (
        "pair",
        lambda: (f32(2, 5)[:, :3], f32(2, 4)),
        "ValueError",
        f"argument `src` (number 1) has stride 5 in dimension 0, but 3{COMPACT}",
    ),
    "another stride than declared": (
        "strided",
        lambda: (np.ones((3, 8))[:, ::2], np.ones(3)),
        "ValueError",
        "argument `a` (number 1) has stride 2 in dimension 1, but 1 is expected",
    ),
    "not aligned": (
        "scale",
        lambda: (unaligned(), 1.0),
        "ValueError",
        "argument `x` (number 1) has data that is not aligned to 4 bytes",
    ),
}


@pytest.mark.parametrize("refusal", BOTH)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, refusal: Callable[[str, Sequence[Any]], tuple[str, str]]) -> None:
    function, args, kind, expected = REFUSED[name]
    found_kind, message = refusal(function, args())
    first, _, second = message.partition("\n")
    assert (found_kind, first) == (kind, f"{function}: {expected}")
    assert second.startswith(f"  signature: {function}(")


def test_the_signature_is_the_authors_or_made_from_the_parameters() -> None:
    assert refusal_of_machine_code("pair", ())[1].endswith(
        "  signature: pair(src: Tensor[h, w], dst: Tensor[h, w + 1])"
    )
    assert refusal_of_machine_code("later", ())[1].endswith(
        "  signature: later(big: Buffer((n + 1,), int32), even: Buffer((n * 2,), int32), plain: Buffer((n,), int32))"
        " -> int64"
    )


# What NumPy cannot make: memory of a device, no memory, a foreign element type.

OTHER_MEMORY = [
    (
        {"device": (2, 0)},
        "ValueError",
        "argument `x` (number 1) is in memory of device type 2 "
        "(of 1 CPU, 2 CUDA, 3 CUDA host, 4 OpenCL, 7 Vulkan, 8 Metal, 10 ROCm), but CPU memory is expected",
    ),
    ({"address": 0}, "ValueError", "argument `x` (number 1) has no data (its pointer is null), though it has elements"),
    (
        {"dtype": "bfloat16"},
        "TypeError",
        "argument `x` (number 1) has dtype bfloat16, but float32 is expected",
    ),
    (
        {"dtype": "float32x4"},
        "TypeError",
        "argument `x` (number 1) has elements of 4 lanes (DLPack code 2, 32 bits), but float32 is expected",
    ),
    (
        {"dtype": "handle"},
        "TypeError",
        "argument `x` (number 1) has a dtype of DLPack code 3 with 64 bits, but float32 is expected",
    ),
]


@pytest.mark.parametrize(("changes", "kind", "expected"), OTHER_MEMORY)
def test_tensors_that_numpy_cannot_make(changes: dict[str, Any], kind: str, expected: str) -> None:
    from gristmill.ir.dtype import parse_dtype

    memory = np.ones(64, np.float32)
    dtype = parse_dtype(changes.get("dtype", "float32"))
    address = changes.get("address", memory.ctypes.data)
    tensor = tensor_over(address, (4,), dtype, changes.get("device", (1, 0)), memory)
    found_kind, message = refusal_of_machine_code("scale", (tensor, 2.0))
    assert (found_kind, message.partition("\n")[0]) == (kind, f"scale: {expected}")


OTHER_OBJECT = "a Python object that is neither a number nor an array (for a numpy.bool_ write bool(...)) was given"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.bool_(True), OTHER_OBJECT),
        ([1, 2], "a list or tuple was given"),
        (object(), OTHER_OBJECT),
        (len, "an object of another type (TVM FFI type index 68) was given"),
    ],
)
def test_python_objects_of_other_kinds(given: object, expected: str) -> None:
    kind, message = refusal_of_machine_code("one", (given,))
    assert kind == "TypeError"
    assert message.partition("\n")[0] == f"one: argument `a` (number 1) must be an integer (int32), and {expected}"


# What goes through ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUN_BOTH)
def test_arguments_and_results(run: Callable[[str, Sequence[Any]], Any]) -> None:
    assert run("nothing", ()) is None
    values = np.arange(5, dtype=np.float32)
    assert run("scale", (values, 2)) == 5
    np.testing.assert_array_equal(values, [0, 2, 4, 6, 8])
    assert run("scale", (values, True)) == 5
    assert run("scale", (values, 0.5)) == 5
    np.testing.assert_array_equal(values, [0, 1, 2, 3, 4])
    source, target = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((2, 4), np.float32)
    assert run("pair", (source, target)) is None
    np.testing.assert_array_equal(target[:, :3], source)
    assert run("truth", (4,)) is True
    assert run("truth", (3,)) is False


@pytest.mark.parametrize("run", RUN_BOTH)
def test_sizes_are_found_whatever_their_order(run: Callable[[str, Sequence[Any]], Any]) -> None:
    assert run("later", (i32(5), i32(8), i32(4))) == 4
    assert run("later", (i32(1), i32(0), i32(0))) == 0
    assert run("half", (i32(6), i32(3, 4))) == 3
    assert run("narrow", (np.zeros(3, np.int8), np.zeros(4, np.int8))) == 3
    assert run("given", (3, np.zeros((3, 2), np.int8))) == 3
    assert run("given", (False, np.zeros((0, 2), np.int8))) == 0


@pytest.mark.parametrize("run", RUN_BOTH)
def test_declared_strides_are_found(run: Callable[[str, Sequence[Any]], Any]) -> None:
    assert run("strided", (np.ones((3, 4)), np.ones(3))) == 4
    assert run("strided", (np.ones((3, 9))[:, :4], np.ones(3))) == 9
    assert run("strided", (np.ones((6, 4))[::2], np.ones(3))) == 8


@pytest.mark.parametrize("run", RUN_BOTH)
def test_every_scalar_at_the_ends_of_its_range(run: Callable[[str, Sequence[Any]], Any]) -> None:
    zeros = (0, 0, 0, 0, False, 0.0, 0.0)

    def only(place: int, value: object) -> Any:
        return run("scalars", (*zeros[:place], value, *zeros[place + 1 :]))

    for place, values in (
        (0, (-128, 127, True)),
        (1, (0, 65535)),
        (2, (-(1 << 63), (1 << 63) - 1)),
        (3, (0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)),
        (4, (True, False, 0, 1)),
        (5, (1.5, -3, True)),
        (6, (0.1, 1 << 60, False)),
    ):
        for value in values:
            assert only(place, value) == float(value), (place, value)
    assert only(4, 17) == 1.0
    assert only(5, 0.1) == float(np.float32(0.1))


@pytest.mark.parametrize("run", RUN_BOTH)
def test_arrays_without_elements_and_with_one(run: Callable[[str, Sequence[Any]], Any]) -> None:
    assert run("scale", (f32(0), 1.0)) == 0
    assert run("scale", (f32(3)[:0], 1.0)) == 0
    assert run("scale", (f32(9)[::9], 1.0)) == 1
    assert run("pair", (f32(0, 3), f32(0, 4))) is None
    assert run("pair", (f32(0, 5)[:, :3], f32(0, 4))) is None
    assert run("pair", (f32(1, 9)[:, :3], f32(1, 4))) is None
    assert run("zero", (f32(),)) is None


def test_an_empty_array_needs_no_memory() -> None:
    assert run_compiled("scale", (tensor_over(0, (0,), FLOAT32, (1, 0), None), 1.0)) == 0


@pytest.mark.parametrize("run", RUN_BOTH)
def test_arrays_that_overlap_give_what_the_loops_say(run: Callable[[str, Sequence[Any]], Any]) -> None:
    memory = np.zeros(65, np.int32)
    run("shifted", (memory[:-1], memory[1:]))
    np.testing.assert_array_equal(memory, np.arange(65))
    same = np.zeros(64, np.int32)
    run("shifted", (same, same))
    np.testing.assert_array_equal(same, np.ones(64))


@pytest.mark.parametrize("run", RUN_BOTH)
def test_results_beyond_int64(run: Callable[[str, Sequence[Any]], Any]) -> None:
    for value in (0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        assert run("widest", (value,)) == value


def test_no_array_of_arguments() -> None:
    """Code that calls the C interface itself may hand over a null pointer; with no arguments that is fine."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(generated().data)
        file.flush()
        library = ctypes.CDLL(file.name)
    result = (ctypes.c_int64 * 2)()
    assert library.__getattr__("__tvm_ffi_nothing")(None, None, 0, result) == 0
    assert library.__getattr__("__tvm_ffi_one")(None, None, 1, result) == -1
    raised = ctypes.c_void_p()
    tvm_ffi.LIB.TVMFFIErrorMoveFromRaised(ctypes.byref(raised))
    # TVMFFIErrorCell, after the header of the object: kind and message, each a pointer and a size.
    cell = (ctypes.c_size_t * 4).from_address(raised.value + 24)
    kind, message = (ctypes.string_at(cell[place], cell[place + 1]) for place in (0, 2))
    tvm_ffi.LIB.TVMFFIObjectDecRef(raised)
    assert kind == b"TypeError"
    assert message.startswith(b"one: 1 argument is expected, but their array is a null pointer\n  signature: one(")


# The pass itself ------------------------------------------------------------------------------------------------------


def test_public_functions_become_private_ones_with_a_packed_one_beside() -> None:
    module = lowered()
    for function in parse_module(SOURCE).functions:
        plain, packed = module.get(function.name), module.get(f"__tvm_ffi_{function.name}")
        assert plain is not None
        assert packed is not None
        assert not plain.is_public
        assert packed.facts.symbol == packed.name
        assert packed.facts.convention is CallingConvention.PACKED_HOST
        assert not packed.facts.no_alias


def test_the_result_has_a_text_form_and_is_left_alone_the_second_time() -> None:
    module = lowered()
    assert print_module(parse_module(print_module(module))) == print_module(module)
    assert LowerPackedInterface().run(module) is module


def test_private_functions_and_calls_by_name_stay() -> None:
    source = """gristmill ir 1

function @inner(a: int64) -> int64 {
  return a + 1
}

function @outer(a: int64) -> int64
  symbol "outer"
{
  return @inner(a) as int64
}

function @outermost(a: int64) -> int64
  symbol "outermost"
{
  return @outer(a) as int64
}
"""
    module = LowerPackedInterface().run(parse_module(source))
    assert [function.name for function in module.functions] == [
        "inner",
        "outer",
        "__tvm_ffi_outer",
        "outermost",
        "__tvm_ffi_outermost",
    ]
    assert execute_packed(module, "__tvm_ffi_outermost", (4,)).value == 5


@pytest.mark.parametrize(
    ("sizes", "shape", "expected"),
    [
        ("n: int64, m: int64", "n * m", "the size `n` of `f` cannot be found .* it occurs only in `n \\* m`"),
        ("n: int64", "n // 2", "the size `n` of `f` cannot be found .* it occurs only in `n // 2`"),
        ("n: int64, m: int64", "n + m", "the size `m` of `f` cannot be found"),
    ],
)
def test_a_size_that_the_arguments_do_not_determine(sizes: str, shape: str, expected: str) -> None:
    module = parse_module(f'gristmill ir 1\n\nfunction @f<{sizes}>(x: float32[{shape}])\n  symbol "f"\n{{\n}}\n')
    with pytest.raises(UserError, match=expected) as caught:
        LowerPackedInterface().run(module)
    assert caught.value.code == "GM0650"
    assert "pass it: `n: T.int64`" in caught.value.diagnostics[0].hint


def test_a_name_that_is_taken() -> None:
    source = 'gristmill ir 1\n\nfunction @f()\n  symbol "f"\n{\n}\n\nfunction @__tvm_ffi_f() {\n}\n'
    with pytest.raises(UserError, match="GM0651"):
        LowerPackedInterface().run(parse_module(source))
