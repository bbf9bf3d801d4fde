"""What code generators share: the packed host interface as data."""
