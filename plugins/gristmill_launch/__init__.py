"""Launch lowering: what turns device regions into kernels, and public functions into the packed host interface."""
