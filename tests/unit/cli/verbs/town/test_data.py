"""`surefoot town capture`, `replay`, `samples` and `scenarios`."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.cli.main import main


def test_a_bad_scenario_a_bad_sample_and_an_unknown_agent_are_one_sentence(tmp_path: Path, capsys) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nticks: 3\nagnts: []\n")
    assert main(["town", "scenarios", str(bad)]) == 2
    assert "bad.yaml:3: unknown key 'agnts'; did you mean 'agents'?" in capsys.readouterr().err
    assert main(["town", "replay", str(tmp_path / "none.npz"), "--validate"]) == 2
    assert main(["town", "samples", "-o", str(tmp_path / "s")]) == 0
    assert main(["town", "replay", str(tmp_path / "s/replay_manifest.json"), "--validate"]) == 0
    assert main(["town", "replay", str(tmp_path / "s/replay_manifest.json"), "--agent", "zoe"]) == 2
    assert "no sample of zoe" in capsys.readouterr().err
    assert main(["town", "capture", "queue_conflict", "-o", str(tmp_path), "--agent-id", "zoe", "--ticks", "2"]) == 2
    assert "no agent zoe" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["capture", "-o", "c"], ["watch", "--plain"], ["film", "-o", "f.html"]])
def test_no_ticks_at_all_are_refused(verb: list[str], capsys) -> None:
    assert main(["town", verb[0], "queue_conflict", *verb[1:], "--ticks", "0"]) == 64
    assert "--ticks is 0" in capsys.readouterr().err
