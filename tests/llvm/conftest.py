"""Fixtures of the LLVM tests: compile a module, load it, call its plain functions through ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from gristmill.codegen.host_imports import HOST_IMPORTS
from gristmill.ir.dtype import HANDLE, INT64, VOID, DType
from gristmill.ir.expr import Expr, IntImm, Load, Ramp, Var
from gristmill.ir.memory import Buffer, PointerType
from gristmill.ir.module import Extern, Function, FunctionFacts, Module
from gristmill.ir.stmt import For, LoopKind, Seq, Stmt, Store, View
from gristmill.ir.target import parse_target
from gristmill.objfile import describe
from gristmill.plugin.artifacts import Blob
from gristmill.plugin.protocols import GenerateOptions
from gristmill_llvm.cpu import resolve
from gristmill_llvm.generator import LLVMGenerator

C_TYPES = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "handle": ctypes.c_void_p,
    "void": None,
}


@dataclass
class Loaded:
    """A blob in this process."""

    blob: Blob
    module: Module
    library: ctypes.CDLL

    def plain(self, name: str) -> Any:
        """The plain function of that name, as ctypes calls it (only one that cannot fail has its C signature)."""
        function = self.module.get(name)
        assert function is not None
        found = getattr(self.library, function.facts.symbol or "")
        found.argtypes = [C_TYPES[str(parameter.dtype)] for parameter in function.params]
        found.restype = C_TYPES[str(function.returns)]
        return found

    def packed(self, name: str) -> Any:
        """The packed function of that name as a tvm_ffi.Function."""
        import tvm_ffi

        address = ctypes.cast(getattr(self.library, f"__tvm_ffi_{name}"), ctypes.c_void_p).value
        return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=self)

    def text(self, kind: str) -> str:
        return dict(self.blob.texts)[kind]


def load_blob(blob: Blob) -> ctypes.CDLL:
    # The functions of TVM FFI are found among the libraries of the process.
    import tvm_ffi  # noqa: F401

    # The descriptor stays open: the loader would take the next library of the same /proc name for this one.
    descriptor = os.memfd_create("test")
    os.write(descriptor, blob.data)
    return ctypes.CDLL(f"/proc/self/fd/{descriptor}")


@pytest.fixture(scope="session")
def compile_module() -> Callable[..., Loaded]:
    """``compile_module(functions, target=..., externs=..., **options)``: generate, check, load.

    Every module that a test compiles is checked here: LLVM verifies the text (in the generator), and the shared object
    imports nothing but functions of TVM FFI.
    """

    def make(
        functions: Sequence[Function],
        target: str = "cpu:x86-64-v3",
        externs: Sequence[Extern] = (),
        **options: Any,
    ) -> Loaded:
        module = Module(tuple(functions), tuple(externs))
        options.setdefault("texts", frozenset(("llvm-ir", "assembly")))
        (blob,) = LLVMGenerator().generate(module, resolve(parse_target(target)), GenerateOptions(**options))
        summary = describe(blob.data, "test.so")
        assert set(summary.imports) <= HOST_IMPORTS
        assert not summary.needed
        return Loaded(blob, module, load_blob(blob))

    return make


def int64(value: int) -> IntImm:
    return IntImm(value, INT64)


@pytest.fixture(scope="session")
def array_of() -> Callable[..., tuple[Var, Buffer]]:
    """``array_of(name, dtype, size)``: a pointer parameter and the buffer over it."""

    def make(name: str, dtype: DType, size: Expr | int, **fields: Any) -> tuple[Var, Buffer]:
        data = Var(name, HANDLE, PointerType(dtype))
        shape = (size if isinstance(size, Expr) else int64(size),)
        return data, Buffer(name, dtype, fields.pop("shape", shape), data, **fields)

    return make


@pytest.fixture(scope="session")
def elementwise(
    compile_module: Callable[..., Loaded], array_of: Callable[..., tuple[Var, Buffer]]
) -> Callable[..., Any]:
    """``elementwise(build, dtypes, result)``: compiles ``out[i] = build(a[i], b[i], ...)``, scalar and as vectors.

    Gives ``run(*arrays) -> array``, which runs the scalar loop, the same with fast vectorisation (LLVM's own), and the
    loop over explicit vectors of ``lanes``, and checks that all agree bit for bit (NaNs as one).
    """

    def make(build: Callable[..., Expr], dtypes: Sequence[DType], result: DType, lanes: int = 4, **options: Any) -> Any:
        functions = []
        for width in (1, lanes):
            n, i = Var("n", INT64), Var("i", INT64)
            made = [array_of(f"a{place}", dtype, n) for place, dtype in enumerate((*dtypes, result))]
            index: Expr = i if width == 1 else Ramp(i * width, int64(1), width)
            loads = [Load(buffer, (index,)) for _, buffer in made[:-1]]
            body: Stmt = Store(made[-1][1], (index,), build(*loads))
            loop = For(i, int64(0), n, LoopKind.SERIAL, body)
            statements = Seq((*(View(buffer) for _, buffer in made), loop))
            facts = FunctionFacts(symbol=f"lanes{width}", no_alias=True)
            functions.append(Function(f"lanes{width}", (*(data for data, _ in made), n), (), VOID, statements, facts))
        targets = options.pop("targets", ("cpu:x86-64-v2", "cpu:x86-64-v3"))
        compiled = [compile_module(functions, target, **options) for target in targets]

        def run(*arrays: np.ndarray) -> np.ndarray:
            size = len(arrays[0])
            padded = [np.resize(array, -(-size // lanes) * lanes) for array in arrays]
            outcomes = []
            for loaded in compiled:
                for width in (1, lanes):
                    out = np.zeros(len(padded[0]), _numpy(result))
                    pointers = [array.ctypes.data for array in (*padded, out)]
                    loaded.plain(f"lanes{width}")(*pointers, len(out) // width)
                    outcomes.append(out[:size])
            for outcome in outcomes[1:]:
                np.testing.assert_array_equal(outcome, outcomes[0])
            return outcomes[0]

        return run

    return make


def _numpy(dtype: DType) -> np.dtype:
    return np.dtype(str(dtype))


@pytest.fixture(scope="session")
def corner_values() -> Callable[[DType], np.ndarray]:
    """The values of a type at which operations go wrong, and some seeded random ones."""

    def make(dtype: DType) -> np.ndarray:
        random = np.random.default_rng(20240607)
        kind = _numpy(dtype)
        if dtype.is_bool:
            return np.array([False, True, True, False, True])
        if dtype.is_float:
            info = np.finfo(kind)
            special = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                -0.5,
                1.5,
                2.5,
                -2.5,
                3.75,
                np.inf,
                -np.inf,
                np.nan,
                info.max,
                info.min,
            ]
            special += [info.tiny, info.smallest_subnormal, -info.smallest_subnormal, info.eps, 1 / 3, 1e10, -1e10]
            for bits in (7, 8, 15, 16, 31, 32, 63, 64):
                for value in (2.0**bits, -(2.0**bits)):
                    special += [value, np.nextafter(kind.type(value), kind.type(np.inf)), value - 1, value + 1]
                    special += [np.nextafter(kind.type(value), kind.type(-np.inf)), value - 0.5, value + 0.5]
            with np.errstate(over="ignore"):
                random_values = (random.standard_normal(60) * 10.0 ** random.integers(-20, 20, 60)).astype(kind)
                return np.concatenate([np.array(special).astype(kind), random_values])
        least, most = dtype.minimum, dtype.maximum
        near = [
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            dtype.bits - 1,
            dtype.bits,
            dtype.bits + 1,
            most,
            most - 1,
            most // 2,
            least,
            least + 1,
        ]
        if dtype.is_signed:
            near += [-1, -2, -3, -7]
        random_values = random.integers(least, most, 30, dtype=kind, endpoint=True)
        return np.concatenate([np.array(near, kind), random_values])

    return make


@pytest.fixture(scope="session")
def pairs() -> Callable[..., tuple[np.ndarray, ...]]:
    """All combinations of the values of two arrays, as two flat arrays."""

    def make(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        first, second = np.meshgrid(a, b, indexing="ij")
        return first.ravel().copy(), second.ravel().copy()

    return make


@pytest.fixture(scope="session")
def public() -> Callable[[Function], Function]:
    """The function with a symbol of its own name."""

    def make(function: Function) -> Function:
        return replace(function, facts=replace(function.facts, symbol=f"test_{function.name}"))

    return make
