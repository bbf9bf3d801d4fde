"""Native support code: small shared objects that runtimes load, written here as LLVM IR.

The wheel carries them as data, so that loading and launching need neither llvmlite nor a C compiler. They import
nothing: what they call is handed to them as addresses. Each object states the layout of the structures that it shares
with the runtime that loads it (:mod:`gristmill_llvm.native.layout`), for the two have no module in common.
"""
