"""The Python text that the executor runs holds nothing that came from outside: no name, no text of the module."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from gristmill.interp import execute, program
from gristmill.ir.functor import walk
from gristmill.ir.parser import parse_module
from gristmill.ir.stmt import Assert

MODULE = """gristmill ir 1

function @outside_helper(outside_value: int64) -> int64 {
  return outside_value + 1
}

function @outside<outside_size: int64>(outside_buffer: int64[outside_size])
  symbol "outside"
{
  for outside_loop: int64 in 0 +: outside_size {
    let outside_bound: int64 = @outside_helper(outside_loop) as int64
    assert outside_bound > 0, "ValueError", "outside_message\\"); import os; (\\"", outside_bound
    outside_buffer[outside_loop] = outside_bound
  }
}
"""


def test_no_text_of_the_module_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def recording(text: str, *rest: object) -> object:
        texts.append(text)
        return builtins.compile(text, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(program, "compile", recording, raising=False)
    module = parse_module(MODULE)
    assert any(isinstance(node, Assert) for node in walk(module))
    values = np.zeros(5, np.int64)
    execute(module, "outside", [values])
    np.testing.assert_array_equal(values, np.arange(1, 6))
    assert texts
    for text in texts:
        assert "outside" not in text
        assert "import" not in text
