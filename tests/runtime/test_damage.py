"""Packs whose manifests say random things, with right checksums: each loads or is refused with a code, never a crash."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from gristmill.errors import MissingError, UserError
from gristmill.pack import open_pack
from gristmill.runtime import Runtimes
from gristmill.runtime.loading import load

NUMBERS = (True, 0, 1, -1, 2**31, 2**64, 10**30, 0.5)
TEXTS = ("", "x", "null", "\x1b[2J", "\ud800", "é" * 50)
OTHERS: tuple[Any, ...] = (None, [], [1], [[]], {}, {"a": 1}, {"": {}})
VALUES = (*NUMBERS, *TEXTS, *OTHERS)
ROUNDS = 2000


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values below ``value``."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    for key, each in inner:
        found += places_in(each, (*path, key))
    return found


def changed(manifest: Any, dice: random.Random) -> Any:
    """The manifest with one to three values replaced, removed or given twice."""
    for _ in range(dice.choice((1, 1, 2, 3))):
        *outer, last = dice.choice(places_in(manifest))
        holder = manifest
        for key in outer:
            holder = holder[key]
        action = dice.random()
        if action < 0.7:
            holder[last] = dice.choice(VALUES)
        elif action < 0.85:
            del holder[last]
        elif isinstance(holder, list):
            holder.append(holder[last])
        else:
            holder[f"{last}_"] = holder[last]
        if not manifest:
            break
    return manifest


def with_manifest(data: bytes, end: int, manifest: Any) -> bytes | None:
    """The pack with another manifest of the same length, if the other is not longer."""
    (size,) = struct.unpack_from("<I", data, 22)
    text = json.dumps(manifest, separators=(",", ":"), ensure_ascii=True).encode()
    if len(text) > size:
        return None
    text = text.ljust(size)
    found = bytearray(data)
    found[end - size : end] = text
    found[14:18] = struct.pack("<I", zlib.crc32(text))
    return bytes(found)


def test_manifests_that_say_random_things(make_pack: Callable[..., bytes], runtimes: Runtimes) -> None:
    seed = 20_250_101
    print(f"seed {seed}")
    dice = random.Random(seed)
    codes = (("null", "null", {"a" * 400: "room for longer values"}), ("null", "null", {}))
    data = make_pack(*codes)
    with open_pack(data) as reader:
        end = reader.manifest_end
    (size,) = struct.unpack_from("<I", data, 22)
    original = json.loads(data[end - size : end])
    original["blobs"][0]["requirements"] = {}
    text = json.dumps(original)
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS):
        damaged = with_manifest(data, end, changed(json.loads(text), dice))
        if damaged is None:
            outcomes["too long"] += 1
            continue
        try:
            pack = load(damaged, runtimes=runtimes)
        except (UserError, MissingError) as error:
            outcomes[error.code] += 1
            continue
        for name in pack.functions:
            if name in dir(pack):
                pack[name]
        outcomes["loaded"] += 1
    print(outcomes)
    assert outcomes["too long"] < ROUNDS / 4
    assert {"GM0803", "GM0804", "GM0806", "GM0914", "loaded"} <= outcomes.keys()
