"""How Sphinx makes the documentation; `tox -e docs` runs it."""

project = "Gristmill"
copyright = "the Gristmill maintainers"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Gristmill"
# References into the repository (the README, the licence) are links on a forge, not pages here.
suppress_warnings = ["myst.xref_missing"]
