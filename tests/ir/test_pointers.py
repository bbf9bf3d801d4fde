"""Where pointers lead, and through which parameters functions may write."""

from __future__ import annotations

import pytest

from gristmill.ir.parser import parse_module
from gristmill.ir.pointers import origins, pointer_sources, written_parameters

SOURCE = """gristmill ir 1

extern "c" from "library"

function @fill(y: float32[4], z: float32[4]) {{
  y[0] = z[0]
}}

function @through(z: ptr<float32, global>, y: ptr<float32, global>) {{
  view Y: float32[4] over y
  view Z: float32[4] over z
  evaluate @fill(buffer(Y), buffer(Z)) as void
}}

function @count(a: float32[4], n: int64) {{
  if n > 0 {{
    evaluate @count(buffer(a), n - 1) as void
  }}
}}

function @even(a: float32[4], b: float32[4], n: int64) {{
  if n > 0 {{
    evaluate @odd(buffer(b), buffer(a), n - 1) as void
  }}
}}

function @odd(a: float32[4], b: float32[4], n: int64) {{
  if n > 0 {{
    evaluate @even(buffer(b), buffer(a), n - 1) as void
  }} else {{
    a[0] = 1.0
  }}
}}

function @kernel(p: ptr<float32, global>, q: ptr<float32, global>)
  convention kernel
  launch (threadIdx.x)
{{
  view P: float32[4] over p
  view Q: float32[4] over q
  for t: int64 in 0 +: 4 thread on threadIdx.x {{
    Q[t] = P[t]
  }}
}}

function @elsewhere(p: ptr<float32, global>)
  convention kernel
  launch (threadIdx.x)
  declaration
{{
}}

function @f(a: float32[4], b: float32[4], n: int64)
  symbol "f"
{{
  {body}
}}
"""


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("a[0] = b[0]", "a"),
        ("evaluate b[n]", ""),
        ("view v: float32[2] from &b[2]\n  v[0] = a[1]", "b"),
        ("let p: handle = &b[2]\n  view v: float32[2] from p\n  v[0] = a[1]", "b"),
        ("let p: handle = select(n > 0, &b[2], &a[1])\n  view v: float32[2] from p\n  v[0] = 1.0", "ab"),
        ('block "copy"\n    match m: float32[2] = b[1 +: 2]\n  {\n    m[0] = a[1]\n  }', "b"),
        ("evaluate @fill(buffer(b), buffer(a)) as void", "b"),
        ("evaluate @through(&b[0], &a[0]) as void", "a"),
        ("evaluate @count(buffer(a), n) as void", ""),
        ("evaluate @even(buffer(a), buffer(b), n) as void", "b"),
        ("evaluate @even(buffer(a), buffer(a), int64(b[0])) as void", "a"),
        ("launch @kernel(&a[0], &b[0]) over threadIdx.x = 4", "b"),
        ("launch @elsewhere(&a[0]) over threadIdx.x = 4", "a"),
        ('evaluate packed "look"(buffer(a), n) as void', "a"),
        ('evaluate extern "c"(&b[1]) as void', "b"),
        ("allocate v: float32[4] in local\n  v[0] = a[0]", ""),
    ],
)
def test_what_may_be_written(body: str, written: str) -> None:
    module = parse_module(SOURCE.format(body=body))
    function = module.get("f")
    assert function is not None
    places = written_parameters(function, module)
    assert "".join(function.params[place].name for place in sorted(places)) == written


def test_a_function_that_is_not_there_may_write_all() -> None:
    module = parse_module(SOURCE.format(body="evaluate @fill(buffer(b), buffer(a)) as void"))
    function = module.functions[-1]
    assert written_parameters(function, module.with_functions([function])) == {0, 1}


def test_sources_and_origins() -> None:
    view = "view v: float32[2] data vp: ptr<float32, global> from p"
    body = f"let p: handle = &b[2]\n  {view}\n  view w: float32[1] over p\n  w[0] = v[0]"
    text = SOURCE.format(body=body).replace(
        "b: float32[4], n: int64)\n  symbol", "b: float32[4] data bp: handle, n: int64)\n  symbol"
    )
    sources = pointer_sources(parse_module(text).functions[-1].body)
    assert {var.name: [one.name for one in found] for var, found in sources.items()} == {"p": ["bp"], "vp": ["p"]}
    (data,) = (var for var in sources if var.name == "vp")
    assert {var.name for var in origins([data], sources)} == {"vp", "p", "bp"}
