"""What the executor reports outside of threads: code, place, values, hint."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gristmill.errors import Diagnostic
from gristmill.interp import AssertionFailed, ExecutionError, ExecutionOptions, Executor, execute
from gristmill.testing.placed import placed_module


def reported(
    text: str, name: str, args: list[object], options: ExecutionOptions | None = None
) -> tuple[Diagnostic, str | None]:
    """The diagnostic of an execution, and the text of the node that it points at."""
    module, texts = placed_module(text)
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call(name, args, options)
    found = caught.value.diagnostics[0]
    return found, texts.get(found.place) if found.place else None


ROW = """
function @f<n: int64, m: int64>(a: float32[n, m], i: int64, j: int64) -> float32 {
  a[i, j] = 1.0
  return a[j, i] + a[i - 1, 0]
}
"""


@pytest.mark.parametrize(
    ("i", "j", "dimension", "size", "index", "at"),
    [
        (3, 0, 0, 3, 3, "a[i, j] = 1.0"),
        (-1, 0, 0, 3, -1, "a[i, j] = 1.0"),
        (1, 4, 1, 4, 4, "a[i, j] = 1.0"),
        (1, 3, 0, 3, 3, "a[j, i]"),
        (0, 0, 0, 3, -1, "a[i - 1, 0]"),
    ],
)
def test_an_index_out_of_bounds(i: int, j: int, dimension: int, size: int, index: int, at: str) -> None:
    found, node = reported(ROW, "f", [np.zeros((3, 4), np.float32), i, j])
    assert found.code == "GM0501"
    assert f"index {index} is out of bounds for dimension {dimension} of `a`, which has size {size}" in found.message
    assert "[3, 4]" in found.label
    assert node == at


def test_an_index_out_of_bounds_in_a_vector() -> None:
    text = """
function @f(a: int32[6], i: int64) {
  a[ramp(i, 2, 3)] = broadcast(0i32, 3)
}
"""
    found, node = reported(text, "f", [np.zeros(6, np.int32), 2])
    assert found.code == "GM0501"
    assert "index 6" in found.message
    assert node == "a[ramp(i, 2, 3)] = broadcast(0i32, 3)"


def test_an_index_into_nothing() -> None:
    text = """
function @f<n: int64>(a: int32[n]) -> int32 {
  return a[0]
}
"""
    found, _ = reported(text, "f", [np.zeros(0, np.int32)])
    assert found.code == "GM0501"
    assert "size 0" in found.message


@pytest.mark.parametrize("byte", [0, 4])
def test_a_view_that_reaches_beyond_its_memory(byte: int) -> None:
    text = """
function @f(a: int32[4]) -> int32 {
  view big: int32[8] from &a[2]
  big[1] = 5i32
  return big[INDEX]
}
""".replace("INDEX", str(2 + byte))
    found, node = reported(text, "f", [np.zeros(4, np.int32)])
    assert found.code == "GM0501"
    assert f"byte {16 + 4 * byte}" in found.message
    assert "16 bytes" in found.message
    assert node == f"big[{2 + byte}]"


def test_a_strided_view_that_reaches_below_its_memory() -> None:
    text = """
function @f(a: int32[4]) {
  view back: int32[4] strides [-1] from &a[2]
  back[2] = 5i32
  back[3] = 5i32
}
"""
    found, node = reported(text, "f", [np.zeros(4, np.int32)])
    assert found.code == "GM0501"
    assert "byte -4" in found.message
    assert node == "back[3] = 5i32"


def test_a_region_that_reaches_beyond_its_buffer() -> None:
    text = """
function @f(a: int32[4, 4], i: int64) {
  block "b"
    match t: int32[2, 2] = a[i +: 2, 0 +: 2]
  {
  }
}
"""
    found, _ = reported(text, "f", [np.zeros((4, 4), np.int32), 3])
    assert found.code == "GM0501"
    assert "from 3 to 4 in a dimension of size 4" in found.message


def test_a_read_of_what_was_never_written() -> None:
    text = """
function @f(n: int64) -> int32 {
  allocate t: int32[8] in local
  for i: int64 in 0 +: n {
    t[i] = 1i32
  }
  return t[5]
}
"""
    found, node = reported(text, "f", [5])
    assert found.code == "GM0502"
    assert "`t[5]`" in found.message
    assert node == "t[5]"
    assert Executor(placed_module(text)[0]).call("f", [6]).value == 1


def test_a_read_of_what_was_written_in_part() -> None:
    text = """
