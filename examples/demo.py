"""What `make demo` shows: CartPole learned before your eyes, scored, played, and written down.

SUREFOOT_DEMO_STEPS shortens it; runs go to ./runs or $SUREFOOT_RUNS.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from surefoot.__main__ import main as surefoot
from surefoot.train.rundir.rundir import runs_root

STEPS = os.environ.get("SUREFOOT_DEMO_STEPS", "100_000")


def say(text: str) -> None:
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def run(*words: str) -> None:
    """One command, shown as it would be typed; a failure ends the demo."""
    say("$ surefoot " + " ".join(words))
    code = surefoot(list(words))
    if code:
        sys.exit(code)


def pairs(rows: list[tuple[str, str]]) -> str:
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"  {left:<{width}}   {right}" for left, right in rows)


def next_steps(there: Path) -> str:
    found = [
        (f"{there / 'report.html'}", "curves and numbers on one page; open it in a browser"),
        (f"{there / 'episode.gif'}", "the episode that was just played"),
        (f"{there / 'checkpoints'}", "everything needed to resume"),
    ]
    ideas = [
        (f"surefoot resume {there} --verify", "does a resumed run give the same bits?"),
        (f"surefoot resume {there} --steps 150_000", "train on from where it stopped"),
        ("surefoot train Acrobot-v1", "another world; Ctrl-C saves and stops"),
        ("surefoot train CartPole-v1 --seeds 5 --jobs 2", "was it luck? IQM and interval over five seeds"),
        ("surefoot knobs clip", "what a setting does, and what others call it"),
        ("surefoot --help", "all verbs"),
    ]
    activate = "the command is in .venv/bin: `. .venv/bin/activate` first"
    return f"What you have now\n{pairs(found)}\n\nWhat to try next ({activate})\n{pairs(ideas)}"


def main() -> None:
    there = runs_root() / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    run("train", "CartPole-v1", "--steps", STEPS, "--name", there.name)
    run("eval", str(there), "--episodes", "100")
    run("play", str(there))
    run("report", str(there))
    print(f"\n{next_steps(there)}")


if __name__ == "__main__":
    main()
