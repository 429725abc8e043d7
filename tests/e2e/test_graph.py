"""Graphs end to end: every engine and every exported program come to the same digits; the file alone needs no surefoot."""

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
import torch

from surefoot.cli.main import main
from surefoot.graph.export.script import to_script
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.digits import parameters_sha256, weights_of
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.run.queues import QueueEngine
from surefoot.graph.run.snapshot import restore, snapshot
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.model import Delay, Graph
from surefoot.graph.spec.text import save_graph
from surefoot.graph.templates import NAMES, template
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint

UPDATES = 3
SLOW_TO_START = ("language", "tools")
"""What they import takes seconds in every process; `make bench-graph` has them on three seeds too."""
ONE_THREAD = os.environ | {"OMP_NUM_THREADS": "1"}


def short(name: str) -> Graph:
    """A template, three small updates long, silent; `make bench-graph` has them at their full size."""
    graph = template(name)
    graph.remove("print")
    trainer = graph.nodes["trainer"]
    if trainer.type == "PPOTrainerNode":
        few = min(16, trainer.params.get("rollout_steps", 16))
        trainer.params |= {"rollout_steps": few, "epochs": 2, "minibatch_size": 32}
    for node in graph.nodes.values():
        if node.type == "HighLevelPPO":
            node.params |= {"rollout_steps": few, "steps_per_goal": 6}
        for count in ("num_envs", "towns"):
            if count in node.params:
                node.params[count] = min(8, node.params[count])
        if node.type == "Split":
            node.params["sizes"] = tuple(min(8, size) for size in node.params["sizes"])
    plan = schedule(graph)
    ticks = {"ToolTrainer": 8, "LMTrainer": 1}.get(trainer.type) or plan.horizons[0]
    graph.run.total_steps = UPDATES * ticks * plan.streams
    graph.run.path = "torch"
    return graph


@pytest.mark.parametrize("name", NAMES)
def test_every_engine_and_the_script_come_to_the_same_digits(name: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    if name == "language":
        pytest.importorskip("transformers")
    graph = short(name)
    first = 1 + list(NAMES).index(name)
    for seed in (first, first + 100, first + 200):
        graph.run.seed = seed
        with Interpreter(graph, into=tmp_path / f"interpreter{seed}") as run:
            run.run()
            assert run.updates == UPDATES
            wanted = run.sha256()
        for fuse in (True, False):
            program = Compiled(graph, fuse=fuse, into=tmp_path / f"compiled{fuse}{seed}")
            program.run()
            assert program.sha256() == wanted, f"compiled, fuse={fuse}, seed {seed}"
        if seed == first or name not in SLOW_TO_START:
            queues = QueueEngine(graph, into=tmp_path / f"queues{seed}")
            queues.run()
            assert queues.processes >= 2
            assert queues.sha256() == wanted, "queues"


@pytest.mark.parametrize(
    ("name", "path"), [*((name, "torch") for name in NAMES), *((n, "auto") for n in ("cartpole", "hierarchical"))]
)
def test_taken_up_in_mid_rollout_a_graph_goes_on_to_the_last_bit(name: str, path: str, tmp_path: Path) -> None:
    if name == "language":
        pytest.importorskip("transformers")
    torch.set_num_threads(1)
    graph = short(name)
    graph.run.path = path
    with Interpreter(graph, into=tmp_path) as run:
        run.run()
        wanted, ticks = run.sha256(), run.ticks
    with Interpreter(graph, into=tmp_path) as first:
        first.run(ticks // 2 + 1)
        save_checkpoint(tmp_path / "checkpoints", 1, {"graph": snapshot(first)})
    with Interpreter(graph, into=tmp_path) as second:
        restore(second, load_checkpoint(tmp_path / "checkpoints").parts["graph"])
        assert second.sha256() != wanted
        second.run()
        assert second.ticks == ticks
        assert second.sha256() == wanted


@pytest.mark.parametrize("name", ["cartpole", "cartpole_ppo"])
def test_a_script_on_the_native_path_has_the_digits_of_the_graph(name: str) -> None:
    graph = short(name)
    graph.run.path = "auto"
    with Interpreter(graph) as run:
        run.run()
        assert run.nodes["trainer"].report.path == "native"
        program = Compiled(graph)
        program.run()
        assert program.sha256() == run.sha256()


def named_weights(nodes: dict) -> dict[str, np.ndarray]:
    """All that a graph has learned, by the names of the file that stands alone; statistics of observations left out."""
    theirs = {"network.": "", "critic_memory.": "memories.critic_memory.", ".memory.": ".memories.memory."}
    found: dict[str, np.ndarray] = {}
    for id, weights in weights_of(nodes).items():
        for name, x in weights.items():
            key = f"{id}.{name}"
            for one, other in theirs.items():
                key = key.replace(one, other)
            found[key] = x
    return {name: x for name, x in found.items() if "normalizer" not in name}


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory) -> Path:
    """An interpreter that finds torch, numpy and Gymnasium, and no surefoot."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home / "venv", with_pip=False)
    library = next((home / "venv" / "lib").glob("python*")) / "site-packages"
    for place in {Path(module.__file__).parents[1] for module in (np, torch)}:
        for entry in place.iterdir():
            if (
                "surefoot" not in entry.name.lower()
                and not entry.name.endswith(".pth")
                and not (library / entry.name).exists()
            ):
                (library / entry.name).symlink_to(entry)
    return home / "venv" / "bin" / "python"


PICTURES = """
import gymnasium as gym
import numpy as np


class Dots(gym.Env):
    observation_space, action_space = gym.spaces.Box(0, 255, (12, 12, 2), np.uint8), gym.spaces.Discrete(3)

    def show(self):
        self.at = int(self.np_random.integers(3))
        seen = self.np_random.integers(0, 60, (12, 12, 2)).astype(np.uint8)
        seen[4:8, 4 * self.at : 4 * self.at + 4] = 255
        return seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self.show(), {}

    def step(self, action):
        right, self.age = action == self.at, self.age + 1
        return self.show(), float(right), not right and self.age > 2, self.age >= 5, {}


gym.register("Dots-v0", Dots)
"""
"""Point at the bright column: an env of pictures that costs nothing."""


def with_memory(name: str, kind: str) -> Graph:
    graph = short(name)
    graph.nodes["agent"].params |= {"network": kind, "memory_size": 16}
    graph.connect("step.dones", "agent.starts", Delay())
    return graph


def looking() -> Graph:
    graph = short("cartpole")
    graph.nodes["env"].params["env_id"] = "Dots-v0"
    graph.nodes["agent"].params |= {"network": "cnn", "input_size": (12, 12, 2), "output_size": 3}
    return graph


ALONE = [
    *(
        (name, lambda name=name: short(name))
        for name in ("cartpole", "multi_env", "pendulum", "cartpole_ppo", "mujoco")
    ),
    ("gru", lambda: with_memory("mujoco", "gru")),
    ("lstm", lambda: with_memory("cartpole", "lstm")),
    ("cnn", looking),
    *((f"hierarchical{k}", lambda: short("hierarchical")) for k in range(3)),
]
"""(name, how its graph is made); the place in the list is the seed"""
RUN_ALL = """
import runpy, sys
import pictures
try:
    import surefoot
except ModuleNotFoundError:
    print("no surefoot here")
for file, seed, out in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3]):
    sys.argv = [file, "--seed", seed, "--out", out]
    runpy.run_path(file, run_name="__main__")
