"""``T``: the names of the kernel language, as Python sees them. In kernel files: ``from gristmill.script import tir as T``.

Kernels are read, never executed, so nothing here computes. The names are here so that a kernel file can be imported,
checked and completed like any Python file; ``tir.pyi`` describes them to editors and type checkers, and
docs/language.md explains them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Buffer", "Kernel", "handle", "macro", "prim_func"]


class Kernel:
    """A function marked ``@T.prim_func``: source text for the compiler, which Python cannot call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise UserError (GM0224): a kernel runs only after it was built."""
        from gristmill.errors import Diagnostic, Place, UserError

        code = self.__wrapped__.__code__
        place = Place(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1)
        name = self.__wrapped__.__name__
        raise UserError(
            Diagnostic(
                "GM0224",
                f"the kernel `{name}` is not built: Python cannot call it",
                place,
                hint=f"name its file in kernels.toml, run `gristmill build`, and call `gristmill.load(...).{name}(...)`",
            )
        )

    def __repr__(self) -> str:
        return f"<kernel {self.__wrapped__.__qualname__}>"


def prim_func(
    function: Callable[..., Any] | None = None, /, *, private: bool = False, s_tir: bool = False,
    check_well_formed: bool = True,
) -> Any:  # fmt: skip
    """Mark a function as a kernel.

    It is public (callable from Python once it is built) unless ``private`` is true or its name starts with an
    underscore. ``s_tir`` and ``check_well_formed`` are accepted for kernels written for TVM, and change nothing.
    """
    del private, s_tir, check_well_formed
    return Kernel(function) if function is not None else Kernel


def macro(function: Callable[..., Any] | None = None, /, *, hygienic: bool = True) -> Any:
    """Mark a function whose statements take the place of every call of it."""
    del hygienic
    return Kernel(function) if function is not None else Kernel


class Name:
    """A name of the language outside of a kernel. It may be called, indexed and computed with; nothing comes of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self.name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Name:
        return Name(f"{self.name}(...)")

    def __getitem__(self, key: Any) -> Name:
        return Name(f"{self.name}[...]")

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self.name} has no value outside of a built kernel")

    def _computed(self, *other: Any) -> Name:
        return Name(f"({self.name} ...)")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _computed
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _computed
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _computed
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _computed
    __neg__ = __pos__ = __invert__ = _computed


Buffer = Name("T.Buffer")
handle = Name("T.handle")


def __getattr__(name: str) -> Any:
    """Every other name: known to the compiler or not, Python lets it pass."""
    if name.startswith("__"):
        raise AttributeError(f"module 'gristmill.script.tir' has no attribute {name!r}")
    return Name(f"T.{name}")


def __dir__() -> list[str]:
    """The names of the language, from the compiler's own tables."""
    from gristmill.script.calls import NAMESPACES

    return sorted({*__all__, *NAMESPACES["T"]})
