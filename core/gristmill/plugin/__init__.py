"""How targets, code generators, passes, runtimes and commands join Gristmill: hook specifications, protocols, registry."""
