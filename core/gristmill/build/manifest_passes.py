"""The passes that a manifest names: whether plugins offer them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gristmill.build.manifest import Manifest, ModuleEntry, ModuleTargetEntry
from gristmill.errors import Diagnostic, UserError
from gristmill.passes.options import unknown_pass
from gristmill.plugin.guarded import passes_named

if TYPE_CHECKING:
    from gristmill.plugin.registry import Registry


def unknown_passes(manifest: Manifest, registry: Registry) -> list[Diagnostic]:
    """A diagnostic for each name in ``passes`` that no plugin offers as an optional pass (GM0602).

    Raises PluginError where such a name is that of a plugin which is broken.
    """
    optional: dict[str, object] = {}
    found: list[Diagnostic] = []
    for module in manifest.modules:
        parts: list[ModuleEntry | ModuleTargetEntry] = [module, *module.overrides.values()]
        for part in parts:
            for position, name in enumerate(part.passes or ()):
                optional = optional or {entry.name: entry for entry in registry.pass_entries() if not entry.required}
                if name not in optional:
                    place = part.place_of("passes", position)
                    found += [replace(each, place=place) for each in unknown_pass(name, optional).diagnostics]
    if found:
        with suppress(UserError), passes_named(registry):
            raise UserError(found)
    return found
