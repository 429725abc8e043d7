"""Every legal combination of observation, mask, action, memory and agents, each trained to its known answer.

    python benchmarks/matrix.py                  the whole grid
    python benchmarks/matrix.py --every 12       every 12th cell
    python benchmarks/matrix.py --only gru beta  cells with these words

A cell is solved when the likeliest actions earn 0.95 of the best return, which is 1. In each cell the first ratio
error must stay below 1e-5 and a run resumed from a checkpoint must go on to the last bit.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from recall import Recall, RecallShape
from surefoot.errors import ConfigError, SurefootError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.train.evaluate import play
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

BAR, RATIO_BAR = 0.95, 1e-5
STREAMS = 32
LONGEST = 60_000
"""Steps after which a cell has failed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination."""

    see: str
    act: str
    noise: str
    masked: bool
    memory: str
    agents: str

    @property
    def words(self) -> tuple[str, ...]:
        return (self.see, self.act, self.noise, "masked" if self.masked else "open", self.memory, self.agents)

    @property
    def shape(self) -> RecallShape:
        return RecallShape(
            see=self.see,
            act=self.act,
            masked=self.masked,
            hidden=self.memory != "none",
            agents=1 if self.agents == "one" else 2,
            central=self.agents == "central",
        )

    def settings(self, seed: int) -> dict[str, object]:
        return {
            "seed": seed,
            "envs": STREAMS,
            "rollout_steps": 24,
            "minibatch_size": 192,
            "epochs": 4,
            "lr": 2e-3,
            "ent_coef": 0.003,
            "gamma": 0.9,
            "hidden": (32,),
            "memory": self.memory,
            "memory_size": 32,
            "cnn_features": 32,
            "log_std_init": -1.0 if self.noise != "gsde" else -2.0,
            "squash": self.noise == "tanh",
            "beta": self.noise == "beta",
            "gsde": self.noise == "gsde",
            "critic_only": ("state",) if self.agents == "central" else (),
        }


def cells() -> list[Cell]:
    """All that is legal."""
    acts = [("discrete", "", False), ("discrete", "", True), ("multi", "", False), ("multi", "", True)]
    acts += [("box", noise, False) for noise in ("gaussian", "tanh", "beta", "gsde")]
    acts += [("hybrid", noise, masked) for noise in ("gaussian", "tanh", "beta", "gsde") for masked in (False, True)]
    return [
        Cell(see, act, noise, masked, memory, agents)
        for agents in ("one", "many", "central")
        for memory in ("none", "gru", "lstm")
        for see in ("flat", "image", "dict")
        for act, noise, masked in acts
    ]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a cell."""

    score: float
    steps: int
    ratio_error: float
    exact: bool
    seconds: float
    path: str

    @property
    def good(self) -> bool:
        return self.score >= BAR and self.ratio_error <= RATIO_BAR and self.exact


def run(cell: Cell, seed: int) -> Result:
    """Train one cell until it is solved, or for too long."""
    begin = time.process_time()
    spec = make_spec(
        "surefoot/Recall-v0",
        Recall(2, cell.shape).action,
        preset_name="sb3",
        settings=cell.settings(seed),
        total_steps=LONGEST,
    )
    training = _training(spec, cell)
    worst, score, exact = 0.0, 0.0, False
    while training.env_steps < LONGEST and score < BAR:
        for _ in range(4):
            worst = max(worst, training.update().first_ratio_error)
        exact = exact or _resumes_exactly(training, spec, cell)
        score = _score(training, cell)
    return Result(score, training.env_steps, worst, exact, time.process_time() - begin, training.learner.path)


def _training(spec: RunSpec, cell: Cell) -> Training:
    return Training(spec, world=Recall(STREAMS, cell.shape))


def _score(training: Training, cell: Cell) -> float:
    return play(training.policy, Recall(STREAMS, cell.shape), 64, seed=training.spec.seed + 7).mean


def _resumes_exactly(training: Training, spec: RunSpec, cell: Cell) -> bool:
    """Save, load into a second training, take one update in both: are all weights the same?"""
    with TemporaryDirectory() as folder:
        save_checkpoint(Path(folder), training.learner.updates, training.state())
        parts = load_checkpoint(Path(folder)).parts
    other = _training(replace(spec), cell)
    other.set_state(parts)
    training.update()
    other.update()
    ours, theirs = training.policy.state_dict(), other.policy.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def refused() -> list[tuple[str, str]]:
    """What is illegal, and the sentence it gets."""
    from surefoot.data.spaces import Box, Discrete
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.nets.config import NetConfig

    box, discrete, obs = Box((2,), -1.0, 1.0), Discrete(4), {"obs": Box((4,))}
    tries = {
        "beta with discrete actions": lambda: ActorCritic(obs, discrete, NetConfig(beta=True)),
        "squash with discrete actions": lambda: ActorCritic(obs, discrete, NetConfig(squash=True)),
        "gsde with discrete actions": lambda: ActorCritic(obs, discrete, NetConfig(gsde=True)),
        "squash and gsde": lambda: ActorCritic(obs, box, NetConfig(squash=True, gsde=True)),
        "beta and gsde": lambda: ActorCritic(obs, box, NetConfig(beta=True, gsde=True)),
        "beta and squash": lambda: ActorCritic(obs, box, NetConfig(beta=True, squash=True)),
        "beta without bounds": lambda: ActorCritic(obs, Box((2,)), NetConfig(beta=True)),
        "squash without bounds": lambda: ActorCritic(obs, Box((2,)), NetConfig(squash=True)),
        "a mask for a box": lambda: RecallShape(act="box", masked=True),
        "a central critic on a shared trunk": lambda: NetConfig(shared=True, critic_only=("state",)),
        "a critic's part that is not there": lambda: ActorCritic(obs, box, NetConfig(critic_only=("state",))),
    }
    said: list[tuple[str, str]] = []
    for name, build in tries.items():
        try:
            build()
        except SurefootError as error:
            said.append((name, str(error)))
        else:
            raise ConfigError(f"{name} was not refused")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="train every n-th cell only")
    parser.add_argument("--only", nargs="*", default=(), help="only cells that have all these words")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write results as JSON")
    args = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [cell for cell in cells() if set(args.only) <= set(cell.words)][:: args.every]
    for name, sentence in refused():
        print(f"refused  {name}: {sentence}")
    rows: list[dict[str, object]] = []
    for i, cell in enumerate(chosen, 1):
        result = run(cell, args.seed)
        words = " ".join(f"{word:<8}" for word in cell.words)
        mark = "solved" if result.good else "FAILED"
        print(
            f"{i:>3}/{len(chosen)} {mark} {words} {result.score:.3f} in {result.steps:>6,} steps, "
            f"ratio error {result.ratio_error:.0e}, resume {'exact' if result.exact else 'NOT exact'}, "
            f"{result.seconds:.1f} s, {result.path}",
            flush=True,
        )
        names = ("see", "act", "noise", "mask", "memory", "agents")
        rows.append(
            dict(zip(names, cell.words, strict=True))
            | {name: getattr(result, name) for name in Result.__slots__}
            | {"good": result.good}
        )
    good = sum(bool(row["good"]) for row in rows)
    print(f"{good} of {len(rows)} cells solved; {len(refused())} illegal combinations refused")
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
