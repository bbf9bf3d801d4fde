"""The LLVM code generator: textual IR through one writer, compiled by llvmlite."""
