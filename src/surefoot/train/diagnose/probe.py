"""Tiny worlds whose answers are known, trained in seconds: what is not learned there is a bug, and each names which.

After Andy Jones's probe environments: each adds one thing to the one before, so the first that fails says where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import World
from surefoot.envs.builtin.streams import Streams, Task
from surefoot.envs.builtin.toys import Bandit, ContextBandit, Endless, TimeLimit
from surefoot.errors import SurefootError
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training, WorldMaker

GAMMA = 0.9
STREAMS, STEPS, UPDATES = 16, 16, 60
RATIO_LIMIT = 1e-4

PolicyMaker = Callable[[World], Policy]
Trainer = Callable[[RunSpec, World, Policy], Training]
Moved = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one probe came to."""

    id: str
    title: str
    passed: bool
    said: str
    causes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return asdict(self) | {"causes": list(self.causes)}


class Announced(Task):
    """Sees 1 or -1, gets that as a reward, and it is over: the value is what is seen."""

    observation, action, max_episode_steps = Box((1,), -1.0, 1.0), Discrete(1), None

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.choice(np.array([-1.0, 1.0]), size=(1, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Moved:
        return state.copy(), state[0].copy(), np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.astype(np.float32)


class Delayed(Announced):
    """Two steps, seen as -1 and 1; only the second pays 1: the first is worth γ."""

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.full((1, n), -1.0)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Moved:
        second = state[0] > 0
        return np.ones_like(state), second.astype(np.float64), second


def probe(
    build: PolicyMaker | None = None,
    make: WorldMaker | None = None,
    *,
    trainer: Trainer | None = None,
    only: Collection[str] = (),
) -> list[Result]:
    """P1 to P7 with policies that `build` makes for a world, and P6 and P7 on the world of `make` too, where given.

    `trainer` puts spec, world and policy together; one of your own is probed instead of surefoot's. `only`
    names the probes to run.
    """
    build = build or (lambda world: ActorCritic(world.observation, world.action, NetConfig(hidden=(32, 32)), seed=0))
    trainer = trainer or (lambda spec, world, policy: Training(spec, world=world, policy=policy))
    bench = _Bench(build, trainer)
    results = [bench.run(*each) for each in _PROBES if not only or each[0] in only]
    return results + ([_own_world(make, build, trainer)] if make is not None else [])


def _spec(name: str, total: int, **ppo: Any) -> RunSpec:
    common: dict[str, Any] = {
        "envs": STREAMS,
        "rollout_steps": STEPS,
        "minibatch_size": 128,
        "epochs": 8,
        "gamma": GAMMA,
    }
    learning: dict[str, Any] = {"lr": 3e-3, "ent_coef": 0.01, "max_grad_norm": 5.0, "lam": 0.95, "device": "cpu"}
    config = PPOConfig(**(common | learning | ppo))
    return RunSpec(
        env=name,
        preset="sb3",
        total_steps=total,
        ppo=config,
        net=NetConfig(allow_stateful_norm=True),  # what such layers do is to be seen, not refused
        collect=CollectConfig(),
        eval_every=0,
        checkpoint_every=total,
    )


@dataclass(frozen=True, slots=True)
class _Bench:
    build: PolicyMaker
    trainer: Trainer

    def run(
        self,
        id_: str,
        title: str,
        task: Task,
        judge: Callable[[Policy, float], tuple[bool, str]],
        causes: tuple[str, ...],
    ) -> Result:
        """Train one world and judge what came of it."""
        try:
            world = Streams(f"probe {id_}", task, STREAMS)
            policy = self.build(world)
            training = self.trainer(_spec(world.name, 3 * UPDATES * STREAMS * STEPS), world, policy)
            worst, passed, said = 0.0, False, ""
            for report in training:
                worst = max(worst, report.first_ratio_error)
                if report.update % UPDATES == 0:  # a slow network gets three times the time
                    passed, said = judge(policy, worst)
                    if passed:
                        break
        except SurefootError as why:
            passed, said = False, str(why)
        return Result(id=id_, title=title, passed=passed, said=said, causes=() if passed else causes)


def _worth(*expected: tuple[float, float], within: float) -> Callable[[Policy, float], tuple[bool, str]]:
    """Judges values: (what is seen, what it is worth)."""

    def judge(policy: Policy, worst: float) -> tuple[bool, str]:
        obs = torch.tensor([seen for seen, _ in expected], dtype=torch.float32).reshape(-1, 1)
        start = torch.ones(len(obs), dtype=torch.bool) if policy.sequential else None
        with torch.no_grad():
            seen = PolicyInput(obs={"obs": obs}, start=start, context=policy.initial_context(len(obs)))
            values = policy.value(seen).cpu().numpy()
        right = np.array([worth for _, worth in expected])
        shown, wanted = (", ".join(f"{x:.2f}" for x in each) for each in (values, right))
        return bool(np.abs(values - right).max() <= within), f"value {shown}; right is {wanted}"

    return judge


def _chooses(contexts: int) -> Callable[[Policy, float], tuple[bool, str]]:
    """Judges actions: in each context, shown one-hot, its own number is right; with one context, arm 1 is."""

    def judge(policy: Policy, worst: float) -> tuple[bool, str]:
        obs = torch.ones(1, 1) if contexts == 1 else torch.eye(contexts)
        right = torch.ones(1) if contexts == 1 else torch.arange(contexts)
        rows = obs.repeat(50, 1)
        start = torch.ones(len(rows), dtype=torch.bool) if policy.sequential else None
        seen = PolicyInput(obs={"obs": rows}, start=start, context=policy.initial_context(len(rows)))
        with torch.no_grad():
            action = policy.act(seen, generator=torch.Generator().manual_seed(0)).action.cpu()
        share = float((action.flatten() == right.repeat(50)).float().mean())
        return share > 0.8, f"the right action in {share:.0%} of the cases"

    return judge


def _same(policy: Policy, worst: float) -> tuple[bool, str]:
    return worst <= RATIO_LIMIT, f"max |ratio - 1| before the first step {worst:.1e}; at most {RATIO_LIMIT:g} is right"


_FOREVER = 1.0 / (1.0 - GAMMA)
_PROBES: tuple[tuple[str, str, Task, Any, tuple[str, ...]], ...] = (
    (
        "P1",
        "reward 1 for ever",
        Endless(),
        _worth((1.0, _FOREVER), within=2.0),
        ("the bootstrap at the end of a rollout is missing", "the critic does not learn at all"),
    ),
    (
        "P2",
        "a reward that the observation announces",
        Announced(),
        _worth((-1.0, -1.0), (1.0, 1.0), within=0.25),
        ("observations do not reach the critic", "observations and rewards are of different steps"),
    ),
    (
        "P3",
        "a reward one step late",
        Delayed(),
        _worth((-1.0, GAMMA), (1.0, 1.0), within=0.15),
        ("the discount is not applied, or twice", "values are of the wrong successor"),
    ),
    (
        "P4",
        "one of two actions pays",
        Bandit((0.0, 1.0)),
        _chooses(1),
        ("the sign of the policy's loss or of the advantage is wrong", "the policy's weights are not in the optimiser"),
    ),
    (
        "P5",
        "the observation says which action pays",
        ContextBandit(3),
        _chooses(3),
        ("observations do not reach the policy", "actions and observations are of different steps"),
    ),
    (
        "P6",
        "a time limit that is none of the world's",
        TimeLimit(8),
        _worth((0.0, _FOREVER), (0.5, _FOREVER), within=3.0),
        ("truncated episodes are taken for ended ones", "their last observation is not the one that is valued"),
    ),
    (
        "P6B",
        "a deadline that is the world's own",
        TimeLimit(8, terminated=True),
        _worth((0.0, TimeLimit(8, terminated=True).value(GAMMA)), within=1.2),
        ("ended episodes are taken for truncated ones",),
    ),
    (
        "P7",
        "the policy that learns is the one that acted",
        ContextBandit(3),
        _same,
        ("dropout or batch norm", "a normaliser that moves while learning", "memory that is not cleared"),
    ),
)


def _own_world(make: WorldMaker, build: PolicyMaker, trainer: Trainer) -> Result:
    """P8: on a world of one's own, what is learned from is what was done, and time limits are not ends."""
    title = "your env: the ratio is 1 and time limits are not ends"
    try:
        world = make(4)
        policy = build(world)
        training = trainer(
            _spec(world.name, 4 * world.num_envs * 64, envs=world.num_envs, rollout_steps=64), world, policy
        )
        worst = max(report.first_ratio_error for report in training)
        ends = training.collector.episodes.take_fresh()
        world.close()
    except SurefootError as why:
        return Result(id="P8", title=title, passed=False, said=str(why))
    longest = max((e.length for e in ends), default=0)
    suspect = [e for e in ends if e.length == longest and not e.truncated]
    said = f"{len(ends)} episodes, max |ratio - 1| {worst:.1e}"
    if worst > RATIO_LIMIT:
        return Result(
            id="P8", title=title, passed=False, said=said, causes=("dropout, batch norm or a moving normaliser",)
        )
    if longest >= 20 and len(suspect) >= 3:
        why = "the env may say terminated where it should say truncated, at its time limit"
        said += f"; {len(suspect)} of them terminated after exactly {longest} steps, the longest there are"
        return Result(id="P8", title=title, passed=False, said=said, causes=(why,))
    return Result(id="P8", title=title, passed=True, said=said)
