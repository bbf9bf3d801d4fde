"""Print ``N passed, N failed`` over the reports that the tests of all environments left in a folder.

Usage: ``count.py FOLDER STATUS``. Where nothing failed in the reports and the status is not 0 all the same (style,
types, an environment that could not be made), that is one failure more.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree
from pathlib import Path


def count(folder: Path, status: int) -> tuple[int, int]:
    """How many tests passed and how many failed."""
    passed = failed = 0
    for report in sorted(folder.glob("*.xml")):
        for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
            wrong = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            failed += wrong
            passed += int(suite.get("tests", 0)) - wrong - int(suite.get("skipped", 0))
    if status and not failed:
        failed = 1
    return passed, failed


if __name__ == "__main__":
    print("{} passed, {} failed".format(*count(Path(sys.argv[1]), int(sys.argv[2]))))
