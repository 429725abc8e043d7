"""What drawing a training loop costs, and whether what is drawn learns.

Digits: every template at its full size, three updates: three engines, the exported script, the file that stands alone where
there is one, and the script on the kernel's path beside the interpreter on it.
Speed: env steps per second of CPU time of the exported script, of the file that stands alone and of the interpreter,
each beside `surefoot train` on the same path, an update each in turn; then the interpreter with six edges watched.
Learning: the exported Cartpole_PPO to the step limit, three environments with one agent beside one
of them alone, the hierarchical template beside PPO alone, the town beside its script, tools beside the nearest description, a
language model (its score less the price of its KL) beside the best that any policy could get. Runs are kept per seed in
results/graph.json, so that the benchmark can be stopped and go on; --fresh starts over. Exit code 1 if a number misses its bar.

python benchmarks/graph.py                 about 10 minutes on one core
python benchmarks/graph.py speed --rounds 7 --updates 8
python benchmarks/graph.py learning --seeds 2
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import torch

from surefoot.compat.dnne.workflow import from_workflow
from surefoot.envs.make import make_world
from surefoot.errors import GraphError
from surefoot.graph.export.script import to_script
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.digits import parameters_sha256, weights_of
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.live_values import Live
from surefoot.graph.run.queues import QueueEngine
from surefoot.graph.runtime.tools import (
    QueryEncoderNode,
    QuerySourceNode,
    ToolBoxNode,
    ToolRunnerNode,
    is_right,
)
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import NAMES, template
from surefoot.graph.wiring import ROLES, connect_plain
from surefoot.learn.learner import Learner
from surefoot.nets.config import NetConfig
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.measure import measure_behaviour, measure_policy
from surefoot.train.collect.tick_collector import ActionRecord
from surefoot.train.config import CollectConfig
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import new_run_dir
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

WORKFLOW = Path(__file__).resolve().parents[1] / "tests" / "samples" / "graph" / "Cartpole_PPO.json"
RESULTS = Path(__file__).resolve().parent / "results" / "graph.json"
ENVS, HORIZON = 64, 32
WARM_UP = 3
EPISODES = 64
WATCHED = (
    "env.observations",
    "either.output",
    "agent.policy_output",
    "action.actions",
    "step.observations",
    "step.rewards",
)
BARS = {
    "script / train, native": 0.97,
    "script / train, torch": 0.97,
    "standalone / train, torch": 0.97,
    "interpreter / train, torch": 0.9,
    "interpreter / train, native": 0.97,
    "interpreter watched / interpreter, torch": 0.97,
    "interpreter watched / interpreter, native": 0.97,
}


class Turns:
    """Two runs in one process, an update each in turn, so that whatever else the machine does falls on both alike."""

    def __init__(self) -> None:
        self.seconds: list[list[float]] = [[], []]
        """CPU time of each update, of either side."""
        self.side = threading.local()
        self._may = [threading.Semaphore(0), threading.Semaphore(0)]
        self._begin = 0.0

    def after(self, update: Callable[..., Any]) -> Callable[..., Any]:
        """`update`, after which it is the other's turn."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            done = update(*args, **kwargs)
            if (me := getattr(self.side, "me", None)) is not None:
                self.seconds[me].append(time.process_time() - self._begin)
                self._may[1 - me].release()
                self._wait(me)
            return done

        return wrapped

    def run(self, sides: Sequence[Callable[[], Any]]) -> None:
        """Both to their ends."""
        threads = [threading.Thread(target=self._one, args=(me, go)) for me, go in enumerate(sides)]
        for each in threads:
            each.start()
        self._may[0].release()
        for each in threads:
            each.join()

    def _one(self, me: int, go: Callable[[], Any]) -> None:
        torch.set_num_threads(1)
        self.side.me = me
        self._wait(me)
        try:
            go()
        finally:
            self._may[1 - me].release()

    def _wait(self, me: int) -> None:
        self._may[me].acquire()
        self._begin = time.process_time()


