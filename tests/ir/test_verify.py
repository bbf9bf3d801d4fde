"""The verifier: every rule is broken on purpose, and reported by its code at the statement that breaks it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import gristmill
from gristmill.errors import InternalError, UserError
from gristmill.ir import expr as e
from gristmill.ir import stmt as s
from gristmill.ir import verify as verify_module
from gristmill.ir.build import call, const
from gristmill.ir.dtype import BOOL, FLOAT32, HANDLE, INT8, INT32, INT64, VOID
from gristmill.ir.functor import ALL_NODES
from gristmill.ir.memory import Buffer, PointerType, Scope
from gristmill.ir.module import Function, Module
from gristmill.ir.parser import parse_module
from gristmill.ir.span import Span
from gristmill.ir.verify import check, verify
from gristmill.testing.ir_samples import every_node, index, new_buffer

EXPLAIN = Path(gristmill.__file__).parent / "explain"
HEAD = "function @f(x: float32[4], n: int32, flag: bool) {"
TILES = """allocate C: float32[4, 4] in matrix.accumulator
allocate A: float16[4, 4] in matrix.a
allocate W: float16[8, 4] in matrix.b
allocate I: int8[4, 4] in matrix.b
"""
KERNEL = "function @kernel(n: int32)\n  convention kernel\n  launch (threadIdx.x)\n{\n}"
HANDLES = "self: handle, args: handle, count: int32, result: handle"

_STATEMENT = re.compile(
    r"(\s*)((?:let|allocate|view|evaluate|assert|for|while|break|continue|return|if|barrier|device_region|launch @|block|axis"
    r"|match|function)(?:\b|(?<=@)).*|\w+\[.*\] = .*)"
)


def marked(text: str) -> tuple[str, int]:
    """The text with a span on every statement (``#n`` for its line n), and the line that ``>>`` marks."""
    lines, wanted = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(">>"):
            wanted, line = number, line[2:]
        found = _STATEMENT.fullmatch(line)
        lines.append(f"{found[1]}#{number} {found[2]}" if found else line)
    table = "\n".join(f'  #{number} = "k.py" {number} 1 {number} 9' for number in range(1, len(lines) + 1))
    return f"gristmill ir 1\n\nspans {{\n{table}\n}}\n\n" + "\n".join(lines) + "\n", wanted


# What stands after ">>" is the line that is to be reported.
BODIES = [
    ("GM0410", "x[0] = 1.0\n>>x[0] = x[1] + 1.0f64"),
    ("GM0410", ">>let y: int64 = n"),
    ("GM0410", ">>evaluate n == 1"),
    ("GM0410", ">>evaluate select(flag, n, 1)"),
    ("GM0410", 'block "b"\n  reads x[0 +: 1i32]\n{\n}'),
    ("GM0411", ">>evaluate x[0] // 2.0"),
    ("GM0411", ">>evaluate x[0] & 2.0"),
    ("GM0411", ">>evaluate n and n"),
    ("GM0411", ">>evaluate not n"),
    ("GM0411", ">>evaluate ~flag"),
    ("GM0411", ">>evaluate -flag"),
    ("GM0411", ">>evaluate flag + flag"),
    ("GM0411", ">>evaluate flag < flag"),
    ("GM0411", "let p: handle = &x[0]\n>>evaluate p == p"),
    ("GM0412", ">>if n {\n}"),
    ("GM0412", ">>while x[0] {\n}"),
    ("GM0412", '>>assert n, "ValueError"'),
    ("GM0412", ">>evaluate if_then_else(broadcast(flag, 4), n, n)"),
    ("GM0412", ">>evaluate select(n, n, n)"),
    ("GM0412", '>>block "b"\n  where n\n{\n}'),
    ("GM0413", ">>let y: uint8 = 256u8"),
    ("GM0413", ">>let y: int8 = -129i8"),
    ("GM0414", ">>let y: void = @nothing()"),
    ("GM0414", ">>evaluate @nothing() + n"),
    ("GM0414", ">>x[0] = @nothing()"),
    ("GM0414", ">>evaluate exp(@nothing()) as float32"),
    ("GM0414", ">>evaluate @number(@nothing()) as int32"),
    ("GM0415", ">>evaluate broadcast(broadcast(n, 4), 4)"),
    ("GM0415", ">>evaluate broadcast(n, 1)"),
    ("GM0415", ">>evaluate ramp(broadcast(n, 2), broadcast(n, 2), 4)"),
    ("GM0415", ">>evaluate shuffle[0, 5](broadcast(n, 4), n)"),
    ("GM0415", ">>evaluate shuffle[0](n, x[0])"),
    ("GM0415", ">>evaluate select(broadcast(flag, 2), broadcast(n, 4), broadcast(n, 4))"),
    ("GM0415", "allocate v: int8x512[8]\n>>evaluate v[ramp(0, 1, 4)]"),
    ("GM0416", ">>evaluate float32x4(n)"),
    ("GM0416", "let p: handle = &x[0]\n>>evaluate int64(p)"),
    ("GM0416", ">>evaluate reinterpret[int64](n)"),
    ("GM0416", ">>evaluate reinterpret[int8](flag)"),
    ("GM0417", ">>x[0, 1] = 1.0"),
    ("GM0417", ">>evaluate x[]"),
    ("GM0418", ">>evaluate x[flag]"),
    ("GM0418", "allocate y: int8[4, 4]\n>>evaluate y[ramp(0, 1, 4), 0]"),
    ("GM0418", ">>allocate y: int8[1.5]"),
    ("GM0418", 'block "b"\n  reads x[1.0 +: 1.0]\n{\n}'),
    ("GM0419", ">>x[0] = 1.0f64"),
    ("GM0419", ">>x[ramp(0, 1, 4)] = 1.0"),
    ("GM0420", ">>evaluate exp(x[0], x[1]) as float32"),
    ("GM0420", ">>evaluate exp(n)"),
    ("GM0420", ">>evaluate popcount(x[0])"),
    ("GM0420", ">>evaluate pow(x[0], 1.0f64)"),
    ("GM0420", ">>evaluate isnan(x[0]) as float32"),
    ("GM0420", ">>evaluate tensor_rank(n) as int32"),
    ("GM0420", ">>evaluate packed_int(&x[0], 1.0) as int64"),
    ("GM0420", ">>evaluate packed_int(&x[0], n) as int32"),
    ("GM0420", ">>evaluate disjoint(&x[0], n, &x[1], 4) as bool"),
    ("GM0420", ">>evaluate disjoint(4, 4, &x[1], 4) as bool"),
    ("GM0420", ">>evaluate disjoint(&x[0], 4, &x[1], 4) as int32"),
    ("GM0420", ">>evaluate disjoint(&x[0], 4) as bool"),
    ("GM0420", ">>evaluate aligned(n, 16) as bool"),
    ("GM0420", ">>evaluate aligned(&x[0], n) as bool"),
    ("GM0420", ">>evaluate aligned(&x[0], 12) as bool"),
    ("GM0420", ">>evaluate aligned(&x[0], 16) as int32"),
    ("GM0421", ">>evaluate @nowhere(n)"),
    ("GM0422", ">>evaluate @number() as int32"),
    ("GM0422", ">>evaluate @number(1) as int32"),
    ("GM0422", ">>evaluate @number(n)"),
    ("GM0422", ">>evaluate @number(buffer(x)) as int32"),
    ("GM0422", ">>evaluate @takes(n)"),
    ("GM0422", "allocate y: float32[4, 4]\n>>evaluate @takes(buffer(y))"),
    ("GM0423", ">>evaluate @kernel(n)"),
    ("GM0424", "if flag {\n  let y: int32 = n\n  evaluate y\n}\n>>evaluate y"),
    ("GM0424", "for i: int32 in 0i32 +: n {\n}\n>>evaluate i"),
    ("GM0424", "if flag {\n  allocate y: int32[]\n  y[] = n\n}\n>>y[] = n"),
    ("GM0424", "if flag {\n  allocate y: int32[]\n  y[] = n\n}\n>>evaluate @takes(buffer(y))"),
    ("GM0424", 'block "b"\n  axis v: int32 spatial in 0i32 +: n = n\n{\n}\n>>evaluate v'),
    ("GM0424", "if flag {\n  let p: handle = &x[0]\n  evaluate n\n}\n>>view y: float32[4] over p"),
    ("GM0426", ">>allocate y: float32[4] strides [4, 1]"),
    ("GM0426", ">>allocate y: float32[4] align 3"),
    ("GM0426", ">>allocate y: float32[-4]"),
    ("GM0426", ">>allocate y: handle[4]"),
    ("GM0426", ">>allocate y: float32[n] in shared"),
    ("GM0426", ">>allocate y: float32[4] offset n"),
    ("GM0426", ">>allocate y: float32[4] strides [-1]"),
    ("GM0427", ">>view y: float32[4] data y_data: int64 from &x[0]"),
    ("GM0427", ">>view y: float32[4] from n"),
    ("GM0427", ">>view y: float32[4] in local data y_data: ptr<float32, global> from &x[0]"),
    ("GM0430", ">>break"),
    ("GM0430", ">>continue"),
    ("GM0430", "for i: int32 in 0i32 +: n parallel {\n>>  break\n}"),
    ("GM0430", "for i: int32 in 0i32 +: n thread on threadIdx.x {\n>>  break\n}"),
    ("GM0430", "for i: int32 in 0i32 +: 4i32 vectorized {\n>>  return\n}"),
    ("GM0431", ">>return n"),
    ("GM0432", ">>for i: int64 in 0 +: n {\n}"),
    ("GM0432", ">>for i: float32 in 0.0 +: 1.0 {\n}"),
    ("GM0433", ">>for i: int32 in 0i32 +: n on threadIdx.x {\n}"),
    ("GM0433", ">>for i: int32 in 0i32 +: n thread {\n}"),
    ("GM0433", "for i: int32 in 0i32 +: 8i32 thread on blockIdx.y {\n>>  for j: int64 in 0 +: 9 thread on blockIdx.y {\n  }\n}"),
    ("GM0434", ">>for i: int32 in 0i32 +: n vectorized {\n}"),
    ("GM0434", ">>for i: int32 in 0i32 +: 1025i32 vectorized {\n}"),
    ("GM0435", 'block "b"\n>>  axis v: int32 spatial in 0 +: 4 = n\n{\n}'),
    ("GM0435", 'block "b"\n>>  match y: int32[1] = x[0 +: 1]\n{\n}'),
    ("GM0435", 'block "b"\n>>  match y: float32[1, 1] = x[0 +: 1]\n{\n}'),
    ("GM0442", "for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  evaluate @loops(t)\n}"),
    ("GM0443", ">>launch @number(n)"),
    ("GM0443", ">>launch @kernel(n)"),
    ("GM0443", ">>launch @kernel(n) over threadIdx.x = 4 shared 128"),
    ("GM0422", ">>launch @kernel(1) over threadIdx.x = 4"),
    ("GM0418", ">>launch @kernel(n) over threadIdx.x = 4.0"),
    ("GM0444", 'for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  evaluate packed "p"(t)\n}'),
    ("GM0444", 'for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  evaluate extern "c"(t)\n}'),
    ("GM0444", "for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  launch @kernel(n) over threadIdx.x = 4\n}"),
    ("GM0444", "for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  evaluate tensor_rank(&x[0]) as int32\n}"),
    ("GM0430", 'for i: int32 in 0i32 +: n {\n  device_region "reference" {\n>>    break\n  }\n}'),
    ("GM0430", 'for i: int32 in 0i32 +: n {\n  device_region "reference" {\n>>    continue\n  }\n}'),
    ("GM0433", 'device_region "reference" {\n  for i: int32 in 0i32 +: 8i32 thread on blockIdx.y {\n'
               '>>    for j: int64 in 0 +: 9 thread on blockIdx.y {\n    }\n  }\n}'),
    ("GM0443", ">>launch @kernel(n) over threadIdx.x = 4 context n"),
    ("GM0444", 'for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  device_region "reference" {\n  }\n}'),
    ("GM0444", 'device_region "reference" {\n>>  device_region "reference" {\n  }\n}'),
    ("GM0444", 'device_region "reference" {\n>>  launch @kernel(n) over threadIdx.x = 4\n}'),
    ("GM0449", 'device_region "reference" {\n>>  evaluate @calls_launches(n)\n}'),
    ("GM0449", "for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n>>  evaluate @launches(t)\n}"),
    ("GM0445", '>>assert flag, "NoSuchError"'),
    ("GM0445", '>>assert flag, "print"'),
    ("GM0445", '>>assert flag, "ValueError", "x is ", x[0]'),
    ("GM0446", "x[0] = 1.0\nseq {\n  x[0] = 2.0\n}"),
    ("GM0447", '>>evaluate extern "unknown"(n)'),
    ("GM0420", ">>let y: float32 = warp_shuffle(x[0], 1, 32i32)"),
    ("GM0420", ">>let y: float32 = warp_shuffle(x[0], 1i32, n)"),
    ("GM0420", ">>let y: float32 = warp_shuffle(x[0], 1i32, 24i32)"),
    ("GM0420", ">>let y: float32 = warp_shuffle(x[0], 1i32, 128i32)"),
    ("GM0420", ">>let y: float32 = warp_shuffle(x[0], 32i32)"),
    ("GM0420", ">>let y: float32x2 = warp_shuffle(broadcast(x[0], 2), 1i32, 32i32)"),
    ("GM0420", ">>let y: bool = warp_any(n, 32i32)"),
    ("GM0420", ">>let y: uint32 = warp_ballot(flag, 32i32) as uint32"),
    ("GM0450", ">>x[0] = warp_shuffle(x[0], 1i32, 32i32)"),
    ("GM0450", ">>let y: float32 = 1.0 + warp_shuffle(x[0], 1i32, 32i32)"),
    ("GM0450", "for i: int64 in 0 +: 4 vectorized {\n>>  let y: float32 = warp_shuffle(x[i], 1i32, 32i32)\n}"),
    ("GM0450", "for i: int64 in 0 +: 4 parallel {\n>>  let y: float32 = warp_shuffle(x[i], 1i32, 32i32)\n}"),
    ("GM0452", TILES + ">>x[0] = C[0, 0]"),
    ("GM0452", TILES + ">>C[0, 0] = 1.0"),
    ("GM0452", TILES + ">>let p: handle = &C[0, 0]"),
    ("GM0452", TILES + ">>evaluate matrix_fill(&C[0, 0], 1i32, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_fill(&C[1, 0], 1.0, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_fill(&x[0], 1.0, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_fill(&C[0, 0], 1.0, n)"),
    ("GM0452", TILES + ">>evaluate matrix_fill(&C[0, 0], 1.0, 24i32)"),
    ("GM0452", TILES + "for i: int64 in 0 +: 4 parallel {\n>>  evaluate matrix_fill(&C[0, 0], 1.0, 8i32)\n}"),
    ("GM0452", TILES + ">>evaluate matrix_load(&C[0, 0], &C[0, 0], 4i32, false, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_load(&A[0, 0], &x[0], 4i32, false, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_load(&C[0, 0], &x[0], 4, false, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_load(&C[0, 0], &x[0], 4i32, flag, 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_multiply(&C[0, 0], &A[0, 0], &A[0, 0], &C[0, 0], 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_multiply(&C[0, 0], &A[0, 0], &W[0, 0], &C[0, 0], 8i32)"),
    ("GM0452", TILES + ">>evaluate matrix_multiply(&C[0, 0], &A[0, 0], &I[0, 0], &C[0, 0], 8i32)"),
    ("GM0452", ">>allocate C: float32[4] in matrix.accumulator"),
    ("GM0452", ">>allocate C: float32[4, 4] in matrix.a"),
    ("GM0420", TILES + ">>evaluate matrix_fill(&C[0, 0], 1.0)"),
    ("GM0451", ">>x[0] = atomic_add(&x[0], 1.0)"),
    ("GM0451", ">>let y: float32 = 1.0 + atomic_load(&x[0])"),
    ("GM0451", ">>evaluate atomic_add(x[0], 1.0) as float32"),
    ("GM0451", ">>evaluate atomic_add(&x[0], 1.0f64)"),
    ("GM0451", ">>evaluate atomic_max(&x[0], 1.0)"),
    ("GM0451", "allocate s: int8[4] in shared\n>>evaluate atomic_add(&s[0], 1i8)"),
    ("GM0451", "allocate s: int32[4] in local\n>>evaluate atomic_add(&s[0], 1i32)"),
    ("GM0414", ">>let y: float32 = atomic_store(&x[0], 1.0)"),
    ("GM0420", ">>evaluate atomic_add(&x[0], 1.0) as int32"),
    ("GM0420", ">>evaluate atomic_add(&x[0])"),
    ("GM0448", ">>evaluate &x[0]"),
    ("GM0448", ">>evaluate buffer(x)"),
    ("GM0448", '>>evaluate "text"'),
    ("GM0448", '>>evaluate extern "c"(buffer(x))'),
    ("GM0448", ">>evaluate tensor_dtype_text(&x[0]) as handle"),
    ("GM0448", ">>let p: handle = packed_kind_text(&x[0], n) as handle"),
    ("GM0448", '>>evaluate extern "c"(packed_kind_text(&x[0], n) as handle)'),
    ("GM0448", '>>evaluate @number("text") as int32'),
    ("GM0448", ">>let p: handle = buffer(x)"),
]  # fmt: skip

OTHERS = f"""
extern "c" from "library"

function @nothing() {{
}}

function @number(n: int32) -> int32 {{
  return n
}}

function @takes(x: float32[4]) {{
}}

function @launches(n: int32) {{
  device_region "reference" {{
  }}
}}

function @calls_launches(n: int32) {{
  evaluate @launches(n)
}}

function @loops(n: int32) {{
  evaluate @loops(n)
}}

{KERNEL}
"""

MODULES = [
    ("GM0431", ">>function @f() -> int32 {\n>>  return\n}"),
    ("GM0440", "function @f() {\n}\n\n>>function @f() {\n}"),
    ("GM0440", '>>function @"a b"() {\n}'),
    ("GM0440", '>>function @f()\n  symbol "a-b"\n{\n}'),
    ("GM0440", 'function @f()\n  symbol "s"\n{\n}\n\n>>function @g()\n  symbol "s"\n{\n}'),
    ("GM0441", ">>function @f()\n  convention packed\n{\n}"),
    ("GM0441", ">>function @f(n: int32) -> int32\n  convention kernel\n  launch (threadIdx.x)\n{\n}"),
    ("GM0441", ">>function @f(n: int32)\n  convention kernel\n{\n}"),
    ("GM0441", ">>function @f(n: int32)\n  launch ()\n{\n}"),
    ("GM0441", ">>function @f()\n  convention kernel\n  launch (threadIdx.x, threadIdx.x)\n{\n}"),
    ("GM0441", ">>function @f()\n  declaration\n{\n}"),
    ("GM0441", ">>function @f()\n  convention kernel\n  launch ()\n  declaration\n{\n  return\n}"),
    ("GM0441", 'function @f(n: int32x4)\n  symbol "f"\n{\n}'),
    ("GM0441", '>>function @f() -> float32x4\n  symbol "f"\n{\n}'),
    ("GM0441", "function @f<n: int64>(x: float32[4]) {\n}"),
    ("GM0441", "function @f<n: float32>(x: float32[int64(n)]) {\n}"),
    ("GM0444", f"function @f({HANDLES}) -> int32\n  convention packed\n{{\n>>  barrier shared\n}}"),
    ("GM0444", f"function @f({HANDLES}) -> int32\n  convention packed\n{{\n"
               '>>  device_region "reference" {\n  }\n}'),
    ("GM0444", f"function @f({HANDLES}) -> int32\n  convention packed\n{{\n"
               ">>  for t: int32 in 0i32 +: 4i32 thread on threadIdx.x {\n  }\n}"),
]  # fmt: skip


def reported(text: str) -> tuple[list[str], int, int]:
    """The codes reported, the line of the first, and the marked line."""
    source, wanted = marked(text)
    found = verify(parse_module(source))
    first = found[0] if found else None
    return [one.code for one in found], first.place.line if first and first.place else 0, wanted


@pytest.mark.parametrize(("code", "body"), BODIES)
def test_a_broken_rule_is_reported_at_its_statement(code: str, body: str):
    lines = [f">>  {line[2:]}" if line.startswith(">>") else f"  {line}" for line in body.split("\n")]
    codes, line, wanted = reported("\n".join([HEAD, *lines, "}", *OTHERS.split("\n")]))
    assert code in codes
    assert not wanted or (codes[0] == code and line == wanted)
    assert len(codes) <= 2, "one fault is not reported many times"


@pytest.mark.parametrize(("code", "text"), MODULES)
def test_a_broken_rule_of_functions_is_reported_at_the_function(code: str, text: str):
    codes, line, wanted = reported(text)
    assert code in codes
    assert not wanted or line == wanted


def in_function(*statements: s.Stmt, params: tuple[e.Var | Buffer, ...] = ()) -> Module:
    return Module((Function("f", params, (), VOID, s.Seq(statements)),))


def codes_of(module: Module) -> list[str]:
    return [found.code for found in verify(module)]


def test_a_variable_or_buffer_is_defined_once():
    a, flag = e.Var("a", INT32), e.Var("flag", BOOL)
    bind = s.Bind(a, const(1, INT32))
    assert codes_of(in_function(bind, bind)) == ["GM0425"]
    assert codes_of(in_function(s.If(flag, bind, bind), params=(flag,))) == ["GM0425"]
    loop = s.For(a, const(0, INT32), const(4, INT32), s.LoopKind.SERIAL, s.Seq(()))
    assert codes_of(in_function(loop, loop)) == ["GM0425"]
    x = new_buffer("x", INT32, ())
    assert set(codes_of(in_function(s.Allocate(x), s.Allocate(x)))) == {"GM0425"}
    assert codes_of(in_function(s.Allocate(replace(x)), s.Allocate(x))) == ["GM0425"]
    assert codes_of(Module((Function("f", (x,), (), VOID, bind), Function("g", (x,), (), VOID, bind)))) == []


def test_a_name_is_not_visible_before_its_definition():
    a = e.Var("a", INT32)
    assert codes_of(in_function(s.Evaluate(a), s.Bind(a, const(1, INT32)))) == ["GM0424"]
    assert codes_of(in_function(s.Bind(a, a + 1))) == ["GM0424"]


def test_constants_that_text_cannot_express():
    assert codes_of(in_function(s.Evaluate(e.FloatImm(0.1, FLOAT32)))) == ["GM0413"]
    assert codes_of(in_function(s.Evaluate(e.FloatImm(1, FLOAT32)))) == ["GM0413"]
    assert codes_of(in_function(s.Evaluate(e.FloatImm(1.0, FLOAT32.with_lanes(2))))) == ["GM0413"]
    assert codes_of(in_function(s.Evaluate(e.IntImm(1, FLOAT32)))) == ["GM0413"]
    assert codes_of(in_function(s.Evaluate(e.IntImm(2, BOOL)))) == ["GM0413"]
    assert codes_of(in_function(s.Evaluate(e.IntImm(1, HANDLE)))) == ["GM0413"]


def test_trees_that_are_not_made_as_the_classes_say():
    one = const(1, INT32)
    for wrong in (
        s.Evaluate(s.Break()),
        s.Evaluate(None),
        s.Evaluate(e.Add(one, None)),
        s.Evaluate(e.Add(one, s.Break())),
        s.Evaluate(e.Load("x", (one,))),
        s.Evaluate(e.CallFunction("f", [one], VOID)),
        s.If(e.IntImm(1, BOOL), None),
        s.For(e.Var("i", INT32), one, one, s.LoopKind.SERIAL, one),
        s.Allocate(one),
        one,
    ):
        assert "GM0446" in codes_of(in_function(wrong)), repr(wrong)
    assert codes_of(Module((s.Break(),))) == ["GM0446"]
    assert codes_of(Module((Function("f", (s.Break(),), (), VOID, s.Seq(())),))) == ["GM0446"]


def test_hints_and_lanes_of_nodes():
    one = const(1, INT32)
    hints = s.LoopHints(unroll=-1)
    loop = s.For(e.Var("i", INT32), one, one, s.LoopKind.SERIAL, s.Seq(()), hints=hints)
    assert codes_of(in_function(loop)) == ["GM0432"]
    assert codes_of(in_function(s.Evaluate(e.Shuffle((e.Broadcast(one, 4),), ())))) == ["GM0415"]
    launch = s.Launch("k", (), (s.ThreadAxis.THREAD_X,), ())
    assert codes_of(in_function(launch)) == ["GM0443"]
    assert codes_of(in_function(s.DeviceRegion(s.Seq(()), "reference"))) == ["GM0446"]


def test_a_region_pointer_scope_is_that_of_its_buffer():
    data = e.Var("p", HANDLE, PointerType(INT8, Scope.LOCAL))
    assert codes_of(in_function(s.Allocate(Buffer("x", INT8, (index(4),), data)))) == ["GM0427"]


def test_stated_types_of_operations():
    handle = e.Var("h", HANDLE)
    right = s.Evaluate(call("packed_kind", handle, const(0, INT32), dtype=INT32))
    wrong = s.Evaluate(call("packed_kind", handle, const(0, INT32), dtype=INT64))
    assert codes_of(in_function(right, params=(handle,))) == []
    assert codes_of(in_function(wrong, params=(handle,))) == ["GM0420"]


def test_texts_made_at_run_time_are_parts_of_messages():
    handle = e.Var("h", HANDLE)
    kind = call("packed_kind_text", handle, const(0, INT32), dtype=HANDLE)
    check = s.Assert(e.IntImm(1, BOOL), "TypeError", ("it is ", kind, call("tensor_dtype_text", handle, dtype=HANDLE)))
    assert codes_of(in_function(check, params=(handle,))) == []
    pointer = s.Assert(e.IntImm(1, BOOL), "TypeError", (call("tensor_data", handle, dtype=HANDLE),))
    assert codes_of(in_function(pointer, params=(handle,))) == ["GM0445"]


def test_depth_does_not_matter():
    deep: e.Expr = const(1, INT32)
    for _ in range(20_000):
        deep = e.Negate(deep)
    body: s.Stmt = s.Evaluate(deep)
    for _ in range(20_000):
        body = s.If(e.IntImm(1, BOOL), body)
    assert codes_of(in_function(body)) == []


def test_a_broken_result_of_a_pass_is_an_internal_error_that_names_it():
    module = parse_module(marked(f"{HEAD}\n  break\n  continue\n}}")[0])
    with pytest.raises(InternalError) as internal:
        check(module, after="split_loops")
    text = str(internal.value)
    assert "in pass: split_loops" in text
    assert "GM0430" in text
    assert "k.py:2:1" in text
    assert "`continue` stands outside" in text
    with pytest.raises(UserError) as user:
        check(module)
    assert [found.code for found in user.value.diagnostics] == ["GM0430", "GM0430"]
    check(every_node())
    check(every_node(), after="anything")


def test_faults_in_inlined_code_name_the_calls():
    span = replace(Span.at("helper.py", 3, 1, 3, 9), inlined_at=Span.at("main.py", 7, 1, 7, 9))
    found = verify(in_function(s.Break(span)))[0]
    assert str(found.place) == "helper.py:3:1"
    assert [str(note.place) for note in found.notes] == ["main.py:7:1"]


def test_reports_are_bounded():
    assert len(verify(in_function(*[s.Break() for _ in range(500)]))) == 100


def test_every_rule_is_listed_tested_and_explained():
    listed = set(re.findall(r"GM04\d\d", verify_module.__doc__))
    tested = {code for code, _ in BODIES} | {code for code, _ in MODULES} | {"GM0425"}
    assert listed == tested
    pages = {path.stem for path in EXPLAIN.glob("GM04*.md")}
    assert pages == listed | {"GM0401", "GM0402", "GM0403", "GM0404"}
    assert len(ALL_NODES) > 60


BLOCK = re.compile(r"## (Wrong|Right)\n\n```text\n(gristmill ir 1\n.*?)```\n", re.DOTALL)
PAGES = [path for path in sorted(EXPLAIN.glob("GM04*.md")) if path.stem not in ("GM0404", "GM0425")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_examples_of_the_pages_are_what_they_say(path: Path):
    examples = dict(BLOCK.findall(path.read_text()))
    try:
        codes = codes_of(parse_module(examples["Wrong"]))
    except UserError as error:
        codes = [error.code]
    assert codes == [path.stem]
    assert [found.message for found in verify(parse_module(examples["Right"]))] == []
