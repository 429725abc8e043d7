"""Tests of `surefoot.decide.prompts.page`."""

from __future__ import annotations

from surefoot.decide.prompts.improve import Change, Improved
from surefoot.decide.prompts.page import headline, prompts_page


def result(reward: float, text: str = "Tea <b>") -> Improved:
    change = Change(mutation="expansion", tokens=3, text=f"{text} please")
    return Improved(original=text, score_before=-0.2, score=-0.2 + reward, changes=[change])


def test_the_headline_compares_mean_rewards():
    ways = {"policy": [result(0.1), result(0.3)], "random": [result(0.0), result(0.1)]}
    assert headline(ways) == "2 prompts: policy earns 0.200 per prompt, random 0.050."


def test_the_page_escapes_prompts_and_shows_every_section():
    page = prompts_page("run", {"policy": [result(0.1)]}, [(0.0, 0.0), (10.0, 0.1)], token_cost=0.002)
    assert "Tea <b>" not in page
    assert "Tea &lt;b&gt;" in page
    for name in ("curve", "compared", "chosen", "spread", "categories", "examples"):
        assert f'id="{name}"' in page


def test_a_short_run_has_no_learning_curve():
    assert "Too few updates" in prompts_page("run", {"policy": [result(0.1)]}, [(0.0, 0.0)], token_cost=0.0)