def ppo_loop(
    name: str, *, env: dict, agent: dict, action: dict, trainer: dict, total_steps: int, seed: int = 0
) -> Graph:
    """Return the plain loop: environment → OR → agent → action → step → trainer, and back."""
    graph = Graph(name)
    graph.run.total_steps, graph.run.seed = total_steps, seed
    params = {"env": env, "either": {"mode": "fby"}, "agent": agent, "action": action, "trainer": trainer}
    for role, type in ROLES.items():
        graph.add(role, type, **params.get(role, {}))
    connect_plain(graph, {role: role for role in ROLES})
    return graph


def workload(updates: int, path: str) -> Graph:
    """CartPole, 64 copies, 32 steps an update, 10 epochs of 256."""
    graph = ppo_loop(
        "bench",
        env={"env_id": "CartPole-v1", "num_envs": ENVS},
        agent={"input_size": 4, "output_size": 2, "action_space": "discrete", "activation": "tanh", "shared": False},
        action={"mode": "none"},
        trainer={"rollout_steps": HORIZON, "minibatch_size": 256, "epochs": 10, "ent_coef": 0.0},
        total_steps=updates * ENVS * HORIZON,
    )
    graph.run.path = path
    return graph


def train(updates: int, path: str, turns: Turns) -> Callable[[], Any]:
    """What `surefoot train` does, the record included."""
    graph = workload(updates, path)
    config, steps = Interpreter(graph).nodes["trainer"].config.replace(envs=ENVS, path=path), graph.run.total_steps
    spec = RunSpec(
        env="CartPole-v1",
        preset="sb3",
        total_steps=steps,
        ppo=config,
        net=NetConfig(),
        collect=CollectConfig(),
        eval_every=0,
        checkpoint_every=10 * steps,
    )
    folder = tempfile.mkdtemp()
    run = create_run(new_run_dir("CartPole-v1", 0, root=Path(folder)), spec, training=Training(spec))

    def go() -> None:
        for _ in run.moments():
            pass

    return go


def script(updates: int, path: str, turns: Turns) -> Callable[[], Any]:
    return Compiled(workload(updates, path)).run


def interpreter(updates: int, path: str, turns: Turns) -> Callable[[], Any]:
    return Interpreter(workload(updates, path)).run


def watched(updates: int, path: str, turns: Turns) -> Callable[[], Any]:
    # Ten looks a second of its own CPU time: on a machine with other work, wall time would make them ten times as many.
    run = Interpreter(workload(updates, path), live=Live(clock=time.thread_time))
    for end in WATCHED:
        run.live.watch(end)
    return run.run


def standalone(updates: int, path: str, turns: Turns) -> Callable[[], Any]:
    module = ModuleType("bench_alone")
    sys.modules[module.__name__] = module
    exec(compile(to_standalone(workload(updates, path)), "<alone>", "exec"), module.__dict__)
    module.PolicyTrainer.update = turns.after(module.PolicyTrainer.update)
    return lambda: module.train(module.Config())


SIDES = {
    "script / train, native": (script, train, "auto"),
    "script / train, torch": (script, train, "torch"),
    "standalone / train, torch": (standalone, train, "torch"),
    "interpreter / train, torch": (interpreter, train, "torch"),
    "interpreter / train, native": (interpreter, train, "auto"),
    "interpreter watched / interpreter, torch": (watched, interpreter, "torch"),
    "interpreter watched / interpreter, native": (watched, interpreter, "auto"),
}


