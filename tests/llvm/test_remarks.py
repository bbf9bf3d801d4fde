"""What LLVM writes about loops is dropped; what anybody else writes meanwhile is not."""

from __future__ import annotations

import os

from gristmill_llvm.remarks import without_remarks


def test_only_remarks_are_dropped(capfd):
    with without_remarks():
        os.write(
            2, b"remark: <unknown>:0:0: loop not vectorized: why\nwarning: <unknown>:0:0: loop not unrolled: why\n"
        )
        os.write(2, b"another thread says something\nwarning: of its own\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "another thread says something\nwarning: of its own\nafter\n"


def test_the_stream_is_back_after_an_error(capfd):
    try:
        with without_remarks():
            raise KeyError
    except KeyError:
        os.write(2, b"here\n")
    assert capfd.readouterr().err == "here\n"
