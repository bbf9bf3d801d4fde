"""Room for recursion: enough for each thread, and the limit as before when all are done."""

from __future__ import annotations

import sys
import threading

import pytest

from gristmill.recursion import room_for


def recurse(levels: int) -> int:
    return 0 if levels == 0 else 1 + recurse(levels - 1)


def test_room_is_added_and_taken_away() -> None:
    before = sys.getrecursionlimit()
    with room_for(before):
        assert recurse(before) == before
        with room_for(500):
            assert sys.getrecursionlimit() == 2 * before + 500
    assert sys.getrecursionlimit() == before
    with pytest.raises(RecursionError):
        recurse(before)


def test_room_is_given_back_after_an_error() -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(KeyError), room_for(100):
        raise KeyError
    assert sys.getrecursionlimit() == before


def test_one_thread_that_ends_leaves_another_its_room() -> None:
    before = sys.getrecursionlimit()
    entered, ended = threading.Event(), threading.Event()
    found: list[int] = []

    def second() -> None:
        with room_for(3 * before):
            entered.set()
            ended.wait()
            found.append(recurse(3 * before))

    thread = threading.Thread(target=second)
    with room_for(before):
        thread.start()
        entered.wait()
    ended.set()
    thread.join()
    assert found == [3 * before]
    assert sys.getrecursionlimit() == before
