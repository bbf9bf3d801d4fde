"""`[project] host`: the machines that host parts of device code are compiled for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gristmill.build.driver import check
from gristmill.errors import UserError

KERNEL = """from gristmill.script import tir as T


@T.prim_func
def double(x: T.Buffer(("n",), "float32")):
    for i in range(n):
        x[i] = x[i] * 2.0
"""
MANIFEST = """schema = 1
[project]
name = "p"
host = [{hosts}]
[targets]
one = "{target}"
[[module]]
name = "m"
source = "m.py"
"""


def project(folder: Path, hosts: str, target: str) -> Path:
    (folder / "m.py").write_text(KERNEL)
    (folder / "kernels.toml").write_text(MANIFEST.format(hosts=hosts, target=target))
    return folder / "kernels.toml"


def test_a_host_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        check(project(tmp_path, '"x86-64-v2", "x86-64-v33", "native"', "reference"))
    first, second = caught.value.diagnostics
    assert first.code == "GM1102"
    assert "`x86-64-v33`" in first.message
    assert "did you mean `x86-64-v3`" in first.hint
    assert first.place is not None
    assert first.place.line == 4
    assert "`native`" in second.message


def test_hosts_do_not_matter_without_devices(tmp_path: Path) -> None:
    assert check(project(tmp_path, '"x86-64-v33"', "cpu")).project.host == ("x86-64-v33",)
