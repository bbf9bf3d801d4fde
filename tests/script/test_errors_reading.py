"""Mistakes of files, imports, constants, params and functions: each code at its place, with its hint."""

import pytest

from gristmill.errors import UserError
from gristmill.script import parse_file, parse_source
from gristmill.script.reader import SOURCE_BYTES_AT_MOST
from gristmill.testing.marked_errors import check_marked

T = "from gristmill.script import tir as T, ir as I\n"
KERNEL = """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1
"""

CASES = {
    "Python's own syntax": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = = 1
           ^ GM0200 kernels are written as valid Python
""",
    "unclosed text": """
NAME = "abc
       ^ GM0200 kernels are written as valid Python
""",
    "wrong indentation": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1
      x[1] = 2
      ^ GM0200 kernels are written as valid Python
""",
    "TVM's dialect": """
from tvm.script import tir as TT
^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0209 set `dialect = "tvmscript"`
"""
    + KERNEL,
    "import of everything": """
from gristmill.script import *
^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0213 import what is used by name
"""
    + KERNEL,
    "unknown name of the language": """
from gristmill.script import tri
                             ^^^ GM0214 did you mean `tir`
"""
    + KERNEL,
    "constant that would be executed": """
import os
N = os.cpu_count()

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = N
           ^ GM0217 make `N` a number
""",
    "constant of a comprehension": """
N = [i for i in range(4)]

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = N[0]
           ^ GM0217 make `N` a number
""",
    "constants in a circle": """
A = B + 1
    ^ GM0218 give one of the constants a value
B = A + 1

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = B
""",
    "constant assigned twice": """
N = 3
N = 4
    ^ GM0220 give each constant a name of its own

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = N
""",
    "one constant wrong in two parameters": """
N = 3
N = 4
    ^ GM0220 give each constant a name of its own

@T.prim_func
def f(x: T.Buffer((N,), "float32"), y: T.Buffer((N,), "float32"), z: int):
                                                                     ^^^ GM0226 say how wide it is
    x[0] = 1
""",
    "unknown decorator": """
@T.prim_fun
 ^^^^^^^^^^ GM0221 mark it with `@T.prim_func`
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1
""",
    "two decorators": """
@T.prim_func
@staticmethod
 ^^^^^^^^^^^^ GM0221 mark it with `@T.prim_func` alone
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1
""",
    "function that decorates itself": """
@f
 ^ GM0221 give the function another name
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1
""",
    "statement in an ir_module": """
@I.ir_module
class Module:
    for i in range(3):
    ^^^ GM0222 move it out of the class
        pass

    @T.prim_func
    def f(x: T.Buffer((8,), "float32")):
        x[0] = 1
""",
    "two functions of one name": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = 1

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    ^ GM0208 give one of them another name
    x[0] = 2
""",
    "parameter without a type": """
@T.prim_func
def f(x, n: T.int32):
      ^ GM0225 write `x: T.float32`
    pass
""",
    "Python type": """
@T.prim_func
def f(n: int, x: T.Buffer((8,), "float32")):
         ^^^ GM0226 say how wide it is: `T.int64`
    x[0] = 1
""",
    "no type at all": """
@T.prim_func
def f(n: 3, x: T.Buffer((8,), "float32")):
         ^ GM0226 write `T.float32`
    x[0] = 1
""",
    "buffer without a shape": """
@T.prim_func
def f(x: T.Buffer):
         ^^^^^^^^ GM0226 write `T.Buffer(("n",), "float32")`
    x[0] = 1
""",
    "vector parameter": """
@T.prim_func
def f(v: T.float32x4):
         ^^^^^^^^^^^ GM0226 write `T.Buffer(("n",), "float32x4")`
    pass
""",
    "default value": """
@T.prim_func
def f(x: T.Buffer((8,), "float32"), n: T.int32 = 3):
                                                 ^ GM0227 every call gives all of them
    x[0] = n
""",
    "any number of arguments": """
@T.prim_func
def f(*x: T.float32):
       ^^^^^^^^^^^^ GM0227 write plain parameters
    pass
""",
    "wrong element type": """
@T.prim_func
def f(x: T.Buffer((8,), "flaot32")):
                        ^^^^^^^^^ GM0228 did you mean "float32"
    x[0] = 1
""",
    "size without quotes": """
@T.prim_func
def f(x: T.Buffer((n,), "float32")):
                   ^ GM0229 a new size by name stands in quotes: "n"
    x[0] = 1
""",
    "negative size": """
@T.prim_func
def f(x: T.Buffer((-8,), "float32")):
                   ^^ GM0229 sizes count from 0
    x[0] = 1
""",
    "size that is no integer": """
@T.prim_func
def f(x: T.Buffer((8, 1.5), "float32")):
                      ^^^ GM0229 write a number, an integer constant
    x[0, 0] = 1
""",
    "quoted size that is no expression": """
@T.prim_func
def f(x: T.Buffer(("n +",), "float32")):
                   ^^^^^ GM0229 write a name or an expression
    x[0] = 1
""",
    "quotes in an allocation": """
@T.prim_func
def f(x: T.Buffer(("n",), "float32")):
    a = T.alloc_buffer(("n",), "float32")
                        ^^^ GM0229 write `n` without quotes
""",
    "unknown scope": """
@T.prim_func
def f(x: T.Buffer((8,), "float32", scope="sharde")):
                                         ^^^^^^^^ GM0230 did you mean "shared"
    x[0] = 1
""",
    "async kernel": """
@T.prim_func
async def f(x: T.Buffer((8,), "float32")):
          ^ GM0231 write `def f(...)`
    x[0] = 1
""",
    "buffer as a result": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")) -> T.Buffer((8,), "float32"):
                                       ^^^^^^^^^^^^^^^^^^^^^^^^^ GM0232 larger results go into a buffer
    x[0] = 1
""",
    "result not known in recursion": """
@T.prim_func
def f(n: T.int64):
    if n > 0:
        return f(n - 1)
               ^^^^^^^^ GM0233 state it: `def f(...) -> T.float32:`
    return 1
""",
    "value returned from a function without result": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")) -> None:
    return x[0]
           ^^^^ GM0234 give the result a type
""",
    "nothing returned from a function with a result": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")) -> T.float32:
    if x[0] > 0:
        return
        ^^^^^^ GM0234 return a value, or remove the result type
    return x[0]
""",
    "end without return": """
def g(x: T.float32) -> T.float32:
    ^ GM0235 add a `return` at the end
    if x > 0:
        return x

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = g(x[1])
""",
    "narrowing result": """
def g(x: T.float64) -> T.float32:
    return x
           ^ GM0262 write `return T.float32(x)`

@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    x[0] = g(x[1])
""",
    "unknown function attribute": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    T.func_attr({"tir.noalais": True})
                 ^^^^^^^^^^^^^ GM0236 did you mean "noalias"
    x[0] = 1
""",
    "wrong value of a function attribute": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": 3})
                                  ^ GM0237 it takes the exported name
    x[0] = 1
""",
    "exported name that is none for C": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "größe"})
                                  ^^^^^^^ GM0237 it takes the exported name
    x[0] = 1
