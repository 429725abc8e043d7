"""Run other people's SB3 scripts with the import changed only: `make sb3-scripts REPOSITORIES=DIR`.

DIR/OWNER/NAME are copies of the repositories (never committed). Lines that import `stable_baselines3` or `sb3_contrib` are
changed to `surefoot.sb3` and `surefoot.sb3_contrib` in all Python files of a copy. Every `learn` is cut to 2,000 steps from
outside, and the numbers below make loops after the training short. A script runs if it ends with exit code 0 and `learn`
of `surefoot.sb3` was called. `--python` is an interpreter with Surefoot and with what the scripts import; `--page`
writes the results to a page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

IMPORTS = [
    (re.compile(r"^(\s*)import (stable_baselines3)(?=\s*$)", re.M), r"\1import surefoot.sb3 as \2"),
    (re.compile(r"^(\s*)(from|import) stable_baselines3\b", re.M), r"\1\2 surefoot.sb3"),
    (re.compile(r"^(\s*)(from|import) sb3_contrib\b", re.M), r"\1\2 surefoot.sb3_contrib"),
]
SHORTER = [
    (re.compile(r"^(\s*)while True:", re.M), r"\1for _ in range(100):"),
    (re.compile(r"range\(1_?000\)"), "range(100)"),
]
"""Applied to every script: loops of 1,000 rounds and endless ones end after 100."""
STEPS = 2_000
# Imported by every Python process with it on its path. Workers of a process pool (`python -c …`) train nothing.
STARTER = """
import os, sys
if "-c" not in sys.orig_argv:
    from surefoot.compat.sb3.ppo import PPO
    learn = PPO.learn

    def short(self, total_timesteps, *args, **kwargs):
        result = learn(self, min(int(total_timesteps), STEPS), *args, **kwargs)
        with open(os.environ["SB3_SCRIPT_LOG"], "a") as log:
            log.write(f"{self.num_timesteps}\\n")
        return result

    PPO.learn = short
"""
LOGS: Path | None = None
"""Folder for the output of the scripts."""
SB3 = "DLR-RM/stable-baselines3"
HIGHWAY, ZOO = "Farama-Foundation/HighwayEnv", "DLR-RM/rl-baselines3-zoo"
ROM = "the game's ROM is not free: the emulator pyboy is replaced by one with a random memory and screen"


@dataclass(frozen=True)
class Script:
    """One script: where it is, how it is called, and what is changed in it besides `SHORTER`."""

    repository: str
    path: str
    arguments: str = ""
    smaller: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, str] = field(default_factory=dict[str, str])
    """Files that replace those of the repository."""
    note: str = ""


# The game's emulator without the game: memory of random bytes and a random screen.
EMULATOR = """
import numpy as np
from pyboy.utils import WindowEvent


class Memory:
    def __init__(self):
        self.bytes = np.random.default_rng(0).integers(0, 2, 65536)

    def __getitem__(self, address):
        return int(self.bytes[address])


class Screen:
    ndarray = np.zeros((144, 160, 4), np.uint8)


class PyBoy:
    def __init__(self, rom, **options):
        self.memory, self.screen = Memory(), Screen()

    def load_state(self, file):
        self.memory = Memory()

    def send_input(self, event):
        pass

    def tick(self, frames=1, render=True):
        self.screen.ndarray = np.random.default_rng().integers(0, 256, (144, 160, 4), np.uint8)

    def set_emulation_speed(self, speed):
        pass

    def stop(self):
        pass
"""
EVENTS = """
from enum import IntEnum

NAMES = ["ARROW_DOWN", "ARROW_LEFT", "ARROW_RIGHT", "ARROW_UP", "BUTTON_A", "BUTTON_B", "BUTTON_START"]
WindowEvent = IntEnum("WindowEvent", [f"{kind}_{name}" for kind in ("PRESS", "RELEASE") for name in NAMES])
"""

DISPLAY = """
class Display:
    def __init__(self, **options):
        pass

    def start(self):
        pass
