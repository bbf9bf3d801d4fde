"""`gristmill run` of a kernel source: results, and what the executor reports at the user's line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gristmill.cli import main

SOURCE = """\
from gristmill.script import tir as T


@T.prim_func
def shifted(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32"), by: T.int64):
    for i in range(n):
        y[i] = x[i + by]


@T.prim_func
def count(x: T.Buffer(("n",), "float32")) -> T.int64:
    return n
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(SOURCE)
    return "kernels.py"


def test_results(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.arange(5, dtype=np.float32))
    arguments = ["run", source, "shifted", "x.npy", "zeros:5:float32", "0", "--save", "2=y.npy", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "the reference executor"
    np.testing.assert_array_equal(np.load("y.npy"), np.arange(5))


def test_returned_value(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", source, "count", "ones:7:float32"]) == 0
    assert "returned 7" in capsys.readouterr().out


def test_access_out_of_bounds_is_shown_at_its_line(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", source, "shifted", "ones:5:float32", "zeros:5:float32", "1"]) == 1
    message = capsys.readouterr().err
    assert "error[GM0501]" in message
    assert "kernels.py:7:16" in message
    assert "y[i] = x[i + by]" in message
    assert "5" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["shiftd"], "did you mean `shifted`?"),
        (["shifted", "ones:5:float32"], "GM05"),
        (["shifted", "--device", "cpu:0"], "is not built for cpu:0"),
        (["shifted", "ones:5:float32", "ones:4:float32", "0"], "GM05"),
    ],
)
def test_mistakes(source: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", source, *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_missing_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path / "nothing.py"), "f"]) == 1
    assert "error[GM" in capsys.readouterr().err


MET = """\
from gristmill.script import tir as T


@T.prim_func
def turned(x: T.Buffer((8,), "float32")):
    t = T.launch_thread("threadIdx.x", 8)
    line = T.alloc_shared((8,), "float32")
    line[t] = x[t]
    x[t] = line[7 - t]


@T.prim_func
def alone(x: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        x[i] = x[(i + 1) % 8]
"""


def test_where_a_barrier_is_still_to_come_it_says_so(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(source).write_text(MET)
    assert main(["run", source, "turned", "ones:8:float32"]) == 1
    shown = capsys.readouterr().err
    assert "GM0502" in shown
    assert "note: the source is run as it stands" in shown
    assert "`reference` and run the pack" in shown
    assert "x[t] = line[7 - t]" in shown
    assert main(["run", source, "alone", "ones:8:float32"]) == 1
    shown = capsys.readouterr().err
    assert "GM0505" in shown
    assert "as it stands" not in shown
