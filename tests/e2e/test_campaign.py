"""A tenth of the campaign: each block finds nothing, and its defects are found.

The blocks that kill services, saves, workers and trainings have a tenth of theirs in the tests of those.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from campaign import kill_learner  # noqa: E402
from campaign.frame import caught  # noqa: E402
from campaign.runner import all_blocks, main, run_block, verdict  # noqa: E402

ELSEWHERE = {
    "K1": "test_serve.py",
    "K2": "test_checkpoint_kills.py",
    "K3": "test_supervise.py",
    "K3b": "../unit/scale/test_backend.py",
    "K3c": "test_together.py",
    "K4": "test_resume.py",
    "B2": "test_serve.py",
    "L1": "test_lm.py",
}
NOT_IN_TESTS = {"A1": "asks the net", "A2": "asks the net", "M1": "runs the tests again"}
ALL_MUTANTS = {"T1", "B1", "B3", "D1", "D2", "G1"}
"""Of the others `make campaign` has them."""


@pytest.mark.parametrize("name", [n for n in all_blocks() if n not in ELSEWHERE and n not in NOT_IN_TESTS])
def test_a_block_is_green_and_its_defects_are_caught(name: str):
    block = all_blocks()[name]
    if name in ALL_MUTANTS:
        told = run_block(block, "smoke")
        assert [defect for defect, mutant in told["mutants"].items() if not caught(mutant)] == []
        found = told["found"]
    else:
        found = block.check(block.smoke, "").to_json()
    if found["not_here"]:
        pytest.skip(found["not_here"])
    assert found["green"], found


def test_one_block_from_the_command_line_keeps_what_it_found(tmp_path: Path):
    command = [sys.executable, str(BENCHMARKS / "campaign"), "--size", "campaign", "--only", "G1"]
    done = subprocess.run([*command, "--out", str(tmp_path / "c.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = json.loads((tmp_path / "c.json").read_text())
    assert list(kept["blocks"]) == ["G1"]
    assert verdict(kept["blocks"]["G1"]) in done.stdout


def test_a_block_that_nobody_knows_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    assert main(["--only", "K99"]) == 64
    assert "no block is called K99; there are K1, " in capsys.readouterr().err


def test_the_program_that_k4_kills_tells_every_update(tmp_path: Path):
    spec = kill_learner.from_tests("e2e/test_resume.py").spec_for("discrete")
    assert sorted(kill_learner.train(tmp_path / "run", json.dumps(spec.to_json()), 3, "")) == [1, 2, 3]
