"""Transformations of IR, one file a pass, and the pipeline that orders them."""
