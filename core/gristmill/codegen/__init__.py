"""What code generators share: the packed host interface, tables for launches, records of kernels."""
