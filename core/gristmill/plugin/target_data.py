"""The data files of families of processors and devices (``gristmill_targets/NAME.toml``), read when first asked for."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from gristmill.errors import MissingError
from gristmill.plugin.artifacts import Capabilities

DATA_PACKAGE = "gristmill_targets"


@cache
def target_table(name: str) -> Mapping[str, Any]:
    """The table of a family. Raises MissingError (GM0924) where the data is not installed."""
    found = find_spec(DATA_PACKAGE)
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        path = os.path.join(folder, f"{name}.toml")
        if os.path.exists(path):
            with open(path, "rb") as opened:
                return tomllib.load(opened)
    raise MissingError("GM0924", f"the data of {name} targets is not installed", "install gristmill again")


def device_limits(name: str) -> Capabilities:
    """What the family's table says of launches, as the capabilities of a device; all else is as by default."""
    limits = target_table(name)["limits"]
    block, grid = limits["max_block_size"], limits["max_grid_size"]
    return Capabilities(
        is_device=True,
        recursion=False,
        max_threads_per_block=limits["max_threads_per_block"],
        max_block_size=(block[0], block[1], block[2]),
        max_grid_size=(grid[0], grid[1], grid[2]),
        max_shared_memory=limits["max_shared_memory"],
        warp_size=limits["warp_size"],
    )
