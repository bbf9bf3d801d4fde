"""What people of Python, NumPy and other compilers write out of habit, and what kernels have for it.

The texts complete the hint of a mistake; they are shown as they stand.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

_MEMORY = 'new memory is `T.alloc_buffer((n,), "float32")`, filled in a loop'
_LOOP = "write it as a loop"
_INDEX = "loop over `range(n)`, and index the buffers"
_FILES = "pass what it reads as an argument; kernels have no files and no input"
_CLAMP = "write `T.min(T.max(x, low), high)`"
_REMAINDER = "write `a % b` for integers, `T.fmod(a, b)` for floats"
_BITS = 'write `T.reinterpret("int32", x)`'
_THREAD = 'write `tx = T.launch_thread("threadIdx.x", 64)` at the start of the kernel, and use `tx`'
_BLOCK = 'write `bx = T.launch_thread("blockIdx.x", T.ceildiv(n, 64))` at the start of the kernel, and use `bx`'
_EXTENT = "use the constant or the parameter that `T.launch_thread` gets as its extent"

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("array", "arange", "empty", "empty_like", "full", "ones", "ones_like", "zeros"), _MEMORY),
        **dict.fromkeys(("zeros_like", "linspace", "eye", "alloc"), _MEMORY),
        **dict.fromkeys(("all", "any", "argmax", "argmin", "argsort", "cumsum", "dot", "matmul", "mean"), _LOOP),
        **dict.fromkeys(("prod", "sort", "std", "sum", "var", "reduce", "fill", "copy", "concatenate"), _LOOP),
        **dict.fromkeys(("clamp", "clip"), _CLAMP),
        **dict.fromkeys(("mod", "remainder"), _REMAINDER),
        **dict.fromkeys(("bitcast", "view", "frombuffer"), _BITS),
        **dict.fromkeys(("blockDim", "gridDim"), _EXTENT),
        "blockIdx": _BLOCK,
        "threadIdx": _THREAD,
        "grid_sync": "end the loops over threads and begin new ones: launches run one after the other",
        "absolute": "write `abs(x)`",
        "divide": "write `a / b` for floats, `a // b` for integers",
        "e": "write `import math` at the top of the file, and `math.e`",
        "fmax": "write `T.max(a, b)`",
        "fmin": "write `T.min(a, b)`",
        "len": "write `len(x)` or `x.shape[0]`",
        "maximum": "write `T.max(a, b)`",
        "minimum": "write `T.min(a, b)`",
        "multiply": "write `a * b`",
        "pi": "write `import math` at the top of the file, and `math.pi`",
        "power": "write `T.pow(x, y)`",
        "print": "store values in a buffer, and print that in Python",
        "relu": "write `T.max(x, 0)`",
        "shape": "write `x.shape[0]`",
        "sign": "write `1 if x > 0 else -1 if x < 0 else 0`",
        "square": "write `x * x`",
        "where": "write `a if condition else b`",
    }
)
"""Functions of arrays and numbers, as ``np.NAME`` or ``T.NAME``."""

PYTHON: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("enumerate", "zip", "map", "filter", "reversed", "iter", "next"), _INDEX),
        **dict.fromkeys(("list", "dict", "set", "tuple", "bytearray", "slice", "sorted"), _MEMORY),
        **dict.fromkeys(("open", "input"), _FILES),
        **dict.fromkeys(("all", "any"), "set a local bool in a loop, and leave it with `break`"),
        "divmod": "write `a // b` and `a % b`",
        "print": "store values in a buffer, and print that in Python",
    }
)
"""Functions of Python itself."""

DEVICE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("blockDim", "gridDim"), _EXTENT),
        "blockIdx": _BLOCK,
        "threadIdx": _THREAD,
        "__syncthreads": "barriers come by themselves; `T.syncthreads()` writes one",
        "__syncwarp": "barriers come by themselves; `T.syncwarp()` writes one",
        "__shared__": 'write `s = T.alloc_shared((64,), "float32")`',
        "__shfl_sync": "write `T.warp_shuffle(x, lane)`",
        "__shfl_xor_sync": "write `T.warp_shuffle_xor(x, mask)`",
        "__shfl_up_sync": "write `T.warp_shuffle_up(x, distance)`",
        "__shfl_down_sync": "write `T.warp_shuffle_down(x, distance)`",
        "__ballot_sync": "write `T.warp_ballot(c)`",
        "__any_sync": "write `T.warp_any(c)`",
        "__all_sync": "write `T.warp_all(c)`",
    }
)
"""Names that CUDA and HIP know without an import."""

ALWAYS_IMPORTED: Mapping[str, str] = MappingProxyType(
    {
        "I": "from gristmill.script import ir as I",
        "T": "from gristmill.script import tir as T",
        "math": "import math",
    }
)
"""Names that every file of kernels has, or nearly, with the line that brings them."""

EXPRESSIONS: Mapping[type[ast.expr], str] = MappingProxyType(
    {
        ast.Lambda: "a lambda",
        ast.ListComp: "a comprehension",
        ast.SetComp: "a comprehension",
        ast.DictComp: "a comprehension",
        ast.GeneratorExp: "a generator expression",
        ast.Dict: "a dictionary",
        ast.Set: "a set",
        ast.Await: "await",
        ast.Yield: "yield",
        ast.YieldFrom: "yield",
        ast.JoinedStr: "a formatted string",
        ast.Starred: "an unpacking",
        ast.NamedExpr: "an assignment inside an expression",
        ast.Slice: "a slice",
    }
)
"""Expressions of Python that kernels do not have, by name."""

INSTEAD_OF_EXPRESSIONS: Mapping[type[ast.expr], str] = MappingProxyType(
    {
        **dict.fromkeys(
            (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
            'write a loop, and keep values in `T.alloc_buffer((n,), "float32")`',
        ),
        **dict.fromkeys((ast.Dict, ast.Set), "kernels have numbers and buffers; constants may be tuples"),
        **dict.fromkeys((ast.Yield, ast.YieldFrom, ast.Await), "return one number, or store values in a buffer"),
        ast.Lambda: "write a helper function with typed parameters",
        ast.JoinedStr: "formatted strings are for the message of an assert",
        ast.NamedExpr: "assign in a statement of its own",
    }
)
