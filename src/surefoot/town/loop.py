"""A town that runs by itself, tick after tick, for whoever wants to watch, film or record it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.envs.api import View
from surefoot.errors import ConfigError
from surefoot.town.happenings import Happening
from surefoot.town.scenario import Scenario
from surefoot.town.script import Chance, Script
from surefoot.town.state import State
from surefoot.town.world import TownWorld

Decide = Callable[[TownWorld, View], np.ndarray]
"""From a world and what is seen in it to one action a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One tick of one town, as it was when it ended."""

    tick: int
    state: State
    action: np.ndarray
    reward: np.ndarray
    happened: list[Happening]
    over: bool
    """The episode ended with this tick."""


def decider(world: TownWorld, name: str, seed: int) -> Decide:
    """The behaviour called `name`: script, random, or idle."""
    if name == "script":
        script = Script(world.layout)
        return lambda world, view: script(world.now, world.mask).reshape(-1)
    if name == "random":
        chance = Chance(np.random.default_rng(seed_for("town-policy", seed)))
        return lambda world, view: chance(world.now, world.mask).reshape(-1)
    if name == "idle":
        return lambda world, view: np.zeros(world.num_envs, np.int64)
    raise ConfigError(f"there is no behaviour {name!r}; there are script, random and idle, or a run's policy")


class SimulationLoop:
    """One town with somebody to decide; `step` is a tick, iterating goes on to the end of the episode."""

    def __init__(
        self,
        scenario: Scenario,
        decide: Decide | str = "script",
        *,
        seed: int | None = None,
        variant: str | None = None,
    ) -> None:
        self.world = TownWorld(scenario, 1, variant=variant)
        self.seed = scenario.seed if seed is None else seed
        self.decide = decider(self.world, decide, self.seed) if isinstance(decide, str) else decide
        self.view = self.world.reset(self.seed)
        self.over = False

    @property
    def tick(self) -> int:
        """Ticks of the running episode."""
        return int(self.world.now.tick[0])

    def step(self) -> Frame:
        """One tick."""
        before, world = self.world.now, self.world
        action = self.decide(world, self.view)
        step = world.step(action)
        self.view = step.view
        self.over = bool(before.tick[0] + 1 >= world.scenario.ticks)
        return Frame(
            tick=int(before.tick[0]),
            state=before if self.over else world.now,
            action=np.asarray(action),
            reward=step.reward,
            happened=world.happened.of(0),
            over=self.over,
        )

    def run(self, ticks: int) -> Iterator[Frame]:
        """So many ticks, new episodes included."""
        for _ in range(ticks):
            yield self.step()

    def __iter__(self) -> Iterator[Frame]:
        while True:
            frame = self.step()
            yield frame
            if frame.over:
                return


def play_towns(world: TownWorld, decide: Decide, episodes: int, *, seed: int) -> dict[str, np.ndarray]:
    """{measure: [n]} of at least `episodes` whole episodes, from towns side by side."""
    view = world.reset(seed)
    while len(world.finished) < episodes:
        view = world.step(decide(world, view)).view
    return {name: values[:episodes] for name, values in world.measured().items()}


def record_behaviour(
    scenario: Scenario, behaviour: str, episodes: int, *, seed: int, variant: str | None = None
) -> Recording:
    """Whole episodes of a behaviour, to be cloned; each agent's episode is one trajectory, `episodes` towns play."""
    if episodes < 1:
        raise ConfigError(f"episodes is {episodes}; at least one must be played")
    world = TownWorld(scenario, episodes, variant=variant)
    decide, view = decider(world, behaviour, seed), world.reset(seed)
    seen, masks, actions, rewards, ended, valid = [], [], [], [], [], []
    final = view.obs
    for _ in range(scenario.ticks):
        action = decide(world, view)
        step = world.step(action)
        seen.append(view.obs)
        masks.append(view.action_mask)
        actions.append(action)
        rewards.append(step.reward)
        ended.append((step.terminated, step.truncated))
        valid.append(step.valid)
        if step.final_obs is not None:
            final = step.final_obs
        view = step.view
    trajectories: list[Trajectory] = []
    for n in range(world.num_envs):
        trajectories += _lives(n, seen, masks, actions, rewards, ended, valid, final)
    return Recording(env=world.name, observation=world.observation, action=world.action, episodes=trajectories)


def _lives(
    n: int, seen: list, masks: list, actions: list, rewards: list, ended: list, valid: list, final: dict
) -> list[Trajectory]:  # pyright: ignore[reportUnknownParameterType, reportMissingTypeArgument]
    """The lives of one stream, cut where somebody went; a life of a single step teaches nothing and is left out."""
    made: list[Trajectory] = []
    begin = 0
    for t in range(len(seen)):
        gone = bool(ended[t][0][n])
        last = t == len(seen) - 1
        if not valid[t][n]:
            begin = t + 1
            continue
        if not (gone or last):
            continue
        # Of who went before the end no last look was kept: the step before is the last one that is told.
        upto = t + 1 if last and not gone else t
        if upto - begin >= 1:
            after = {k: x[n] for k, x in final.items()} if upto == t + 1 else {k: x[n] for k, x in seen[upto].items()}
            obs = {k: np.stack([*(s[k][n] for s in seen[begin:upto]), after[k]]) for k in after}
            made.append(
                Trajectory(
                    obs=obs,
                    action=np.array([a[n] for a in actions[begin:upto]]),
                    reward=np.array([r[n] for r in rewards[begin:upto]]),
                    terminated=False,
                    truncated=upto == t + 1,
                    action_mask=np.stack([m[n] for m in masks[begin:upto]]),
                )
            )
        begin = t + 1
    return made
