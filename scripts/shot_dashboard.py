"""A picture of the dashboard as an SVG, from the record of a real run or from made-up numbers.

python scripts/shot_dashboard.py runs/NAME/telemetry.ndjson --at 0.6 --out docs/assets/dashboard.svg
python scripts/shot_dashboard.py --size 140x45 --out /tmp/fake.svg
"""

from __future__ import annotations

import argparse
import dataclasses
import html
import io
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from surefoot.cli.dashboard.braille_plot import BITS
from surefoot.cli.dashboard.frame import frame
from surefoot.cli.dashboard.history import RunHeader, RunHistory
from surefoot.cli.dashboard.screen import RichLines, closing
from surefoot.cli.dashboard.text_boxes import Line
from surefoot.learn.report import UpdateReport
from surefoot.telemetry import schema
from surefoot.train.progress_event import EvalPoint, Moment

# The stock format loads its font over the network; a picture in a README must not.
SVG_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def svg(lines: list[Line], width: int, title: str) -> str:
    """The lines as one self-contained SVG."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(RichLines(lines), end="")
    text = console.export_svg(title=title, code_format=SVG_FORMAT, unique_id="dashboard")
    return re.sub(r"<text (?P<place>[^>]*)>(?P<cells>[^<]*[\u2801-\u28ff][^<]*)</text>", _circles, text)


def _circles(found: re.Match[str]) -> str:
    """Braille as dots that are drawn: few fonts have it in the width of their other characters."""
    place = dict(re.findall(r'([\w-]+)="([^"]*)"', found["place"]))
    cells = html.unescape(found["cells"])
    left, baseline, cell = float(place["x"]), float(place["y"]), float(place["textLength"]) / len(cells)
    height = 2 * cell
    dots = [
        f'<circle cx="{left + (i + 0.25 + 0.5 * column) * cell:.1f}" '
        f'cy="{baseline - 0.78 * height + (row + 0.5) * height / 4:.1f}" r="1.6"/>'
        for i, char in enumerate(cells)
        for row in range(4)
        for column in range(2)
        if ord(char) - 0x2800 & BITS[row, column] and ord(char) > 0x2800
    ]
    return f'<g class="{place["class"]}">{"".join(dots)}</g>'


def of_record(path: Path, target: float | None, actions: int | None) -> tuple[RunHeader, list[Moment]]:
    """RunHeader and moments of a telemetry file.

    The record keeps sums over episodes, so the mean over 100 of them is close, not exact.
    """
    records = [schema.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
    start = next((r for r in records if isinstance(r, schema.HeaderRecord)), None)
    if start is None:
        raise SystemExit(f"{path} has no run record; give the telemetry.ndjson of a run")
    ppo: dict[str, Any] = start.config.get("ppo", {})
    knobs = {
        k: ppo[k] for k in ("lr", "clip", "gamma", "lam", "epochs", "envs", "rollout_steps", "ent_coef") if k in ppo
    }
    header = RunHeader(
        env=start.env,
        run_dir=f"runs/{path.resolve().parent.name}",
        settings={name: _knob(value) for name, value in knobs.items()},
        seed=start.seed,
        path_note=f"{start.path}: {start.path_reason}" if start.path_reason else start.path,
        world_note=f"{start.env}, {start.num_envs} envs",
        preset=str(start.config.get("preset", "-")),
        target=target,
        target_kl=ppo.get("target_kl"),
        max_grad_norm=ppo.get("max_grad_norm"),
        max_entropy=None if actions is None else math.log(actions),
    )
    total = start.total_steps or max(r.env_steps for r in records)
    return header, list(_moments(records, start.t, total))


def _knob(value: Any) -> str:
    return f"lin_{value['start']:g}" if isinstance(value, dict) and value.get("kind") == "linear" else str(value)


def _moments(records: Iterable[schema.Record], t0: float, total: int) -> Iterator[Moment]:
    known = {f.name for f in dataclasses.fields(UpdateReport)}
    window: deque[tuple[float, int]] = deque()
    episodes, best = 0, -math.inf
    point: EvalPoint | None = None
    notes: list[str] = []
    checkpoint: int | None = None
    for record in records:
        if isinstance(record, schema.EvaluationRecord) and record.return_mean is not None:
            point = EvalPoint(
                env_steps=record.env_steps,
                mean=record.return_mean,
                std=record.return_std or 0.0,
                minimum=record.return_min or 0.0,
                maximum=record.return_max or 0.0,
                episodes=record.episodes,
                is_best=record.return_mean > best,
            )
            best = max(best, point.mean)
        elif isinstance(record, schema.EventRecord):
            if record.name == "checkpoint":
                checkpoint = record.updates
            elif record.message:
                notes.append(record.message)
        elif isinstance(record, schema.UpdateRecord):
            ended = record.episodes
            if ended is not None and ended.return_mean is not None:
                episodes += ended.count
                window.append((ended.return_mean, ended.count))
                while sum(n for _, n in window) - window[0][1] >= 100:
                    window.popleft()
            numbers: dict[str, Any] = {k: math.nan if v is None else v for k, v in record.m.items() if k in known}
            low, high = (ended.return_min, ended.return_max) if ended else (None, None)
            yield Moment(
                report=UpdateReport(
                    update=record.updates,
                    policy_version=record.updates,
                    path="",
                    path_reason="",
                    seconds={k: v or 0.0 for k, v in record.seconds.items()},
                    **({"samples": 0} | numbers),
                ),
                env_steps=record.env_steps,
                total_steps=total,
                seconds=record.t - t0,
                episodes=episodes,
                recent_return=sum(m * n for m, n in window) / sum(n for _, n in window) if window else None,
                recent_length=None,
                recent_success=None,
                new_returns=() if low is None or high is None else (low, high),
                evaluation=point,
                checkpoint=checkpoint,
                notes=tuple(notes),
            )
            point, checkpoint, notes = None, None, []


def made_up(*, continuous: bool = False) -> tuple[RunHeader, list[Moment]]:
    """A run that looks like CartPole (or a continuous task) but never happened; for layout work only."""
    rng = np.random.default_rng(3)
    total, samples, updates = 500_000, 1_024, 488
    header = RunHeader(
        env="HalfCheetah-v5" if continuous else "CartPole-v1",
        run_dir="runs/CartPole-v1-20250102-101500-s3",
        settings={"lr": "lin_1e-3", "clip": "0.2", "gamma": "0.98", "lam": "0.8", "epochs": "20", "envs": "8"},
        seed=3,
        path_note="torch, 1 thread: small networks lose time to a second one",
        world_note="surefoot's own vectorised CartPole-v1, 8 envs",
        preset="classic",
        target=None if continuous else 475.0,
        max_grad_norm=0.5,
        max_entropy=None if continuous else math.log(2),
    )
    moments: list[Moment] = []
    recent: deque[float] = deque(maxlen=100)
    episodes, best = 0, -math.inf
    for u in range(1, updates + 1):
        share = u / updates
        skill = 22 + 470 / (1 + math.exp(-(share - 0.22) * 22)) - 130 * math.exp(-(((share - 0.52) / 0.025) ** 2))
        returns = tuple(np.clip(rng.gamma(6, skill / 6, max(2, int(1024 / skill))), 8, 500).tolist())
        episodes += len(returns)
        recent.extend(returns)
        point = None
        if u % 61 == 0:
            mean = min(500.0, skill * 1.04 + rng.normal(0, 6))
            point = EvalPoint(
                env_steps=u * samples,
                mean=mean,
                std=abs(rng.normal(9, 6)),
                minimum=mean - 30,
                maximum=500.0,
                episodes=10,
                is_best=mean > best,
            )
            best = max(best, mean)
        dip = math.exp(-(((share - 0.5) / 0.02) ** 2))
        moments.append(
            Moment(
                report=UpdateReport(
                    update=u,
                    policy_version=u,
                    samples=samples,
                    path="torch",
                    path_reason="",
                    approx_kl=0.004 + 0.05 * dip + abs(rng.normal(0, 0.004)),
                    clip_fraction=0.06 + 0.3 * dip + abs(rng.normal(0, 0.03)),
                    entropy=0.69 - 0.2 * share + rng.normal(0, 0.01),
                    explained_variance=min(0.97, -0.1 + 1.1 * (1 - math.exp(-share * 12))) - 0.4 * dip,
                    value_loss=40 * (0.2 + share) * math.exp(rng.normal(0, 0.3)),
                    target_std=18.0,
                    grad_norm=1.4 * math.exp(rng.normal(0, 0.3)),
                    first_ratio_error=abs(rng.normal(0, 4e-7)),
                    lr=1e-3 * (1 - share),
                    action_std=0.9 - 0.5 * share if continuous else None,
                    seconds={"collect": 0.06, "env": 0.021, "policy": 0.033, "prepare": 0.002, "learn": 0.048},
                ),
                env_steps=u * samples,
                total_steps=total,
                seconds=u * 0.113,
                episodes=episodes,
                recent_return=float(np.mean(recent)),
                recent_length=None,
                recent_success=None,
                new_returns=returns,
                evaluation=point,
                checkpoint=u if u % 61 == 0 else None,
                notes=("minibatches of 64 leave none over: 16 an epoch",) if u == 1 else (),
            )
        )
    return header, moments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", type=Path, help="telemetry.ndjson of a run; made-up numbers if left out")
    parser.add_argument("--out", type=Path, required=True, help="the SVG to write")
    parser.add_argument("--size", default="100x30", help="columns x rows of the pretended terminal")
    parser.add_argument("--at", type=float, default=0.75, help="share of the run's updates that has been seen, 0 to 1")
    parser.add_argument("--target", type=float, help="the solved threshold, where the record does not know it")
    parser.add_argument("--actions", type=int, help="number of discrete actions, which the record does not know either")
    parser.add_argument("--continuous", action="store_true", help="made-up numbers of a Gaussian policy")
    parser.add_argument(
        "--ending", action="store_true", help="the summary that is left behind instead of the dashboard"
    )
    args = parser.parse_args()
    width, height = (int(n) for n in args.size.split("x"))
    header, moments = (
        of_record(args.record, args.target, args.actions) if args.record else made_up(continuous=args.continuous)
    )
    history = RunHistory(header)
    for moment in moments[: max(1, round(args.at * len(moments)))]:
        history.add(moment)
    elapsed = 0.0 if history.last is None else history.last.seconds
    lines = closing(history, "finished", width) if args.ending else frame(history, width, height, elapsed)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(svg(lines, width, f"surefoot train {header.env}"), encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
