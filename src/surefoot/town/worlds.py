"""Towns by their id, `town/SCENARIO`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.envs.api import World
from surefoot.errors import ConfigError
from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.world import TownWorld

if TYPE_CHECKING:
    from surefoot.envs.workers.placement import Workers
    from surefoot.town.sim.parallel_env import TownEnv
    from surefoot.train.spec_worlds import WorldMaker

PREFIX = "town/"


def env_maker(env: str, env_kwargs: dict[str, Any] | None = None) -> WorldMaker:
    """Return a maker of towns: of a shipped scenario, or of the one in `env_kwargs` (so that a run needs no other file).

    `streams` counts agents; the maker builds as many towns as they fill, at least one.
    """
    options = dict(env_kwargs or {})
    description = options.pop("scenario", None)
    scenario = load_scenario(env.removeprefix(PREFIX)) if description is None else Scenario.from_json(description)
    known = {name: options.pop(name) for name in ("variant", "central") if name in options}
    if options:
        raise ConfigError(f"env_kwargs has {', '.join(options)}; a town takes only scenario, variant and central")

    def make(streams: int, workers: Workers = 0, /) -> World:
        return TownWorld(scenario, max(1, streams // len(scenario.agents)), name=env, **known)

    return make


def single_env(env: str) -> TownEnv:
    """Return one town as a PettingZoo environment."""
    from surefoot.town.sim.parallel_env import TownEnv

    return TownEnv(env.removeprefix(PREFIX))
