"""Worlds of many agents: who is there, who is asked, whose reward it is; all by hand."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces

from surefoot.data.spaces import Discrete
from surefoot.envs.agents.pettingzoo import AgentsWorld, agents_world
from surefoot.envs.builtin.multi_agent_toys import Relay
from surefoot.envs.make import backend_of, make_world
from surefoot.errors import AllActionsMasked, ConfigError, EnvError, SpaceError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.collect.collector import Collector


class Pair:
    """Two agents that see a number and do nothing; for three steps, each its own reward."""

    metadata: ClassVar[dict[str, str]] = {"name": "pair"}
    possible_agents: ClassVar[list[str]] = ["left", "right"]

    def __init__(self, **changed: Any) -> None:
        self.changed = changed
        self.agents: list[str] = []

    def observation_space(self, agent):
        return self.changed.get("observation", {}).get(agent, spaces.Box(-9, 9, (2,), np.float32))

    def action_space(self, agent):
        return self.changed.get("action", {}).get(agent, spaces.Discrete(3))

    def look(self, agent):
        return np.array([self.t, self.possible_agents.index(agent)], np.float32)

    def reset(self, seed=None, options=None):
        self.t, self.seed, self.agents = 0, seed, list(self.possible_agents)
        return {a: self.look(a) for a in self.agents}, {a: {} for a in self.agents}

    def step(self, actions):
        self.t += 1
        self.taken = dict(actions)
        obs = {a: self.look(a) for a in self.agents}
        reward = {"left": 1.0 * self.t, "right": -1.0 * self.t}
        over = self.t == 3
        ended, going = dict.fromkeys(self.agents, over), dict.fromkeys(self.agents, False)
        info = {a: {"is_success": a == "left"} for a in self.agents}
        if over:
            self.agents = []
        return obs, reward, ended, going, info


class Ring:
    """Agents take turns in PettingZoo's AEC form: who moves earns 10, the next one in the ring earns the action."""

    metadata: ClassVar[dict[str, str]] = {"name": "ring"}
    possible_agents: ClassVar[list[str]] = ["a", "b", "c"]

    def __init__(
        self, turns: int = 6, dies: dict[str, int] | None = None, cut: bool = False, box: bool = False
    ) -> None:
        self.turns, self.dies, self.cut, self.box = turns, dies or {}, cut, box

    def observation_space(self, agent):
        return spaces.Box(0, 99, (2,), np.float32)

    def action_space(self, agent):
        return spaces.Box(-1, 1, (1,), np.float32) if self.box else spaces.Discrete(4)

    def observe(self, agent):
        return np.array([self.t, self.possible_agents.index(agent)], np.float32)

    def reset(self, seed=None, options=None):
        self.t, self.agents = 0, list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {a: {} for a in self.agents}
        self.agent_selection = "a"

    def last(self, observe=True):
        a = self.agent_selection
        return self.observe(a), self._cumulative_rewards[a], self.terminations[a], self.truncations[a], self.infos[a]

    def next_of(self, agent):
        order = self.possible_agents
        after = [*order[order.index(agent) + 1 :], *order[: order.index(agent) + 1]]
        return next(a for a in after if a in self.agents)

    def step(self, action):
        me = self.agent_selection
        if self.terminations[me] or self.truncations[me]:
            assert action is None
            following = self.next_of(me)
            self.agents.remove(me)
            for table in (self.rewards, self._cumulative_rewards, self.terminations, self.truncations, self.infos):
                del table[me]
            self.rewards = dict.fromkeys(self.agents, 7.0)  # rubbish that nobody may count
            self.agent_selection = following
            return
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.rewards[me] += 10.0
        following = self.next_of(me)
        self.rewards[following] += float(np.ravel(action)[0])
        self.t += 1
        flags = self.truncations if self.cut else self.terminations
        for agent in list(self.agents):
            if self.t >= self.turns or self.t == self.dies.get(agent):
                flags[agent] = True
        self.agent_selection = following

    def close(self):
        pass


