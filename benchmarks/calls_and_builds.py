"""What a call of a built function costs beside an empty TVM FFI function, and what building one small kernel costs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import tvm_ffi
from measure import minimum_seconds, show

import gristmill
from gristmill.pack import open_pack

KERNEL = """
from gristmill.script import tir as T

@T.prim_func
def nothing(a: T.Buffer(("n",), "float32"), b: T.Buffer(("n",), "float32"), c: T.Buffer(("n",), "float32")):
    pass
"""

MANIFEST = """
schema = 1
[project]
name = "bench"
[targets]
cpu = "cpu:x86-64-v3"
[[module]]
name = "small"
source = "small.py"
"""

EMPTY = """
define i32 @empty(ptr %self, ptr %args, i32 %count, ptr %result) {
  ret i32 0
}
"""


def empty_function() -> object:
    """A TVM FFI function that does nothing at all, in machine code."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(EMPTY), machine)
    engine.finalize_object()
    function = tvm_ffi.Function.__from_extern_c__(engine.get_function_address("empty"), keep_alive_object=engine)
    # As short kernels are called: the interpreter lock is kept.
    function.release_gil = False
    return function


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "small.py").write_text(KERNEL)
        (root / "kernels.toml").write_text(MANIFEST)
        best = float("inf")
        for number in range(12):
            (root / "small.py").write_text(KERNEL + f"\n# {number}\n")
            begin = time.perf_counter()
            gristmill.build(root / "kernels.toml")
            best = min(best, time.perf_counter() - begin)
        print(f"building and packing one small kernel, warm: {best * 1e3:.1f} ms (wanted <= 40 ms)")
        path = root / "build" / "kernels" / "small.kpack"
        with open_pack(path) as opened:
            (code,) = opened.manifest.blobs
        print(f"its pack has {path.stat().st_size} bytes; code, argument checks and messages are {code.size}")

        pack = gristmill.load(path)
        empty = empty_function()
        function = pack.nothing
        kinds = (
            ("tvm_ffi.Tensor", tvm_ffi.from_dlpack),
            ("gristmill array", gristmill.device("cpu:0").array),
            ("NumPy array", lambda array: array),
        )
        for kind, make in kinds:
            a, b, c = (make(np.zeros(8, np.float32)) for _ in range(3))
            seconds = minimum_seconds(
                {
                    "built no-op": lambda a=a, b=b, c=c: function(a, b, c),
                    "empty function": lambda a=a, b=b, c=c: empty(a, b, c),
                },
                rounds=30,
                calls=20_000,
            )
            show(f"a call with three {kind}s", seconds, "built no-op", "empty function", "<= 1.5")


if __name__ == "__main__":
    main()
