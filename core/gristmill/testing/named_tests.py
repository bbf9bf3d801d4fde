"""Lists of behaviours that name the tests which show them: whether there are such tests."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

_TEST = re.compile(r"(?P<file>[a-z_]+/test_[a-z_]+\.py)::(?P<function>test_\w+)(?:\[(?P<case>[^\]]+)\])?")


def fault_of(test: str, folder: Path) -> str:
    """Why a name, as ``folder/test_file.py::test_name[case]``, is no test below a folder; empty for one."""
    found = _TEST.fullmatch(test)
    if found is None:
        return f"{test!r} is not of the form folder/test_file.py::test_name[case]"
    path = folder / found["file"]
    if not path.is_file():
        return f"there is no file {found['file']}"
    functions, texts = _written(path)
    if found["function"] not in functions:
        return f"{found['file']} has no test {found['function']}"
    if found["case"] is not None and found["case"] not in texts:
        return f"{found['file']} has no case {found['case']!r}"
    return ""


@cache
def _written(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The test functions of a file, and the texts that stand in it: names of cases among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(functions), frozenset(texts)
