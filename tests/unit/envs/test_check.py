"""Each way an env can be wrong is found and told with what would work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.envs import check
from surefoot.envs.check import EnvFinding, assert_env, check_env
from surefoot.errors import EnvError


class Fine(gym.Env[Any, Any]):
    """Nothing is wrong with it; each test breaks one thing."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Box(-10, 10, (2,), np.float32)
        self.action_space: Any = spaces.Discrete(2)
        self.t = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self.obs(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.obs(), 1.0, self.t == 5, False, {}

    def obs(self) -> Any:
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)


def errors(env: Any) -> list[EnvFinding]:
    return [finding for finding in check_env(env) if finding.level == "error"]


def advice(env: Any) -> list[EnvFinding]:
    return [finding for finding in check_env(env) if finding.level == "advice"]


def the_error(env: Any) -> EnvFinding:
    found = errors(env)
    assert len(found) == 1, [str(finding) for finding in found]
    return found[0]


def answering(**changes: Any) -> Fine:
    """A Fine whose step answers something else at its third step."""

    class Changed(Fine):
        def step(self, action: Any) -> Any:
            names = ("obs", "reward", "terminated", "truncated", "info")
            answer = dict(zip(names, super().step(action), strict=True))
            return tuple((answer | changes if self.t == 3 else answer).values())

    return Changed()


def test_nothing_is_wrong_with_a_fine_env() -> None:
    assert check_env(Fine) == []
    assert check_env(Fine()) == []
    assert_env(Fine())


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "Taxi-v4", "InvertedPendulum-v5", "Pendulum-v1"])
def test_gymnasiums_envs_have_no_errors(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes MUJOCO_LOG.TXT wherever it is run
    assert errors(name) == []


def test_an_unknown_id_is_a_finding_and_not_an_exception() -> None:
    assert "did you mean CartPole-v1" in the_error("CartPol-v1").what


def test_an_id_with_a_space_no_policy_can_see_tells_so() -> None:
    assert "Tuple" in the_error("Blackjack-v1").what


@pytest.mark.parametrize("build", [lambda: 1 / 0, lambda: "an env"])
def test_a_function_that_builds_no_env_is_found(build: Any) -> None:
    assert "function that builds the env" in the_error(build).what


def test_spaces_no_policy_can_use_are_found() -> None:
    env = Fine()
    env.observation_space, env.action_space = spaces.Text(3), spaces.Box(0, 9, (2,), np.int32)
    first, second = errors(env)
    assert "Text" in first.what
    assert "Box, Discrete" in first.fix
    assert "int32" in second.what
    assert "a Box of floats" in second.fix


def test_a_nest_of_actions_is_fine() -> None:
    env = Fine()
    env.action_space = spaces.Dict({"key": spaces.Discrete(3, start=1), "stick": spaces.Box(-1, 1, (2,))})
    assert check_env(env) == []


def test_a_missing_space_is_found() -> None:
    env = Fine()
    env.action_space = None
    assert the_error(env).what == "Fine has no action_space"


@pytest.mark.parametrize("first", [np.zeros(2, np.float32), (np.zeros(2), None), None])
def test_a_reset_of_the_old_gym_is_found(first: Any) -> None:
    class Old(Fine):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return first

    assert "(observation, info)" in the_error(Old()).fix


def test_a_reset_without_seed_is_found() -> None:
    class Seedless(Fine):
        def reset(self) -> Any:  # type: ignore[override]
            return np.zeros(2), {}

    finding = the_error(Seedless())
    assert "seed" in finding.what
    assert "seed=None, options=None" in finding.fix


def test_a_step_of_the_old_gym_is_found() -> None:
    class Old(Fine):
        def step(self, action: Any) -> Any:
            return np.zeros(2), 0.0, False, {}

    finding = the_error(Old())
    assert "4 values (ndarray, float, bool, dict), like the old gym" in finding.what
    assert "terminated, truncated" in finding.fix


def test_a_step_that_fails_is_found() -> None:
    class Breaks(Fine):
        def step(self, action: Any) -> Any:
            raise KeyError("north")

    assert "KeyError('north')" in the_error(Breaks()).what


@pytest.mark.parametrize(
    ("obs", "what", "fix"),
    [
        (np.zeros(3, np.float32), "shape [3], the space has [2]", "agree in shape"),
        (np.array([0, 11], np.float32), "outside its space", "widen the space"),
        (np.array([0, np.nan], np.float32), "NaN or infinity", "divides by zero"),
        (np.array([0, np.inf], np.float32), "NaN or infinity", "divides by zero"),
        (np.array(["a", "b"]), "of dtype <U1", "array of numbers"),
        ({"x": np.zeros(2)}, "['x']", "exactly the parts"),
    ],
)
def test_observations_that_break_their_promise_are_found(obs: Any, what: str, fix: str) -> None:
    finding = the_error(answering(obs=obs))
    assert "step 3" in finding.what
    assert what in finding.what
    assert fix in finding.fix


def test_a_part_that_is_missing_from_a_dict_is_found() -> None:
    class Parts(Fine):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(2)})

        def obs(self) -> Any:
            return {"a": super().obs()}

    assert "returns ['a'], the space has ['a', 'b']" in the_error(Parts()).what


def test_a_choice_outside_its_space_is_found() -> None:
    class Cells(Fine):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = spaces.Discrete(5)

        def obs(self) -> Any:
            return self.t

    assert "(5 in Discrete(5))" in the_error(Cells()).what


def test_another_dtype_is_advice_since_it_is_cast_here() -> None:
    (finding,) = check_env(answering(obs=np.zeros(2)))
    assert finding.level == "advice"
    assert "float64, the space has float32" in finding.what