def speed(rounds: int, updates: int, kept: dict[str, Any], save: Callable[[], None], only: str = "") -> None:
    """How many times as fast ours is, in each of `rounds` stretches of a run; the first updates warm up."""
    for name, (ours, theirs, path) in SIDES.items():
        if only not in name:
            continue
        each = updates * (10 if path == "auto" else 1)
        turns = Turns()
        with (
            mock.patch.object(Learner, "update", turns.after(Learner.update)),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            turns.run([make(WARM_UP + rounds * each, path, turns) for make in (ours, theirs)])
        spent = [np.reshape(side[WARM_UP:], (rounds, each)).sum(axis=1) for side in turns.seconds]
        ratios = (spent[1] / spent[0]).tolist()
        kept[name] = {"ratio": statistics.median(ratios), "ratios": ratios, "bar": BARS.get(name)}
        kept[name] |= {"load": os.getloadavg()[1], "updates": rounds * each}
        save()
        rate = ENVS * HORIZON * rounds * each / spent[0].sum()
        told = " ".join(f"{ratio:.3f}" for ratio in ratios)
        print(
            f"{name}: {kept[name]['ratio']:.3f} ({told}), {rate:,.0f} steps/CPU-s, load {kept[name]['load']:.1f}",
            flush=True,
        )


def exported(text: str, seed: int) -> Any:
    """What an exported program's own `train` returns, the program read from a file as Python reads it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / "exported.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("exported", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module.train(module.Config(seed=seed))


def alone(graph: Graph, nodes: dict[str, Any], seed: int) -> bool | None:
    """Whether the file that stands alone comes to the very weights; None where the graph has none."""
    try:
        text = to_standalone(graph)
    except GraphError:
        return None
    trainers = exported(text, seed)
    theirs = {
        f"{id}.{n}": x.numpy()
        for id, trainer in trainers.items()
        for n, x in trainer.policy.state_dict().items()
        if "normalizer" not in n
    }
    found = weights_of(nodes)
    ours = {
        f"{id}.{n.removeprefix('network.')}": x
        for id, weights in found.items()
        for n, x in weights.items()
        if "normalizer" not in n
    }
    return set(ours) == set(theirs) and all(np.array_equal(x, theirs[name]) for name, x in ours.items())


def three_updates(name: str, seed: int, path: str) -> Graph:
    graph = template(name)
    graph.remove("print")
    plan = schedule(graph)
    graph.run.seed, graph.run.path = seed, path
    ticks = {"ToolTrainer": 8, "LMTrainer": 1}.get(graph.nodes["trainer"].type) or plan.horizons[0]
    graph.run.total_steps = 3 * ticks * plan.streams
    return graph


def digits(seeds: int, kept: dict[str, Any], save: Callable[[], None], only: str = "") -> None:
    """Every template at its full size, three updates: the weights of all engines and programs, by their digest."""
    for name in NAMES:
        for seed in range(seeds):
            if str(seed) in kept.get(name, {}) or only not in name:
                continue
            found: dict[str, str] = {}
            graph = three_updates(name, seed, "torch")
            for engine in (Interpreter, QueueEngine, Compiled):
                with tempfile.TemporaryDirectory() as folder:
                    made = engine(graph, into=folder)
                    made.run()
                    found[engine.__name__] = made.sha256()
                    if engine is Interpreter:
                        stands = alone(graph, made.nodes, seed)
                    made.close()
            found["script"] = parameters_sha256(exported(to_script(graph), seed))
            if stands is not None:
                found["standalone"] = found["Interpreter"] if stands else "differs"
            native = three_updates(name, seed, "auto")
            with tempfile.TemporaryDirectory() as folder, Interpreter(native, into=folder) as run:
                run.run()
                same = run.sha256() == parameters_sha256(exported(to_script(native), seed))
            found["script, native path"] = found["Interpreter"] if same else "differs"
            kept.setdefault(name, {})[str(seed)] = found
            save()
            equal = len(set(found.values())) == 1
            print(f"{name:<14} seed {seed}  {f'{len(found)} ways, equal' if equal else found}", flush=True)


def score(graph: Graph, seed: int) -> dict[str, float]:
    """Train by the exported program; the return over 100 episodes that training never saw, or of the last 200 decisions."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        program = Compiled(graph, seed=seed, into=folder)
        program.run()
    cpu = time.process_time() - begin
    if graph.nodes["trainer"].type == "LMTrainer":
        return {**standing(program.nodes, seed), "cpu_seconds": cpu}
    if graph.nodes["trainer"].type == "ToolTrainer":
        return {"mean": statistics.mean(program.nodes["trainer"].recent), "cpu_seconds": cpu}
    if any(node.type == "Scenario" for node in graph.nodes.values()):
        policy, scenario = program.nodes["agent"].policy, program.nodes["env"].town.scenario
        found = measure_policy(policy, scenario, EPISODES, seed=seed + EVAL_SEED_OFFSET)
        return {"mean": float(found["return"].mean()), "cpu_seconds": cpu}
    env = next(node for node in graph.nodes.values() if node.type == "Environment").params["env_id"]
    if "high" in program.nodes:
        recent = program.nodes["high"].decisions.episodes.recent()[0]
        return {"mean": recent or 0.0, "cpu_seconds": cpu}
    played = play(program.nodes["agent"].policy, make_world(env, 10), 100, seed=seed + EVAL_SEED_OFFSET)
    return {"mean": played.mean, "length": sum(played.lengths) / len(played.lengths), "cpu_seconds": cpu}


def one_env() -> Graph:
    """The baseline of the multi-environment template: its first environment alone, for the steps that one takes."""
    graph, whole = template("cartpole"), template("multi_env")
    graph.nodes["env"].params["num_envs"] = 4
    graph.nodes["trainer"].params = dict(whole.nodes["trainer"].params)
    graph.run.total_steps = whole.run.total_steps // 3
    return graph


def plain_maze() -> Graph:
    """The baseline of the hierarchical template: PPO alone, the same steps and settings."""
    whole = template("hierarchical")
    return ppo_loop(
        "maze",
        env=dict(whole.nodes["env"].params),
        agent={"input_size": 33, "output_size": 4, "action_space": "discrete", "activation": "tanh", "shared": False},
        action={"mode": "none"},
        trainer=dict(whole.nodes["trainer"].params),
        total_steps=whole.run.total_steps,
    )


def scripted(seed: int) -> dict[str, float]:
    """The town's script, on the episodes that the trained policy is measured on."""
    found = measure_behaviour(load_scenario("queue_conflict"), "script", EPISODES, seed + EVAL_SEED_OFFSET)
    return {"mean": float(found["return"].mean())}


def nearest(seed: int) -> dict[str, float]:
    """Questions answered by the tool whose description is nearest."""
    with tempfile.TemporaryDirectory() as folder:
        encode, runner = QueryEncoderNode(), ToolRunnerNode()
        asked = QuerySourceNode(seed=seed).questions
        vectors, encoder = encode(asked)
        tools = ToolBoxNode(into=folder)(encoder)
        names = [tool.name for tool in tools.box]
        described = encoder.encode([tool.description for tool in tools.box])
        picks = [names[int((described @ x).argmax())] for x in vectors]
        right = [is_right(q, ran) for q, ran in zip(asked, runner.run(asked, picks, tools), strict=True)]
    return {"mean": sum(right) / len(right)}


def examined(seed: int, steps: int = 0) -> dict[str, float]:
    """Tools chosen for questions that were never learned from: by the policy, and by the nearest description."""
    graph = template("tools")
    graph.run.total_steps = steps or graph.run.total_steps
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        program = Compiled(graph, seed=seed, into=folder)
        program.run()
        nodes = program.nodes
        held_out, encoder = nodes["queries"].held_out, nodes["encoder"].encoder
        right, nearest = nodes["exam"].examine(held_out, encoder, nodes["policy"].agent)
    return {"mean": right, "nearest": nearest, "questions": len(held_out)}


def nearest_held_out(seed: int) -> dict[str, float]:
    """The same questions by the nearest description."""
    return {"mean": examined(seed, steps=4)["nearest"]}


def judged(speech: Any, score: Callable[[str, str], float], tokens: Sequence[int]) -> float:
    return score("", speech.text(tokens))


def asked(nodes: dict[str, Any]) -> dict[str, Any]:
    """What the two numbers below are asked about: the template's prompts, its reward, and what a nat costs in it."""
    speech, score = nodes["sampler"].language.speech, nodes["reward"].score
    return {
        "policy": nodes["sampler"].language.policy,
        "sampling": nodes["sampler"].sampling,
        "judge": partial(judged, speech, score),
        "beta": nodes["kl"].beta.beta,
        "eos": speech.eos,
    }


def standing(nodes: dict[str, Any], seed: int) -> dict[str, float]:
    """Score less the price of the KL, of 1,050 fresh responses."""
    from lm.priced_optimum import achieved

    prompts = [nodes["sampler"].language.speech.prompt(text) for text in nodes["prompts"].prompts]
    generator = torch.Generator().manual_seed(seed + EVAL_SEED_OFFSET)
    found = achieved(prompts=prompts * 150, generator=generator, **asked(nodes))
    return {"mean": found.objective, "score": found.score}


def language_optimum(seed: int) -> dict[str, float]:
    """The same of the best policy there is. It hangs on the reference alone: a seed is another estimate of one number."""
    from lm.priced_optimum import optimum

    graph = template("language")
    graph.remove("print")
    with tempfile.TemporaryDirectory() as folder:
        nodes = Interpreter(graph, into=folder).nodes
    about = asked(nodes)
    worth = [about["judge"]([token]) for token in range(about["policy"].backbone.head.weight.shape[0])]
    lean = torch.tensor(worth) / (about["beta"] * about["sampling"].max_new_tokens)
    prompts = [nodes["sampler"].language.speech.prompt(text) for text in nodes["prompts"].prompts]
    generator = torch.Generator().manual_seed(seed)
    found = optimum(prompts=prompts, samples=1024, lean=lean, generator=generator, **about)
    return {"mean": found.objective, "score": found.score}


class Pushed:
    """A world whose actions go through the graph's ActionProcessor, as they do in training."""

    def __init__(self, world: Any, action: Any) -> None:
        self.world, self.action = world, action

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)

    def step(self, action: np.ndarray) -> Any:
        return self.world.step(self.action(ActionRecord(action=action, value=None, log_prob=None, obs={})))