function @f() -> int32 {
  allocate t: int32[2] in local data p: ptr<int32, local>
  view b: int8[8] in local over p
  b[0] = 1i8
  b[1] = 1i8
  b[3] = 1i8
  return t[0]
}
"""
    found, node = reported(text, "f", [])
    assert found.code == "GM0502"
    assert node == "t[0]"


def test_a_read_of_a_local_scalar_that_was_never_written() -> None:
    text = """
function @f(c: bool) -> int32 {
  allocate t: int32[] in local
  if c {
    t[] = 1i32
  }
  return t[]
}
"""
    found, node = reported(text, "f", [False])
    assert found.code == "GM0502"
    assert "`t`" in found.message
    assert node == "t[]"


@pytest.mark.parametrize(
    ("operation", "a", "b"),
    [
        ("quotient", 1, 0), ("quotient", -128, -1), ("remainder", 1, 0), ("remainder", -128, -1),
        ("shift_left", 1, 8), ("shift_left", 1, -1), ("shift_right", 1, 8), ("shift_right", 1, -1),
    ],
)  # fmt: skip
def test_a_broken_precondition(operation: str, a: int, b: int) -> None:
    text = f"""
function @f(a: int8, b: int8) -> int8 {{
  return {operation}(a, b)
}}
"""
    found, node = reported(text, "f", [a, b])
    assert found.code == "GM0506"
    assert f"{operation}({a}, {b})" in found.message
    assert node == f"{operation}(a, b)"
    run = Executor(placed_module(text)[0])
    kept = {"quotient": -7 // -2, "remainder": -1, "shift_left": -28, "shift_right": -2}
    operands = (-7, -2) if operation == "quotient" else (-7, 2)
    assert run.call("f", operands).value == kept[operation]


def test_a_broken_precondition_in_a_lane() -> None:
    text = """
function @f(a: int32[4], b: int32[4]) {
  a[ramp(0, 1, 4)] = quotient(a[ramp(0, 1, 4)], b[ramp(0, 1, 4)])
}
"""
    found, _ = reported(text, "f", [np.arange(4, dtype=np.int32), np.array([1, 1, 0, 1], np.int32)])
    assert found.code == "GM0506"
    assert "quotient(2, 0)" in found.message


def test_an_assert() -> None:
    text = """
function @f(n: int32, c: bool) {
  assert n > 0i32 and c, "ValueError", "n is ", n, " and c ", c
}
"""
    module, texts = placed_module(text)
    run = Executor(module)
    run.call("f", [1, True])
    with pytest.raises(AssertionFailed) as caught:
        run.call("f", [-5, True])
    error = caught.value
    assert (error.code, error.kind, error.message) == ("GM0507", "ValueError", "n is -5 and c True")
    place = error.diagnostics[0].place
    assert place is not None
    assert texts[place].startswith("assert")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.kind, copy.message) == (error.code, error.kind, error.message)


@pytest.mark.parametrize(
    "body",
    [
        "while true {\n }",
        "for i: int64 in 0 +: 9223372036854775807 {\n }",
        "for i: int64 in 0 +: 9223372036854775807 {\n if i == 100000 {\n break\n }\n }",
        "for i: int64 in 0 +: 4611686018427387904 parallel {\n }",
        "for i: int64 in 0 +: 1073741824 thread on blockIdx.x {\n }",
        "while true {\n evaluate @g()\n }",
    ],
)
def test_an_endless_program(body: str) -> None:
    found, node = reported(
        f"function @g() {{\n}}\nfunction @f() {{\n{body}\n}}", "f", [], ExecutionOptions(step_limit=50_000)
    )
    assert found.code == "GM0508"
    assert "50,000 steps" in found.message
    assert node is not None


def test_a_long_loop_that_ends_early_is_not_endless() -> None:
    text = """
function @f() -> int64 {
  for i: int64 in 0 +: 9223372036854775807 {
    if i == 20000 {
      return i
    }
  }
  return 0
}
"""
    assert execute(placed_module(text)[0], "f", [], options=ExecutionOptions(step_limit=50_000)).value == 20_000


@pytest.mark.parametrize("limit", [50, 500, 5000])
def test_recursion_without_end(limit: int) -> None:
    text = """
function @f(n: int32) -> int32 {
  return @f(n + 1i32) as int32
}
"""
    found, node = reported(text, "f", [0], ExecutionOptions(recursion_limit=limit))
    assert found.code == "GM0509"
    assert str(limit) in found.message
    assert node == "@f(n + 1i32) as int32"


def test_recursion_up_to_the_limit() -> None:
    text = """
