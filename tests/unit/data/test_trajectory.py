from __future__ import annotations

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.errors import RecordingError, ShapeError


def parts(steps: int = 3) -> dict:
    return {
        "obs": {"obs": np.zeros((steps + 1, 2), np.float32)},
        "action": np.zeros(steps, np.int64),
        "reward": np.arange(steps, dtype=float),
        "terminated": False,
        "truncated": True,
    }


def test_an_episode_knows_its_length_and_return():
    episode = Trajectory(**parts(4))
    assert (episode.steps, episode.return_) == (4, 6.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"obs": {"obs": np.zeros((3, 2))}}, r"obs\['obs'\] has 3 rows but an episode of 3 steps needs 4"),
        ({"action": np.zeros(4)}, "action has 4 rows but an episode of 3 steps needs 3"),
        ({"action_mask": np.ones((4, 2), bool)}, "action_mask has 4 rows"),
        ({"reward": np.zeros((3, 1))}, r"reward is \[3, 1\]"),
        ({"reward": np.zeros(0)}, r"reward is \[0\]"),
        ({"terminated": True}, "termination takes precedence"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(change, says):
    with pytest.raises(ShapeError, match=says):
        Trajectory(**{**parts(), **change})


def test_a_recording_adds_its_episodes_up_and_is_never_empty():
    both = [Trajectory(**parts(2)), Trajectory(**parts(4))]
    made = Recording(env="X-v0", observation={"obs": Box((2,))}, action=Discrete(2), episodes=both)
    assert (made.steps, made.mean_return) == (6, 3.5)
    with pytest.raises(RecordingError, match="has no episodes"):
        Recording(env="X-v0", observation={"obs": Box((2,))}, action=Discrete(2), episodes=[])
