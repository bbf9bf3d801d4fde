"""Mistakes with types: each code at its place, with its hint."""

import pytest

from gristmill.script import parse_source
from gristmill.testing.marked_errors import check_marked

HEADER = """from gristmill.script import tir as T

@T.prim_func
def f(i8: T.Buffer((8,), "int8"), i32: T.Buffer((8,), "int32"), i64: T.Buffer((8,), "int64"),
      u8: T.Buffer((8,), "uint8"), u32: T.Buffer((8,), "uint32"), u64: T.Buffer((8,), "uint64"),
      f16: T.Buffer((8,), "float16"), b16: T.Buffer((8,), "bfloat16"), f32: T.Buffer((8,), "float32"),
      f64: T.Buffer((8,), "float64"), b: T.Buffer((8,), "bool"), p: T.handle):
"""

CASES = {
    "literal too large": """
    u8[0] = u8[1] + 300
                    ^^^ GM0260 convert the other side to a type that holds 300, or write `T.uint8(44)`
""",
    "negative literal beside unsigned": """
    u8[0] = -1
            ^^ GM0260 write `T.uint8(255)`
""",
    "float literal beside an integer": """
    i32[0] = i32[1] * 1.5
                      ^^^ GM0260 write a whole number, or convert what it meets to a float
""",
    "float literal too large": """
    f16[0] = 1e6
             ^^^ GM0260 use a value that the type holds
""",
    "number for a bool": """
    b[0] = 1
           ^ GM0260 compare it: `1 != 0`
""",
    "signed and unsigned": """
    i32[0] = i32[1] + u32[0]
             ^^^^^^^^^^^^^^^ GM0261 convert both: `T.int64(i32[1])` and `T.int64(u32[0])`
""",
    "64 bits signed and unsigned": """
    i64[0] = i64[1] + u64[0]
             ^^^^^^^^^^^^^^^ GM0261 convert one side: `T.int64(u64[0])`
""",
    "two half formats": """
    f16[0] = f16[1] + b16[0]
             ^^^^^^^^^^^^^^^ GM0261 convert one side: `T.float16(b16[0])`
""",
    "narrowing float": """
    f32[0] = f64[0]
             ^^^^^^ GM0262 write `f32[0] = T.float32(f64[0])`
""",
    "narrowing integer": """
    i8[0] = i32[0] + 1
            ^^^^^^^^^^ GM0262 write `i8[0] = T.int8(i32[0] + 1)`
""",
    "integer to float that cannot hold it": """
    for i in range(8):
        f32[i] = i
                 ^ GM0262 write `f32[i] = T.float32(i)`
""",
    "sign lost": """
    u32[0] = i8[0]
             ^^^^^ GM0262 T.uint32(i8[0])
""",
    "narrowing in an augmented assignment": """
    u8[0] += i32[0]
             ^^^^^^ GM0262 write `T.uint8(i32[0])`
""",
    "division of integers": """
    i32[0] = i32[1] / 2
             ^^^^^^^^^^ GM0263 write `i32[1] // 2` to round down, `T.truncdiv(i32[1], 2)`
""",
    "number as a condition": """
    if i32[0]:
       ^^^^^^ GM0264 write `i32[0] != 0`
        i32[1] = 0
""",
    "sum as a condition": """
    while i32[0] + 1:
          ^^^^^^^^^^ GM0264 write `(i32[0] + 1) != 0`
        i32[0] = 0
""",
    "not of a number": """
    b[0] = not i32[0]
               ^^^^^^ GM0264 write `i32[0] == 0`
""",
    "and of numbers": """
    b[0] = b[1] and f32[0]
                    ^^^^^^ GM0264 write `f32[0] != 0.0`
""",
    "remainder of floats": """
    f32[0] = f32[1] % f32[2]
             ^^^^^^^^^^^^^^^ GM0265 for floats write `f32[1] - T.floor(f32[1] / f32[2]) * f32[2]`
""",
    "whole float beside an integer": """
    i32[0] = i32[1] * 8.0
                      ^^^ GM0260 write the whole number 8, or convert what it meets to a float
""",
    "quotient of sums": """
    i32[0] = (i32[1] + 1) / (i32[2] - 1)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0263 write `(i32[1] + 1) // (i32[2] - 1)`
""",
    "remainder of sums of floats": """
    f32[0] = (f32[1] + 1) % (f32[2] - 1)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0265 `(f32[1] + 1) - T.floor((f32[1] + 1) / (f32[2] - 1)) * (f32[2] - 1)`
""",
    "sum of integers as a condition": """
    b[0] = not i32[0] + 1
               ^^^^^^^^^^ GM0264 write `(i32[0] + 1) == 0`
""",
    "one value of a pair does not fit": """
    i32[0], i32[1] = i32[2], f32[0]
                             ^^^^^^ GM0262 write `i32[1] = T.int32(f32[0])`
""",
    "floor division of floats": """
    f32[0] = f32[1] // 2
             ^^^^^^^^^^^ GM0265 for floats write `T.floor(f32[1] / 2)`
""",
    "sum of bools": """
    b[0] = b[1] + b[2]
           ^^^^^^^^^^^ GM0265 convert to a number first: `T.int32(b[1])`
""",
    "bits of a float": """
    f32[0] = f32[0] & f32[1]
             ^^^^^^^^^^^^^^^ GM0265 `T.reinterpret` gives the bits of a float
""",
    "inverting a float": """
    f32[0] = ~f32[0]
             ^^^^^^^ GM0265 only integers and bools have bits
""",
    "shifting a float": """
    f32[0] = f32[0] << 1
             ^^^^^^^^^^^ GM0265 shifts are of integers
""",
    "function of floats on an integer": """
    f32[0] = T.exp(i32[0])
             ^^^^^^^^^^^^^ GM0265 convert to a float first: `T.float32(i32[0])`
""",
    "matrix product": """
    f32[0] = f32[0] @ f32[1]
             ^^^^^^^^^^^^^^^ GM0265 write the product as loops
""",
    "different lanes": """
    f32[0:4] = f32[0:4] + f32[0:2]
               ^^^^^^^^^^^^^^^^^^^ GM0266 take equally many lanes
""",
    "vector into an element": """
    f32[0] = f32[0:4]
             ^^^^^^^^ GM0266 A[i:i + 4]
""",
    "too many lanes": """
    v = T.Broadcast(f32[0], 2000)
                            ^^^^ GM0266 loop over shorter vectors
""",
    "buffer as a number": """
    f32[0] = f64 + 1
             ^^^ GM0267 read an element of it: `f64[i]`
""",
    "type as a number": """
    f32[0] = T.float32
             ^^^^^^^^^ GM0267 to convert, call it: `T.float32(x)`
""",
    "text as a number": """
    f32[0] = "1"
             ^^^ GM0267 an expression of numbers
""",
    "pointer arithmetic": """
    q = p + T.int64(1)
        ^^^^^^^^^^^^^^ GM0268 give a buffer over the pointer
""",
    "is": """
    b[0] = i32[0] is 1
           ^^^^^^^^^^^ GM0269 compare with ==
""",
    "in": """
    b[0] = i32[0] in (1, 2)
                     ^^^^^^ GM0267 an expression of numbers
""",
    "power of an integer": """
    i32[0] = i32[1] ** i32[2]
             ^^^^^^^^^^^^^^^^ GM0270 write x ** 2
""",
    "power of a long base": """
    i32[0] = (i32[1] + i32[2] * 3) ** 2
             ^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0270 write `x = i32[1] + i32[2] * 3` before
""",
    "local scalar changes its type": """
    total = 0
    for i in range(8):
        total = total + f32[i]
                ^^^^^^^^^^^^^^ GM0271 start it with the wider type: `total = T.float32(0)`
    f32[0] = 1
""",
    "local scalar given a float": """
    count = 0
    count += 1
    count = 0.5
            ^^^ GM0271 `count = T.float32(0)`
    i64[0] = count
""",
    "cast to a pointer": """
    f32[0] = T.cast(f32[1], "handle")
             ^^^^^^^^^^^^^^^^^^^^^^^^ GM0273 pointers come from `A.data`
""",
    "reinterpret of other widths": """
    i64[0] = T.reinterpret("int64", f32[0])
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0274 between types of the same width
""",
    "unknown type": """
    f32[0] = T.cast(f32[1], "flot32")
                            ^^^^^^^^ GM0228 did you mean "float32"
""",
    "constant does not fit its own type": """
    u8[0] = T.uint8(256)
                    ^^^ GM0260 write `T.uint8(0)`
""",
    "constant division by zero": """
    i32[0] = 7 // 0
             ^^^^^^ GM0219 mend the constant
""",
    "constant too large": """
    i32[0] = 2 ** 100
             ^^^^^^^^ GM0219 no type of the language holds it
""",
    "constant shifted too far": """
    i32[0] = 1 << 1000000000
             ^^^^^^^^^^^^^^^ GM0219 no type of the language holds it
""",
    "float literal that is none": """
    f32[0] = -1e400
              ^^^^^ GM0219 T.infinity("float32")
""",
    "huge literal": """
    i32[0] = 123456789012345678901234567890
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0219 no type of the language holds it
""",
    "no number": """
    f32[0] = T.float32("fast")
                       ^^^^^^ GM0293 "inf", "-inf" and "nan"
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    check_marked(HEADER + CASES[name].lstrip("\n"), lambda text: parse_source(text, "kernel.py"))
