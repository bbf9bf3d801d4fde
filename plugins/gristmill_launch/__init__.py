"""Launch lowering: what turns public functions into the packed host interface, and (later) device regions into kernels."""
