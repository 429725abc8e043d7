"""What `surefoot lm ppo` and `surefoot lm dpo` share: the device, the scorers, the run on disk, and the lines they print."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.cli.options import Track, command_line, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.lm import dpo
    from surefoot.lm.policy.backbone import Backbone
    from surefoot.lm.run import LMRun
    from surefoot.lm.training import LMStep, LMTraining
    from surefoot.train.rundir.rundir import RunDir


def pick_device(name: str) -> str:
    """Return the torch device for device; raise `Usage` if this machine does not have it."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as why:
        known = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise Usage(f"device={name} does not work here; there is {', '.join(known)}, or leave it at auto") from why
    return name


def find_scorer(name: str, option: str, backbone: Backbone | None = None, model: str = "") -> Any:
    """Return the reward or judge of a command line: a directory of `surefoot lm reward`, [MODEL@]URL, or MODULE:FUNCTION."""
    from surefoot.lm.load_run import load_reward
    from surefoot.lm.rewards.url_judge import UrlJudge

    if Path(name).is_dir():
        return load_reward(name, beside=backbone, beside_name=model)
    return UrlJudge(name) if "://" in name else user_object(name, option)


def train(
    training: LMTraining | dpo.DPOTraining,
    directory: RunDir | None,
    about: dict[str, Any],
    *,
    name: str | None,
    track: Track = (),
    as_json: bool = False,
) -> int:
    """Create or resume a run on disk, train to its end or to Ctrl-C, and print a line per step."""
    from surefoot.cli.dashboard.screen import can_draw
    from surefoot.cli.drive import open_mirrors
    from surefoot.lm.dpo import DPOTraining
    from surefoot.lm.run import create, resume
    from surefoot.train.interrupt import GentleStop
    from surefoot.train.rundir.rundir import new_run_dir

    command, is_new = command_line(), directory is None
    if directory is None:
        directory = new_run_dir(Path(about["model"]).name, training.config.seed, name=name)
    mirrors = open_mirrors(directory.path, track, None)
    run = (create if is_new else resume)(directory, training, about=about, command=command, mirrors=mirrors)
    if not as_json:
        backbone = training.policy.backbone
        size = (
            f"{len(training.pairs)} pairs" if isinstance(training, DPOTraining) else f"{len(training.prompts)} prompts"
        )
        template = ", asked through the chat template" if training.speech.chat else ""
        print(
            f"{directory.path}: {size}{template}, {sum(p.numel() for p in training.policy.parameters()):,} trainable "
            f"parameters ({backbone.train}, {backbone.dtype})"
        )
    try:
        with GentleStop() as gentle:
            if as_json or not can_draw(sys.stdout):
                _steps(run, gentle, as_json)
            else:
                _live(run, gentle)
    except BaseException as why:
        run.close("interrupted" if isinstance(why, KeyboardInterrupt) else "error", f"{type(why).__name__}: {why}")
        # A run that failed in its first step has nothing to look at or to continue.
        if is_new and training.steps == 0:
            shutil.rmtree(directory.path, ignore_errors=True)
        raise
    run.close("finished" if training.finished else "interrupted", training.stopped or "")
    if as_json:
        return 0
    if not training.finished:
        resume_with = directory.read_header()["resume"]
        print(f"interrupted after step {training.steps} of {training.config.steps}, which is saved; `{resume_with}`")
    print(f"surefoot lm report {directory.path}    surefoot lm chat {directory.path}")
    return 0


def _steps(run: LMRun, gentle: Any, as_json: bool) -> None:
    began, first = time.perf_counter(), run.training.steps
    shown: str | None = None
    for step, notes in run.steps(lambda: gentle.requested):
        if as_json:
            print(json.dumps({"step": step.number, **step.stats, "seconds": step.seconds}), flush=True)
            continue
        print(_line(step, run.training.config.steps, time.perf_counter() - began, first), flush=True)
        for note in notes:
            print(f"    {note}")
        sample = step.samples[0]
        if step.number % 5 == 1 and sample.response != shown:
            shown = sample.response
            print(f"    “{_short(sample.prompt)}” → “{_short(shown, 140)}” ({sample.score:.3g})")


def _live(run: LMRun, gentle: Any) -> None:
    """Train behind the dashboard."""
    from rich.console import Console

    from surefoot.cli.dashboard.language import LanguageHeader, LanguageHistory, LanguageMoment
    from surefoot.cli.dashboard.language import language_closing as closing
    from surefoot.cli.dashboard.language import language_frame as frame
    from surefoot.cli.dashboard.screen import LiveScreen

    training, header = run.training, run.directory.read_header()
    screen = LiveScreen(Console(highlight=False), make=LanguageHistory, draw=frame, finish=closing)
    screen.open(
        LanguageHeader(
            model=header["spec"]["model"],
            algorithm=training.config.algorithm,
            run_dir=str(run.directory.path),
            steps=training.config.steps,
            resume=header["resume"],
            limits={name: getattr(training.config, name) for name in ("kl_budget", *_LIMITS)},
        )
    )
    began, ending = time.perf_counter(), "stopped"
    try:
        for step, notes in run.steps(lambda: gentle.requested):
            screen.show(LanguageMoment(step, notes, time.perf_counter() - began))
        ending = "finished" if training.finished else "interrupted"
    finally:
        screen.close(ending)


_LIMITS = ("nll_limit", "repetition_limit", "refusal_limit", "diversity_limit")
# (metric, label, format) of the numbers of a step that are printed, if it has them.
_PARTS: Sequence[tuple[str, str, str]] = (
    ("score", "score", "8.3f"),
    ("kl", "kl", "7.2f"),
    ("preference_accuracy", "accuracy", "5.2f"),
    ("held_out_accuracy", "held out", "5.2f"),
    ("beta", "beta", ".3g"),
    ("response_length", "length", "5.1f"),
)


def _line(step: LMStep, steps: int, seconds: float, first: int) -> str:
    s = step.stats
    left = seconds / max(1, step.number - first) * (steps - step.number)
    parts = [f"{label} {s[name]:{form}}" for name, label, form in _PARTS if name in s]
    parts.append(f"{s['tokens'] / sum(step.seconds.values()):6.0f} tok/s")
    parts.append(f"eta {left / 60:.0f} min" if left >= 90 else f"eta {left:.0f} s")
    parts += [f"judge {s['judge']:.3g}"] if "judge" in s else []
    return "  ".join([f"{step.number:>5}/{steps}", *parts])


def _short(text: str, size: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"
