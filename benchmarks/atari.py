"""How fast Atari goes: the world alone, and training on it.

python benchmarks/atari.py                        the world alone, ours beside ale-py's own vector env and EnvPool
python benchmarks/atari.py --train 40000          and PPO with the preset, so many steps
python benchmarks/atari.py --game Breakout --envs 8 --seconds 10

Steps are the agent's; a step is four frames. CPU-time is that of all threads and processes, so that a busy machine does
not change it much; of the wall it does. Actions are random, and resets are in it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.envs.api import World
from surefoot.envs.gym.atari import SKIP, AtariGame
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.envs.make import make_world
from workers import worker_cpu

HERE = Path(__file__).resolve().parent


def ale_vector(game: str, envs: int) -> World:
    """ale-py's own loop in C++, one thread, with what it has of the details."""
    from ale_py.vector_env import AtariVectorEnv

    rom = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in game).lstrip("_")
    return VectorWorld(AtariVectorEnv(rom, envs, num_threads=1, reward_clipping=False, life_loss_info=True), game)


def sides(game: str, envs: int) -> dict[str, Callable[[], World]]:
    name = f"{game}NoFrameskip-v4"
    return {
        "surefoot, one process": lambda: make_world(name, envs),
        "surefoot, one worker": lambda: make_world(name, envs, workers=1),
        "ale-py's vector env, one thread": lambda: ale_vector(game, envs),
        "EnvPool, one thread": lambda: make_world(name, envs, backend="envpool", env_kwargs={"num_threads": 1}),
    }


def rate(make: Callable[[], World], seconds: float) -> dict[str, float]:
    """Steps a second of the wall and of CPU-time, and frames of the latter."""
    world = make()
    world.reset(0)
    choices: int = world.action.n  # type: ignore[union-attr]  # a game has buttons
    rng = np.random.default_rng(0)
    for _ in range(20):
        world.step(rng.integers(0, choices, world.num_envs))
    wall, cpu, steps = time.perf_counter(), time.process_time() + worker_cpu(world), 0
    while time.perf_counter() - wall < seconds:
        steps += int(world.step(rng.integers(0, choices, world.num_envs)).valid.sum())
    cpu = time.process_time() + worker_cpu(world) - cpu
    wall = time.perf_counter() - wall
    world.close()
    return {
        "steps_per_second": steps / wall,
        "steps_per_cpu_second": steps / cpu,
        "frames_per_cpu_second": SKIP * steps / cpu,
    }


def emulator_rate(game: str) -> float:
    """Frames per CPU-second of the emulator alone: what no wrapper can pass."""
    bare = make_world(f"{game}NoFrameskip-v4").envs[0]  # type: ignore[attr-defined]
    assert isinstance(bare, AtariGame)
    bare.reset(seed=0)
    rng, count, begin = np.random.default_rng(0), 0, time.process_time()
    while time.process_time() - begin < 1.0:
        bare.ale.act(int(rng.integers(6)))
        count += 1
        if bare.ale.game_over():
            bare.ale.reset_game()
    return count / (time.process_time() - begin)


def training_rate(game: str, envs: int, steps: int) -> dict[str, float]:
    from surefoot import PPO

    wall, cpu = time.perf_counter(), time.process_time()
    PPO("CnnPolicy", f"{game}NoFrameskip-v4", n_envs=envs, seed=0).learn(steps)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"steps_per_second": steps / wall, "steps_per_cpu_second": steps / cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each side")
    parser.add_argument("--train", type=int, default=0, metavar="STEPS")
    parser.add_argument("--out", type=Path, default=HERE / "results/atari.json")
    args = parser.parse_args()
    found: dict[str, Any] = {}
    print(f"{args.game}, {args.envs} envs; the emulator alone: {emulator_rate(args.game):,.0f} frames per CPU-second")
    print("| side | steps/s wall | steps per CPU-second | frames per CPU-second |")
    print("|---|---|---|---|")
    for side, make in sides(args.game, args.envs).items():
        try:
            found[side] = row = rate(make, args.seconds)
        except Exception as why:  # a package that is not there
            print(f"| {side} | {why} | | |")
            continue
        print(f"| {side} | " + " | ".join(f"{number:,.0f}" for number in row.values()) + " |")
    if args.train:
        found["training"] = row = training_rate(args.game, args.envs, args.train)
        print(f"| training | {row['steps_per_second']:,.0f} | {row['steps_per_cpu_second']:,.0f} | |")
    body = {"command": "python benchmarks/atari.py", "game": args.game, "envs": args.envs, "sides": found}
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(body, indent=2) + "\n")


if __name__ == "__main__":
    main()
