"""What of a machine the shared core asks for while it writes IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gristmill.ir.memory import Scope


@dataclass(frozen=True, slots=True)
class Profile:
    """One machine, as the core sees it.

    ``target`` is the target's text for messages; ``cpu``, ``tune`` and ``features`` are LLVM's names.
    ``address_spaces`` gives LLVM's number of an address space where it is not 0. ``operations`` are the names of
    :data:`gristmill.ir.op.OPS` that may be emitted.
    """

    target: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    operations: frozenset[str]
    tune: str = ""
    prefer_vector_bits: int = 0
    address_spaces: Mapping[Scope, int] = field(default_factory=dict)
    is_host: bool = True

    def pointer(self, scope: Scope) -> str:
        """LLVM's type of pointers into memory of a scope."""
        space = self.address_spaces.get(scope, 0)
        return f"ptr addrspace({space})" if space else "ptr"

    @property
    def attributes(self) -> str:
        """The attributes of every function.

        ``no-builtins`` keeps LLVM from making calls of memset, memcpy and libm out of loops and intrinsics.
        """
        found = ["nounwind", '"no-builtins"', f'"target-cpu"="{self.cpu}"']
        if self.features:
            found.append('"target-features"="' + ",".join(f"+{name}" for name in self.features) + '"')
        if self.tune:
            found.append(f'"tune-cpu"="{self.tune}"')
        if self.prefer_vector_bits:
            found.append(f'"prefer-vector-width"="{self.prefer_vector_bits}"')
        return " ".join(found)
