"""The LLVM code generator: textual IR through one writer, compiled by llvmlite.

The shared core (``writer``, ``types``, ``expressions``, ``statements``, ...) turns functions into LLVM IR and asks a
:class:`~gristmill_llvm.profile.Profile` for what differs between machines; ``cpu`` makes the profile of x86-64,
``machine`` compiles, ``generator`` puts it together.
"""