"""

SCRIPTS = [
    Script("utiasDSL/gym-pybullet-drones", "gym_pybullet_drones/examples/learn.py", "--gui False"),
    Script(
        "PWhiddy/PokemonRedExperiments",
        "v2/baseline_fast_v2.py",
        smaller={"2048 * 80": "64 * 64", "num_cpu = 64": "num_cpu = 4"},
        files={"v2/pyboy/__init__.py": EMULATOR, "v2/pyboy/utils.py": EVENTS, "PokemonRed.gb": ""},
        note=ROM,
    ),
    Script(HIGHWAY, "scripts/sb3_highway_ppo.py", smaller={"n_cpu = 6": "n_cpu = 2", "range(5)": "range(1)"}),
    Script(HIGHWAY, "scripts/sb3_racetracks_ppo.py", smaller={"n_cpu = 6": "n_cpu = 2", "range(10)": "range(1)"}),
    Script(HIGHWAY, "scripts/sb3_racetrack_oval_ppo.py", smaller={"n_cpu = 8": "n_cpu = 2", "range(5)": "range(1)"}),
    Script(
        HIGHWAY, "scripts/sb3_highway_ppo_transformer.py", smaller={"n_cpu = 4": "n_cpu = 2", "range(5)": "range(1)"}
    ),
    Script(
        ZOO,
        "train.py",
        "--algo ppo --env CartPole-v1 -n 2000 --eval-freq 1000 --save-freq 1000 -f logs --vec-env subproc",
    ),
    Script(ZOO, "train.py", "--algo ppo --env Pendulum-v1 -n 5000 --eval-freq 2000 -f logs"),
    Script(ZOO, "train.py", "--algo ppo_lstm --env CartPoleNoVel-v1 -n 2000 -f logs"),
    Script(
        "Farama-Foundation/PettingZoo",
        "tutorials/SB3/connect_four/sb3_connect_four_action_mask.py",
        smaller={"num_games=100, render": "num_games=5, render"},
    ),
    Script("Farama-Foundation/PettingZoo", "tutorials/SB3/kaz/sb3_kaz_vector.py"),
    Script("araffin/rl-tutorial-jnrr19", "1_getting_started.ipynb", smaller={"num_episodes=100": "num_episodes=5"}),
    Script("araffin/rl-tutorial-jnrr19", "3_multiprocessing.ipynb"),
    Script("Stable-Baselines-Team/rl-colab-notebooks", "stable_baselines_getting_started.ipynb"),
    Script(
        "Stable-Baselines-Team/rl-colab-notebooks",
        "stable_baselines_wandb.ipynb",
        files={"pyvirtualdisplay.py": DISPLAY},
        note="W&B is offline, and the virtual display is replaced by one that does nothing",
    ),
    Script("Davido111200/ICV", "reinforcement/ppo.py"),
    Script("pizzalawl/sciverse2025", "training/ppo/train_lunar_ppo.py", "2000 lunar"),
    Script("lancerzhang/learn_RL", "BipedalWalker-v3-PPO-train.py", smaller={"num_envs = 10": "num_envs = 2"}),
    Script("bradychin/bipedalwalker", "main.py"),
]


def changed(text: str, smaller: dict[str, str]) -> str:
    """Return a script with the imports changed and the sizes lowered."""
    for pattern, replacement in [*IMPORTS, *SHORTER]:
        text = pattern.sub(replacement, text)
    for before, after in smaller.items():
        assert before in text, f"{before!r} is not in the script"
        text = text.replace(before, after)
    return text


def notebook_code(text: str) -> str:
    """Return the code cells of a notebook without lines for the shell."""
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("!", "%")))


def run(python: str, folder: Path, path: str, arguments: str, seconds: int) -> str:
    """Return "" if a script ended with exit code 0 after it called `learn`, else the last line of its output."""
    starter, log, script = folder / ".starter", folder / "steps.txt", folder / path
    starter.mkdir()
    (starter / "sitecustomize.py").write_text(STARTER.replace("STEPS", str(STEPS)))
    # No screen: pictures are drawn to memory. No network: W&B writes to a folder.
    screens = {"SDL_VIDEODRIVER": "dummy", "QT_QPA_PLATFORM": "offscreen", "MPLBACKEND": "Agg", "WANDB_MODE": "offline"}
    paths = {"PYTHONPATH": f"{starter}{os.pathsep}{folder}", "SB3_SCRIPT_LOG": str(log)}
    command = [python, "-W", "ignore", script.name, *arguments.split()]
    try:
        done = subprocess.run(
            command,
            cwd=script.parent,
            env={**os.environ, "OMP_NUM_THREADS": "1", **screens, **paths},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {seconds} s"
    if LOGS is not None:
        (LOGS / f"{script.stem}.log").write_text(done.stdout + done.stderr)
    if done.returncode == 0:
        return "" if log.exists() else "learn was not called"
    return (done.stderr.strip() or done.stdout.strip() or "?").splitlines()[-1][:300]


def run_script(script: Script, python: str, repositories: Path, seconds: int) -> tuple[str, str]:
    """Return (commit, error) of one script in a changed copy of its repository."""
    source = repositories / script.repository
    if not source.exists():
        return "", "not there"
    commit = commit_of(source)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git", "*.gif", "*.mp4"), symlinks=True)
        path = script.path
        if path.endswith(".ipynb"):
            path = str(Path(path).with_suffix(".py"))
            (folder / path).write_text(notebook_code((source / script.path).read_text()))
        for file in folder.rglob("*.py"):
            text = file.read_text(errors="replace")
            if "stable_baselines3" in text or "sb3_contrib" in text:
                for pattern, replacement in IMPORTS:
                    text = pattern.sub(replacement, text)
                file.write_text(text)
        (folder / path).write_text(changed((folder / path).read_text(), script.smaller))
        for name, text in script.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        return commit, run(python, folder, path, script.arguments, seconds)


def commit_of(source: Path) -> str:
    """Return the commit of a clone, or the first line of the file .commit of a copy."""
    if (source / ".commit").exists():
        return (source / ".commit").read_text().strip()[:10]
    done = subprocess.run(["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:10]


FENCE = re.compile(r"^```\{?(?:code-block\} )?python\n(.*?)^```", re.S | re.M)
HUB = "huggingface_sb3"
CRASHES = "NanAndInfEnv"
"""A block that shows an error: it must end with one."""


def blocks(sb3: Path) -> dict[str, str]:
    """Return {"page:line": code} of the blocks of SB3's documentation that use its PPO; those that upload need the hub."""
    found: dict[str, str] = {}
    for page in [sb3 / "README.md", *sorted((sb3 / "docs").rglob("*.md"))]:
        text = page.read_text()
        for match in FENCE.finditer(text):
            code = match.group(1)
            if (
                re.search(r"\bPPO\b", code)
                and "import stable_baselines3" in code.replace("from ", "import ")
                and HUB not in code
            ):
                found[f"{page.relative_to(sb3)}:{text[: match.start()].count(chr(10)) + 1}"] = code
    return found


