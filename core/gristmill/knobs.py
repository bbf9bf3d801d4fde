"""Every environment variable that Gristmill reads: typed, documented, read at the moment of use.

Nothing here changes what is built: what does belongs in ``kernels.toml``, where it is part of a build's identity.
``NO_COLOR`` and ``FORCE_COLOR``, which are everybody's, are read by :func:`gristmill.errors.wants_color`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gristmill.errors import Diagnostic, UserError

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Knob(Generic[Value]):
    """One variable: its name, what it does, and how its text is read.

    ``read`` gets a text that is not empty and raises ValueError with what is expected; an empty or absent variable is
    the default.
    """

    name: str
    meaning: str
    default: Value
    read: Callable[[str], Value]
    default_text: str
    """What holds where the variable is not set, in words."""

    def value(self) -> Value:
        """What the variable says now. Raises UserError (GM0003) where it can't be read."""
        text = os.environ.get(self.name, "").strip()
        if not text:
            return self.default
        try:
            return self.read(text)
        except ValueError as error:
            message = f"the environment variable {self.name} is `{text[:80]}`, which is not {error}"
            raise UserError(Diagnostic("GM0003", message, hint=f"{self.meaning} Unset it for the default.")) from None


def _switch(text: str) -> bool:
    if text.lower() in {"1", "true", "yes", "on"}:
        return True
    if text.lower() in {"0", "false", "no", "off"}:
        return False
    raise ValueError("1 or 0")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 1024 or len(text) > 6:
        raise ValueError("a number from 1 to 1024")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.replace("|", ",").split(",") if name.strip())


def _path(text: str) -> str:
    return os.path.expanduser(text)


TRACEBACK = Knob("GRISTMILL_TRACEBACK", "1 shows Python's traceback under internal errors.", False, _switch, "off")

DISABLED_PLUGINS: Knob[tuple[str, ...]] = Knob(
    "GRISTMILL_DISABLE_PLUGINS",
    "Plugins to leave out, by entry-point or distribution name, separated by commas.",
    (),
    _names,
    "none",
)

CACHE_FOLDER = Knob(
    "GRISTMILL_CACHE_DIR",
    "Folder of the build cache; by default `gristmill` in the user's cache folder.",
    "",
    _path,
    "the user's cache folder",
)

THREADS = Knob(
    "GRISTMILL_NUM_THREADS",
    "How many threads parallel loops use; by default as many as the process may run on.",
    0,
    _count,
    "all that the process may use",
)

DUMP_FOLDER = Knob(
    "GRISTMILL_DUMP",
    "Folder that the module is written to after every pass that changed it, numbered.",
    "",
    _path,
    "nothing is written",
)

NATIVE = Knob(
    "GRISTMILL_NATIVE",
    "0 leaves native support code unused: launches go through Python, slower and with the same results.",
    True,
    _switch,
    "on",
)

VULKAN_VALIDATION = Knob(
    "GRISTMILL_VULKAN_VALIDATION",
    "1 runs Vulkan's validation layer, with its checks of synchronisation; slow.",
    False,
    _switch,
    "off",
)

VULKAN_WITHOUT: Knob[tuple[str, ...]] = Knob(
    "GRISTMILL_VULKAN_WITHOUT",
    "Features and extensions of Vulkan devices to leave unused, as `VK_KHR_push_descriptor`, separated by commas.",
    (),
    _names,
    "none",
)

VULKAN_DUMP = Knob(
    "GRISTMILL_VULKAN_DUMP",
    "Folder that the SPIR-V of every kernel is written to when it is loaded, for `spirv-dis` and `spirv-val`.",
    "",
    _path,
    "nothing is written",
)

ALL: tuple[Knob[bool] | Knob[str] | Knob[int] | Knob[tuple[str, ...]], ...] = (
    TRACEBACK,
    DISABLED_PLUGINS,
    CACHE_FOLDER,
    THREADS,
    DUMP_FOLDER,
    NATIVE,
    VULKAN_VALIDATION,
    VULKAN_WITHOUT,
    VULKAN_DUMP,
)


def cache_folder() -> str:
    """Where the build cache is: the knob, else ``$XDG_CACHE_HOME/gristmill``, else ``~/.cache/gristmill``."""
    named = CACHE_FOLDER.value()
    if named:
        return named
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "gristmill")
