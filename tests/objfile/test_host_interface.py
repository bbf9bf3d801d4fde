"""A linked library is a TVM FFI library: it loads in a process that knows nothing of Gristmill."""

from __future__ import annotations

import subprocess
import sys

from gristmill.objfile import link_shared

# int32 f(self, const Any* args, int32 n, Any* ret); an Any is {int32 type, int32 padding, 8 bytes}; type 1 is int64.
PROGRAM = """
@kind = private constant [11 x i8] c"ValueError\\00"
@message = private constant [18 x i8] c"only one argument\\00"
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
declare i64 @triple(i64)
define i32 @__tvm_ffi_triple(ptr %self, ptr %args, i32 %count, ptr %ret) {
  %right = icmp eq i32 %count, 1
  br i1 %right, label %go, label %wrong
go:
  %place = getelementptr i8, ptr %args, i64 8
  %value = load i64, ptr %place
  %result = call i64 @triple(i64 %value)
  store i32 1, ptr %ret
  %padding = getelementptr i8, ptr %ret, i64 4
  store i32 0, ptr %padding
  %out = getelementptr i8, ptr %ret, i64 8
  store i64 %result, ptr %out
  ret i32 0
wrong:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @kind, ptr @message)
  ret i32 -1
}
"""
HELPER = "define i64 @triple(i64 %x) { %r = mul i64 %x, 3\n ret i64 %r }"
USER = """
import sys, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
print(module.triple(14))
try:
    module.triple(1, 2)
except ValueError as error:
    print(error)
assert not any(name.startswith("gristmill") for name in sys.modules)
"""


def test_it_loads_and_raises_without_gristmill(compile_ir, tmp_path):
    path = tmp_path / "triple.so"
    path.write_bytes(
        link_shared(
            [compile_ir(PROGRAM), compile_ir(HELPER)],
            exports=["__tvm_ffi_triple"],
            allowed_imports=["TVMFFIErrorSetRaisedFromCStr"],
        )
    )
    ended = subprocess.run([sys.executable, "-c", USER, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "42\nonly one argument\n"