""",
    "public function that cannot be exported": """
@T.prim_func
def größe(x: T.Buffer((8,), "float32")):
    ^^^^^ GM0238 private=True
    x[0] = 1
""",
    "public function with a long name": f"""
@T.prim_func
def {"f" * 201}(x: T.Buffer((8,), "float32")):
    {"^" * 201} GM0238 at most 200
    x[0] = 1
""",
    "number of strides": """
@T.prim_func
def f(x: T.Buffer((8, 8), "float32", strides=(8,))):
                                             ^^^^ GM0239 give one stride for each dimension
    x[0, 0] = 1
""",
    "alignment": """
@T.prim_func
def f(x: T.Buffer((8,), "float32", align=48)):
                                         ^^ GM0239 write 64
    x[0] = 1
""",
    "matching what is no pointer": """
@T.prim_func
def f(n: T.int32):
    x = T.match_buffer(n, (8,), "float32")
                       ^ GM0240 write `n: T.handle`
""",
    "matching twice": """
@T.prim_func
def f(a: T.handle):
    x = T.match_buffer(a, (8,), "float32")
    y = T.match_buffer(a, (4,), "float32")
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ GM0240 give another view
""",
    "wrong target": """
@T.prim_func
def f(x: T.Buffer((8,), "float32")):
    T.func_attr({"target": T.target("cpu:v3!")})
                                    ^^^^^^^^^ GM0342 write it as "cpu:x86-64-v3"
    x[0] = 1
