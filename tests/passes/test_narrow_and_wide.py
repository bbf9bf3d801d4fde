"""Kernels with index arithmetic in 32 bits beside the same in 64: which are made, and which the host launches."""

from __future__ import annotations

import numpy as np
import pytest

from gristmill.interp import ExecutionError, Executor
from gristmill.ir.functor import walk
from gristmill.ir.module import Module
from gristmill.ir.parser import parse_module
from gristmill.ir.printer import print_module, print_node
from gristmill.ir.stmt import Assert, If, Launch
from gristmill.ir.verify import verify
from gristmill.passes.narrow_indices import NarrowIndices

HEAD = """gristmill ir 1

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
"""
TAIL = """
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


def made(body: str, limit: int = 2**31 - 1, width: str = "both", head: str = HEAD) -> Module:
    module = parse_module(head + body + TAIL, "example.gmir")
    verify(module)
    found = NarrowIndices(width=width, limit=limit, has_int64=True).run(module)
    verify(found)
    return found


def kernels(module: Module) -> list[str]:
    return [function.name for function in module.functions if function.name.startswith("f_kernel")]


def launched(module: Module, size: int, by: int) -> tuple[list[str], np.ndarray]:
    """The kernels that run for these arguments (each marks what it writes), and the array afterwards."""
    text = print_module(module)
    narrow, wide = text.index("function @f_kernel("), text.index("function @f_kernel_wide(")
    assert narrow < wide
    marked = parse_module(text[:wide] + text[wide:].replace("= 1.0", "= 2.0"), "marked.gmir")
    x, seen = np.zeros(size, np.float32), np.zeros(size, np.float32)
    Executor(module).call("f", [x, by])
    Executor(marked).call("f", [seen, by])
    return [name for mark, name in ((1.0, "narrow"), (2.0, "wide")) if mark in seen], x


def test_the_host_chooses() -> None:
    module = made("x[(b + @place(b, by) * n) % n] = 1.0")
    assert kernels(module) == ["f_kernel", "f_kernel_wide"]
    (choice,) = [node for node in walk(module.functions[0].body) if isinstance(node, If)]
    assert isinstance(choice.then, Launch)
    assert isinstance(choice.otherwise, Launch)
    assert (choice.then.kernel, choice.otherwise.kernel) == ("f_kernel", "f_kernel_wide")
    assert print_node(choice.then.args[1]) == "int32(n)"
    assert print_node(choice.otherwise.args[1]) == "n"
    assert "int64" not in print_module(Module((module.get("f_kernel"),)))  # type: ignore[arg-type]
    wide = print_module(Module((module.get("f_kernel_wide"),)))  # type: ignore[arg-type]
    assert "x[(b + @place(b, by) * n) % n] = 1.0" in wide
    assert 'symbol "f_kernel_wide"' in wide


@pytest.mark.parametrize(
    ("size", "by", "wanted"),
    [
        (8, 5, ["narrow"]),
        (8, -3, ["narrow"]),
        (1, 2**31 - 2, ["narrow"]),
        # The products do not fit; the indices do.
        (8, 2**28, ["wide"]),
        (8, -(2**28), ["wide"]),
        (4, 2**31, ["wide"]),
        (4, 2**62, ["wide"]),
        (4, -(2**63), ["wide"]),
        (4, -(2**31) - 2, ["wide"]),
        (0, 2**40, []),
        (0, 1, []),
    ],
)
def test_each_launch_takes_the_kernel_that_fits(size: int, by: int, wanted: list[str]) -> None:
    body = "x[(b + @place(b, by) * n) % n] = 1.0"
    found, x = launched(made(body), size, by)
    assert found == wanted
    plain = np.zeros(size, np.float32)
    Executor(parse_module(HEAD + body + TAIL, "example.gmir")).call("f", [plain, by])
    np.testing.assert_array_equal(x, plain)


@pytest.mark.parametrize(("limit", "wanted"), [(287, "narrow"), (286, "wide"), (-1, "wide")])
def test_a_smaller_limit_has_the_other_kernel_launched(limit: int, wanted: str) -> None:
    found, x = launched(made("x[(b + b * by * n) % n] = 1.0", limit), 8, 4)
    assert found == [wanted]
    assert x.any()


def test_what_always_fits_is_made_in_32_bits_alone() -> None:
    head = HEAD.replace("float32[n]", "float32[64]").replace("<n: int64>", "").replace("x_data, n, by + 1", "x_data")
    head = head.replace("(x_data: ptr<float32, global>, n: int64, by: int64)", "(x_data: ptr<float32, global>)")
    head = head.replace("= n\n", "= 64\n").replace("0 +: n", "0 +: 64")
    module = made("x[(b * 3 + 1) % 64] = 1.0", head=head)
    assert kernels(module) == ["f_kernel"]
    text = print_module(module)
    assert "for b: int32" in text
    assert "if" not in text.split("function @f_kernel")[0]
    x = np.zeros(64, np.float32)
    Executor(module).call("f", [x, 0])
    assert x.all()


@pytest.mark.parametrize("body", ["x[b] = 1.0", "x[b] = float32(popcount(by) as int64)"])
def test_what_would_not_become_narrower_stays_alone(body: str) -> None:
    module = made(body)
    assert kernels(module) == ["f_kernel"]
    assert print_module(module) == print_module(parse_module(HEAD + body + TAIL, "example.gmir"))


def test_copies_of_helpers_go_with_the_kernel_that_is_not_made() -> None:
    """The helper's argument is made int64 again for what cannot be followed, which takes more than it saves."""
    module = made("x[b] = float32(popcount(@place(b, by)) as int64)")
    names = [function.name for function in module.functions]
    assert ("place_narrow_1" in names) == ("f_kernel_wide" in names)


