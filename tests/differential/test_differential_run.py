"""Long runs of random programs: shards cover all seeds, a stopped run goes on, failures are kept and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gristmill.ir import expr as e
from gristmill.ir.dtype import INT64
from gristmill.ir.functor import Mutator
from gristmill.testing import differential_run
from gristmill.testing.differential_run import INDEX_LIMITS, Progress, choice_of, main, seeds_of, summary, target_of
from gristmill.testing.on_device import DeviceBackend


def test_shards_cover_all_seeds_once() -> None:
    shards = [seeds_of(100, 10, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(seed for shard in shards for seed in shard) == list(range(100, 110))
    for wrong in ("0/3", "4/3", "1", "a/b", "-1/2"):
        with pytest.raises(ValueError, match="is no shard"):
            seeds_of(0, 10, wrong)


def test_choices_meet_each_other() -> None:
    assert {choice_of(seed) for seed in range(180)} == {
        (optimization, interpreted, verify, limit)
        for optimization in (0, 3)
        for interpreted in (False, True)
        for verify in (False, True)
        for limit in INDEX_LIMITS
    }


def test_targets_with_options() -> None:
    assert target_of("vulkan:1.2+address", ["max_shared_memory=32768"]).options == (("max_shared_memory", 32768),)
    with pytest.raises(ValueError, match="'max_shared_memory' is no option"):
        target_of("vulkan", ["max_shared_memory"])


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state.json"
    arguments = ["--programs", "4", "--resume", str(state), "--seed", "7"]
    assert main([*arguments, "--minutes", "0.0001"]) == 0
    assert json.loads(state.read_text())["done"] == 1
    assert "| 1 | 7 to 7 | 0 |" in capsys.readouterr().out
    assert main(arguments) == 0
    assert json.loads(state.read_text())["done"] == 4
    assert "| 4 | 7 to 10 | 0 |" in capsys.readouterr().out
    assert main([*arguments, "--kind", "plain"]) == 2
    assert "is of another run" in capsys.readouterr().err


def test_what_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shard", "3/2"]) == 2
    assert main(["--leave-out", "nothing"]) == 2
    assert "there are no constructs ['nothing']" in capsys.readouterr().err


class _WrongSums(Mutator):
    """Differences for sums, but of int64, which indices are."""

    def visit_Add(self, node: e.Add) -> e.Expr:
        found = self.generic(node)
        return found if node.dtype.element == INT64 else e.Sub(found.a, found.b)


def test_failures_are_kept_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = DeviceBackend.__call__

    def wrong(self: DeviceBackend, module, function, args):
        body = [each.with_body(_WrongSums().visit(each.body)) for each in module.functions]
        return right(self, module.with_functions(body), function, args)

    monkeypatch.setattr(differential_run.DeviceBackend, "__call__", wrong)
    found = 0
    for seed in range(40):
        folder, state = tmp_path / f"failures{seed}", tmp_path / f"state{seed}.json"
        if main(["--programs", "1", "--seed", str(seed), "--failures", str(folder), "--resume", str(state)]):
            found += 1
            assert json.loads(state.read_text())["failures"] == [seed]
            (kept,) = folder.iterdir()
            assert kept.read_text() in capsys.readouterr().out
            break
    assert found


def test_summary_says_which_seeds() -> None:
    run = {"kind": "device", "target": "vulkan", "device": "vulkan:0", "without": "VK_KHR_push_descriptor"}
    row = summary(Progress(dict(run), done=1000, failures=[3]), seeds_of(1, 4000, "1/2"))
    assert "device programs, `vulkan` on vulkan:0, without VK_KHR_push_descriptor | 1,000 | 1 to 1999" in row
    assert row.endswith("| 1 (seeds [3]) |")
