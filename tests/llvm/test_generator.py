"""The generator as a whole: blobs and records, texts, the same bytes in every process, options."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from gristmill.codegen.host_imports import HOST_IMPORTS
from gristmill.ir.build import call, const, less
from gristmill.ir.dtype import FLOAT32, HANDLE, INT32, INT64, VOID
from gristmill.ir.expr import Add, CallFunction, CallPacked, Load, Mul, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import CallingConvention, Extern, Function, FunctionFacts, Module
from gristmill.ir.stmt import Assert, Evaluate, For, If, LoopKind, Return, Seq, Store, View
from gristmill.ir.target import parse_target
from gristmill.objfile import EM_X86_64, check_shared, describe
from gristmill.plugin.protocols import GenerateOptions
from gristmill_llvm.cost import releases_gil
from gristmill_llvm.cpu import resolve
from gristmill_llvm.generator import LLVMGenerator


def packed(name, *body, **facts):
    self, args, count, result = Var("self", HANDLE), Var("args", HANDLE), Var("count", INT32), Var("result", HANDLE)
    statements = [each(args) if callable(each) else each for each in body]
    known = FunctionFacts(
        symbol=f"__tvm_ffi_{name}", convention=CallingConvention.PACKED_HOST, signature=f"{name}(x)", **facts
    )
    return Function(
        f"{name}_packed", (self, args, count, result), (), INT32, Seq((*statements, Return(const(0, INT32)))), known
    )


def scale(depth=1, extent=None):
    """A plain function with that many nested loops over the same size."""
    a, n = Var("a", HANDLE, PointerType(FLOAT32)), Var("n", INT64)
    view = Buffer("A", FLOAT32, (n,), a)
    variables = [Var(f"i{number}", INT64) for number in range(depth)]
    body = Store(view, (variables[-1],), Mul(Load(view, (variables[-1],)), const(2.0, FLOAT32)))
    for variable in reversed(variables):
        body = For(variable, const(0, INT64), const(extent, INT64) if extent else n, LoopKind.SERIAL, body)
    return Function("scale", (a, n), (), VOID, Seq((View(view), body)), FunctionFacts())


def call_scale(args):
    tensor = call("packed_tensor", args, const(0, INT32), dtype=HANDLE)
    size = call("tensor_size", tensor, const(0, INT32), dtype=INT64)
    return Evaluate(CallFunction("scale", (call("tensor_data", tensor, dtype=HANDLE), size), VOID))


def sample_module():
    check = Assert(less(const(1, INT32), 2), "ValueError", ("never ", const(7, INT32)))
    ask = Evaluate(CallPacked("gristmill.test.ask", (const(1, INT32),), VOID))
    return Module(
        (packed("first", check, call_scale), packed("second", ask, call_scale), scale()), (Extern("erff", "libm.so.6"),)
    )


def generate(module, target="cpu:x86-64-v3", **options):
    options.setdefault("texts", frozenset(("llvm-ir", "assembly")))
    (blob,) = LLVMGenerator().generate(module, resolve(parse_target(target)), GenerateOptions(**options))
    return blob


def test_blob():
    blob = generate(sample_module())
    assert blob.kind == "elf-shared"
    assert blob.target == "cpu:x86-64-v3"
    assert blob.host == "x86_64-linux"
    assert blob.entry_points == ("__tvm_ffi_first", "__tvm_ffi_second")
    assert {"avx2", "fma", "sse4.2"} <= set(str(blob.requirements["cpu_features"]).split(","))
    assert [record.name for record in blob.kernels] == ["first", "second"]
    assert [record.entry for record in blob.kernels] == list(blob.entry_points)
    assert blob.kernels[0].extra == {"release_gil": False, "signature": "first(x)"}
    assert [kind for kind, _ in blob.texts] == ["llvm-ir", "assembly"]
    assert "define" in dict(blob.texts)["llvm-ir"]
    assert "__tvm_ffi_first:" in dict(blob.texts)["assembly"]


def test_the_shared_object_is_sound_and_exports_only_what_it_should():
    blob = generate(sample_module())
    check_shared(blob.data, machine=EM_X86_64, allowed_imports=HOST_IMPORTS)
    assert sorted(describe(blob.data).exports) == ["__gristmill_externs", *blob.entry_points]


@pytest.mark.parametrize("texts", [(), ("llvm-ir",), ("assembly",), ("spirv-assembly",)])
def test_only_the_texts_asked_for_are_made_and_the_code_stays_the_same(texts):
    blob = generate(sample_module(), texts=frozenset(texts))
    assert {kind for kind, _ in blob.texts} == set(texts) - {"spirv-assembly"}
    assert blob.data == generate(sample_module()).data


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_of_optimisation(compile_module, level):
    import numpy as np

    loaded = compile_module([packed("f", call_scale), scale()], optimization=level)
    values = np.arange(37, dtype=np.float32)
    loaded.packed("f")(values)
    np.testing.assert_array_equal(values, 2 * np.arange(37))


def test_same_input_same_bytes_in_processes_with_different_hashes():
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]); import test_generator as t;"
        "b = t.generate(t.sample_module()); print(hashlib.sha256(repr(b).encode()).hexdigest())"
    )
    digests = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        folder = os.path.dirname(__file__)
        found = subprocess.run(
            [sys.executable, "-c", code, folder], env=environment, check=True, capture_output=True, text=True
        )
        digests.add(found.stdout.strip())
    assert digests == {hashlib.sha256(repr(generate(sample_module())).encode()).hexdigest()}


def test_dialects_of_one_module_for_three_targets_differ():
    # Storing only some lanes of a vector: without masks, with masks in vectors, with masks in registers of their own.
    a, n, i = Var("a", HANDLE, PointerType(FLOAT32)), Var("n", INT64), Var("i", INT64)
    view = Buffer("A", FLOAT32, (n,), a)
    value = Load(view, (i,))
    body = If(less(value, 0.0), Store(view, (i,), Mul(value, const(2.0, FLOAT32))))
    loop = For(i, const(0, INT64), n, LoopKind.SERIAL, body)
    scale_negative = Function("scale", (a, n), (), VOID, Seq((View(view), loop)), FunctionFacts())
    module = Module((packed("first", call_scale), scale_negative))
    assert len({generate(module, f"cpu:x86-64-v{level}").data for level in (2, 3, 4)}) == 3


@pytest.mark.parametrize(
    ("depth", "extent", "releases"), [(1, None, False), (2, None, True), (3, None, True), (3, 4, False), (3, 200, True)]
)
def test_long_functions_release_the_interpreter_lock(depth, extent, releases):
    module = Module((packed("f", call_scale), scale(depth, extent)))
    assert releases_gil(module.functions[0], module) is releases


def test_the_function_decides_about_the_lock_where_it_says_so():
    long = scale(3)
    for wish in (True, False):
        module = Module((packed("f", call_scale, release_gil=wish), long))
        assert releases_gil(module.functions[0], module) is wish
        module = Module((packed("f", call_scale), scale(3).with_facts(release_gil=wish)))
        assert releases_gil(module.functions[0], module) is wish


def test_functions_that_call_python_keep_the_lock():
    ask = Evaluate(CallPacked("ask", (), VOID))
    module = Module((packed("f", ask, call_scale), scale(3)))
    assert releases_gil(module.functions[0], module) is False


def test_recursion_counts_as_long():
    n = Var("n", INT64)
    again = Function("scale", (n,), (), INT64, Return(Add(CallFunction("scale", (n,), INT64), n)))
    module = Module((packed("f", Evaluate(CallFunction("scale", (const(3, INT64),), INT64))), again))
    assert releases_gil(module.functions[0], module) is True


def test_a_long_chain_of_calls_has_a_cost():
    n = Var("n", INT64)
    chain = [Function("h0", (n,), (), INT64, Return(n))]
    for number in range(1, 3000):
        deeper = CallFunction(f"h{number - 1}", (n,), INT64)
        chain.append(Function(f"h{number}", (n,), (), INT64, Return(Add(deeper, n))))
    start = packed("f", Evaluate(CallFunction("h2999", (const(3, INT64),), INT64)))
    assert releases_gil(start, Module((start, *chain))) is False


def test_loops_become_no_calls_of_memset_and_memcpy(compile_module):
    """What LLVM would make of such loops are calls of libc, which nothing here may import."""
    a, b = Var("a", HANDLE, PointerType(FLOAT32)), Var("b", HANDLE, PointerType(FLOAT32))
    n, i, j = Var("n", INT64), Var("i", INT64), Var("j", INT64)
    first, second = Buffer("A", FLOAT32, (n,), a), Buffer("B", FLOAT32, (n,), b)
    zero = For(i, const(0, INT64), n, LoopKind.SERIAL, Store(first, (i,), const(0.0, FLOAT32)))
    copy = For(j, const(0, INT64), n, LoopKind.SERIAL, Store(second, (j,), Load(first, (j,))))
    facts = FunctionFacts(symbol="f", no_alias=True)
    function = Function("f", (a, b, n), (), VOID, Seq((View(first), View(second), zero, copy)), facts)
    for target in ("cpu:x86-64-v2", "cpu:x86-64-v3"):
        loaded = compile_module([function], target)
        assert "call" not in loaded.text("assembly")
        assert describe(loaded.blob.data).imports == ()