def ones(world: AgentsWorld) -> np.ndarray:
    return np.ones(world.num_envs, np.int64)


def test_copies_times_agents_are_the_streams_and_lie_copy_by_copy():
    world = agents_world(Pair, 2)
    view = world.reset(0)
    assert (world.num_envs, world.agents, world.name) == (4, ("left", "right"), "pair")
    assert view.obs["obs"].tolist() == [[0, 0], [0, 1], [0, 0], [0, 1]]
    world.step(np.array([0, 1, 2, 0]))
    assert [copy.env.taken for copy in world.copies] == [{"left": 0, "right": 1}, {"left": 2, "right": 0}]


def test_each_stream_has_its_own_reward_and_end_and_a_copy_begins_again_when_all_are_gone():
    world = agents_world(Pair, 1)
    world.reset(0)
    steps = [world.step(ones(world)) for _ in range(4)]
    assert [step.reward.tolist() for step in steps] == [[1, -1], [2, -2], [3, -3], [1, -1]]
    assert [step.terminated.tolist() for step in steps] == [[False] * 2, [False] * 2, [True] * 2, [False] * 2]
    assert steps[2].view.obs["obs"][:, 0].tolist() == [0, 0], "the next episode's first view"
    assert steps[2].final_obs is not None
    assert steps[2].final_obs["obs"][:, 0].tolist() == [3, 3], "the true successor"
    assert steps[2].stats["success"].tolist() == [1.0, 0.0]


def test_every_episode_of_every_copy_has_a_seed_of_its_own():
    def seeds(seed: int) -> list[int]:
        world = agents_world(Pair, 2)
        world.reset(seed)
        found = [copy.env.seed for copy in world.copies]
        for _ in range(3):
            world.step(ones(world))
        return found + [copy.env.seed for copy in world.copies]

    assert len(set(seeds(0))) == 4
    assert seeds(0) == seeds(0)
    assert not set(seeds(0)) & set(seeds(1))


def test_runners_of_a_relay_come_and_go_as_the_schedule_says():
    # Three runners, life 3, one joins every 2 steps, one lap: runner i is there at times 2i to 2i + 2.
    world = agents_world(lambda: Relay(runners=3, life=3, stride=2, laps=1), 1)
    view = world.reset(0)
    there = [(view.obs["obs"].any(axis=1)).tolist()]
    valid, ended = [], []
    for _ in range(7):
        step = world.step(np.zeros(3, np.int64))
        valid.append(step.valid.tolist())
        ended.append(step.terminated.tolist())
        there.append(step.view.obs["obs"].any(axis=1).tolist())
        assert (step.reward[~step.valid] == 0).all()
    a, b, c = [True, False, False], [False, True, False], [False, False, True]
    ab, bc = [True, True, False], [False, True, True]
    assert valid == [a, a, ab, b, bc, c, c]
    assert there == [a, a, ab, b, bc, c, c, a]
    none = [False] * 3
    assert ended == [none, none, a, none, b, none, c]


def test_an_agent_that_joins_begins_an_episode_and_no_advantage_crosses_its_absence():
    world = agents_world(lambda: Relay(runners=3, life=3, stride=2, laps=1), 1)
    policy = ActorCritic(world.observation, world.action)
    for path in ("torch", "native"):
        rollout = Collector(world, policy, steps=14, gamma=0.9, path=path).collect()
        first = np.zeros((7, 3), bool)
        first[0, 0] = first[2, 1] = first[4, 2] = True
        assert (rollout.start & rollout.valid)[:7].tolist() == first.tolist(), path
        assert rollout.samples == 18
        assert rollout.terminated.sum() == 6


def test_whoever_is_cut_short_keeps_its_last_observation():
    world = agents_world(lambda: Relay(runners=2, life=3, stride=2, limit=3), 1)
    world.reset(0)
    for _ in range(3):
        step = world.step(np.zeros(2, np.int64))
    assert step.terminated.tolist() == [True, False]
    assert step.truncated.tolist() == [False, True]
    assert step.final_obs is not None
    assert step.final_obs["obs"][1, 0] == pytest.approx(1 / 3)
    assert step.view.obs["obs"][0, 0] == 0.0


