"""Remove the functions that nothing leads to, before any of them is looked at more closely.

Before::

    function @f() symbol "f" { ... @used() ... }
    function @used() { ... }
    function @unused() { ... }

After::

    function @f() symbol "f" { ... @used() ... }
    function @used() { ... }

What is wrong only with the way that some target would run `@unused` is of no matter: it is never run. Public functions and
kernels that are written as such stay, with all that they call and launch; so does everything where nothing is public.

Ensures: every private function is reached. The functions that stay are the same objects.
"""

from __future__ import annotations

from dataclasses import dataclass

from gristmill.ir.module import CallingConvention, Module
from gristmill.passes.manager import Pass
from gristmill.passes.remove_dead_code import reachable


@dataclass(frozen=True)
class RemoveUnusedFunctions(Pass):
    """Remove the private functions that nothing calls or launches."""

    def run(self, module: Module) -> Module:
        kernels = [
            function.name
            for function in module.functions
            if function.facts.convention is CallingConvention.DEVICE_KERNEL and not function.is_public
        ]
        kept = reachable(module, kernels)
        return module if len(kept) == len(module.functions) else module.with_functions(kept)