def run_block(code: str, python: str, seconds: int) -> str:
    """Return "" if a block of the documentation does what it says, else an error."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "block.py").write_text(changed(code, {}))
        error = run(python, folder, "block.py", "", seconds)
    if CRASHES in code:
        return "" if error else "it should end with an error"
    return error


def page(title: str, results: dict[str, dict[str, list[str]]]) -> str:
    """Return the page of the documentation."""
    parts = [f"# {title}", ""]
    parts += [
        "Written by `make sb3-scripts REPOSITORIES=DIR ARGS='--page docs/reference/sb3-scripts.md'`. In each script the lines",
        "that import `stable_baselines3` or `sb3_contrib` are changed, and sizes: training ends after 2,000 steps, loops",
        "of 1,000 rounds and endless ones after 100, and `benchmarks/sb3_scripts.py` lists smaller numbers of envs and games.",
        "Entries of RL Zoo are trained for one rollout of 32 steps in one env.",
        "",
    ]
    for head_line, rows in results.items():
        good = sum(1 for row in rows.values() if not row[-1])
        parts += [
            f"## {head_line}",
            "",
            f"**{good} of {len(rows)} run.**",
            "",
            "| script | commit | result |",
            "|---|---|---|",
        ]
        for name, (commit, note, error) in rows.items():
            result = "runs" + (f"; {note}" if note else "") if not error else error.replace("|", "\\|")
            parts.append(f"| `{name}` | {commit} | {result} |")
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Run all scripts and blocks and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path, help="folder with copies of the repositories, as OWNER/NAME")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter with the packages that the scripts import"
    )
    parser.add_argument("--only", default="", help="run those whose name contains this text")
    parser.add_argument("--seconds", type=int, default=600, help="time limit per script")
    parser.add_argument("--results", type=Path, help="JSON file of results; what is not run keeps its result")
    parser.add_argument("--page", type=Path, help="page of the documentation to write")
    parser.add_argument("--log", type=Path, help="folder for the output of the scripts")
    args = parser.parse_args()
    global LOGS
    LOGS = args.log
    sections = ("Blocks of SB3's documentation that use PPO", "Scripts of public repositories", "PPO entries of RL Zoo")
    results: dict[str, dict[str, list[str]]] = {name: {} for name in sections}
    if args.results and args.results.exists():
        results |= json.loads(args.results.read_text())

    def note(section: str, name: str, row: list[str]) -> None:
        results[section][name] = row
        print(f"{name}: {row[-1] or 'runs'}", flush=True)
        if args.results:
            args.results.write_text(json.dumps(results, indent=1))

    sb3 = args.repositories / SB3
    for name, code in blocks(sb3).items() if sb3.exists() else ():
        if args.only in name:
            note(sections[0], name, [commit_of(sb3), "", run_block(code, args.python, args.seconds)])
    for script in SCRIPTS:
        name = f"{script.repository} {script.path} {script.arguments}".strip()
        if args.only in name:
            commit, error = run_script(script, args.python, args.repositories, args.seconds)
            note(sections[1], name, [commit, script.note, error])
    zoo = args.repositories / ZOO / "hyperparams/ppo.yml"
    if zoo.exists() and args.only in str(zoo):
        commit = commit_of(args.repositories / ZOO)
        script = Path(__file__).parent / "workloads" / "zoo_entries.py"
        done = subprocess.run([args.python, "-W", "ignore", script, zoo], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            if line.startswith('{"entry"'):
                row = json.loads(line)
                note(sections[2], row["entry"], [commit, "", row["error"]])
    if args.page:
        args.page.write_text(page("Scripts for Stable-Baselines3", results), encoding="utf-8")


if __name__ == "__main__":
    main()