def test_an_agent_cut_short_without_a_last_observation_is_refused():
    class Silent(Pair):
        def step(self, actions):
            obs, reward, ended, going, info = super().step(actions)
            return ({} if self.t == 3 else obs), reward, going, ended, info

    world = agents_world(Silent, 1)
    world.reset(0)
    world.step(ones(world)), world.step(ones(world))
    with pytest.raises(EnvError, match="left of pair was truncated without a last observation"):
        world.step(ones(world))


def test_an_agent_that_leaves_without_an_end_is_refused():
    class Deserter(Pair):
        def step(self, actions):
            answer = super().step(actions)
            self.agents = ["left"]
            return answer

    world = agents_world(Deserter, 1)
    world.reset(0)
    with pytest.raises(EnvError, match="copy 0 of pair at step 1.*right left the env without having ended"):
        world.step(ones(world))


def test_agents_of_different_spaces_are_refused_with_what_would_work():
    odd = {"right": spaces.Discrete(5)}
    with pytest.raises(SpaceError, match=r"pad them, or train groups apart with agents=\['left', …\]"):
        agents_world(lambda: Pair(action=odd), 1)
    world = agents_world(lambda: Pair(action=odd), 2, agents=["right"])
    assert world.action == Discrete(5)
    assert world.num_envs == 2


def test_agents_that_are_not_streams_are_played_by_others():
    asked: list[Any] = []

    def others(agent, obs, info):
        asked.append((agent, obs.tolist(), dict(info)))
        return 2

    world = agents_world(Pair, 1, agents=["right"], others=others)
    view = world.reset(0)
    assert view.obs["obs"].tolist() == [[0, 1]]
    step = world.step(np.array([1]))
    assert world.copies[0].env.taken == {"left": 2, "right": 1}
    assert step.reward.tolist() == [-1]
    assert asked == [("left", [0, 0], {})]


def test_others_by_chance_do_only_what_is_allowed_and_the_same_after_a_reset():
    class Strict(Pair):
        def reset(self, seed=None, options=None):
            obs, _ = super().reset(seed)
            return obs, {a: {"action_mask": [0, 1, 1]} for a in self.agents}

        def step(self, actions):
            *answer, info = super().step(actions)
            return *answer, {a: {"action_mask": [0, 1, 1]} for a in info}

    def played(seed: int) -> list[int]:
        world = agents_world(Strict, 1, agents=["left"])
        world.reset(seed)
        found = []
        for _ in range(40):
            world.step(np.array([1]))
            found.append(int(world.copies[0].env.taken["right"]))
        return found

    assert set(played(0)) == {1, 2}
    assert played(0) == played(0) != played(1)


@pytest.mark.parametrize("where", ["obs", "info"])
def test_masks_come_from_the_observation_or_the_info_and_absent_agents_allow_everything(where: str):
    class Masked(Relay):
        def observation_space(self, agent):
            plain = super().observation_space(agent)
            return (
                spaces.Dict({"observation": plain, "action_mask": spaces.MultiBinary(2)}) if where == "obs" else plain
            )

        def _tell(self, obs, info):
            mask = np.array([0, 1], np.int8)
            if where == "obs":
                return {a: {"observation": x, "action_mask": mask} for a, x in obs.items()}, info
            return obs, {a: {"action_mask": mask} for a in info}

        def reset(self, seed=None, options=None):
            return self._tell(*super().reset(seed))

        def step(self, actions):
            obs, *middle, info = super().step(actions)
            obs, info = self._tell(obs, info)
            return obs, *middle, info

    world = agents_world(Masked, 1)
    view = world.reset(0)
    assert view.action_mask is not None
    assert view.action_mask.tolist() == [[False, True], [True, True], [True, True]]
    assert list(world.observation) == (["observation"] if where == "obs" else ["obs"])
    assert world.step(ones(world)).view.action_mask is not None


