"""The packed host interface in data: type indices, exported names, and how a function's signature is written.

A public function is exported as ``__tvm_ffi_<symbol>`` with the C signature of the TVM FFI
(``TVMFFISafeCallType`` in tvm/ffi/c_api.h, apache-tvm-ffi 0.1.15)::

    int32_t f(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result);

It returns 0 for success, and otherwise has set an error with ``TVMFFIErrorSetRaisedFromCStr``. Here too are the
layouts of what it reads, so that a code generator and the reference executor have them from one place.
"""

from __future__ import annotations

from enum import IntEnum

from gristmill.ir import readable
from gristmill.ir.dtype import DLPACK_CODES, DType
from gristmill.ir.module import Function

EXPORT_PREFIX = "__tvm_ffi_"
"""What ``tvm_ffi.load_module`` puts before a function's name to find its symbol."""


class TypeIndex(IntEnum):
    """What kind of value a ``TVMFFIAny`` holds (``TVMFFITypeIndex`` in tvm/ffi/c_api.h)."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    POINTER = 4
    DTYPE = 5
    DEVICE = 6
    DLTENSOR = 7
    RAW_TEXT = 8
    SMALL_TEXT = 11
    OBJECT = 64
    TEXT = 65
    BYTES = 66
    FUNCTION = 68
    SHAPE = 69
    TENSOR = 70
    ARRAY = 71
    MAP = 72
    PYTHON_OBJECT = 74
    LIST = 75
    DICT = 76
    BIG_INT = 78


ANY_BYTES = 16
"""Size of a ``TVMFFIAny``: type index (int32), padding, then 8 bytes of value."""
ANY_VALUE_OFFSET = 8
OBJECT_HEADER_BYTES = 24
"""Size of a ``TVMFFIObject``: after it stand a tensor object's DLTensor, and a BigInt's word count and words."""

CPU_DEVICE_TYPE = 1
"""``kDLCPU`` of dlpack.h."""

DEVICE_TYPE_NAMES = {1: "CPU", 2: "CUDA", 3: "CUDA host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm"}
"""Names for DLDeviceType, for messages."""

OWN_DEVICE_TYPES = {18258: "reference"}
"""Names for types of devices that DLPack has no number for; messages of their own code alone speak of them."""


def packed_dtype(dtype: DType) -> int:
    """The value of ``tensor_dtype`` for a tensor of these elements: code | bits << 8 | lanes << 16."""
    return DLPACK_CODES[dtype.code] | dtype.bits << 8 | dtype.lanes << 16


def signature_text(function: Function) -> str:
    """The function's signature as messages show it: as its author wrote it, or made from its parameters."""
    if function.facts.signature:
        return function.facts.signature
    return readable.signature_text(function.facts.symbol or function.name, function.params, function.returns)
