"""The CPU runtime: loads shared objects out of packs and calls them."""
