"""What towns learn, how fast they run, and what replay and a teacher are worth. Results are kept by part and seed.

python benchmarks/town.py                          every part, 5 seeds; says at the start how long; stopped, it goes on
python benchmarks/town.py --part learn --scenario queue_conflict --seeds 2
python benchmarks/town.py --first-seed 100 --out tuning.json       seeds to tune on; 5 to 9 are only judged by
python benchmarks/town.py --table                  only prints what is there, and draws the curves for docs/

learn     a policy trained in each scenario against chance and the script, on the scenario's own measures; besides the
          shipped ones two that are written as a user would, with default settings (workloads/town_*.yaml)
teacher   PPO that begins with a clone of the script: where it starts and where it ends
mixed     live ticks until a score is reached: rollouts alone, and rollouts with replay in between
speed     agent-steps per CPU-second with random actions; training beside Stable-Baselines3
scaling   what a tick costs an agent, from 4 to 256 agents
film      how many of 100 loads of a film play in Chromium, and what axe finds in both themes
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
OUT = HERE / "results" / "town.json"
LEARN = (
    "queue_conflict",
    "employment_punctuality",
    "rivalry_decay",
    "kitchen_breakfast",
    "market_town",
    "observation_baseline",
    "night_shift",
    "harbor",
)
OWN = {name: str(HERE / f"workloads/town_{name}.yaml") for name in ("night_shift", "harbor")}
"""Scenarios that do not ship, written from the documentation; both leave `training` at its defaults."""
PARTS = ("learn", "teacher", "mixed", "speed", "scaling", "film")
CONTROL = "observation_baseline"
"""Where there is nothing to learn."""
TEACHER = ("queue_conflict", "employment_punctuality")
EPISODES = 128
TARGETS = {"queue_conflict": -2.3, "kitchen_breakfast": -1.8}
"""Mean returns of an agent that `mixed` counts live steps to: about half-way from the script to what rollouts train to,
with seed 100 (-3.15 and -1.51; -2.27 and -1.36). Mixed takes twice as many gradient steps for a live step."""
CPU = {
    "learn/queue_conflict": 6,
    "learn/employment_punctuality": 4,
    "learn/rivalry_decay": 4,
    "learn/kitchen_breakfast": 5,
    "learn/market_town": 20,
    "learn/observation_baseline": 2,
    "learn/night_shift": 20,
    "learn/harbor": 20,
    "teacher/queue_conflict": 12,
    "teacher/employment_punctuality": 9,
    "mixed/queue_conflict": 4,
    "mixed/kitchen_breakfast": 4,
    "speed/world": 1,
    "speed/world_hybrid": 1,
    "speed/training": 15,
    "film/loads": 60,
    "scaling/4": 1,
}
"""Expected CPU-seconds of a piece, for the estimate."""


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_suffix(".tmp")
    waiting.write_text(json.dumps(results, indent=1) + "\n")
    waiting.replace(path)


def means(found: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: float(values.mean()) for name, values in found.items()}


def learn(name: str, seed: int) -> dict[str, Any]:
    """One seed of one scenario: trained, chance and script on the same unseen episodes, and the curve on the way."""
    from surefoot.town.scenarios.scenario import load_scenario
    from surefoot.town.training.measure import measure_behaviour, measure_policy
    from surefoot.town.training.spec import town_spec, town_training
    from surefoot.train.evaluate import EVAL_SEED_OFFSET

    scenario = load_scenario(OWN.get(name, name))
    training = town_training(town_spec(scenario, settings={"seed": seed}, eval_every=0))
    begin, every = time.process_time(), max(1, training.spec.total_updates // 40)
    curve = [
        [training.env_steps, training.collector.episodes.recent()[0]]
        for report in training
        if report.update % every == 0
    ]
    cpu = time.process_time() - begin
    episodes = EPISODES if len(scenario.agents) < 10 else 32
    return {
        "trained": means(measure_policy(training.policy, scenario, episodes, seed=seed + EVAL_SEED_OFFSET)),
        "random": means(measure_behaviour(scenario, "random", episodes, seed)),
        "script": means(measure_behaviour(scenario, "script", episodes, seed)),
        "curve": curve,
        "steps": training.env_steps,
        "cpu": cpu,
        "path": training.learner.path,
    }


def teacher(name: str, seed: int) -> dict[str, Any]:
    """A clone of the script, then PPO from its weights."""
    from surefoot.town.training.measure import measure_behaviour
    from surefoot.town.training.run import TownTraining

    town = TownTraining(name, settings={"seed": seed})
    cloned = town.clone(epochs=30)
    start = means(town.measure(EPISODES))
    while not town.training.finished:
        town.training.update()
    script = means(measure_behaviour(town.scenario, "script", EPISODES, seed))
    return {
        "agreement": cloned.agreement,
        "script": script,
        "clone": start,
        "trained": means(town.measure(EPISODES)),
    }


def mixed(name: str, seed: int, share: float) -> dict[str, Any]:
    """Live steps until the policy reaches the target twice in a row, and once more in episodes looked at only then."""
    from surefoot.town.scenarios.scenario import load_scenario
    from surefoot.town.training.measure import measure_policy
    from surefoot.town.training.spec import town_spec, town_training
    from surefoot.train.collect.offpolicy import ReplayRules
    from surefoot.train.collect.replay_cycles import Cycles
    from surefoot.train.evaluate import EVAL_SEED_OFFSET

    scenario = load_scenario(name)
    spec = town_spec(scenario, settings={"seed": seed}, towns=32, rollout_ticks=80, steps=600_000, eval_every=0)
    training = town_training(spec)
    cycles = Cycles(training, replay=share, recent=1 if share else 0, rules=ReplayRules(max_lag=12))

    def score(offset: int) -> float:
        return float(measure_policy(training.policy, scenario, 32, seed=seed + offset)["return"].mean())

    reached, live, target = None, 0, TARGETS[name]
    for _ in cycles:
        if training.env_steps == live:
            continue
        live = training.env_steps
        if score(EVAL_SEED_OFFSET) < target:
            reached = None
        elif reached is None:
            reached = live
        elif (judged := score(2 * EVAL_SEED_OFFSET)) >= target:
            return {"live_steps": reached, "reached": True, "judged": judged}
    return {"live_steps": training.env_steps, "reached": False}


def world_speed(name: str, towns: int, chunks: int = 20, variant: str | None = None) -> dict[str, float]:
    """Agent-steps a CPU-second with random legal actions, observations and masks included."""
    from surefoot.town.scenarios.scenario import load_scenario
    from surefoot.town.sim.script import random_actions
    from surefoot.town.sim.world import TownWorld

    world, rng = TownWorld(load_scenario(name), towns, variant=variant), np.random.default_rng(0)
    rates = []
    for _ in range(chunks):
        begin, steps = time.process_time(), 0
        for _ in range(80):
            steps += int(world.step(random_actions(world.mask, rng).reshape(-1)).valid.sum())
        rates.append(steps / (time.process_time() - begin))
    return {"median": float(np.median(rates)), "best": float(max(rates)), "streams": world.num_envs}


def train_speed(peer: str | None, updates: int = 6) -> dict[str, Any]:
    """Training steps a CPU-second, ours and Stable-Baselines3's, on the same scenario, network and minibatches."""
    from surefoot import native
    from surefoot.town.scenarios.scenario import load_scenario
    from surefoot.town.training.spec import town_spec, town_training

    scenario = load_scenario("queue_conflict")
    training = town_training(town_spec(scenario, eval_every=0))
    training.update()
    begin, steps = time.process_time(), training.env_steps
    for _ in range(updates):
        training.update()
    found: dict[str, Any] = {"surefoot": (training.env_steps - steps) / (time.process_time() - begin)}
    if peer is None or not Path(peer).exists():
        return found | {"note": "no peer: make peers, or --peer PYTHON"}
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "scenario.json"
        file.write_text(json.dumps(scenario.to_json()))
        env = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "OMP_NUM_THREADS": "1"}
        rules = scenario.training
        for label, kernel in (("sb3", native.kernel), ("sb3_numpy", None)):
            command = [
                peer,
                str(HERE / "workloads/sb3_town.py"),
                str(file),
                str(rules.towns),
                str(rules.rollout_ticks),
                "1",
            ]
            command.append("" if kernel is None else str(kernel.__file__))
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                return found | {"note": done.stderr.strip().splitlines()[-1]}
            said = json.loads(done.stdout.strip().splitlines()[-1])
            found[label] = said["steps"] / said["cpu"]
    return found


