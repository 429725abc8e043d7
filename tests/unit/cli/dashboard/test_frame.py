"""One frame of the dashboard fills the terminal and names what is out of range."""

from __future__ import annotations

import pytest

from surefoot.cli.dashboard.frame import frame
from surefoot.cli.dashboard.history import RunHistory
from surefoot.cli.dashboard.text_boxes import length
from surefoot.learn.report import UpdateReport

from .examples import HEADER, a_finding, after, evaluation, moment, plain


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (100, 30), (140, 45), (200, 60), (60, 20), (40, 10), (20, 5), (300, 12), (10, 3)]
)
@pytest.mark.parametrize("updates", [0, 1, 40])
def test_a_frame_fills_any_terminal_exactly(width: int, height: int, updates: int):
    lines = frame(after(updates, evaluation=evaluation(), notes=("wörter 世界 " * 30,)), width, height, 1.0)
    assert len(lines) == height
    assert {length(line) for line in lines} == {width}


def test_a_small_terminal_still_shows_everything_that_matters():
    page = "\n".join(plain(after(40, evaluation=evaluation()), 80, 24))
    for text in ("CartPole-v1", "40.0 %", "40,000", "10,000/s", "eta 0:06", "87.4", "target 475", "◆", "approx kl"):
        assert text in page
    for text in ("0.0081", "<0.02", "ok", "expl. var", "env 20%", "policy 30%", "learn 40%", "rest 10%", "Ctrl-C"):
        assert text in page


def test_a_number_out_of_range_is_named_in_words():
    history = RunHistory(HEADER)
    for update in range(1, 41):
        wild = moment(update)
        history.add(moment(update, report=UpdateReport(**(wild.report.as_dict() | {"approx_kl": 0.3, "epochs": ()}))))
    page = "\n".join(plain(history, 100, 30))
    assert "approx kl high" in page


@pytest.mark.parametrize(("width", "height"), [(140, 45), (100, 40), (80, 30)])
def test_a_finding_stays_on_the_screen_until_it_is_over(width: int, height: int):
    history = after(30)
    history.add(moment(31, findings=(a_finding(),)))
    for update in range(32, 60):
        history.add(moment(update, notes=(f"note {update}",)))
    assert any("R03 Updates move the policy too far" in line for line in plain(history, width, height))
    history.add(moment(60, findings=(a_finding(status="resolved"),)))
    assert not any("Updates move" in line for line in plain(history, width, height))


def test_advice_is_not_put_on_the_screen():
    history = after(3)
    history.add(moment(4, findings=(a_finding(severity="info"),)))
    assert not any("Updates move" in line for line in plain(history, 120, 40))
