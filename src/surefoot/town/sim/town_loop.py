"""Run a town tick by tick with a behaviour: to watch, film, record or measure it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.envs.api import Step, View
from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.events import Happening
from surefoot.town.sim.script import Script, random_actions
from surefoot.town.sim.state import State
from surefoot.town.sim.world import TownWorld

Decide = Callable[[TownWorld, View], np.ndarray]
"""Maps a world and its view to one action per stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One tick of one town; `state` is the one after it."""

    tick: int
    state: State
    action: np.ndarray
    reward: np.ndarray
    happened: list[Happening]
    over: bool
    """The episode ended with this tick."""


def decider(world: TownWorld, name: str, seed: int) -> Decide:
    """Return the behaviour `name`: "script", "random" or "idle"."""
    if name == "script":
        script = Script(world.layout)
        return lambda world, view: script(world.now, world.mask).reshape(-1)
    if name == "random":
        rng = np.random.default_rng(seed_for("town-policy", seed))
        return lambda world, view: random_actions(world.mask, rng).reshape(-1)
    if name == "idle":
        return lambda world, view: np.zeros(world.num_envs, np.int64)
    raise ConfigError(f"there is no behaviour {name!r}; use script, random or idle, or a run's policy")


class SimulationLoop:
    """One town with a behaviour; `step` runs one tick, iterating runs to the end of the episode.

    Args:
        scenario: The town.
        decide: "script", "random", "idle", or a function from a world and its view to actions.
        seed: Seed of town and behaviour; None for the scenario's.
        variant: Observations: "features", "hybrid", "full" or "compact"; None for the scenario's.
    """

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
        return int(self.world.now.tick[0])

    def step(self) -> Frame:
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
        """Run `ticks` ticks, across episodes."""
        for _ in range(ticks):
            yield self.step()

    def __iter__(self) -> Iterator[Frame]:
        while True:
            frame = self.step()
            yield frame
            if frame.over:
                return


def play_towns(world: TownWorld, decide: Decide, episodes: int, *, seed: int) -> dict[str, np.ndarray]:
    """Return {measure: [episodes]} of complete episodes in parallel towns."""
    world.keep = max(world.keep, episodes)
    view = world.reset(seed)
    while len(world.finished) < episodes:
        view = world.step(decide(world, view)).view
    return {name: values[:episodes] for name, values in world.measured().items()}


def record_behaviour(
    scenario: Scenario, behaviour: str, episodes: int, *, seed: int, variant: str | None = None
) -> Recording:
    """Return complete episodes of a behaviour in `episodes` towns, for cloning; each agent's episode is a trajectory."""
    if episodes < 1:
        raise ConfigError(f"episodes is {episodes}; it must be at least 1")
    world = TownWorld(scenario, episodes, variant=variant)
    decide, view = decider(world, behaviour, seed), world.reset(seed)
    views: list[View] = []
    actions: list[np.ndarray] = []
    steps: list[Step] = []
    for _ in range(scenario.ticks):
        views.append(view)
        actions.append(decide(world, view))
        steps.append(world.step(actions[-1]))
        view = steps[-1].view

    def episode(n: int, ticks: range) -> Trajectory:
        last = steps[ticks[-1]]
        assert last.final_obs is not None
        masks = [mask[n] for t in ticks if (mask := views[t].action_mask) is not None]
        return Trajectory(
            obs={name: np.stack([*(views[t].obs[name][n] for t in ticks), x[n]]) for name, x in last.final_obs.items()},
            action=np.array([actions[t][n] for t in ticks]),
            reward=np.array([steps[t].reward[n] for t in ticks]),
            terminated=bool(last.terminated[n]),
            truncated=bool(last.truncated[n]),
            action_mask=np.stack(masks),
        )

    trajectories: list[Trajectory] = []
    for n in range(world.num_envs):
        begin = 0
        for t, step in enumerate(steps):
            ended = bool(step.terminated[n] or step.truncated[n])
            if step.valid[n] and ended:
                trajectories.append(episode(n, range(begin, t + 1)))
            if ended or not step.valid[n]:
                begin = t + 1
    return Recording(env=world.name, observation=world.observation, action=world.action, episodes=trajectories)
