"""Keeps LLVM's remarks about loop hints off the terminal.

LLVM writes to the standard error stream, by itself, when it cannot fulfil a hint of the author. A hint is a wish, and
the lines name no place in the kernel, so nobody is helped by them. llvmlite has no way to receive them instead; so while
LLVM works on code with hints, the stream's descriptor leads into a file, and what is not such a line is written
to the stream afterwards.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STREAM = 2
_one_at_a_time = threading.Lock()
_REMARKS = (b"remark: ", b"warning: ")
_SUBJECTS = (b"loop not ", b"unroll", b"vectoriz", b"interleav")


@contextmanager
def without_remarks() -> Iterator[None]:
    """Run the body while LLVM's remarks about loops are dropped; all other output to the stream comes a little later."""
    with _one_at_a_time:
        try:
            before = os.dup(_STREAM)
        except OSError:  # the process has no such stream, so nothing can be shown
            yield
            return
        try:
            with tempfile.TemporaryFile() as caught:
                os.dup2(caught.fileno(), _STREAM)
                try:
                    yield
                finally:
                    os.dup2(before, _STREAM)
                    _write_rest(caught.fileno())
        finally:
            os.close(before)


def _write_rest(caught: int) -> None:
    size = os.lseek(caught, 0, os.SEEK_END)
    text = os.pread(caught, size, 0)
    rest = b"".join(line for line in text.splitlines(keepends=True) if not _is_remark(line))
    if rest:
        os.write(_STREAM, rest)


def _is_remark(line: bytes) -> bool:
    return line.startswith(_REMARKS) and any(subject in line for subject in _SUBJECTS)