""",
}


@pytest.mark.parametrize("name", CASES)
def test_mistake(name):
    text = CASES[name].lstrip("\n")
    header = "" if "Python" in name and "syntax" in name else T
    check_marked(header + text, lambda text: parse_source(text, "kernel.py"))


def codes(text, **options):
    with pytest.raises(UserError) as caught:
        parse_source(text, "kernel.py", **options)
    return [one.code for one in caught.value.diagnostics]


def first(text, **options):
    with pytest.raises(UserError) as caught:
        parse_source(text, "kernel.py", **options)
    return caught.value.diagnostics[0]


def test_text_that_is_no_text(tmp_path):
    (tmp_path / "k.py").write_bytes(b"# fine\nx = '\xff\xfe'\n")
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "k.py", root=tmp_path)
    found = caught.value.diagnostics[0]
    assert (found.code, found.place.line, found.place.column, found.hint) == (
        "GM0201", 2, 6, "save the file as UTF-8",
    )  # fmt: skip


def test_unknown_encoding(tmp_path):
    (tmp_path / "k.py").write_bytes(b"# -*- coding: klingon -*-\n")
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "k.py", root=tmp_path)
    assert caught.value.code == "GM0201"


def test_nul_character():
    found = first(T + "x = 1\n\0\n")
    assert (found.code, found.place.line, found.place.column, found.place.end_column) == ("GM0202", 3, 1, 2)
    assert found.hint == "remove the character"


def test_too_large():
    found = first("#" * (SOURCE_BYTES_AT_MOST + 1))
    assert found.code == "GM0203"
    assert "split the kernels" in found.hint


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 300 + "1" + ")" * 300,
        "(" * 5000 + "1" + ")" * 5000,
        "-" * 400 + "1",
        "-" * 100_000 + "1",
        "not " * 100_000 + "1",
        "x" + ".a" * 50_000,
        "+".join(["1"] * 100_000),
        "x" + "[0]" * 20_000,
        "x" + "()" * 20_000,
        "lambda: " * 20_000 + "1",
        "1 if 1 else " * 20_000 + "1",
    ],
)
def test_deep_expressions(expression):
    assert codes(f"{T}\n@T.prim_func\ndef f(x: T.Buffer((8,), 'float32')):\n    x[0] = {expression}\n") == ["GM0204"]


def test_deep_statements():
    deep = "".join(" " * depth + "if x[0] > 0:\n" for depth in range(1, 120)) + " " * 120 + "pass\n"
    assert codes(f"{T}\n@T.prim_func\ndef f(x: T.Buffer((8,), 'float32')):\n{deep}") == ["GM0204"]
    chain = "    if x[0] > 0:\n        pass\n" + "    elif x[0] > 1:\n        pass\n" * 300
    found = first(f"{T}\n@T.prim_func\ndef f(x: T.Buffer((8,), 'float32')):\n{chain}")
    assert found.code == "GM0204"
    assert "names of their own" in found.hint


def test_the_bounds_of_nesting_are_usable():
    """Expressions and statements just below the limit are read, from any depth of the caller's stack."""
    terms = "+".join(["x[0]"] * 250)
    chain = (
        "    if x[0] > 0:\n        pass\n"
        + "    elif x[0] > 1:\n        pass\n" * 249
        + f"    elif x[0] > {terms}:\n        pass\n"
    )

    def at_depth(depth):
        if depth:
            return at_depth(depth - 1)
        return parse_source(
            f"{T}\n@T.prim_func\ndef f(x: T.Buffer((8,), 'float32')):\n    x[0] = {terms}\n{chain}", "k.py"
        )

    at_depth(500)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "absent.py", root=tmp_path)
    assert caught.value.code == "GM0205"
    assert "check the path" in caught.value.diagnostics[0].hint
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path, root=tmp_path)
    assert caught.value.code == "GM0205"


def test_no_kernel():
    found = first("N = 3\n")
    assert (found.code, found.place.line) == ("GM0206", 1)
    assert "@T.prim_func" in found.hint


def test_function_that_is_not_there():
    found = first(T + KERNEL, functions=["ff"])
    assert (found.code, found.hint) == ("GM0207", "did you mean `f`?")
    found = first(T + KERNEL + "\n@T.prim_func(private=True)\ndef g(n: T.int32):\n    pass\n", functions=["g"])
    assert found.code == "GM0207"
    assert "private" in found.message


