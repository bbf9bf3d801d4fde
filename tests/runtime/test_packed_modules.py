"""Texts of IR in packs: a damaged one is the pack's fault, whatever is wrong with it, and never the user's kernel's."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from gristmill.errors import UserError
from gristmill.ir.printer import print_module
from gristmill.runtime.packed_modules import module_of_pack
from gristmill.testing.pass_equivalence import kernels

SOURCE = """
@T.prim_func
def f(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "float32"), k: T.int8):
    for b in T.thread_binding(T.ceildiv(n, 8), thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            s = T.alloc_shared((8,), "int32")
            if b * 8 + t < n:
                s[t] = x[b * 8 + t] + T.int32(k)
                x[b * 8 + t] = s[t] + T.int32(y[b * 8 + t])
"""
WORD = re.compile(r"[A-Za-z_@0-9.]+")


def damaged(text: str, dice: random.Random) -> str:
    """The text with some of its characters or words replaced."""
    words = WORD.findall(text)
    for _ in range(dice.choice((1, 1, 2, 4))):
        if dice.random() < 0.3:
            place = dice.randrange(len(text))
            text = text[:place] + chr(dice.randrange(0x250)) + text[place + 1 :]
        else:
            found = dice.choice(list(WORD.finditer(text)))
            text = text[: found.start()] + dice.choice((*words, "-1", "0", "99", "1e9", "")) + text[found.end() :]
    return text


def test_random_damage_is_told_as_damage_of_the_pack() -> None:
    text = print_module(kernels(SOURCE))
    assert print_module(module_of_pack(text, "k.gmir")) == text
    start = 70_000
    print(f"seeds {start} to {start + 499}")
    outcomes: Counter[str] = Counter()
    for seed in range(start, start + 500):
        try:
            module_of_pack(damaged(text, random.Random(seed)), "k.gmir")
            outcomes["read"] += 1
        except UserError as error:
            outcomes[error.code] += 1
    print(outcomes)
    assert outcomes.keys() == {"read", "GM0912"}
    assert min(outcomes.values()) > 20


def test_what_is_wrong_is_told_in_notes() -> None:
    text = print_module(kernels(SOURCE)).replace("int8", "int9")
    with pytest.raises(UserError) as caught:
        module_of_pack(text, "text/ref.host.gmir")
    (found,) = caught.value.diagnostics
    assert found.message == "the code `text/ref.host.gmir` of the pack is damaged, or of another version of Gristmill"
    assert found.notes[0].message.startswith("GM0402: ")
    assert found.notes[0].place is not None