def test_a_mask_that_allows_nothing_is_refused():
    class Closed(Pair):
        def reset(self, seed=None, options=None):
            return super().reset()[0], {a: {"action_mask": [0, 0, 0]} for a in self.agents}

    with pytest.raises(AllActionsMasked, match="stream 0 of pair"):
        agents_world(Closed, 1).reset(0)


def test_central_adds_the_envs_own_state():
    class Stately(Pair):
        def state(self):
            return np.array([self.t, 42.0, 7.0])

    world = agents_world(Stately, 1, central=True)
    world.reset(0)
    step = world.step(ones(world))
    assert world.observation["state"].shape == (3,)
    assert step.view.obs["state"].tolist() == [[1, 42, 7]] * 2
    world.step(ones(world))
    step = world.step(ones(world))
    assert step.final_obs is not None
    assert step.final_obs["state"].tolist() == [[3, 42, 7]] * 2, "the state at the end, not of the next episode"
    assert step.view.obs["state"].tolist() == [[0, 42, 7]] * 2


def test_central_without_a_state_is_everybodys_observation_with_zeros_for_the_absent():
    world = agents_world(lambda: Relay(runners=3, life=3, stride=2, laps=1), 1, central=True, agent_id=True)
    world.reset(0)
    world.step(np.zeros(3, np.int64))
    view = world.step(np.zeros(3, np.int64)).view
    seen, every = view.obs["obs"], view.obs["state"]
    assert every[0].tolist() == every[1].tolist() == [*seen[0], *seen[1], 0, 0, 0]
    assert not every[2].any(), "who is not there sees nothing"
    assert view.obs["agent"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_an_observation_part_of_the_same_name_is_refused():
    named = spaces.Dict({"agent": spaces.Discrete(2)})
    with pytest.raises(SpaceError, match="already has a part 'agent'"):
        agents_world(lambda: Pair(observation=dict.fromkeys(Pair.possible_agents, named)), 1, agent_id=True)


@pytest.mark.parametrize(
    ("agents", "message"),
    [(["up"], "has no agent 'up'; it has left, right"), ([], "name at least one"), (["left"] * 2, "once")],
)
def test_agents_must_be_some_of_the_envs_own(agents: list[str], message: str):
    with pytest.raises(ConfigError, match=message):
        agents_world(Pair, 1, agents=agents)


@pytest.mark.parametrize("options", [{}, {"central": True, "agent_id": True}, {"agents": ["runner_0", "runner_2"]}])
def test_a_relay_goes_on_from_its_state_to_the_last_digit(options: dict[str, Any]):
    world, again = (agents_world(Relay, 2, **options) for _ in range(2))
    world.reset(3)
    rng = np.random.default_rng(0)
    for _ in range(9):
        world.step(rng.integers(2, size=world.num_envs))
    assert world.inexact is None
    resumed = again.set_state(world.state())
    for name, part in world._view.obs.items():
        assert np.array_equal(resumed.obs[name], part)
    for _ in range(40):
        action = rng.integers(2, size=world.num_envs)
        one, two = world.step(action), again.step(action)
        assert one.reward.tolist() == two.reward.tolist()
        assert one.valid.tolist() == two.valid.tolist()
        for name in one.view.obs:
            assert np.array_equal(one.view.obs[name], two.view.obs[name])
    assert world.state()["others"] == again.state()["others"]


def test_an_opponent_that_dies_in_the_opening_is_nobodys_end():
    world = agents_world(lambda: Ring(turns=5, dies={"b": 1}), 1, agents=["b", "c"], central=True)
    view = world.reset(0)
    assert view.obs["obs"].tolist() == [[0, 0], [1, 2]], "b was gone before its first turn"
    assert view.obs["state"][1].tolist() == [0, 0, 0, 0, 1, 2]
    step = world.step(np.zeros(2, np.int64))
    assert step.valid.tolist() == [False, True]
    assert not step.terminated.any()


def test_an_env_that_does_not_say_where_it_is_begins_anew_and_says_why():
    world = agents_world(Pair, 1)
    world.reset(0)
    world.step(ones(world))
    assert (
        world.inexact
        == "pair: Pair does not export its state; add get_state() and set_state(state) for an exact resume"
    )
    assert world.set_state(world.state()).obs["obs"][0, 0] == 0


def test_make_world_takes_an_env_with_agents_or_what_builds_one():
    built: list[Pair] = []

    def build() -> Pair:
        built.append(Pair())
        return built[-1]

    assert make_world(build, 3).num_envs == 6
    assert len(built) == 3
    world = make_world(Pair())
    assert world.num_envs == 2
    assert backend_of(world) == "pettingzoo"
    with pytest.raises(ConfigError, match="3 copies cannot share one pair"):
        make_world(Pair(), 3)
    with pytest.raises(ConfigError, match="wrappers"):
        make_world(Pair, 1, max_episode_steps=3)


def test_an_env_that_fails_is_named_with_its_copy_and_step():
    class Broken(Pair):
        def step(self, actions):
            raise ZeroDivisionError("oh")

    world = agents_world(Broken, 2)
    world.reset(0)
    with pytest.raises(EnvError, match=r"copy 0 of pair at step 1 since its reset failed: ZeroDivisionError\('oh'\)"):
        world.step(ones(world))


def test_who_waits_for_its_turn_has_one_action_and_a_row_of_its_own():
    world = agents_world(Ring, 1)
    view = world.reset(0)
    still, free = [True, False, False, False], [True] * 4
    assert view.action_mask is not None
    assert view.action_mask.tolist() == [free, still, still]
    step = world.step(np.array([3, 0, 0]))
    assert step.view.action_mask is not None
    assert step.view.action_mask.tolist() == [still, free, still]
    assert step.valid.all()
    assert step.view.obs["obs"][:, 0].tolist() == [1, 1, 1]


def test_rewards_in_turns_belong_to_who_earned_them_not_to_who_is_asked_next():
    world = agents_world(lambda: Ring(turns=4), 1)
    world.reset(0)
    rewards = [world.step(np.array(action)).reward.tolist() for action in ([3, 0, 0], [0, 2, 0], [0, 0, 1], [2, 0, 0])]
    assert rewards == [[10, 3, 0], [0, 10, 2], [1, 0, 10], [10, 2, 0]]


def test_an_agent_whose_episode_ends_while_another_moves_ends_there_with_what_it_earned():
    world = agents_world(lambda: Ring(turns=5, dies={"b": 1}), 1)
    world.reset(0)
    step = world.step(np.array([3, 0, 0]))  # a moves, b earns 3 and is gone
    assert step.reward.tolist() == [10, 3, 0]
    assert step.terminated.tolist() == [False, True, False]
    step = world.step(np.array([0, 0, 2]))  # c moves; b is not there
    assert step.valid.tolist() == [True, False, True]
    assert step.reward.tolist() == [2, 0, 10]


def test_in_turns_a_time_out_keeps_its_last_observation():
    world = agents_world(lambda: Ring(turns=2, cut=True), 1)
    world.reset(0)
    world.step(np.zeros(3, np.int64))
    step = world.step(np.zeros(3, np.int64))
    assert step.truncated.tolist() == [True] * 3
    assert step.final_obs is not None
    assert step.final_obs["obs"].tolist() == [[2, 0], [2, 1], [2, 2]]
    assert step.view.obs["obs"][:, 0].tolist() == [0, 0, 0]


def test_one_seat_sees_its_own_turns_only_and_is_paid_for_what_happens_in_between():
    world = agents_world(
        lambda: Ring(turns=7), 1, agents=["b"], others=lambda agent, obs, info: 3 if agent == "a" else 1
    )
    view = world.reset(0)
    assert view.obs["obs"].tolist() == [[1, 1]], "a has moved"
    assert view.action_mask is None
    # b: 3 from a's opening, 10 for its own move, 3 from a's next; then the same without the opening.
    assert world.step(np.array([2])).reward.tolist() == [16]
    step = world.step(np.array([2]))
    assert step.reward.tolist() == [13]
    assert step.terminated.tolist() == [True]


def test_agents_in_turns_with_real_actions_need_one_learner_a_copy():
    with pytest.raises(SpaceError, match=r"agents=\['a'\]"):
        agents_world(lambda: Ring(box=True), 1)
    world = agents_world(lambda: Ring(box=True), 1, agents=["a"])
    world.reset(0)
    assert world.step(np.zeros((1, 1), np.float32)).valid.all()


def test_an_env_in_turns_that_may_be_asked_all_at_once_is_stepped_as_a_parallel_one():
    conversions = pytest.importorskip("pettingzoo.utils.conversions")
    world = agents_world(lambda: conversions.parallel_to_aec(Pair()), 1)
    world.reset(0)
    assert [world.step(ones(world)).reward.tolist() for _ in range(2)] == [[1, -1], [2, -2]]
    assert world.copies[0].env.taken == {"left": 1, "right": 1}


@pytest.mark.filterwarnings("ignore:The old environment creation API")
def test_pettingzoos_own_envs_are_worlds():
    pytest.importorskip("pettingzoo")
    pytest.importorskip("pygame")
    from pettingzoo.classic import rps_v2, tictactoe_v3

    parallel, turns = agents_world(rps_v2.parallel_env, 2), agents_world(rps_v2.env, 2)
    for world in (parallel, turns):
        world.reset(0)
    for _ in range(40):
        action = np.arange(4) % 3
        one, two = parallel.step(action), turns.step(action)
        assert one.reward.tolist() == two.reward.tolist()
        assert np.array_equal(one.view.obs["obs"], two.view.obs["obs"])
        assert (one.reward[0::2] == -one.reward[1::2]).all()
    world = agents_world(tictactoe_v3.env, 1)
    world.reset(0)
    for move in ([0, 0], [0, 3], [1, 0], [0, 4], [2, 0]):  # the first three in one column
        step = world.step(np.array(move))
    assert step.reward.tolist() == [1, -1]
    assert step.terminated.all()


class Kept(Ring):
    """A ring that says where it is."""

    def get_state(self) -> dict[str, Any]:
        names = ("rewards", "_cumulative_rewards", "terminations", "truncations")
        tables = {name: dict(getattr(self, name)) for name in names}
        return {"t": self.t, "agents": list(self.agents), "turn": self.agent_selection, "tables": tables}

    def set_state(self, state: dict[str, Any]) -> None:
        self.t, self.agents, self.agent_selection = state["t"], list(state["agents"]), state["turn"]
        for name, table in state["tables"].items():
            setattr(self, name, dict(table))
        self.infos = {a: {} for a in self.agents}


@pytest.mark.parametrize("agents", [["b"], ["a", "b", "c"]])
def test_turns_go_on_from_their_state_with_what_was_earned_before_the_first(agents: list[str]):
    def made() -> AgentsWorld:
        return agents_world(lambda: Kept(turns=5, dies={"c": 3}), 2, agents=agents, others=lambda *_: 3)

    world, again = made(), made()
    world.reset(0)
    for _ in range(9):
        resumed = again.set_state(world.state())
        one, two = world.step(ones(world)), again.step(ones(again))
        assert one.reward.tolist() == two.reward.tolist()
        assert one.valid.tolist() == two.valid.tolist()
        assert np.array_equal(one.view.obs["obs"], two.view.obs["obs"])
        assert resumed.obs["obs"].shape == (world.num_envs, 2)


def test_at_the_end_a_critic_sees_what_all_saw_last():
    world = agents_world(lambda: Ring(turns=1, cut=True), 1, central=True)
    world.reset(0)
    step = world.step(np.zeros(3, np.int64))
    assert step.final_obs is not None
    assert step.final_obs["state"].tolist() == [[1, 0, 1, 1, 1, 2]] * 3