def imported(copies: int, seed: int) -> dict[str, float]:
    """A DNNE workflow with what its import sets; the return over 100 episodes that training never saw."""
    workflow = json.loads(WORKFLOW.read_text())
    workflow["nodes"][0]["widgets_values"][1] = copies
    graph = from_workflow(json.dumps(workflow)).graph
    begin = time.process_time()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        Interpreter(graph, seed=seed, into=folder) as run,
    ):
        run.run()
        cpu = time.process_time() - begin
        world: Any = Pushed(make_world("surefoot/CartPoleContinuous-v0", 10), run.nodes["action5"])
        mean = play(run.nodes["agent3"].policy, world, 100, seed=seed + EVAL_SEED_OFFSET).mean
    return {"mean": mean, "cpu_seconds": cpu, "env_steps": graph.run.total_steps}


OTHERS: dict[str, Callable[[int], dict[str, float]]] = {
    "the town's script": scripted,
    "tools by the nearest description": nearest,
    "tools, held-out questions": examined,
    "tools by the nearest description, held-out questions": nearest_held_out,
    **({"the language model's optimum": language_optimum} if "language" in NAMES else {}),
}

LEARNING: dict[str, tuple[Callable[[], Graph], float | None]] = {
    "Cartpole_PPO, exported": (lambda: template("cartpole_ppo"), 475.0),
    "CartPole": (lambda: template("cartpole"), 475.0),
    "three environments, one agent": (lambda: template("multi_env"), 475.0),
    "one of them alone": (one_env, None),
    "hierarchical": (lambda: template("hierarchical"), 0.9),
    "PPO alone in the same maze": (plain_maze, None),
    "Pendulum": (lambda: template("pendulum"), -180.0),
    "MuJoCo": (lambda: template("mujoco"), 950.0),
    "town": (lambda: template("town"), -2.0),
    "tools": (lambda: template("tools"), 0.95),
    **({"language model": (lambda: template("language"), None)} if "language" in NAMES else {}),
}
IMPORTED = {f"workflow as imported, {n} copies": partial(imported, n) for n in (1, 16, 64, 512)}
"""Every seed has to reach the bar, not their median."""
BEATS = {
    "three environments, one agent": "one of them alone",
    "hierarchical": "PPO alone in the same maze",
    "town": "the town's script",
    "tools": "tools by the nearest description",
    "tools, held-out questions": "tools by the nearest description, held-out questions",
}
"""{template: its named baseline}"""
SHARES = {"language model": ("the language model's optimum", 0.93)}
"""{template: (the best there is, how much of it)}; the bar is that of docs/lm/measured.md"""


