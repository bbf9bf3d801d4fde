"""The packed host interface in data: exported names, layouts, and how a function's signature is written.

A public function is exported as ``__tvm_ffi_<symbol>`` with the C signature of the TVM FFI
(``TVMFFISafeCallType`` in tvm/ffi/c_api.h, apache-tvm-ffi 0.1.15)::

    int32_t f(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result);

It returns 0 for success, and otherwise has set an error with ``TVMFFIErrorSetRaisedFromCStr``. Here too are the
layouts of what it reads; the numbers of kinds and devices are in :mod:`gristmill.ir.host_interface`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gristmill.ir.dtype import DLPACK_CODES, DType

if TYPE_CHECKING:
    from gristmill.ir.module import Function

EXPORT_PREFIX = "__tvm_ffi_"
"""What ``tvm_ffi.load_module`` puts before a function's name to find its symbol."""


ANY_BYTES = 16
"""Size of a ``TVMFFIAny``: type index (int32), padding, then 8 bytes of value."""
ANY_VALUE_OFFSET = 8
OBJECT_HEADER_BYTES = 24
"""Size of a ``TVMFFIObject``: after it stand a tensor object's DLTensor, and a BigInt's word count and words."""


def packed_dtype(dtype: DType) -> int:
    """The value of ``tensor_dtype`` for a tensor of these elements: code | bits << 8 | lanes << 16."""
    return DLPACK_CODES[dtype.code] | dtype.bits << 8 | dtype.lanes << 16


def signature_text(function: Function) -> str:
    """The function's signature as messages show it: as its author wrote it, or made from its parameters."""
    if function.facts.signature:
        return function.facts.signature
    from gristmill.ir import readable

    return readable.signature_text(function.facts.symbol or function.name, function.params, function.returns)
