"""The extended instructions of GLSL.std.450 that this package writes, by their names in its specification."""

from __future__ import annotations

from enum import IntEnum


class GLSL450(IntEnum):
    """Instructions of the extended set GLSL.std.450."""

    RoundEven = 2
    Trunc = 3
    FAbs = 4
    SAbs = 5
    Floor = 8
    Ceil = 9
    Exp2 = 29
    Log2 = 30
    Sqrt = 31
    InverseSqrt = 32
    FMin = 37
    UMin = 38
    SMin = 39
    FMax = 40
    UMax = 41
    SMax = 42
    Fma = 50
    Frexp = 51
    Ldexp = 53
    PackHalf2x16 = 58
    UnpackHalf2x16 = 62
    FindILsb = 73
    FindSMsb = 74
    FindUMsb = 75
    NMin = 79
    NMax = 80
