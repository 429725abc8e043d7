"""Writes the tables of README.md and docs/ from benchmarks/results, so that no number there is typed by hand.

python benchmarks/tables.py            rewrites them between their markers
python benchmarks/tables.py --check    exit code 1 if one is not current
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.train.statistics import summarize

HERE = Path(__file__).resolve().parent
PAGES = [HERE.parent / "README.md", *sorted((HERE.parent / "docs").rglob("*.md"))]


def read(name: str) -> dict[str, Any] | None:
    path = HERE / "results" / name
    return json.loads(path.read_text()) if path.exists() else None


def learning() -> str:
    sys.path.insert(0, str(HERE))
    from learning import TASKS  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    results = read("learning.json")
    if results is None:
        return "not measured yet"
    rows = [
        "| task | steps | bar | seeds | ours: IQM [95 % interval], worst seed | SB3's defaults, same seeds | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        found = results["scores"].get(task.name, {})
        mine = [entry["mean"] for entry in found.get("surefoot", {}).values()]
        if not mine:
            continue
        told, peers = summarize(mine), [entry["mean"] for entry in found.get("sb3", {}).values()]
        beside = "not measured"
        if peers:
            other = summarize(peers)
            beside = f"{other.iqm:,.1f} [{other.low:,.1f}, {other.high:,.1f}], n={other.count}"
        rows.append(
            f"| {task.name} | {task.steps:,} | {task.bar:g} | {told.count} | **{told.iqm:,.1f}** "
            f"[{told.low:,.1f}, {told.high:,.1f}], {told.minimum:,.1f} | {beside} | {task.published} |"
        )
    return "\n".join(rows)


def speed() -> str:
    results = read("speed.json")
    if results is None:
        return "not measured yet"
    rows = [
        "| workload | | steps per CPU-second | CPU-seconds to the first env step | compiling | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in results["workloads"].items():
        for side, told in each["sides"].items():
            row = told["median"]
            path = f" ({row['path']} path)" if "path" in row else ""
            if name == "W4":
                solved = "" if row["solved"] else ", not solved by every seed"
                rate = f"{row['process_cpu_seconds']:.1f} CPU-seconds in all, {row['steps']:,.0f} steps{solved}"
            else:
                rate = f"{row['steps_per_cpu_second']:,.0f}"
            first = f"{row['first_step_cpu_seconds']:.2f}" if "first_step_cpu_seconds" in row else ""
            compiling = f"{row['compile_cpu_seconds']:.1f} s" if row.get("compile_cpu_seconds") else ""
            rows.append(f"| {name} | {side}{path} | {rate} | {first} | {compiling} | {row['peak_mb']:.0f} MB |")
    rows += ["", *bars(results["ratios"]), ""] if results["ratios"] else [""]
    for name, each in results["workloads"].items():
        counted = f"{each['rounds']} seeds" if name == "W4" else f"{each['rounds']} interleaved rounds"
        rows.append(f"{name}: {each['about']}; 1 thread, median of {counted}, {each['machine']}.  ")
    rows += ["", f"`surefoot --help` takes {results['help_cpu_seconds']:.2f} CPU-seconds."]
    return "\n".join(rows)


def bars(ratios: list[dict[str, Any]]) -> list[str]:
    """What is promised of each pair and what was measured; of W4 the other way round, it counts seconds."""
    rows = ["| | against | bar | measured | round by round | |", "|---|---|---|---|---|---|"]
    for row in ratios:
        each = sorted(row["by_round"])
        if row["workload"] == "W4":
            bar, told = f"≤ 1/{row['bar']:g}", f"1/{row['times']:.1f}"
            by_round = f"1/{each[-1]:.1f} … 1/{each[0]:.1f}" if each else ""
        else:
            bar, told = f"≥ {row['bar']:g} ×", f"{row['times']:.1f} ×"
            by_round = f"{each[0]:.1f} … {each[-1]:.1f}" if each else ""
        verdict = "met" if row["met"] else "not met"
        rows.append(
            f"| {row['workload']}: {row['ours']} | {row['peer']} | {bar} | **{told}** | {by_round} | {verdict} |"
        )
    return rows


def survival() -> str:
    results = read("kills.json")
    if results is None:
        return "not measured yet"
    sound, early = results["kills"]["sound"], results["kills"]["early *"]
    flips, cuts = results["damage"]["bit flips"], results["damage"]["truncations"]
    bare = results["damage"]["bit flips, no manifest *"]
    return "\n".join(
        [
            "| campaign | tried | outcome |",
            "|---|---|---|",
            f"| kill -9 while saving | {sound['kills']} | {sound['lost']} acknowledged checkpoints lost, "
            f"{sound['unreadable']} starts without one |",
            f"| control: the same, acknowledging before the save | {early['kills']} | {early['lost']} lost |",
            f"| bit flips in a checkpoint | {flips['tried']:,} | {flips['reported']:,} reported, {flips['silent']} loaded |",
            f"| files cut short | {cuts['tried']} | {cuts['reported']} reported, {cuts['silent']} loaded |",
            f"| control: flips in bare safetensors | {bare['tried']:,} | {bare['silent']:,} loaded without a word |",
            "| resume after kill -9 in a new process: discrete, continuous, normalised | 3 × 18 updates "
            "| all bit-identical (`tests/e2e/test_resume.py`) |",
        ]
    )


def shapes() -> str:
    """A row for each thing shown; what was not measured has none."""
    rows = ["| | measured | command |", "|---|---|---|"]
    found = (_matrix(), *_memory(), *_mazes(), _games(), _critics(), _workers())
    rows += [f"| {' | '.join(told)} |" for told in found if told is not None]
    return "\n".join(rows)


Row = tuple[str, str, str]


def _matrix() -> Row | None:
    cells: Any = read("matrix.json")
    if cells is None:
        return None
    good, worst = sum(cell["good"] for cell in cells), max(cell["ratio_error"] for cell in cells)
    return (
        "every legal mix of observation, mask, action, memory and agents, trained to its known answer",
        f"**{good} of {len(cells)}** solved; first ratio error at most {worst:.0e}; resumed to the last bit in each",
        "`make matrix`",
    )


def _memory() -> list[Row]:
    results: Any = read("policies.json") or {}
    command, rows = "`benchmarks/policies.py`", list[Row]()
    learned, speeds = results.get("learn", {}), results.get("speed", {})
    for name, what in (("gru", "GRU"), ("lstm", "LSTM")):
        if name in learned:
            runs = list(learned[name]["runs"].values())
            worst, longest = min(run["final"] for run in runs), max(run["steps"] for run in runs)
            told = (
                f"**{learned[name]['mean']:.1f}** of 500 over {len(runs)} seeds, worst {worst:.1f} (bar 475), "
                f"after at most {longest:,} steps"
            )
            rows.append((f"CartPole without velocities, {what}, until 100 unseen episodes are solved", told, command))
    if "masks" in learned:
        runs = list(learned["masks"]["runs"].values())
        told = (
            f"{learned['masks']['mean']:.2f} of the best return over {len(runs)} seeds after "
            f"{max(run['steps'] for run in runs):,} steps; no forbidden choice was ever made"
        )
        rows.append(("twelve numbers in order, half of the choices forbidden", told, command))
    if "pictures" in learned:
        runs = list(learned["pictures"]["runs"].values())
        ends = ", ".join(f"{run['final']:.2f} at {run['steps']:,}" for run in runs)
        rows.append(("Catch from 84×84×4 bytes by the Nature CNN (1 is all caught)", f"{ends} steps", command))
    for found in speeds.values():
        low, high = min(found["ratios"]), max(found["ratios"])
        told = f"**{found['ratio']:.1f} ×** {found['peer']} ({low:.1f} … {high:.1f}; bar {found['bar']:g})"
        rows.append((f"speed: {found['about']}", told, command))
    return rows


def _mazes() -> list[Row]:
    rows: list[Row] = []
    for name, ours, what in (("explore", "rnd", "RND"), ("hierarchy", "manager", "a manager with a worker")):
        results = read(f"{name}.json")
        if results is None:
            continue
        runs = results["runs"]
        plain = [run["success"] for side, found in runs.items() if side.startswith("ppo") for run in found.values()]
        mine = [run["success"] for side, found in runs.items() if side.startswith(ours) for run in found.values()]
        told = (
            f"**{sum(s >= 0.9 for s in mine)} of {len(mine)}** with {what}; "
            f"{sum(s >= 0.9 for s in plain)} of {len(plain)} by plain PPO (3 rates × 3 entropies × 5 seeds)"
        )
        about = f"{results['env']} ({results['steps']:,} steps, one reward at the end): runs that solve it"
        rows.append((about, told, f"`benchmarks/{name}.py`"))
    return rows


def _games() -> Row | None:
    results = read("selfplay.json")
    if results is None:
        return None
    lows = [row["low"] for row in results["rows"]]
    return (
        f"Connect Four by self-play, {results['steps']:,} steps: the last policy against {len(lows)} ancestors",
        f"lower bound of its score at least **{min(lows):.2f}** ({results['games']:,} games each, both sides)",
        "`make bench-selfplay`",
    )


def _critics() -> Row | None:
    results = read("mappo.json")
    if results is None:
        return None
    row, seeds = results["rows"][0], len(results["runs"]["mappo"])
    told = f"**{row['mappo']:.3f}** against {row['ippo']:.3f} without it, {seeds} seeds, p = {row['p']:.3f}"
    return "right answers during training with a central critic (MAPPO)", told, "`make bench-mappo`"


def _workers() -> Row | None:
    results = read("supervise.json")
    if results is None:
        return None
    return (
        f"workers killed {results['kills']} times and stopped {results['stops']} times while training",
        f"longest pause **{results['longest_pause']:.1f} s**, {results['used_twice']} steps used twice",
        "`make bench-supervise`",
    )


def doctor() -> str:
    results = read("doctor.json")
    if results is None:
        return "not measured yet"
    head = (
        *("part", "faulty runs", "found", "missed, of them harmless", "named first", "of those found, named wrongly"),
        *("precision", "median share of the run until named", "healthy runs", "false alarms per 20"),
    )
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for part, row in results["totals"].items():
        shares = ("recall", "right_primary", "wrong_cause_rate", "precision")
        found, first, wrong, precision = ("" if row[n] is None else f"{row[n]:.2f}" for n in shares)
        when = "" if row["median_time_to_detection"] is None else f"{row['median_time_to_detection']:.0%}"
        missed, alarms = f"{row['missed']}, {row['missed_but_harmless']}", f"{row['false_alarms_per_20'] or 0.0:.2f}"
        cells = (part, row["faulty_runs"], found, missed, first, wrong, precision, when, row["healthy_runs"], alarms)
        rows.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join([*rows, "", f"`{results['command']}`"])


def doctor_faults() -> str:
    results = read("doctor.json")
    if results is None:
        return "not measured yet"
    sys.path.insert(0, str(HERE))
    from doctor import FAULTS, fault_rows  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    rows = ["| fault | rules that name it | runs | found | named first | named instead |", "|---|---|---|---|---|---|"]
    for fault, runs, found, hits, others in fault_rows(results["runs"]):
        names = " or ".join(next(f for f in FAULTS if f.name == fault).right)
        rows.append(f"| {fault} | {names} | {runs} | {found} | {hits} | {', '.join(others)} |")
    return "\n".join(rows)


TABLES: dict[str, Callable[[], str]] = {
    "learning-table": learning,
    "speed-table": speed,
    "shapes-table": shapes,
    "resume-table": survival,
    "doctor-table": doctor,
    "doctor-faults": doctor_faults,
}


def filled(text: str) -> str:
    """`text` with every table between its two markers made anew."""
    for name, make in TABLES.items():
        pattern = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
        if not pattern.search(text):
            continue
        table = f"<!-- {name} -->\n{make()}\n<!-- /{name} -->"
        text = pattern.sub(lambda _, table=table: table, text)
    return text


def main() -> int:
    stale = {page: new for page in PAGES if (new := filled(text := page.read_text(encoding="utf-8"))) != text}
    for page, text in stale.items():
        if "--check" in sys.argv:
            print(f"{page.name} is not current")
        else:
            page.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
