"""The table of C functions that host code calls, by which whoever loads it hands their addresses over.

An object imports no C function. For each one it has a *slot*, a variable that holds its address, null at first, and it
exports :data:`EXTERN_TABLE`, which says which slots there are. In C::

    struct Extern {
      const char* symbol;                   // UTF-8, ended by NUL, as the library's name
      const char* library;
      void** slot;
    };
    extern const struct Extern __gristmill_externs[];   // ended by an entry of null pointers

Who loads the object opens the libraries and stores the addresses, before the first call. A call through a slot that is
still null raises RuntimeError. An object that calls no C function has no table.
"""

from __future__ import annotations

from typing import Final

EXTERN_TABLE: Final = "__gristmill_externs"
"""The symbol of the table."""