"""


def test_the_file_that_stands_alone_has_the_graphs_digits_without_surefoot(tmp_path: Path, bare_python: Path) -> None:
    torch.set_num_threads(1)
    envs = tmp_path / "envs"
    envs.mkdir()
    (envs / "pictures.py").write_text(PICTURES)
    runpy.run_path(str(envs / "pictures.py"))
    words: list[Path | str] = []
    graphs = {name: make() for name, make in ALONE}
    for seed, (name, graph) in enumerate(graphs.items()):
        (tmp_path / f"{name}.py").write_text(to_standalone(graph))
        words += [tmp_path / f"{name}.py", str(seed), tmp_path / name]
    command, env = [bare_python, "-c", RUN_ALL, *words], ONE_THREAD | {"PYTHONPATH": str(envs)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert "no surefoot here" in done.stdout
    for seed, (name, graph) in enumerate(graphs.items()):
        with np.load(tmp_path / name / "weights.npz", allow_pickle=False) as kept:
            theirs = {key: kept[key] for key in kept.files if not key.startswith("adam") and "normalizer" not in key}
        with Interpreter(graph, seed=seed) as run:
            run.run()
            ours = named_weights(run.nodes)
        assert set(ours) == set(theirs)
        for key, x in ours.items():
            assert np.array_equal(x, theirs[key]), f"{name}, {key}, seed {seed}"
        text = (tmp_path / name / "telemetry.ndjson").read_text()
        assert [json.loads(line)["update"] for line in text.splitlines()] == [1, 2, 3]


def usage(file: Path) -> str:
    """What --help prints."""
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", [str(file), "--help"])
        runpy.run_path(str(file), run_name="__main__")
    return told.getvalue()


def test_a_script_runs_as_a_program_with_a_command_line(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(to_script(template("cartpole")))
    done = subprocess.run(
        [sys.executable, file, "--total-steps", "2560", "--print-every", "5"],
        capture_output=True,
        text=True,
        check=False,
        env=ONE_THREAD,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("approx_kl") == 2
    assert "--trainer-rollout-steps" in usage(file)


def test_the_exported_cartpole_of_the_seeds_wiring_learns_to_the_step_limit() -> None:
    graph = template("cartpole_ppo")
    graph.remove("print")
    program = Compiled(graph)
    program.run()
    returns, lengths, _ = program.nodes["trainer"].ticks.episodes.recent()
    assert lengths >= 490
    assert returns >= 450


def test_the_town_learns_to_take_turns() -> None:
    """`make bench-graph` has it at its full size, beside the script."""
    graph = template("town")
    graph.remove("print")
    graph.run.total_steps = 300_000
    program = Compiled(graph)
    program.run()
    returns, _, _ = program.nodes["trainer"].ticks.episodes.recent()
    assert returns > -2.5  # the script gets -3.1


def test_tools_are_chosen_by_what_came_of_them(tmp_path: Path) -> None:
    graph = template("tools")
    graph.remove("print")
    graph.run.total_steps = 320
    with Interpreter(graph, into=tmp_path, seed=102) as run:  # `make bench-graph` has five seeds
        run.run()
        assert np.mean(run.nodes["trainer"].recent) > 0.9  # the nearest description is right for 62 of 100
        held_out, encoder = run.nodes["queries"].held_out, run.nodes["encoder"].encoder
        right, nearest = run.nodes["exam"].examine(held_out, encoder, run.nodes["policy"].agent)
        assert right > nearest  # of questions it never learned from


def test_the_command_line_checks_exports_imports_runs_compares_and_draws(tmp_path: Path, capsys) -> None:
    graph, program, again, picture = (str(tmp_path / name) for name in ("g.json", "t.py", "a.json", "p.svg"))
    save_graph(short("cartpole"), graph)
    assert main(["graph", "check", graph]) == 0
    assert main(["graph", "export", graph, "-o", program]) == 0
    assert main(["graph", "import", program, "-o", again]) == 0
    assert main(["graph", "diff", graph, again]) == 0
    assert main(["graph", "diff", graph, "pendulum"]) == 1
    assert main(["graph", "render", graph, "-o", picture]) == 0
    assert Path(picture).read_text().startswith("<svg")
    digits = set()
    capsys.readouterr()
    for engine in ("compiled", "interpreter", "queues"):
        assert main(["graph", "run", graph, "--engine", engine, "--json"]) == 0
        digits.add(json.loads(capsys.readouterr().out.splitlines()[-1])["sha256"])
    assert len(digits) == 1
    assert main(["graph", "run", graph, "--engine", "interpreter", "--watch", "step.rewards", "--path", "auto"]) == 0
    assert "step.rewards  [8] mean 1\n" in capsys.readouterr().out
    assert main(["graph", "nodes", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) >= 30
    assert main(["graph", "templates"]) == 0
    assert main(["graph", "check", str(tmp_path / "none.json")]) == 2
    assert main(["graph", "run", graph, "--watch", "a.b"]) == 64


def test_a_run_that_is_kept_goes_on_where_it_was_killed(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("surefoot.cli.verbs.graph.KEEP_EVERY", 7)
    graph, kept = str(tmp_path / "g.json"), str(tmp_path / "kept")
    save_graph(short("cartpole"), graph)
    command = ["graph", "run", graph, "--engine", "interpreter", "--json"]
    assert main(command) == 0
    wanted = json.loads(capsys.readouterr().out.splitlines()[-1])
    with pytest.MonkeyPatch.context() as patch:
        saved, whole = 0, Interpreter.run

        def dies(self: Interpreter, *args: object, **more: object) -> int:
            nonlocal saved
            saved += 1
            if saved == 4:
                raise SystemExit("killed")
            return whole(self, *args, **more)  # type: ignore[arg-type]

        patch.setattr(Interpreter, "run", dies)
        with pytest.raises(SystemExit):
            main([*command, "--keep", kept])
    capsys.readouterr()
    assert main([*command, "--keep", kept]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "resumes from tick 21"
    assert json.loads(out[-1])["sha256"] == wanted["sha256"]
    assert main([*command, "--keep", kept, "--seed", "5"]) == 2  # of another seed
    assert main(["graph", "run", graph, "--keep", kept]) == 64


def test_a_graph_with_an_error_is_a_finding(tmp_path: Path, capsys) -> None:
    graph = short("cartpole")
    graph.disconnect("agent.observations")
    save_graph(graph, tmp_path / "g.json")
    assert main(["graph", "check", str(tmp_path / "g.json"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["node"] == "agent"
    assert main(["graph", "run", str(tmp_path / "g.json")]) == 2


def test_a_node_that_fails_in_another_process_is_named_here() -> None:
    graph = short("cartpole")
    graph.disconnect("step.actions")
    # An action that the environment does not have.
    graph.add("wrong", "Code", source="out = actions + 5", inputs=["actions"], outputs=["out"])
    graph.connect("action.actions", "wrong.actions")
    graph.connect("wrong.out", "step.actions")
    engine = QueueEngine(graph, trust=True)
    with pytest.raises(Exception, match="step .*failed in tick"):
        engine.run()


def test_digits_cover_every_weight() -> None:
    class Node:
        def __init__(self, x: float) -> None:
            self.x = x

        def state_dict(self) -> dict[str, np.ndarray]:
            return {"w": np.array([1.0, self.x])}

    assert parameters_sha256({"a": Node(2.0)}) == parameters_sha256({"a": Node(2.0), "b": object()})
    assert parameters_sha256({"a": Node(2.0)}) != parameters_sha256({"a": Node(2.0000001)})
    assert parameters_sha256({"a": Node(2.0)}) != parameters_sha256({"b": Node(2.0)})
