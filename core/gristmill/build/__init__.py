"""From ``kernels.toml`` to packs: manifest, plan, cache, executor, report."""