function @f(n: int32) -> int32 {
  return if_then_else(n == 0i32, 0i32, 1i32 + @f(n - 1i32) as int32)
}
"""
    assert execute(placed_module(text)[0], "f", [4000], options=ExecutionOptions(recursion_limit=4001)).value == 4000


SIGNED = """
function @f<n: int64>(a: float32[n + 1, 4], b: float32[n], k: int8, x: float32, c: bool) -> int64
  symbol "f"
  signature "f(a, b, k, x, c)"
{
  return n
}
"""


def good() -> list[object]:
    return [np.zeros((4, 4), np.float32), np.zeros(3, np.float32), 5, 1.5, True]


@pytest.mark.parametrize(
    ("position", "argument", "code", "words"),
    [
        (0, 1.0, "GM0510", "`a` is a buffer"),
        (0, np.zeros((4, 4), np.float64), "GM0510", "elements of float32, and the argument float64"),
        (0, np.zeros((4, 4), np.complex64), "GM0510", "complex64"),
        (0, np.zeros((4, 4), ">f4"), "GM0510", ">f4"),
        (0, np.zeros(4, np.float32), "GM0510", "2 dimensions"),
        (0, np.zeros((4, 5), np.float32), "GM0511", "must be 4"),
        (0, np.zeros((5, 4), np.float32), "GM0511", "n = 4"),
        (0, np.zeros((4, 8), np.float32)[:, ::2], "GM0510", "row-major"),
        (1, np.zeros(2, np.float32), "GM0511", "must be n = 3"),
        (2, 200, "GM0510", "-128 to 127"),
        (2, 1.0, "GM0510", "`k` is a int8"),
        (2, "text", "GM0510", "str"),
        (3, "text", "GM0510", "`x` is a float32"),
        (3, np.zeros(3), "GM0510", "`x`"),
        (4, 1.0, "GM0510", "`c` is a bool"),
    ],
)
def test_wrong_arguments(position: int, argument: object, code: str, words: str) -> None:
    args = good()
    args[position] = argument
    found, _ = reported(SIGNED, "f", args)
    assert found.code == code
    assert words in found.message
    assert "wrong argument of `f`" in found.message
    assert any("f(a, b, k, x, c)" in note.message for note in found.notes)


def test_right_arguments() -> None:
    run = Executor(placed_module(SIGNED)[0])
    assert run.call("f", good()).value == 3
    for position, argument in [
        (2, True), (2, np.int64(7)), (2, np.array(3)), (3, 1), (3, np.float64(2.5)), (3, True), (4, 1), (4, np.bool_(True)),
    ]:  # fmt: skip
        args = good()
        args[position] = argument
        assert run.call("f", args).value == 3
    empty = [np.zeros((1, 4), np.float32), np.zeros(0, np.float32), 5, 1.5, True]
    assert run.call("f", empty).value == 0


def test_the_wrong_number_of_arguments() -> None:
    found, _ = reported(SIGNED, "f", good()[:-1])
    assert found.code == "GM0510"
    assert "it takes 5 arguments, and 4 were passed" in found.message


def test_sizes_come_from_any_equation() -> None:
    text = """
function @f<n: int64, m: int64, k: int32>(a: int8[n + 1], b: int8[2 * m - n, n], c: int8[int64(k), 3 - n + m]) -> int64 {
  return n * 10000 + m * 100 + int64(k)
}
"""
    run = Executor(placed_module(text)[0])
    args = [np.zeros(3, np.int8), np.zeros((8, 2), np.int8), np.zeros((7, 6), np.int8)]
    assert run.call("f", args).value == 20507
    found, _ = reported(text, "f", [args[0], np.zeros((9, 2), np.int8), args[2]])
    assert found.code == "GM0511"


def test_sizes_that_nothing_determines() -> None:
    text = """
