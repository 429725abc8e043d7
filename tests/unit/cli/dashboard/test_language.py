"""The dashboard of a language run: every frame fills the terminal, and shows numbers, guards and samples."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from surefoot.cli.dashboard.language import (
    LanguageHeader,
    LanguageHistory,
    LanguageMoment,
    language_closing,
    language_frame,
)
from surefoot.cli.dashboard.screen import LiveScreen
from surefoot.cli.dashboard.text_boxes import length

HEADER = LanguageHeader(
    model="smollm2",
    algorithm="ppo",
    run_dir="runs/polite",
    steps=20,
    resume="surefoot lm ppo --resume polite --reward …",
    limits={"kl_budget": 12.0, "nll_limit": 0.15, "repetition_limit": None, "refusal_limit": None},
)


def moment(number: int, **more: float) -> LanguageMoment:
    sample = SimpleNamespace(prompt="Where is my parcel?", response="It is on\nits way.", score=0.75)
    stats = {"score": 0.1 * number, "kl": 0.5 * number, "beta": 0.05, "response_length": 20.0, "tokens": 640.0} | more
    step = SimpleNamespace(number=number, stats=stats, samples=(sample,), seconds={"generate": 2.0})
    return LanguageMoment(step, ("a reward was not a number",) if number == 2 else (), 3.0 * number)  # type: ignore[arg-type]


def history() -> LanguageHistory:
    made = LanguageHistory(HEADER)
    made.add(moment(1, reference_nll=1.5))
    made.add(moment(2, judge=0.61, judge_best=0.61, eval_nll_drift=1.2))
    return made


def text(lines: list) -> str:
    return "\n".join("".join(piece for piece, _ in line) for line in lines)


@pytest.mark.parametrize("size", [(160, 50), (120, 40), (80, 24), (60, 20), (40, 12)])
@pytest.mark.parametrize("steps", [0, 2])
def test_a_frame_fills_the_terminal_exactly(size: tuple[int, int], steps: int):
    lines = language_frame(history() if steps else LanguageHistory(HEADER), *size, 7.0)
    assert len(lines) == size[1]
    assert {length(line) for line in lines} == {size[0]}


def test_numbers_guards_and_samples_are_shown():
    shown = text(language_frame(history(), 140, 44, 7.0))
    assert "step 2 / 20" in shown
    assert "320 tokens/s" in shown  # 640 tokens in 2 seconds
    for label in ("score", "judge", "KL, nats", "beta", "length", "NLL of reference"):
        assert label in shown
    assert "0.2 of 0.15" in shown, "the reference NLL rose by 20 %, the limit is 15 %"
    assert "1 of 12" in shown
    assert "It is on its way." in shown
    assert "samples of step 1" in shown
    assert "samples of step 2" in shown
    assert "generate 2.00" in shown
    assert "a reward was not a number" in shown


def test_the_guard_beyond_its_limit_is_red_and_the_other_green():
    styles = {text: style for line in language_frame(history(), 80, 44, 7.0) for text, style in line}
    assert styles["0.2 of 0.15"] == "bold red"
    assert styles["1 of 12"] == "green"


def test_the_remaining_time_follows_from_the_steps_of_this_process():
    made = LanguageHistory(HEADER)
    made.add(moment(11))  # a resumed run: one step in 33 seconds
    assert made.eta == pytest.approx(33.0 * 9)


def test_the_live_screen_draws_it_and_leaves_a_summary():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, height=30)
    screen = LiveScreen(console, make=LanguageHistory, draw=language_frame, finish=language_closing)
    screen.open(HEADER)
    screen.show(moment(1))
    screen.close("finished")
    assert "finished after step 1 of 20" in stream.getvalue()
    assert "surefoot lm report runs/polite" in stream.getvalue()
