"""Probe environments with known answers, trained in seconds: a probe that is not learned shows a bug.

After Andy Jones's probe environments: each adds one feature to the previous one, so the first failure shows where the bug is.
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
from surefoot.train.spec_worlds import WorldMaker
from surefoot.train.training import Training

# A horizon of 10 steps; a longer one would need more updates until the values are right.
GAMMA = 0.9
# Fewer updates make the probes faster, but a slow network may then fail without a bug.
STREAMS, STEPS, UPDATES = 16, 16, 60
# Rounding of float32 log-probs stays below; dropout or a moving normalizer is far above.
RATIO_LIMIT = 1e-4

PolicyMaker = Callable[[World], Policy]
Trainer = Callable[[RunSpec, World, Policy], Training]
Moved = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one probe."""

    id: str
    title: str
    passed: bool
    message: str
    causes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; the message is called "said" in published files."""
        values = asdict(self) | {"causes": list(self.causes)}
        return values | {"said": values.pop("message")}


class Announced(Task):
    """One step with the observation 1 or -1 as its reward: the value is the observation."""

    observation, action, max_episode_steps = Box((1,), -1.0, 1.0), Discrete(1), None

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.choice(np.array([-1.0, 1.0]), size=(1, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Moved:
        return state.copy(), state[0].copy(), np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.astype(np.float32)


class Delayed(Announced):
    """Two steps with the observations -1 and 1; only the second is rewarded, with 1: the first has the value γ."""

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
    """Run the probes P1 to P7, and P8 on the environment of `make`, if passed.

    Args:
        build: Builds a policy for an environment; None for a small standard network.
        make: Makes the user's environment for a number of streams.
        trainer: Builds the training; pass a function to probe another implementation.
        only: Ids of the probes to run; empty for all.
    """
    build = build or (lambda world: ActorCritic(world.observation, world.action, NetConfig(hidden=(32, 32)), seed=0))
    trainer = trainer or (lambda spec, world, policy: Training(spec, world=world, policy=policy))
    bench = _Bench(build, trainer)
    results = [bench.run(*each) for each in _PROBES if not only or each[0] in only]
    return results + ([_probe_user_world(make, build, trainer)] if make is not None else [])


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
        net=NetConfig(allow_stateful_norm=True),  # P7 shows what such layers do
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
        """Train in one environment and judge the result."""
        try:
            world = Streams(f"probe {id_}", task, STREAMS)
            policy = self.build(world)
            training = self.trainer(_spec(world.name, 3 * UPDATES * STREAMS * STEPS), world, policy)
            worst, passed, message = 0.0, False, ""
            for report in training:
                worst = max(worst, report.first_ratio_error)
                if report.update % UPDATES == 0:  # a slow network gets three attempts
                    passed, message = judge(policy, worst)
                    if passed:
                        break
        except SurefootError as why:
            passed, message = False, str(why)
        return Result(id=id_, title=title, passed=passed, message=message, causes=() if passed else causes)


def _expect_values(*expected: tuple[float, float], within: float) -> Callable[[Policy, float], tuple[bool, str]]:
    """Return a judge of the critic: pairs of (observation, value)."""

    def judge(policy: Policy, worst: float) -> tuple[bool, str]:
        obs = torch.tensor([inputs for inputs, _ in expected], dtype=torch.float32).reshape(-1, 1)
        start = torch.ones(len(obs), dtype=torch.bool) if policy.sequential else None
        with torch.no_grad():
            inputs = PolicyInput(obs={"obs": obs}, start=start, context=policy.initial_context(len(obs)))
            values = policy.value(inputs).cpu().numpy()
        right = np.array([value for _, value in expected])
        shown, wanted = (", ".join(f"{x:.2f}" for x in each) for each in (values, right))
        return bool(np.abs(values - right).max() <= within), f"value {shown}; expected {wanted}"

    return judge


def _chooses(contexts: int) -> Callable[[Policy, float], tuple[bool, str]]:
    """Return a judge of actions: the right one is the number of the one-hot context; with one context it is arm 1."""

    def judge(policy: Policy, worst: float) -> tuple[bool, str]:
        obs = torch.ones(1, 1) if contexts == 1 else torch.eye(contexts)
        right = torch.ones(1) if contexts == 1 else torch.arange(contexts)
        rows = obs.repeat(50, 1)
        start = torch.ones(len(rows), dtype=torch.bool) if policy.sequential else None
        inputs = PolicyInput(obs={"obs": rows}, start=start, context=policy.initial_context(len(rows)))
        with torch.no_grad():
            action = policy.act(inputs, generator=torch.Generator().manual_seed(0)).action.cpu()
        share = float((action.flatten() == right.repeat(50)).float().mean())
        # Actions are sampled, with an entropy bonus in training, so a correct policy is not always right.
        return share > 0.8, f"the correct action in {share:.0%} of the cases"

    return judge


def _same(policy: Policy, worst: float) -> tuple[bool, str]:
    return worst <= RATIO_LIMIT, f"max |ratio - 1| before the first step {worst:.1e}; the limit is {RATIO_LIMIT:g}"


# Value of a reward of 1 at every step: the geometric series.
_FOREVER = 1.0 / (1.0 - GAMMA)
_PROBES: tuple[tuple[str, str, Task, Any, tuple[str, ...]], ...] = (
    (
        "P1",
        "a reward of 1 at every step, without end",
        Endless(),
        _expect_values((1.0, _FOREVER), within=2.0),
        ("the bootstrap at the end of a rollout is missing", "the critic does not learn at all"),
    ),
    (
        "P2",
        "a reward that depends on the observation",
        Announced(),
        _expect_values((-1.0, -1.0), (1.0, 1.0), within=0.25),
        ("observations do not reach the critic", "observations and rewards belong to different steps"),
    ),
    (
        "P3",
        "a delayed reward",
        Delayed(),
        _expect_values((-1.0, GAMMA), (1.0, 1.0), within=0.15),
        ("the discount is not applied, or applied twice", "values belong to the wrong successor"),
    ),
    (
        "P4",
        "one of two actions is rewarded",
        Bandit((0.0, 1.0)),
        _chooses(1),
        ("the sign of the policy's loss or of the advantage is wrong", "the policy's weights are not in the optimizer"),
    ),
    (
        "P5",
        "the observation determines which action is rewarded",
        ContextBandit(3),
        _chooses(3),
        ("observations do not reach the policy", "actions and observations belong to different steps"),
    ),
    (
        "P6",
        "a time limit that truncates episodes",
        TimeLimit(8),
        _expect_values((0.0, _FOREVER), (0.5, _FOREVER), within=3.0),
        ("truncation is handled as termination", "the bootstrap does not use the last observation"),
    ),
    (
        "P6B",
        "a time limit that terminates episodes",
        TimeLimit(8, terminated=True),
        _expect_values((0.0, TimeLimit(8, terminated=True).value(GAMMA)), within=1.2),
        ("termination is handled as truncation",),
    ),
    (
        "P7",
        "the policy that learns equals the one that acted",
        ContextBandit(3),
        _same,
        ("dropout or batch norm", "a normalizer that changes while learning", "recurrent state that is not reset"),
    ),
)


def _probe_user_world(make: WorldMaker, build: PolicyMaker, trainer: Trainer) -> Result:
    """Run P8 on the user's environment: the ratio is 1 in the first minibatch, and time limits are truncations."""
    title = "your env: the ratio is 1 and time limits are truncations"
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
        return Result(id="P8", title=title, passed=False, message=str(why))
    longest = max((e.length for e in ends), default=0)
    suspect = [e for e in ends if e.length == longest and not e.truncated]
    message = f"{len(ends)} episodes, max |ratio - 1| {worst:.1e}"
    if worst > RATIO_LIMIT:
        return Result(
            id="P8",
            title=title,
            passed=False,
            message=message,
            causes=("dropout, batch norm or a normalizer that changes while learning",),
        )
    # Several episodes that terminate at exactly the largest length look like a time limit. Short ones may be the task's length.
    if longest >= 20 and len(suspect) >= 3:
        why = "the env may return terminated instead of truncated at its time limit"
        message += f"; {len(suspect)} of them terminated after exactly {longest} steps, the largest length"
        return Result(id="P8", title=title, passed=False, message=message, causes=(why,))
    return Result(id="P8", title=title, passed=True, message=message)