@pytest.mark.parametrize(
    ("reward", "what", "fix"),
    [
        (np.nan, "is nan", "finite"),
        (-np.inf, "is -inf", "finite"),
        (np.array([1.0]), "ndarray of shape [1]", "float(reward)"),
        ("much", "is a str", "float(reward)"),
        (None, "is a NoneType", "float(reward)"),
    ],
)
def test_rewards_that_are_no_numbers_are_found(reward: Any, what: str, fix: str) -> None:
    finding = the_error(answering(reward=reward))
    assert what in finding.what
    assert fix in finding.fix


@pytest.mark.parametrize("name", ["terminated", "truncated"])
def test_flags_that_are_no_bools_are_found(name: str) -> None:
    finding = the_error(answering(**{name: 0}))
    assert finding.what == f"{name} is 0 of type int"
    assert finding.fix == f"return bool({name})"


def test_an_array_of_flags_is_found() -> None:
    assert "terminated" in the_error(answering(terminated=np.array([False, True]))).what


def test_randomness_that_ignores_the_seed_is_found() -> None:
    noise = np.random.default_rng()

    class Unseeded(Fine):
        def obs(self) -> Any:
            return noise.uniform(-1, 1, 2).astype(np.float32)

    finding = the_error(Unseeded())
    assert "differ at reset" in finding.what
    assert "self.np_random" in finding.fix


def test_randomness_that_ignores_the_seed_only_later_is_found() -> None:
    noise = np.random.default_rng()

    class Unseeded(Fine):
        def step(self, action: Any) -> Any:
            _, *rest = super().step(action)
            return noise.uniform(-1, 1, 2).astype(np.float32), *rest

    assert "differ at step 1" in the_error(Unseeded()).what


def test_an_observation_that_changes_after_it_was_returned_is_found() -> None:
    class Reuses(Fine):
        buffer = np.zeros(2, np.float32)

        def obs(self) -> Any:
            self.buffer += 0.5
            self.buffer %= 3.0
            return self.buffer

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.buffer[:] = 0
            return super().reset(seed=seed)

    assert "changed the observation that was returned before it" in the_error(Reuses()).what


def masked(mask: Any) -> Fine:
    class Masked(Fine):
        def step(self, action: Any) -> Any:
            *rest, _ = super().step(action)
            return *rest, {"action_mask": mask}

    return Masked()


def test_a_mask_that_allows_nothing_is_found() -> None:
    assert "allows no action" in the_error(masked(np.array([0, 0], np.int8))).what


def test_a_mask_of_another_length_is_found() -> None:
    finding = the_error(masked([1, 1, 1]))
    assert "3 entries" in finding.what
    assert "2 entries" in finding.fix


def test_only_allowed_actions_are_tried() -> None:
    class Picky(Fine):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            obs, _ = super().reset(seed=seed)
            return obs, {"action_mask": [False, True]}

        def step(self, action: Any) -> Any:
            assert action == 1
            *rest, _ = super().step(action)
            return *rest, {"action_mask": [False, True]}

    assert check_env(Picky()) == []


def test_an_endless_episode_is_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_MAX_STEPS", 60)

    class Endless(Fine):
        def step(self, action: Any) -> Any:
            return self.obs(), 0.0, False, False, {}

    (finding,) = check_env(Endless())
    assert finding.level == "advice"
    assert "did not end within 60 steps" in finding.what
    assert "TimeLimit" in finding.fix


@pytest.mark.parametrize(
    ("space", "fix"),
    [
        (spaces.Box(0, 1, (2,)), "RescaleAction"),
        (spaces.Box(-2, 2, (2,)), "RescaleAction"),
        (spaces.Box(-np.inf, np.inf, (2,)), "low and high"),
    ],
)
def test_actions_that_are_not_normalised_are_advice(space: Any, fix: str) -> None:
    env = Fine()
    env.action_space = space
    (finding,) = check_env(env)
    assert finding.level == "advice"
    assert fix in finding.fix


def test_normalised_actions_need_no_advice() -> None:
    env = Fine()
    env.action_space = spaces.Box(-1, 1, (2,))
    assert check_env(env) == []


def test_large_observations_are_advice() -> None:
    class Large(Fine):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = spaces.Box(-1e6, 1e6, (2,))

        def obs(self) -> Any:
            return 1000 * super().obs() / np.abs(super().obs()).max().clip(1)

    (finding,) = check_env(Large())
    assert "as large as" in finding.what
    assert "normalize" in finding.fix


def test_bytes_of_an_image_are_not_large() -> None:
    class Image(Fine):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)

        def obs(self) -> Any:
            return self.np_random.integers(0, 256, (8, 8, 3), np.uint8)

    assert check_env(Image()) == []


def drawing(picture: Any) -> Fine:
    class Draws(Fine):
        render_mode = "rgb_array"

        def render(self) -> Any:
            return picture()

    return Draws()


@pytest.mark.parametrize(
    "picture", [lambda: None, lambda: np.zeros((4, 4)), lambda: np.zeros((4, 4, 3)), lambda: 1 / 0]
)
def test_a_picture_that_is_none_is_found(picture: Any) -> None:
    assert "[height, width, 3]" in the_error(drawing(picture)).fix


def test_a_picture_is_fine() -> None:
    assert check_env(drawing(lambda: np.zeros((4, 4, 3), np.uint8))) == []


def test_the_first_error_is_raised_with_what_would_work() -> None:
    with pytest.raises(EnvError, match=r"^the reward of step 3 is nan; return a finite number$"):
        assert_env(answering(reward=np.nan))


def test_errors_come_first() -> None:
    env = answering(reward=np.nan)
    env.action_space = spaces.Box(0, 1, (2,))
    assert [finding.level for finding in check_env(env)] == ["error", "advice"]