def test_names_that_are_taken() -> None:
    module = made(
        "x[(b + b * by * n) % n] = 1.0\n  }\n}\n\nfunction @f_kernel_wide(b: int64) -> int64\n{\n  if b == 0 {\n    return 0\n"
    )
    assert kernels(module) == ["f_kernel", "f_kernel_wide_1", "f_kernel_wide"]


def test_one_kernel_by_request() -> None:
    module = made("x[(b + b * by * n) % n] = 1.0", width="narrow")
    assert kernels(module) == ["f_kernel"]
    assert any(isinstance(node, Assert) for node in walk(module.functions[0].body))
    with pytest.raises(
        ExecutionError, match='more than 32 bits, and the kernels were built with `indices = "narrow"`; `n`'
    ):
        Executor(module).call("f", [np.zeros(3, np.float32), 2**40])


@pytest.mark.parametrize(("limit", "wanted"), [(2**31 - 1, "narrow"), (100, "wide")])
def test_parts_of_sizes_may_be_negative(limit: int, wanted: str) -> None:
    """``n`` is in the size of an array, yet less than 0: both ends of what is computed from it are checked."""
    head = HEAD.replace("view x: float32[n]", "view x: float32[0 - n]").replace(
        "x_data, n, by + 1", "x_data, 0 - n, by"
    )
    head = head.replace("in 0 +: n", "in 0 +: 0 - n")
    body = "if n * by >= by * by * by { x[(n * by) % (0 - n) + b] = 1.0 }"
    module = made(body, limit, head=head)
    found, x = launched(module, 8, -5)
    assert found == [wanted]
    assert x.all()
    # -8 * 2**28 is the least number of int32, and one less is not.
    assert launched(module, 8, 2**28 + 1)[0] == []
    y = np.zeros(8, np.float32)
    Executor(parse_module(head + body + TAIL, "example.gmir")).call("f", [y, 2**28 + 1])
    assert not y.any()


def test_a_product_below_the_least_number() -> None:
    """-8 * (2**28 + 1) wraps to a great number in 32 bits."""
    head = HEAD.replace("view x: float32[n]", "view x: float32[0 - n]").replace(
        "x_data, n, by + 1", "x_data, 0 - n, by"
    )
    head = head.replace("in 0 +: n", "in 0 +: 0 - n")
    module = made("if n * by < 0 { x[b] = 1.0 }", head=head)
    assert launched(module, 8, 2**28 + 1) == (["wide"], pytest.approx(np.ones(8)))
    assert launched(module, 8, 2**28)[0] == ["narrow"]


STRIDED = """gristmill ir 1

function @f<n: int64>(x: float32[n] data x_data: ptr<float32, global>, h: int64, s: int64, first: int64)
  symbol "f"
{
  launch @f_kernel(x_data, h, s, first) over blockIdx.x = h
}

function @f_kernel(x_data: ptr<float32, global>, h: int64, s: int64, first: int64)
  symbol "f_kernel"
  convention kernel
  target "gpu"
  launch (blockIdx.x)
{
  view rows: float32[h, 2] strides [s, 1] offset first over x_data
  for b: int64 in 0 +: h thread on blockIdx.x {
    rows[h - 1 - b, b % 2] = 1.0
  }
}
"""


@pytest.mark.parametrize(
    ("h", "s", "first", "wanted"),
    [
        (4, 3, 1, "narrow"),
        (4, -3, 10, "narrow"),
        (4, 0, 5, None),
        # One row has no second to be far from.
        (1, 2**40, 3, "wide"),
        (1, -(2**31) - 1, 3, "wide"),
        (1, -(2**31), 3, "narrow"),
        (1, 2**31 - 1, 3, "narrow"),
        (0, 2**62, 2**50, ""),
        (-3, 2, 2**40, ""),
    ],
)
def test_strides_that_only_the_program_knows(h: int, s: int, first: int, wanted: str | None) -> None:
    module = parse_module(STRIDED, "strided.gmir")
    verify(module)
    chosen = NarrowIndices(width="both").run(module)
    verify(chosen)
    narrow = print_module(Module((chosen.get("f_kernel"),)))  # type: ignore[arg-type]
    assert "view rows: float32[h, 2] strides [s, 1] offset first" in narrow
    assert "rows[h - 1i32 - b, b % 2i32]" in narrow
    marked = parse_module("= 2.0".join(print_module(chosen).rsplit("= 1.0", 1)), "marked.gmir")
    x, y = np.zeros(16, np.float32), np.zeros(16, np.float32)
    if wanted is None:
        # All rows are one, and two threads write an element.
        for each in (module, chosen):
            with pytest.raises(ExecutionError, match="race"):
                Executor(each).call("f", [x, h, s, first])
        return
    Executor(module).call("f", [x, h, s, first])
    Executor(marked).call("f", [y, h, s, first])
    np.testing.assert_array_equal(x * {"narrow": 1.0, "wide": 2.0, "": 0.0}[wanted], y)
    assert x.any() == bool(wanted)
