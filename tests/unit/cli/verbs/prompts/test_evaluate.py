"""`surefoot prompts eval` and `surefoot prompts report`."""

from __future__ import annotations

import json
import re

from surefoot.cli.main import main
from surefoot.decide.prompts.improve import Improved
from surefoot.decide.prompts.page import prompts_page

PROMPTS = ["Write a story about bees.", "What is tea?", "Review this code for bugs.", "Explain rain."]


def test_a_policy_is_measured_and_reported(tmp_path, capsys):
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS))
    runs = ["--runs", str(tmp_path / "runs")]
    train = ["prompts", "train", "--prompts", str(tmp_path / "prompts.txt"), "--name", "mine", "-n", "40"]
    assert main([*train, *runs]) == 0
    capsys.readouterr()
    assert main(["prompts", "eval", "mine", "--json", *runs]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["prompts"] == 4
    assert set(rows["rows"]) == {"the policy", "no change", "at random"}
    assert rows["rows"]["no change"]["gain"] == 0.0
    assert main(["prompts", "report", "mine", *runs]) == 0
    assert "the policy earns" in capsys.readouterr().out
    page = (tmp_path / "runs/mine/prompts.html").read_text()
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["curve", "compared", "chosen", "spread", "categories", "examples"]
    assert "default-src 'none'" in page
    assert "Write a story about bees." in page
    assert main(["runs", *runs]) == 0


def test_what_prompts_say_cannot_break_out_of_the_page():
    bad = Improved(original="<script>alert(1)</script>", score_before=0.1, score=0.2)
    page = prompts_page("<b>run</b>", {"the policy": [bad]}, [], token_cost=0.008)
    assert "<script>" not in page
    assert "<b>run" not in page
