"""What host code may import: functions of TVM FFI, which every process has that loads it, and nothing else."""

from __future__ import annotations

from typing import Final

HOST_IMPORTS: Final = frozenset(
    (
        "TVMFFIBigIntFromByteArray",
        "TVMFFIErrorMoveFromRaised",
        "TVMFFIErrorSetRaised",
        "TVMFFIErrorSetRaisedFromCStr",
        "TVMFFIErrorSetRaisedFromCStrParts",
        "TVMFFIFunctionCall",
        "TVMFFIFunctionGetGlobal",
        "TVMFFIObjectDecRef",
        "TVMFFIObjectIncRef",
        "TVMFFITensorCreateUnsafeView",
        "TVMFFITensorFromDLPack",
    )
)
"""Functions of the C API of apache-tvm-ffi (tvm/ffi/c_api.h). A generator keeps to them, and a loader to no others."""
