"""Writes the tables of README.md and docs/ from benchmarks/results, so that no number there is typed by hand.

python benchmarks/tables.py            rewrites them between their markers
python benchmarks/tables.py --check    exit code 1 if one is not current
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from difflib import ndiff
from functools import partial
from pathlib import Path
from typing import Any

from surefoot.train.diagnose.statistics import summarize

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


SHORT = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1", "LunarLander-v3", "HalfCheetah-v5", "Hopper-v5")


def learning_short() -> str:
    """Six tasks in three columns, for the README."""
    results = read("learning.json")
    if results is None:
        return "not measured yet"
    rows = ["| task | steps | Surefoot | SB3's defaults |", "|---|---|---|---|"]
    sys.path.insert(0, str(HERE))
    from learning import TASKS  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    for task in (task for task in TASKS if task.name in SHORT):
        scores = results["scores"].get(task.name, {})
        cells = []
        for side in ("surefoot", "sb3"):
            means = [entry["mean"] for entry in scores.get(side, {}).values()]
            cells.append(f"{summarize(means).iqm:,.0f} ({len(means)} seeds)" if means else "not measured")
        rows.append(
            f"| {task.name} | {task.steps:,} | **{cells[0].split()[0]}** {cells[0].split(maxsplit=1)[1]} | {cells[1]} |"
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
            if name == "W5":
                returned = statistics.fmean(run["return"] for run in told["runs"])
                rate = f"{row['cpu_seconds']:.2f} CPU-seconds in all, return {returned:.1f}"
                if "evaluation_cpu_seconds" in row:
                    evaluating, importing = row["evaluation_cpu_seconds"], row["import_cpu_seconds"]
                    rate += f"; {evaluating:.2f} for the evaluation, imports ({importing:.1f}) not counted"
            elif name == "W4":
                solved = "" if row["solved"] else ", not solved by every seed"
                rate = f"{row['process_cpu_seconds']:.1f} CPU-seconds in all, {row['steps']:,.0f} steps{solved}"
            else:
                rate = f"{row['steps_per_cpu_second']:,.0f}"
            first = f"{row['first_step_cpu_seconds']:.2f}" if "first_step_cpu_seconds" in row else ""
            compiling = f"{row['compile_cpu_seconds']:.1f} s" if row.get("compile_cpu_seconds") else ""
            rows.append(f"| {name} | {side}{path} | {rate} | {first} | {compiling} | {row['peak_mb']:.0f} MB |")
    rows += ["", *bars(results["ratios"]), ""] if results["ratios"] else [""]
    for name, each in results["workloads"].items():
        counted = f"{each['rounds']} seeds" if name in ("W4", "W5") else f"{each['rounds']} interleaved rounds"
        rows.append(f"{name}: {each['about']}; 1 thread, median of {counted}, {each['machine']}.  ")
    rows += ["", f"`surefoot --help` takes {results['help_cpu_seconds']:.2f} CPU-seconds."]
    return "\n".join(rows)


def bars(ratios: list[dict[str, Any]]) -> list[str]:
    """What is promised of each pair and what was measured; of W4 and W5 the other way round, they count seconds."""
    rows = ["| | against | bar | measured | round by round | |", "|---|---|---|---|---|---|"]
    for row in ratios:
        each = sorted(row["by_round"])
        if row["workload"] in ("W4", "W5"):
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


def record() -> str:
    results = read("record.json")
    if results is None:
        return "not measured yet"
    measured, bars = results["measured"], results["bars"]
    load = f", load {results['load']:.0f}" if "load" in results else ""

    def verdict(name: str, *, at_least: bool = False) -> str:
        met = measured[name] >= bars[name] if at_least else measured[name] <= bars[name]
        return "met" if met else "not met"

    rows = [
        "| | measured | bar | |",
        "|---" * 4 + "|",
        f"| writing, share of the fastest run (CartPole-v1, {measured['updates_per_second']:.0f} updates per second) | "
        f"{measured['writer_share']:.2%} | ≤ {bars['writer_share']:.1%} | {verdict('writer_share')} |",
        *(
            f"| the same, {env} | {measured[f'writer_share in {env}']:.2%} | | |"
            for env in ("HalfCheetah-v5", "Acrobot-v1")
        ),
        f"| lines validated per CPU-second | {measured['records_per_second']:,.0f} | "
        f"≥ {bars['records_per_second']:,.0f} | {verdict('records_per_second', at_least=True)} |",
        f"| from a line to its alert | {measured['reaction_seconds']:.2f} s | ≤ {bars['reaction_seconds']:g} s | "
        f"{verdict('reaction_seconds')} |",
    ]
    return "\n".join([*rows, "", f"`{results['command']}`, {results['cores']} cores{load}"])


def doctor() -> str:
    results = read("doctor.json")
    if results is None:
        return "not measured yet"
    parts = {**results["totals"]["now"], "unseen, at first": results["totals"]["at_first"]}
    head = ("faults", "kinds", "runs", "harmful", "found", "named first", "named first with `--probe`", "named after")
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for part, row in parts.items():
        if not row["harmful"]:
            continue
        found, first, probed = (
            f"{row[name] / row['harmful']:.2f}" for name in ("found", "named_first", "named_first_with_probe")
        )
        when = row["median_time_to_detection"]
        cells = (part, row["kinds"], row["runs"], row["harmful"], found, first, probed, f"{when or 0.0:.0%} of the run")
        rows.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    well = results["totals"]["healthy"]
    alarms = (
        f"Of {well['runs']} healthy runs of {well['worlds']} environments, {well['errors']} have an error and "
        f"{well['warnings']} a warning; after `--probe` (tried on {well['probed']}) {well['errors_with_probe']} and "
        f"{well['warnings_with_probe']}."
    )
    return "\n".join([*rows, "", alarms, "", f"`{results['command']}`"])


def doctor_strangers() -> str:
    results = read("doctor_strangers.json")
    if results is None:
        return "not measured yet"
    head = (
        *("rules", "kinds", "runs", "harmful", "found", "named first", "with `--probe`"),
        *("counting later rules", "with `--probe`", "healthy runs", "errors", "warnings"),
    )
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    names = ("named_first", "named_first_with_probe", "named_first_later", "named_first_later_with_probe")
    for day, name in (("at_first", "at first"), ("now", "now")):
        row = results["totals"][day]
        shares = [f"{row[what] / row['harmful']:.2f}" for what in ("found", *names)]
        healthy = (row["healthy"], row["healthy_errors"], row["healthy_warnings"])
        cells = (name, row["kinds"], row["runs"], row["harmful"], *shares, *healthy)
        rows.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    runs = results["runs"].values()
    again = sum("read_again" not in run for run in runs)
    note = f"For *now*, {again} of {len(runs)} runs were trained again; of the others the kept records were read again."
    return "\n".join([*rows, "", f"{note} `{results['command']}`"])


def doctor_foreign() -> str:
    results = read("doctor_foreign.json")
    if results is None:
        return "not measured yet"
    head = ("logs of", "kinds", "runs", "harmful", "found", "named first", "share", "from the log alone")
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]

    def line(name: str, kinds: int, row: Counter[str]) -> str:
        share, alone = (f"{row[what] / row['harmful']:.2f}" for what in ("named_first", "named_alone"))
        cells = (name, kinds, row["runs"], row["harmful"], row["found"], row["named_first"], share, alone)
        return "| " + " | ".join(str(cell) for cell in cells) + " |"

    for library in ("sb3", "cleanrl"):
        kinds, total = 0, Counter[str]()
        for row in results["totals"]["rows"]:
            if row["library"] == library and row["harmful"]:
                counts = Counter({name: count for name, count in row.items() if isinstance(count, int)})
                rows.append(line(f"{library}, {row['part']}", row["kinds"], counts))
                kinds, total = kinds + row["kinds"], total + counts
        if total["harmful"]:
            rows.append(line(f"{library}, all", kinds, total))
    well = results["totals"]["healthy"]
    alarms = f"Of {well['runs']} healthy runs {well['errors']} have an error."
    return "\n".join([*rows, "", f"{alarms} `{results['command']}`"])


def doctor_act() -> str:
    from doctor_act import STEPS, WRONG, judge  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    harmed = [rescued for _, harm, rescued in judge(read("doctor_act.json")) if harm]
    return (
        f"Of {len(harmed)} runs that one wrong setting spoiled ({len(WRONG)} settings, {len(STEPS)} environments), "
        f"{sum(harmed)} won back at least half of the loss (`python benchmarks/doctor_act.py --seeds 2`)."
    )


def doctor_faults() -> str:
    results = read("doctor.json")
    if results is None:
        return "not measured yet"
    sys.path.insert(0, str(HERE))
    from doctor import OPENED, fault_rows  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    head = ("fault", "part", "rules that name it", "harmful runs", "named first", "with `--probe`", "named instead")
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in fault_rows(results["runs"]):
        part, first = row["part"], str(row["named"])
        if part == "unseen":
            part += ", opened later" if row["fault"] in OPENED else ""
            first += f" (at first {row['named_at_first']})" if row["named"] != row["named_at_first"] else ""
        instead = ", ".join(f"{name} {count}" for name, count in row["instead"].items())
        cells = (row["fault"], part, " or ".join(row["right"]), f"{row['harmful']} of {row['runs']}", first)
        rows.append("| " + " | ".join([*cells, str(row["with_probe"]), instead]) + " |")
    return "\n".join(rows)


def town() -> str:
    results = read("town.json")
    if results is None:
        return "not measured yet"
    sys.path.insert(0, str(HERE))
    from town import table  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    lines: list[str] = table(results)
    rows = [line for line in lines if line.startswith("|")]
    return "\n".join([*rows, "", *(line for line in lines if not line.startswith("|")), "", "`make bench-town`"])


def tools() -> str:
    """Success of ours per size and regime, and the difference from each peer with its interval."""
    results = read("tools.json")
    if results is None:
        return "not measured yet"
    sys.path.insert(0, str(HERE))
    from tools import COUNT, paired  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    cells: dict[str, dict[str, dict[str, float]]] = results["cells"]
    peers = [arm for arm in next(iter(cells.values())) if arm != "ours"]
    rows = [f"| tools/regime | ours | {' | '.join(f'− {arm}' for arm in peers)} |", "|---" * (len(peers) + 2) + "|"]
    for name, arms in cells.items():
        shown = list[str]()
        for arm in peers:
            mean, low, high = (100 * value for value in paired(arms["ours"], arms[arm])) if arm in arms else (0.0,) * 3
            shown.append(f"{mean:+.1f} ± {(high - low) / 2:.1f}" if arm in arms else "")
        rows.append(f"| {name} | {sum(arms['ours'].values()) / len(arms['ours']):.3f} | {' | '.join(shown)} |")
    seeds = {arm: min(len(arms[arm]) for arms in cells.values() if arm in arms) for arm in ("ours", *peers)}
    counted = f"{seeds['ours']} seeds" + "".join(f", {n} for {arm}" for arm, n in seeds.items() if n < seeds["ours"])
    note = (
        f"Success over {COUNT:,} decisions, and differences in points with 95 % intervals (paired, {counted}). "
        f"With 200 tools and vectors of 384 numbers, deciding takes {results['cost']['decide']:.0f} µs of CPU time, and "
        f"{results['cost']['total']:.0f} µs with outcome and learning."
    )
    return "\n".join([*rows, "", note, "", "`make bench-tools DATA=DIR`"])


def tools_outside() -> str:
    """Queries that no tool is right for."""
    results = read("tools.json")
    if results is None:
        return "not measured yet"

    def mean(runs: dict[str, Any], *path: str) -> float:
        total = 0.0
        for run in runs.values():
            for key in path:
                run = run[key]
            total += float(run)
        return total / len(runs)

    rows = ["| learned from | AUROC ours | residual | cosine | kept | refused | calibration error |", "|---" * 7 + "|"]
    for name, runs in results["outside"].items():
        area = (f"{mean(runs, 'auroc', key):.3f}" for key in ("ours", "residual", "cosine"))
        rows.append(
            f"| {name} | {' | '.join(area)} | {mean(runs, 'kept'):.1%} | {mean(runs, 'refused'):.1%} | "
            f"{mean(runs, 'calibration_error'):.3f} |"
        )
    rows += ["", "| share answered, the most confident first | " + " | ".join(f"{c:.0%}" for c in _COVERAGE) + " |"]
    rows += ["|---" * (len(_COVERAGE) + 1) + "|"]
    for name, runs in results["outside"].items():
        points = [dict(map(tuple, run["risk_coverage"])) for run in runs.values()]
        risk = (sum(each[min(each, key=lambda x: abs(x - c))] for each in points) / len(points) for c in _COVERAGE)
        rows.append(f"| {name}: wrong answers | {' | '.join(f'{value:.1%}' for value in risk)} |")
    return "\n".join([*rows, "", "`make bench-tools DATA=DIR`"])


def tools_curve() -> str:
    """Return success and memory of one agent by the number of its decisions."""
    results = read("tools.json")
    if results is None or "curve" not in results:
        return "Success and memory up to 100,000 decisions: not measured yet (`make bench-tools DATA=DIR`)."
    rows = ["| decisions (77 tools, 384 numbers) | success of the last tenth | memory grown by |", "|---|---|---|"]
    for count, row in results["curve"].items():
        rows.append(f"| {int(count):,} | {row['last_tenth']:.3f} | {row['grown_mb']:.0f} MB |")
    return "\n".join([*rows, "", "`make bench-tools DATA=DIR`"])


_COVERAGE = (0.2, 0.4, 0.6, 0.8, 1.0)


def serve() -> str:
    results = read("serve.json")
    if results is None:
        return "not measured yet"
    rows = ["| request | times FastAPI with torch | bar |", "|---|---|---|"]
    told = {"json": "JSON floats, on the disk before it answers", "base64": "base64, on the disk before it answers"}
    for name, ratio in results["ratios"].items():
        shown = told.get(name, "base64, `--durability process`")
        rows.append(
            f"| {shown} | {ratio:.1f} | {results['bars'][name]:g}{'' if ratio >= results['bars'][name] else ', not met'} |"
        )
    slower = (
        "While a policy learns from rewards, the 95th percentile of the answer times is "
        f"{results['slower']:.2f} times that of a frozen one that gets the same rewards."
    )
    return "\n".join([*rows, "", slower])


def language(which: str) -> str:
    sys.path.insert(0, str(HERE / "lm"))
    import shown  # pyright: ignore[reportMissingImports]  # benchmarks/lm/shown.py

    return getattr(shown, which)()


LANGUAGE = (
    *("rule", "sentiment", "sentiment_pairs", "reward", "principles", "principles_hh"),
    *("constitution", "constitution_pairs", "optimum", "speed"),
)


def scale() -> str:
    results = read("scale.json")
    if results is None:
        return "not measured yet"
    head = "| workload | placement | env steps per second | of one process | model | measured of it |"
    rows, off = [head, "|---|---|---|---|---|---|"], []
    for found in results.values():
        placements = found.get("placements", {})
        for placement, row in placements.items():
            rate, said = row["steps_a_second"], row["model"]
            about = found["about"] if placement == "here" else ""
            share = f"{rate / placements['here']['steps_a_second']:.2f} ×"
            rows.append(f"| {about} | {placement} | {rate:,.0f} | {share} | {said:,.0f} | {rate / said:.2f} |")
            if placement not in ("here", "local:1"):  # the model is computed from these two
                off.append(abs(rate / said - 1.0))
    off.sort()
    error = f"The median error of the model over {len(off)} placements is {off[len(off) // 2]:.0%}, the largest {off[-1]:.0%}; "
    return "\n".join([*rows, "", error + "`here` and `local:1`, from which it is computed, are not counted."])


def scale_losses() -> str:
    results = read("scale.json")
    if results is None or "losses" not in results:
        return "not measured yet"
    rows = [
        "| what happened to one of two workers | training was held up for "
        "| of it from noticing the loss to another worker | an update takes |",
        "|---|---|---|---|",
    ]
    for name, row in results["losses"].items():
        where, _, how = name.partition(" ")
        what = "killed" if how == "SIGKILL" else "stopped, with a time-out of 5 s"
        rows.append(f"| {where}: {what} | {row['held']:.1f} s | {row['replaced']:.2f} s | {row['update']:.2f} s |")
    return "\n".join(rows)


def scale_model() -> str:
    results = read("scale.json")
    if results is None:
        return "not measured yet"
    sys.path.insert(0, str(HERE))
    from scale_model import (  # pyright: ignore[reportMissingImports]  # beside this file
        CORES,
        GIGABIT,
        Cost,
        Handing,
        full,
        machines,
    )

    rows = [
        "| workload | 1 machine | 8 | 64 | 512 | learner full at | network full at |",
        "|---|---|---|---|---|---|---|",
    ]
    for found in (entry for entry in results.values() if "placements" in entry):
        cost, handing = Cost(**found["cost"]), Handing(**found["handing"]["ray"])
        shape = {"steps": found["steps"], "streams": found["streams"]}
        batch = found["steps"] * found["streams"] * CORES
        each = " | ".join(
            f"{batch * count / machines(cost, handing, **shape, weights=found['weights'], count=count):,.0f}"
            for count in (1, 8, 64, 512)
        )
        rows.append(
            f"| {found['about']} | {each} | {full(cost, handing, **shape):,.1f} workers | "
            f"{GIGABIT / cost.bytes:,.0f} steps/s |"
        )
    return "\n".join(rows)


def mujoco_worlds() -> str:
    results = read("mujoco_worlds.json")
    if results is None:
        return "not measured yet"
    rows = [
        "| task | Gymnasium's env | in C | of it `mj_step` | steps per CPU-second |",
        "|---|---|---|---|---|",
    ]
    for name, row in results["tasks"].items():
        times = f"{row['gymnasium']:.0f} µs | {row['kernel']:.0f} µs | {row['mj_step']:.0f} µs, {min(row['share'], 1.0):.0%}"
        rows.append(f"| {name} | {times} | {1e6 / row['kernel']:,.0f}, **{row['gymnasium'] / row['kernel']:.1f} ×** |")
    rows += [
        "",
        "| HalfCheetah-v5, 2048 steps per update, 10 epochs of 32 minibatches | Gymnasium | in C | | same weights |",
        "|---|---|---|---|---|",
    ]
    for envs, row in results["training"].items():
        rates = " | ".join(f"{row['rates'][side]:,.0f} steps per CPU-second" for side in ("gymnasium", "surefoot"))
        same = "yes, every bit" if row["same_weights"] else "no"
        rows.append(f"| {envs} env{'s' if envs != '1' else ''} | {rates} | **{row['ratio']:.2f} ×** | {same} |")
    about = f"{results['streams']} streams, medians of {results['rounds']} rounds and {results['updates']} updates, CPU time"
    used = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return "\n".join([*rows, "", f"{about}, 1 thread, {results['machine']}, {used}."])


def tune() -> str:
    results = read("tune.json")
    if results is None:
        return "not measured yet"
    rows = ["| env, steps | defaults | found | difference of the IQMs | search |", "|---|---|---|---|---|"]
    for name, entry in results["envs"].items():
        if "comparison" not in entry:
            continue
        found, search = entry["comparison"], entry["search"]
        sides = [f"{x['iqm']:.1f} [{x['low']:.1f}, {x['high']:.1f}]" for x in (found["defaults"], found["tuned"])]
        gap = f"{found['gap']:+.1f} [{found['low']:+.1f}, {found['high']:+.1f}]"
        took = f"{search['trials']} trials, {search['minutes']:.0f} min"
        rows.append(f"| {name.partition('@')[0]}, {search['steps']:,} | {' | '.join(sides)} | {gap} | {took} |")
    return "\n".join(rows)


def campaign(part: str) -> str:
    """One of the tables of the campaign."""
    results = read("campaign_long.json" if part == "long" else "campaign.json")
    if results is None:
        return "not measured yet"
    sys.path.insert(0, str(HERE))
    from campaign import table  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    return getattr(table, part)(results)


def sb3_curves() -> str:
    sys.path.insert(0, str(HERE))
    from sb3_curves import table  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    results = read("sb3_curves.json")
    return "not measured yet" if results is None else table(results)


def zoo_entries() -> str:
    sys.path.insert(0, str(HERE))
    from zoo import table  # pyright: ignore[reportMissingImports]  # the benchmark beside this file

    results = read("zoo.json")
    return "not measured yet" if results is None else table(results)


def prompts_content() -> str:
    """Return how many prompts lose content."""
    results = read("prompts_content.json")
    if results is None:
        return "not measured yet"
    sources = ", ".join(f"{name} {count:,}" for name, count in results["sources"].items())
    return (
        f"{results['losing']} of {results['prompts']:,} prompts lose a word, number, quotation, code span, URL or question in "
        f"any of {results['texts']:,} mutated texts (drawn from: {sources})."
    )


def prompts() -> str:
    """Return the gains of the policy and of the ways it is compared with, on held-out tasks."""
    results = read("prompts.json")
    if results is None:
        return "not measured yet"
    rows = ["| way | gain, nats per token [95 %] | tokens added | policy minus this [95 %] |", "|---|---|---|---|"]
    for name, way in results["ways"].items():
        cells = [
            f"{way[key][0]:+.2f} [{way[key][1]:+.2f}, {way[key][2]:+.2f}]" if key in way else ""
            for key in ("gain", "policy minus this")
        ]
        rows.append(f"| {name} | {cells[0]} | {way['tokens']:.0f} | {cells[1]} |")
    kinds = ", ".join(f"{kind} {gain:+.2f}" for kind, gain in results["by kind"].items())
    note = (
        f"{results['train']['rows']} rows of {results['train']['tasks']} tasks for training, {results['held-out']['rows']} rows "
        f"of {results['held-out']['tasks']} other tasks at the end, {results['seeds']} seeds; every way had "
        f"{results['evaluations']} evaluations of the model on training rows and none on held-out rows. The gain is in "
        f"log-likelihood of the right answer per token. The policy's gain by kind of task: {kinds}."
    )
    if results["accuracy"]:
        shares = ", ".join(f"{name} {x[0]:.0%} [{x[1]:.0%}, {x[2]:.0%}]" for name, x in results["accuracy"].items())
        note += f" The right one of the options is the likeliest in: {shares}."
    for name, names in results["per seed"][-1]["sequences"].items():
        note += f" {name.capitalize()}: {', '.join(names) or 'none'}."
    return "\n".join([*rows, "", note])


def prompt_pairs() -> str:
    """Return twenty prompts before and after, as diffs."""
    results = read("prompts.json")
    if results is None or "pairs" not in results:
        return "not measured yet"
    gain = sum(each["gain"] > 0 for each in results["pairs"])
    lose = sum(each["gain"] < 0 for each in results["pairs"])
    shown = [f"{gain} of {len(results['pairs'])} gain, {lose} lose."]
    for number, each in enumerate(results["pairs"], 1):
        names = ", ".join(change["mutation"] for change in each["changes"]) or "unchanged"
        answer = " / ".join(line.strip() for line in each["answer"].splitlines())
        marked = ndiff(each["original"].splitlines(), each["text"].splitlines())
        lines = "\n".join(line.rstrip() for line in marked if not line.startswith("?"))
        shown.append(
            f"**{number}.** {each['score_before']:.2f} → {each['score']:.2f}. {names}. Right answer: {answer}\n\n"
            f"```text\n{lines}\n```"
        )
    return "\n\n".join(shown)


def serve_learning() -> str:
    """Return the success of one stream through the library and over HTTP."""
    results = read("serve_learning.json")
    if results is None:
        return "not measured yet"
    ways = {
        "nearest": "nearest description, no learning",
        "library": "`surefoot.decide`",
        "actions": "served, named actions with descriptions",
        "candidates": "served, the same as candidates",
        "undescribed": "served, named actions without descriptions",
    }
    found = results["success"]
    rows = [f"| | {' | '.join(f'{name} | last 500' for name in found)} |", "|---" * (1 + 2 * len(found)) + "|"]
    for key, way in ways.items():
        cells = [
            f"{each['mean'][key]:.1%} | {format(each['last_500'][key], '.1%') if key in each['last_500'] else ''}"
            for each in found.values()
        ]
        rows.append(f"| {way} | {' | '.join(cells)} |")
    sizes = {int(count): size for count, size in results["memory"]["mebibytes"].items()}
    last = max(sizes)
    memory = (
        f"`--memory`: {last:,} decisions of {results['memory']['numbers']} numbers with learning on take the process "
        f"from {sizes[0]:.0f} to {sizes[last]:.0f} MiB ({sizes[last // 2]:.0f} after {last // 2:,})."
    )
    return "\n".join([*rows, "", memory])


def c_export() -> str:
    """Return size, exactness and builds of exported C headers."""
    results = read("c_export.json")
    if results is None:
        return "not measured yet"
    rows = [
        "| head | code | constants | without the critic | stack | largest difference from torch |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in results["policies"].items():
        alone = row["code_without_value"] + row["constants_without_value"]
        cells = (
            f"{row['code']:,} | {row['constants']:,} | {alone:,} | {row['stack']:,} | {row['largest_difference']:.1e}"
        )
        rows.append(f"| {name} | {cells} |")
    builds = list(next(iter(results["policies"].values()))["same_bits"])
    same = all(all(row["same_bits"].values()) for row in results["policies"].values())
    verdict = "gave the same bits for every policy" if same else "did not all give the same bits"
    return "\n".join([*rows, "", f"The self-tests of {len(builds)} builds {verdict}: {'; '.join(builds)}."])


TABLES: dict[str, Callable[[], str]] = {
    "learning-table": learning,
    "learning-short-table": learning_short,
    "speed-table": speed,
    "shapes-table": shapes,
    "sb3-curves-table": sb3_curves,
    "zoo-table": zoo_entries,
    "resume-table": survival,
    "record-table": record,
    "doctor-table": doctor,
    "doctor-faults": doctor_faults,
    "doctor-act": doctor_act,
    "doctor-foreign": doctor_foreign,
    "doctor-strangers": doctor_strangers,
    "town-table": town,
    "tools-table": tools,
    "tools-outside": tools_outside,
    "prompts-table": prompts,
    "prompts-content-table": prompts_content,
    "prompt-pairs": prompt_pairs,
    "serve-learning-table": serve_learning,
    "tools-curve": tools_curve,
    "serve-table": serve,
    "c-export-table": c_export,
    "scale-table": scale,
    "scale-losses-table": scale_losses,
    "scale-model-table": scale_model,
    **{f"lm-{which}": partial(language, which) for which in LANGUAGE},
    "mujoco-table": mujoco_worlds,
    "tune-table": tune,
    "campaign-totals": lambda: campaign("totals"),
    "campaign-blocks": lambda: campaign("blocks"),
    "campaign-mutants": lambda: campaign("mutants"),
    "campaign-long": lambda: campaign("long"),
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