def test_params():
    text = "N = 3\nNAME = 'a'\nSIZES = (1, 2)\n" + T + KERNEL
    found = first(text, params={"NAMES": 3})
    assert (found.code, found.hint) == ("GM0215", "did you mean `NAME`?")
    found = first(text, params={"N": 1.5})
    assert (found.code, found.place.line, found.place.column, found.place.end_column) == ("GM0216", 1, 5, 6)
    assert "same kind" in found.hint
    assert codes(text, params={"N": True}) == ["GM0216"]
    assert codes(text, params={"SIZES": (1, "a")}) == ["GM0216"]
    assert codes(text, params={"NAME": 3, "Q": 1}) == ["GM0215", "GM0216"]


def test_imports(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "k.py").write_text(
        T + "from .other import N\nfrom .absent import M\nfrom .other import NN\n" + KERNEL
    )
    (tmp_path / "pkg" / "other.py").write_text("N = 3\n")
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "pkg" / "k.py", root=tmp_path)
    absent, missing = caught.value.diagnostics
    assert (absent.code, absent.place.line, absent.place.column) == ("GM0210", 3, 21)
    assert "absent.py" in absent.hint
    assert (missing.code, missing.place.line, missing.place.column) == ("GM0211", 4, 20)
    assert missing.hint == "did you mean `N`?"


def test_imports_out_of_the_project(tmp_path):
    (tmp_path / "secret.py").write_text("N = 3\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "k.py").write_text(T + "from ..secret import N\n" + KERNEL)
    with pytest.raises(UserError) as caught:
        parse_file(project / "k.py", root=project)
    found = caught.value.diagnostics[0]
    assert (found.code, found.place.line, found.place.column) == ("GM0212", 2, 22)
    assert "into the project" in found.hint
    (project / "linked.py").symlink_to(tmp_path / "secret.py")
    (project / "k.py").write_text(T + "from .linked import N\n" + KERNEL)
    with pytest.raises(UserError) as caught:
        parse_file(project / "k.py", root=project)
    assert caught.value.code == "GM0212"


def test_imports_in_a_circle(tmp_path):
    (tmp_path / "k.py").write_text(T + "from .other import N\n" + KERNEL.replace("= 1", "= N"))
    (tmp_path / "other.py").write_text("from .k import N\n")
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "k.py", root=tmp_path)
    assert {one.code for one in caught.value.diagnostics} == {"GM0218"}
    assert "one of the files" in caught.value.diagnostics[0].hint


def test_mistakes_in_an_imported_file_name_that_file(tmp_path):
    (tmp_path / "k.py").write_text(
        T + "from .other import g\n\n@T.prim_func\ndef f(x: T.Buffer((8,), 'float32')):\n    x[0] = g(x[1])\n"
    )
    (tmp_path / "other.py").write_text(T + "def g(x: T.float32) -> T.float32:\n    return y\n")
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "k.py", root=tmp_path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.place.file, found.place.line) == ("GM0245", str(tmp_path / "other.py"), 3)
    assert "return y" in str(caught.value)
    (tmp_path / "other.py").write_text("def g(:\n")
    with pytest.raises(UserError) as caught:
        parse_file(tmp_path / "k.py", root=tmp_path)
    assert [(one.code, one.place.file) for one in caught.value.diagnostics] == [("GM0200", str(tmp_path / "other.py"))]


def test_columns_count_characters():
    text = T + '@T.prim_func\ndef f(x: T.Buffer((8,), "float32")):\n    "größe"; x[0] = größe\n'
    found = first(text)
    assert (found.code, found.place.column, found.place.end_column) == ("GM0245", 21, 26)


@pytest.mark.parametrize("ends", ["\r\n", "\r", "\n"])
def test_line_ends_and_marks(ends):
    text = "\ufeff" + T + '\n@T.prim_func\ndef f(x: T.Buffer((8,), "float32")):\n\tx[0] = 1\n\tx[1] = yy\n'
    found = first(text.replace("\n", ends))
    assert (found.code, found.place.line, found.place.column) == ("GM0245", 6, 9)


def test_form_feed():
    found = first(T + '\f\n@T.prim_func\ndef f(x: T.Buffer((8,), "float32")):\n    x[1] = yy\n')
    assert (found.code, found.place.line, found.place.column) == ("GM0245", 5, 12)


def test_calling_a_kernel():
    from gristmill.script import tir

    @tir.prim_func
    def kernel(n: tir.int32):
        pass

    with pytest.raises(UserError) as caught:
        kernel(3)
    assert caught.value.code == "GM0224"
    assert "gristmill build" in caught.value.diagnostics[0].hint
