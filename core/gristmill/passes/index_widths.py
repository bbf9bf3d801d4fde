"""What kernels of devices may compute indices in, as a build asks for it."""

from __future__ import annotations

AUTO = "auto"
"""What suits the target."""
NARROW = "narrow"
"""32 bits; launches whose indices do not fit are refused."""
BOTH = "both"
"""Two kernels, one in 32 bits and one in 64, as far as there is a difference; each launch takes the one that fits."""
WIDE = "wide"
"""64 bits."""

WIDTHS = (AUTO, BOTH, NARROW, WIDE)