def learning(seeds: int, kept: dict[str, Any], save: Callable[[], None], only: str = "") -> None:
    ways: dict[str, tuple[Callable[[int], dict[str, float]], float | None]] = {
        name: (lambda seed, make=make: score(make(), seed), bar) for name, (make, bar) in LEARNING.items()
    }
    ways |= {name: (way, 475.0) for name, way in IMPORTED.items()} | {name: (way, None) for name, way in OTHERS.items()}
    for name, (way, bar) in ways.items():
        if only and only not in name:
            continue
        entry = kept.setdefault(name, {"bar": bar, "seeds": {}})
        for seed in range(seeds):
            if str(seed) not in entry["seeds"]:
                entry["seeds"][str(seed)] = way(seed)
                save()
            print(f"{name}, seed {seed}: {entry['seeds'][str(seed)]['mean']:.2f}", flush=True)


def report(results: dict[str, Any]) -> int:
    """The table; how many bars were missed."""
    missed = 0
    print("\n| what | measured | bar |\n|---|---|---|")
    for name, entry in results.get("speed", {}).items():
        fine = entry["bar"] is None or entry["ratio"] >= entry["bar"]
        missed += not fine
        print(f"| {name} | {entry['ratio']:.3f}{'' if fine else ' ✗'} | {entry['bar'] or ''} |")
    for name, entry in results.get("learning", {}).items():
        means = [each["mean"] for each in entry["seeds"].values()]
        worst = min if name in IMPORTED else statistics.median
        fine = not means or entry["bar"] is None or worst(means) >= entry["bar"]
        missed += not fine
        shown = (
            f"{statistics.median(means):.2f} ({min(means):.2f} to {max(means):.2f}, {len(means)} seeds)"
            if means
            else ""
        )
        print(f"| {name} | {shown}{'' if fine else ' ✗'} | {entry['bar'] if entry['bar'] is not None else ''} |")
    for name, other in BEATS.items():
        found = [results.get("learning", {}).get(each, {}).get("seeds", {}) for each in (name, other)]
        both = sorted(set(found[0]) & set(found[1]))
        if both:
            pairs = [(found[0][seed]["mean"], found[1][seed]["mean"]) for seed in both]
            means = [statistics.mean(side) for side in zip(*pairs, strict=True)]
            above, below = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
            missed += means[0] <= means[1]
            level = len(both) - above - below
            print(
                f"| {name} beside {other}, mean of {len(both)} seeds | {means[0]:.2f} against {means[1]:.2f} | above |"
            )
            print(f"|  … seed by seed | {above} above, {level} level, {below} below | |")
    for name, (best, bar) in SHARES.items():
        found = [results.get("learning", {}).get(each, {}).get("seeds", {}) for each in (name, best)]
        if all(found):
            means = [[each["mean"] for each in seeds.values()] for seeds in found]
            shares = [mean / statistics.mean(means[1]) for mean in means[0]]
            missed += statistics.median(shares) < bar
            shown = f"{statistics.median(shares):.3f} ({min(shares):.3f} to {max(shares):.3f})"
            print(f"| {name}, share of the optimum {statistics.mean(means[1]):.3f} | {shown} | {bar} |")
    for name, seeds in results.get("digits", {}).items():
        fine = all(len(set(found.values())) == 1 for found in seeds.values())
        missed += not fine
        ways = max(map(len, seeds.values()))
        print(f"| {name}: digits of {ways} ways, {len(seeds)} seeds | {'equal' if fine else 'differ ✗'} | equal |")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["digits", "speed", "learning", []], help="default all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--updates", type=int, default=12, help="of a round on the torch path; ten times that on the kernel's"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="only templates whose name has this in it")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"command": "make bench-graph", "digits": {}, "speed": {}, "learning": {}}
    if args.out.exists() and not args.fresh:
        results |= json.loads(args.out.read_text())

    def save() -> None:
        args.out.parent.mkdir(exist_ok=True)
        args.out.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")

    if not args.what or "digits" in args.what:
        digits(min(3, args.seeds), results.setdefault("digits", {}), save, args.only)
    if not args.what or "speed" in args.what:
        speed(args.rounds, args.updates, results["speed"], save, args.only)
    if not args.what or "learning" in args.what:
        learning(args.seeds, results["learning"], save, args.only)
        save()
    return int(bool(report(results)))


if __name__ == "__main__":
    sys.exit(main())
