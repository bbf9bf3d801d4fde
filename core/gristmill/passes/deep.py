"""Work on deeply nested IR: run a function that recurses over it so that it does not end in a RecursionError.

Python frames of the interpreter live on the heap since 3.11, so raising the limit is enough for passes, which recurse
in plain Python only. Very deep IR runs in a thread with a large stack as well, for what C code lies between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from gristmill.ir.functor import children
from gristmill.ir.node import Node
from gristmill.recursion import room_for

T = TypeVar("T")

_FRAMES_PER_LEVEL = 8
_ROOM = 2_000
_DEPTH_WITHOUT_THREAD = 2_000
_STACK_BYTES = 512 * 1024 * 1024


def depth(node: Node) -> int:
    """How many nodes lie on the longest way down, this one included."""
    deepest = 0
    stack = [(node, 1)]
    while stack:
        current, level = stack.pop()
        if level > deepest:
            deepest = level
        if type(current).CHILDREN:
            level += 1
            for child in children(current):
                stack.append((child, level))
    return deepest


def run_deep(work: Callable[[], T], node: Node) -> T:
    """The result of ``work``, which recurses over ``node`` (or what it makes of it), with room for its depth."""
    levels = depth(node)
    frames = levels * _FRAMES_PER_LEVEL * 2 + _ROOM
    if levels <= _DEPTH_WITHOUT_THREAD:
        with room_for(frames):
            return work()
    return _in_large_thread(work, frames)


def _in_large_thread(work: Callable[[], T], frames: int) -> T:
    results: list[T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed to the caller's thread, whatever it is
            failures.append(error)

    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=body, name="gristmill-passes")
        with room_for(frames):
            thread.start()
            thread.join()
    finally:
        threading.stack_size(before)
    if failures:
        raise failures[0]
    return results[0]
