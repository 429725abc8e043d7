"""Other people's scripts that `sb3_scripts.py` runs, with what makes them short, and those that were left out."""

from __future__ import annotations

from dataclasses import dataclass, field

SB3 = "DLR-RM/stable-baselines3"
HIGHWAY, ZOO = "Farama-Foundation/HighwayEnv", "DLR-RM/rl-baselines3-zoo"
ROM = "the game's ROM is not free: the emulator pyboy is replaced by one with a random memory and screen"


@dataclass(frozen=True)
class Script:
    """One script: where it is, how it is called, and what is changed in it besides `SHORTER` of sb3_scripts.py."""

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
    Script(HIGHWAY, "scripts/sb3_racetrack_oval_ppo.py", smaller={"n_cpu = 8": "n_cpu = 2", "range(5)": "range(1)"}),
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
    Script(
        "Farama-Foundation/ViZDoom",
        "examples/python/learning_stable_baselines3.py",
        "--env VizdoomBasic-v1",
        smaller={"N_ENVS = 8": "N_ENVS = 2"},
    ),
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

LEFT_OUT = {
    f"{HIGHWAY} scripts/sb3_racetracks_ppo.py": "trains, saves and loads; then its env has no render_mode for a video",
    f"{HIGHWAY} scripts/sb3_highway_ppo_transformer.py": "trains, saves, loads; then reads env.viewer of a wrapper",
    "lshengjian/ep_sim train.py": "its own dataclasses do not work with Python 3.11",
    "araffin/rl-tutorial-jnrr19 3_multiprocessing.ipynb": "has a syntax error, and uses A2C",
    "Farama-Foundation/PettingZoo tutorials/SB3/pistonball": "its own documentation calls it broken",
    "rvdweerd/simmodel": "its data files are not in the stored copy",
}
"""Scripts that were tried and do not run with SB3 either, or not here."""
ZOO_NOTES = {
    "MinitaurBullet": "pybullet_envs_gymnasium 0.6 does not have it, and pybullet's own envs are for the old gym",
}