function @f<n: int64>(a: int8[n // 2]) -> int64 {
  return n
}
"""
    found, _ = reported(text, "f", [np.zeros(3, np.int8)])
    assert found.code == "GM0511"
    assert "`n // 2` cannot have that value" in found.message


def test_a_call_with_a_wrong_shape_is_reported_at_the_call() -> None:
    text = """
function @g<n: int64>(a: int32[n], b: int32[n]) {
}
function @f(a: int32[3], b: int32[4]) {
  evaluate @g(buffer(a), buffer(b))
}
"""
    found, node = reported(text, "f", [np.zeros(3, np.int32), np.zeros(4, np.int32)])
    assert found.code == "GM0511"
    assert node == "@g(buffer(a), buffer(b))"


def test_functions_that_are_not_there_or_not_to_be_called() -> None:
    text = """
function @kernel()
  convention kernel
  launch ()
{
}
function @packed(self: handle, args: handle, count: int32, result: handle) -> int32
  symbol "p"
  convention packed
{
  return 0i32
}
function @plain() {
}
"""
    run = Executor(placed_module(text)[0])
    for attempt in (
        lambda: run.call("absent", []),
        lambda: run.call("kernel", []),
        lambda: run.call("packed", []),
        lambda: run.call_packed("plain", []),
        lambda: run.launch("plain", [], {}),
    ):
        with pytest.raises(ExecutionError) as caught:
            attempt()
        assert caught.value.code == "GM0512"


def test_a_read_only_array() -> None:
    text = """
function @f(a: int32[2], b: int32[2]) {
  b[0] = a[0]
}
"""
    a, b = np.ones(2, np.int32), np.zeros(2, np.int32)
    a.flags.writeable = False
    Executor(placed_module(text)[0]).call("f", [a, b])
    assert b[0] == 1
    found, node = reported(text, "f", [b, a])
    assert found.code == "GM0513"
    assert "`b`" in found.message
    assert node == "b[0] = a[0]"


def test_an_axis_outside_of_its_domain() -> None:
    text = """
function @f(n: int64, a: int32[4]) {
  for i: int64 in 0 +: n {
    block "b"
      axis v: int64 spatial in 0 +: 4 = i
    {
      a[v] = 0i32
    }
  }
}
"""
    Executor(placed_module(text)[0]).call("f", [4, np.zeros(4, np.int32)])
    found, _ = reported(text, "f", [5, np.zeros(4, np.int32)])
    assert found.code == "GM0514"
    assert "`v` is bound to 4, and its domain is 0 to 3" in found.message


@pytest.mark.parametrize(("n", "words"), [(-1, "-1"), (1 << 40, "bytes")])
def test_allocations_that_cannot_be(n: int, words: str) -> None:
    text = """
function @f(n: int64) {
  allocate t: int32[n] in local
}
"""
    found, node = reported(text, "f", [n])
    assert found.code == "GM0516"
    assert words in found.message
    assert node == "allocate t: int32[n] in local"


@pytest.mark.parametrize(("pointer", "words"), [(None, "a null pointer"), (0x1234, "opaque pointer 0x1234")])
def test_pointers_that_lead_nowhere(pointer: object, words: str) -> None:
    text = """
function @f(p: handle) -> int32 {
  view t: int32[2] from p
  return t[0]
}
"""
    found, node = reported(text, "f", [pointer])
    assert found.code == "GM0517"
    assert words in found.message
    assert node is not None
    assert node.startswith("view t")
    assert Executor(placed_module(text)[0]).call("f", [np.array([8, 9], np.int32)]).value == 8


def test_calls_on_the_way_are_noted() -> None:
    text = """
function @inner(a: int32[2], i: int64) -> int32 {
  return a[i]
}
function @middle(a: int32[2], i: int64) -> int32 {
  return @inner(buffer(a), i + 1) as int32
}
function @f(a: int32[2]) -> int32 {
  return @middle(buffer(a), 1) as int32
}
"""
    module, texts = placed_module(text)
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call("f", [np.zeros(2, np.int32)])
    found = caught.value.diagnostics[0]
    assert found.place is not None
    assert texts[found.place] == "a[i]"
    calls = [texts[note.place] for note in found.notes if note.place]
    assert calls == ["@inner(buffer(a), i + 1) as int32", "@middle(buffer(a), 1) as int32"]


def test_code_without_places_names_its_function() -> None:
    from gristmill.ir.parser import parse_module

    module = parse_module("gristmill ir 1\nfunction @lost(a: int32[2], i: int64) -> int32 {\n return a[i]\n}\n")
    with pytest.raises(ExecutionError) as caught:
        Executor(module).call("lost", [np.zeros(2, np.int32), 2])
    assert "function `lost`" in caught.value.diagnostics[0].message


def test_errors_leave_the_executor_usable() -> None:
    run = Executor(placed_module(ROW)[0])
    with pytest.raises(ExecutionError):
        run.call("f", [np.zeros((3, 4), np.float32), 9, 9])
    assert run.call("f", [np.zeros((3, 4), np.float32), 1, 1]).value == 1.0
