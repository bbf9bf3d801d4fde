"""Numbers of the packed host interface, which IR, executor, code generators and runtimes must agree on.

They are those of TVM FFI (tvm/ffi/c_api.h, apache-tvm-ffi 0.1.15) and of DLPack (dlpack.h).
"""

from __future__ import annotations

from enum import IntEnum


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


CPU_DEVICE_TYPE = 1
"""``kDLCPU`` of dlpack.h."""

DEVICE_TYPE_NAMES = {1: "CPU", 2: "CUDA", 3: "CUDA host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm"}
"""Names for DLDeviceType, for messages."""

OWN_DEVICE_TYPES = {18258: "reference"}
"""Names for types of devices that DLPack has no number for; messages of their own code alone speak of them."""
