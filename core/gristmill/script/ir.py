"""``I``: what marks a class of kernels as one module. In kernel files: ``from gristmill.script import ir as I``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

C = TypeVar("C", bound=type)

__all__ = ["ir_module"]


@overload
def ir_module(cls: C, /) -> C: ...
@overload
def ir_module(*, s_tir: bool = ..., check_well_formed: bool = ...) -> Callable[[C], C]: ...
def ir_module(cls: Any = None, /, *, s_tir: bool = False, check_well_formed: bool = True) -> Any:
    """Mark a class whose methods are kernels that call each other as ``ClassName.kernel(...)``.

    ``s_tir`` and ``check_well_formed`` are accepted for kernels written for TVM, and change nothing.
    """
    del s_tir, check_well_formed
    return cls if cls is not None else lambda marked: marked
