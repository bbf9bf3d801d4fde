"""Exchanges between threads that a target has not are refused before code is made."""

import pytest

from gristmill.codegen.exchanges import check_exchanges
from gristmill.codegen.reference import ReferenceGenerator, capabilities, resolve
from gristmill.errors import Unsupported
from gristmill.ir.target import parse_target
from gristmill.plugin.protocols import GenerateOptions
from gristmill.testing.pass_equivalence import kernels

KERNEL = """
@T.prim_func
def f(x: T.Buffer((64,), "int32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        x[t] = T.warp_shuffle_xor(x[t], 1, width={width})
"""


def refusal(width, target):
    with pytest.raises(Unsupported) as caught:
        check_exchanges(kernels(KERNEL.format(width=width)), target, capabilities(parse_target(target)))
    return caught.value.diagnostics[0]


@pytest.mark.parametrize("width", [1, 16, 32])
def test_what_a_target_has_passes(width):
    check_exchanges(kernels(KERNEL.format(width=width)), "it", capabilities(parse_target("reference+warp_shuffles")))


def test_a_group_wider_than_the_warps_is_refused():
    found = refusal(64, "reference+warp_shuffles")
    assert found.code == "GM0668"
    assert found.message == (
        "`warp_shuffle_xor` with a width over 32 is not supported by target `reference+warp_shuffles`"
    )
    assert found.place is not None


def test_a_target_without_exchanges_refuses_any():
    found = refusal(2, "reference")
    assert found.code == "GM0668"
    assert '"shared"' in found.hint
    assert "build for" not in found.hint


def test_the_reference_target_says_which_of_it_has_exchanges():
    with pytest.raises(Unsupported) as caught:
        ReferenceGenerator().generate(kernels(KERNEL.format(width=2)), parse_target("reference"), GenerateOptions())
    assert "build for `reference+warp_shuffles`" in caught.value.diagnostics[0].hint


@pytest.mark.parametrize(("text", "message"), [("reference:x", "no architectures"), ("reference+x", "no feature `x`")])
def test_what_a_reference_target_may_say(text, message):
    assert resolve(parse_target("reference+warp_shuffles")) == parse_target("reference+warp_shuffles")
    with pytest.raises(ValueError, match=message):
        resolve(parse_target(text))