def scaling(agents: int, ticks: int = 60) -> dict[str, float]:
    """CPU-microseconds an agent-tick in one town of so many."""
    from surefoot.town.scenarios.scenario import Scenario, load_scenario
    from surefoot.town.sim.script import random_actions
    from surefoot.town.sim.world import TownWorld

    values = load_scenario("market_town").to_json()
    first = values["agents"]
    values["agents"] = [{**first[i % len(first)], "id": f"agent_{i}"} for i in range(agents)]
    world, rng = TownWorld(Scenario.from_json(values), 4), np.random.default_rng(0)
    rates = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(ticks // 5):
            world.step(random_actions(world.mask, rng).reshape(-1))
        rates.append((time.process_time() - begin) / (ticks // 5 * world.num_envs) * 1e6)
    return {"microseconds": float(np.median(rates)), "best": float(min(rates))}


def day_speed(agents: int = 25, ticks: int = 8640) -> dict[str, float]:
    """CPU-seconds of one town of market_town's kind for a day, random legal actions, observations and masks included."""
    from surefoot.town.scenarios.scenario import Scenario, load_scenario
    from surefoot.town.sim.script import random_actions
    from surefoot.town.sim.world import TownWorld

    values = load_scenario("market_town").to_json()
    first = values["agents"]
    values |= {"ticks": ticks, "ticks_per_day": ticks}
    values["agents"] = [{**first[i % len(first)], "id": f"agent_{i}"} for i in range(agents)]
    world, rng = TownWorld(Scenario.from_json(values), 1), np.random.default_rng(0)
    begin = time.process_time()
    for _ in range(ticks):
        world.step(random_actions(world.mask, rng).reshape(-1))
    return {"cpu": time.process_time() - begin, "agents": agents, "ticks": ticks}


def film_loads(loads: int = 100) -> dict[str, Any]:
    """How many loads of a film of two policies play without an error, and the findings of axe by theme."""
    import shutil

    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    from surefoot.town.scenarios.scenario import load_scenario
    from surefoot.town.sim.town_loop import SimulationLoop
    from surefoot.town.view.story import film_page

    found: dict[str, Any] = {"loads": loads, "playing": 0, "errors": [], "axe": {}}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as started:
        file = Path(scratch) / "film.html"
        loops = {name: SimulationLoop(load_scenario("market_town"), name) for name in ("script", "random")}
        file.write_text(film_page(loops["script"].world.layout, {name: loop.run(240) for name, loop in loops.items()}))
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(loads):
            page = browser.new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            page.goto(file.as_uri())
            page.wait_for_function("() => Number(document.getElementById('at').value) >= 2", timeout=30_000)
            found["playing"] += not errors
            found["errors"] += errors
            page.close()
        for theme in ("light", "dark"):
            page = browser.new_page(color_scheme=theme)
            page.goto(file.as_uri() + "#t=100&follow=devon")
            page.wait_for_selector("html[data-ready]")
            found["axe"][theme] = [finding["id"] for finding in Axe().run(page).response["violations"]]
    return found


Job = tuple[tuple[str, ...], Callable[[], Any]]


def jobs(args: argparse.Namespace) -> Iterator[Job]:
    """(where its result is kept, how to get it), seed by seed."""
    names = [args.scenario] if args.scenario else None
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for name in names or LEARN:
            yield ("learn", name, str(seed)), partial(learn, name, seed)
        for name in names or TEACHER:
            if name in TEACHER:
                yield ("teacher", name, str(seed)), partial(teacher, name, seed)
        for name in names or TARGETS:
            for label, share in (("rollout", 0.0), ("mixed", 0.5)):
                if name in TARGETS:
                    yield ("mixed", name, label, str(seed)), partial(mixed, name, seed, share)
    yield ("speed", "world"), partial(world_speed, "queue_conflict", 64)
    yield ("speed", "world_hybrid"), partial(world_speed, "queue_conflict", 64, variant="hybrid")
    yield ("speed", "training"), partial(train_speed, args.peer)
    yield ("speed", "day"), day_speed
    yield ("film", "loads"), film_loads
    for agents in (4, 8, 16, 32, 64, 128, 256):
        yield ("scaling", str(agents)), partial(scaling, agents)


def expected(path: tuple[str, ...]) -> float:
    return CPU.get("/".join(path[:2]), 1.0)


def run(args: argparse.Namespace) -> None:
    from surefoot.train.device import pin_threads

    pin_threads(1)
    results = read(args.out)

    def there(path: tuple[str, ...]) -> bool:
        place: Any = results
        for word in path:
            place = place.get(word) if isinstance(place, dict) else None
        return place is not None

    asked = [job for job in jobs(args) if job[0][0] in args.part]
    left = [job for job in asked if args.again or not there(job[0])]
    print(
        f"{len(left)} of {len(asked)} pieces to do, about {sum(expected(path) for path, _ in left) / 60:.0f} CPU-minutes",
        flush=True,
    )
    for path, make in left:
        begin, found = cpu_seconds(), make()
        place = results
        for word in path[:-1]:
            place = place.setdefault(word, {})
        place[path[-1]] = found
        write(args.out, results)
        print(f"{'/'.join(path)}: {cpu_seconds() - begin:.0f} CPU-s", flush=True)


def cpu_seconds() -> float:
    """Of this process and those it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def table(results: dict[str, Any]) -> list[str]:
    """Every result as lines; an interval is a 95 % bootstrap of the IQM over seeds."""
    from surefoot.town.scenarios.scenario import load_scenario
    from surefoot.train.diagnose.statistics import summarize

    lines = ["| scenario | measure | random | script | trained | apart |", "|---|---|---|---|---|---|"]
    for name, seeds in results.get("learn", {}).items():
        for measure in load_scenario(OWN.get(name, name)).measures:
            told = {
                who: summarize([s[who][measure] for s in seeds.values()]) for who in ("random", "script", "trained")
            }
            mine = told["trained"]
            apart = all(mine.high < x.low or mine.low > x.high for who, x in told.items() if who != "trained")
            better = all(is_better(measure, mine.iqm, x.iqm) for who, x in told.items() if who != "trained")
            shown = " | ".join(f"{x.iqm:.3f} [{x.low:.3f}, {x.high:.3f}]" for x in told.values())
            word = "yes" if apart and better else "no"
            word += ", as it should be" if name == CONTROL and word == "no" else ""
            lines.append(f"| {name} | {measure} | {shown} | {word}, n={mine.count} |")
    for name, seeds in results.get("teacher", {}).items():
        parts = {who: summarize([s[who]["return"] for s in seeds.values()]) for who in ("script", "clone", "trained")}
        shown = ", ".join(f"{who} {x.iqm:.3f} [{x.low:.3f}, {x.high:.3f}]" for who, x in parts.items())
        lines.append(f"- PPO that begins with a clone of the script, {name}, return: {shown}")
    for name, ways in results.get("mixed", {}).items():
        told = {label: summarize([s["live_steps"] for s in seeds.values()]) for label, seeds in ways.items()}
        shown = ", ".join(f"{k} {x.iqm:,.0f} [{x.low:,.0f}, {x.high:,.0f}]" for k, x in told.items())
        fewer = len(told) == 2 and told["mixed"].high < told["rollout"].low
        lines.append(
            f"- Live steps to a return of {TARGETS[name]:g} in {name}: {shown}; fewer: {'yes' if fewer else 'no'}"
        )
    if "speed" in results:
        lines += [f"- {line}" for line in speeds(results["speed"])]
    if "film" in results:
        film = results["film"]["loads"]
        axe = ", ".join(f"{len(found)} in the {theme} theme" for theme, found in film["axe"].items())
        lines.append(
            f"- Films that play in Chromium: {film['playing']} of {film['loads']} loads; findings of axe: {axe}"
        )
    if "scaling" in results:
        lines.append(
            "- CPU-µs per agent and tick by the number of agents: "
            + ", ".join(f"{n}: {x['microseconds']:.1f}" for n, x in results["scaling"].items())
        )
    return lines


def speeds(told: dict[str, Any]) -> list[str]:
    """What was measured of the speed, as sentences."""
    lines: list[str] = []
    if "world" in told:
        lines.append(
            f"64 towns of queue_conflict, random actions: {told['world']['median']:,.0f} agent-steps per CPU-second "
            f"(best stretch {told['world']['best']:,.0f})"
        )
    if "sb3" in told.get("training", {}):
        x = told["training"]
        lines.append(
            f"Training queue_conflict: {x['surefoot']:,.0f} agent-steps per CPU-second, {x['surefoot'] / x['sb3']:.1f} × "
            f"Stable-Baselines3 on the PettingZoo env ({x['sb3']:,.0f}), which the kernel makes faster too; "
            f"{x['surefoot'] / x['sb3_numpy']:.1f} × with that env in numpy ({x['sb3_numpy']:,.0f}); in the same run"
        )
    if "day" in told:
        lines.append(
            f"One town of 25 agents for a day of 8,640 ticks, random actions: {told['day']['cpu']:.2f} CPU-seconds"
        )
    return lines


def is_better(measure: str, one: float, other: float) -> bool:
    from surefoot.town.sim.measure import better

    return better(measure, one, other)


def draw(results: dict[str, Any], folder: Path) -> None:
    """Curves of all scenarios and the cost of a tick, as pictures for docs/."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    learned = results.get("learn", {})
    if learned:
        figure, axes = pyplot.subplots(2, 4, figsize=(14, 6), squeeze=False)
        for axis, (name, seeds) in zip(axes.ravel(), learned.items(), strict=False):
            for seed in seeds.values():
                axis.plot([p[0] for p in seed["curve"]], [p[1] for p in seed["curve"]], lw=0.9, color="#2c68ba")
            for who, colour in (("random", "#999999"), ("script", "#c45c24")):
                axis.axhline(np.mean([s[who]["return"] for s in seeds.values()]), color=colour, ls="--", label=who)
            axis.set_title(name, fontsize=10)
            axis.legend(fontsize=7)
        figure.supxlabel("agent-steps")
        figure.supylabel("return of an agent")
        figure.tight_layout()
        figure.savefig(folder / "town-curves.png", dpi=110)
    if results.get("scaling"):
        figure, axis = pyplot.subplots(figsize=(5, 3.2))
        sizes = [int(n) for n in results["scaling"]]
        axis.plot(sizes, [x["microseconds"] for x in results["scaling"].values()], "o-", color="#2c68ba")
        axis.set_xscale("log", base=2)
        axis.set_xlabel("agents")
        axis.set_ylabel("CPU-µs per agent and tick")
        axis.set_ylim(bottom=0)
        figure.tight_layout()
        figure.savefig(folder / "town-scaling.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--scenario", choices=LEARN)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=5)
    parser.add_argument(
        "--peer", default=str(HERE.parent / ".venv-peers/bin/python"), help="a Python that has Stable-Baselines3"
    )
    parser.add_argument("--again", action="store_true", help="measure anew what is there")
    parser.add_argument("--table", action="store_true", help="only print and draw")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    if not args.table:
        run(args)
    results = read(args.out)
    print("\n".join(table(results)))
    if args.table:
        draw(results, HERE.parent / "docs" / "assets")


if __name__ == "__main__":
    sys.exit(main())
