"""The dialects of kernel sources, by the names that manifests and commands use. Importing this costs nothing."""

from __future__ import annotations

DIALECTS = ("gristmill", "tvmscript")
"""Our own spelling, which is the default, and TVM's, whose files say ``from tvm.script import ...``."""
