"""The arguments that records and packs list: names, types, and which arrays a function may write."""

from __future__ import annotations

from pathlib import Path

import pytest

import gristmill
from gristmill.build.arguments import arguments_of
from gristmill.ir.parser import parse_module
from gristmill.pack import open_pack
from gristmill.plugin.artifacts import KernelArgument

SOURCE = """gristmill ir 1

extern "c" from "library"

function @fill(y: float32[4], z: float32[4]) {{
  y[0] = z[0]
}}

function @again(a: float32[4], n: int64) {{
  if n > 0 {{
    evaluate @again(buffer(a), n - 1) as void
  }}
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
        ("evaluate @fill(buffer(b), buffer(a)) as void", "b"),
        ("evaluate @again(buffer(a), n) as void", ""),
        ('evaluate packed "look"(buffer(a), n) as void', "a"),
        ('evaluate extern "c"(&b[1]) as void', "b"),
        ("allocate v: float32[4] in local\n  v[0] = a[0]", ""),
    ],
)
def test_what_may_be_written(body: str, written: str) -> None:
    module = parse_module(SOURCE.format(body=body))
    function = module.get("f")
    assert function is not None
    assert arguments_of(function, module) == (
        KernelArgument("a", "buffer", "float32", "a" in written),
        KernelArgument("b", "buffer", "float32", "b" in written),
        KernelArgument("n", "scalar", "int64"),
    )


def test_records_in_packs_list_them(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    (tmp_path / "kernels.toml").write_text(
        'schema = 1\n[project]\nname = "p"\n[targets]\ncpu = "cpu:x86-64-v2"\n[[module]]\nname = "m"\nsource = "m.py"\n'
    )
    (tmp_path / "m.py").write_text(
        "from gristmill.script import tir as T\n\n"
        '@T.prim_func\ndef f(a: T.Buffer(("n",), "int8"), b: T.Buffer(("n",), "int8"), c: T.int32):\n'
        "    for i in range(n):\n        b[i] = a[i]\n"
    )
    with open_pack(gristmill.build(tmp_path).pack("m").path) as pack:
        (record,) = pack.manifest.blobs[0].kernels
        parameters = pack.manifest.functions[0].parameters
    assert record["arguments"] == [
        {"name": "a", "kind": "buffer", "dtype": "int8", "written": False},
        {"name": "b", "kind": "buffer", "dtype": "int8", "written": True},
        {"name": "c", "kind": "scalar", "dtype": "int32", "written": False},
    ]
    assert [(found.name, found.written) for found in parameters] == [("a", False), ("b", True), ("c", False)]
