"""C functions as Python callables: which there are, what they are given, what they give."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from gristmill.errors import MissingError
from gristmill.ir.parser import parse_module
from gristmill.runtime.extern_calls import extern_functions

MODULE = """gristmill ir 1

extern "labs" from "libc.so.6"
extern "mixed" from "libkit.so"
extern "half" from "libkit.so"
extern "told" from "libkit.so"

function @f(x: int64, y: float32, p: handle) {
  evaluate extern "labs"(x) as int64
  evaluate extern "mixed"(x)
  evaluate extern "mixed"(y)
  evaluate extern "half"(float16(y))
  evaluate extern "told"(p, "text", x > 0, y, int8(x)) as uint16
}
"""


def address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found
    return found


def test_calls_pass_and_give_what_the_types_say() -> None:
    seen: list[Any] = []

    @ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool, ctypes.c_float, ctypes.c_int8)
    def told(pointer: int | None, text: bytes, flag: bool, value: float, small: int) -> int:
        first = ctypes.c_uint8.from_address(pointer).value if pointer else None
        seen.append((first, text, flag, value, small))
        return 65535

    found = extern_functions(parse_module(MODULE, "m.gmir"), {"told": address(told)})
    assert set(found) == {"labs", "told"}
    assert found["labs"](-(2**40)) == 2**40
    memory = np.array([7, 8], np.uint8)
    assert found["told"](memory, "grüß", True, 0.5, -3) == 65535
    assert found["told"](None, "", False, -0.0, 127) == 65535
    assert seen == [(7, "grüß".encode(), True, 0.5, -3), (None, b"", False, 0.0, 127)]


def test_a_library_that_there_is_not() -> None:
    with pytest.raises(MissingError, match=r"`told` of `libkit\.so`") as caught:
        extern_functions(parse_module(MODULE, "m.gmir"), {})
    assert caught.value.code == "GM0911"


def test_a_function_that_nothing_declares_is_left_out() -> None:
    module = parse_module('gristmill ir 1\n\nfunction @f() {\n  evaluate extern "nobody"()\n}\n', "m.gmir")
    assert extern_functions(module, {}) == {}
