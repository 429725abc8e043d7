"""The world of many shapes: an oracle that reads the cue earns 1 in each of them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from recall import DONE, SEEN, Recall, RecallShape
from surefoot.errors import ConfigError, EnvError, IllegalAction, ShapeError

SHAPES = [
    RecallShape(see=see, act=act, masked=masked, hidden=hidden, agents=agents, central=central)
    for see, act, masked, hidden in product(SEEN, DONE, (False, True), (False, True))
    for agents, central in ((1, False), (2, False), (2, True))
    if not (masked and act == "box")
]


def named(shape: RecallShape) -> str:
    flags = [name for name in ("masked", "hidden", "central") if getattr(shape, name)]
    return "-".join([shape.see, shape.act, *flags, str(shape.agents)])


def read(see: str, obs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """([N] the cue as a person would tell it, [N] whether there is one to be seen)."""
    if see == "flat":
        return obs["obs"].argmax(axis=1), obs["obs"].any(axis=1)
    image = obs["picture" if see == "dict" else "obs"][..., 0]
    top, left = image[:, :6].sum(axis=(1, 2)), image[:, :, :6].sum(axis=(1, 2))
    high = (top == 0).astype(np.int64)
    low = obs["row"].argmax(axis=1) if see == "dict" else (left == 0).astype(np.int64)
    return 2 * high + low, image.any(axis=(1, 2))


def answer(act: str, cue: np.ndarray) -> np.ndarray:
    low, high = cue % 2, cue // 2
    match act:
        case "discrete":
            return cue
        case "multi":
            return np.stack([low, high], axis=1)
        case "box":
            return (np.stack([low, high], axis=1) - 0.5).astype(np.float32)
        case _:
            return np.stack([low, high - 0.5], axis=1).astype(np.float32)


class Oracle:
    """Reads the cue where it is shown and remembers it from there on."""

    def __init__(self, shape: RecallShape, view: Any) -> None:
        self.shape, self.cue = shape, np.zeros(len(next(iter(view.obs.values()))), np.int64)

    def __call__(self, view: Any) -> np.ndarray:
        cue, shown = read(self.shape.see, view.obs)
        self.cue = np.where(shown, cue, self.cue)
        return answer(self.shape.act, self.cue)


@pytest.mark.parametrize("shape", SHAPES, ids=named)
def test_the_best_return_is_one(shape):
    world = Recall(8, shape)
    view = world.reset(3)
    oracle, returns, ends = Oracle(shape, view), np.zeros(8), []
    for _ in range(12):
        action = oracle(view)
        if view.action_mask is not None:
            columns = action.reshape(8, -1)[:, : len(view.action_mask[0]) // 4].astype(np.int64)
            allowed = np.take_along_axis(view.action_mask.reshape(8, -1, 4), columns[..., None], axis=2)
            assert allowed.all()  # no mask forbids the answer
            assert not view.action_mask.all(axis=1).any()
        step = world.step(action)
        view = step.view
        returns += step.reward
        ends += returns[step.terminated].tolist()
        returns[step.terminated] = 0.0
        assert not step.truncated.any()
        assert (step.final_obs is not None) == step.terminated.any()
    assert len(ends) == 4 * 8
    assert ends == pytest.approx([1.0] * 32)


@pytest.mark.parametrize("act", DONE)
def test_a_wrong_answer_is_worth_less(act):
    world = Recall(64, RecallShape(act=act))
    cue, _ = read("flat", world.reset(0).obs)
    assert set(cue) == {0, 1, 2, 3}
    assert (world.step(answer(act, (cue + 1) % 4)).reward < 0.3).all()


@pytest.mark.parametrize("see", SEEN)
def test_a_hidden_cue_is_shown_once_an_episode_and_an_open_one_always(see):
    hidden, always = Recall(4, RecallShape(see=see, hidden=True)), Recall(4, RecallShape(see=see))
    views = [[world.reset(0)] for world in (hidden, always)]
    for _ in range(6):
        for world, seen in zip((hidden, always), views, strict=True):
            seen.append(world.step(np.zeros(4, np.int64)).view)
    shown = [[bool(read(see, view.obs)[1].all()) for view in seen] for seen in views]
    assert shown[0] == [True, False, False, True, False, False, True]
    assert shown[1] == [True] * 7
    blank = views[0][1].obs
    assert all(not part.any() for part in blank.values())


def test_the_second_agent_leaves_for_one_row_and_joins_again():
    world = Recall(4, RecallShape(agents=2))
    view = world.reset(0)
    valid, ended, absent = [], [], []
    for _ in range(6):
        absent.append(~view.obs["obs"].any(axis=1))
        step = world.step(np.zeros(4, np.int64))
        view = step.view
        valid.append(step.valid)
        ended.append(step.terminated)
        assert (step.reward[~step.valid] == 0).all()
    first, second = (np.stack(valid)[:, k].tolist() for k in (0, 1))
    assert first == [True] * 6
    assert second == [True, True, False, True, True, False]
    assert np.stack(ended)[:, 0].tolist() == [False, False, True, False, False, True]
    assert np.stack(ended)[:, 1].tolist() == [False, True, False, False, True, False]
    assert np.stack(absent)[:, 1].tolist() == [False, False, True, False, False, True]
    assert np.array_equal(np.stack(valid)[:, :2], np.stack(valid)[:, 2:])


@pytest.mark.parametrize("agents", [1, 2])
def test_the_central_state_shows_the_cues_of_all_agents_at_all_times(agents):
    world = Recall(6, RecallShape(hidden=True, agents=agents, central=True))
    view = world.reset(0)
    cue, _ = read("flat", view.obs)
    expected = np.eye(4, dtype=np.float32)[cue].reshape(6 // agents, agents * 4).repeat(agents, axis=0)
    assert np.array_equal(view.obs["state"], expected)
    later = world.step(np.zeros(6, np.int64)).view
    assert np.array_equal(later.obs["state"], expected)
    assert not later.obs["obs"].any()


@pytest.mark.parametrize("act", ["discrete", "multi", "hybrid"])
def test_a_forbidden_choice_is_refused_by_stream_but_not_from_an_agent_that_is_gone(act):
    world = Recall(4, RecallShape(act=act, masked=True, agents=2))
    view = world.reset(0)
    oracle = Oracle(world.shape, view)
    wrong = oracle(view).copy()
    wrong[1] = (view.action_mask[1].argmin()) if act == "discrete" else 3
    with pytest.raises(IllegalAction, match="stream 1 is forbidden"):
        world.step(wrong)
    for _ in range(2):
        view = world.step(oracle(view)).view
    gone = oracle(view).copy()
    gone[1] = view.action_mask[1].argmin() if act == "discrete" else 3
    if act == "hybrid":
        gone[1, 1] = 0.0
    assert not world.step(gone).valid[1]


@pytest.mark.parametrize("shape", SHAPES[::5], ids=named)
def test_it_goes_on_from_its_state_to_the_last_digit(shape):
    world, again = Recall(4, shape), Recall(4, shape)
    view = world.reset(5)
    oracle = Oracle(shape, view)
    for _ in range(4):
        view = world.step(oracle(view)).view
    kept = world.state()
    resumed = again.set_state(kept)
    assert all(np.array_equal(part, view.obs[name]) for name, part in resumed.obs.items())
    for _ in range(7):
        action = oracle(view)
        one, two = world.step(action), again.step(action)
        view = one.view
        assert all(np.array_equal(part, view.obs[name]) for name, part in two.view.obs.items())
        assert np.array_equal(one.reward, two.reward)
        assert np.array_equal(one.valid, two.valid)
    third = Recall(4, shape)
    third.set_state(kept)
    assert np.array_equal(third.state()["cue"], kept["cue"])  # and a state that was taken does not move on


def test_a_state_of_another_size_is_refused():
    with pytest.raises(ShapeError, match="holds .4. cues; surefoot/Recall-v0 here has 2 streams"):
        Recall(2).set_state(Recall(4).state())


def test_beginning_some_streams_anew_begins_their_whole_copy():
    world = Recall(4, RecallShape(agents=2))
    world.reset(0)
    world.step(np.zeros(4, np.int64))
    world.reset_streams(np.array([False, True, False, False]))
    assert world.state()["clock"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("shape", SHAPES, ids=named)
def test_what_is_shown_is_what_the_spaces_say(shape):
    world = Recall(2, shape)
    view = world.reset(0)
    assert set(view.obs) == set(world.observation)
    for name, box in world.observation.items():
        assert view.obs[name].shape == (2, *box.shape)
        assert view.obs[name].dtype == box.dtype
    assert (view.action_mask is not None) == shape.masked


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"see": "smell"}, "see is 'smell'"),
        ({"act": "sing"}, "act 'sing'"),
        ({"act": "box", "masked": True}, "masked=True needs choices"),
        ({"agents": 3}, "agents is 3; it is 1 or 2"),
    ],
)
def test_a_shape_that_is_none_is_refused(knobs, said):
    with pytest.raises(ConfigError, match=said):
        RecallShape(**knobs)


def test_streams_must_fill_their_copies():
    with pytest.raises(ConfigError, match="num_envs is 3; it must be a multiple of 2 agents"):
        Recall(3, RecallShape(agents=2))


def test_an_action_of_the_wrong_kind_is_refused():
    with pytest.raises(EnvError):
        Recall(2, RecallShape(act="hybrid")).step(np.array([[5.0, 0.0], [0.0, 0.0]], np.float32))
