"""Replay samples: written and read back to the bit, and refused by name where something is wrong with them."""

import json
from pathlib import Path

import numpy as np
import pytest

from surefoot.data.replay import ReplaySample, baseline, make_sample, read_sample, sample_metrics, write_sample
from surefoot.errors import ReplayError

NAMES = ["need_hunger", "rivalry_max", "rivalry_avoid_count"]


def arrays(steps: int = 4, **changes: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(steps)
    whole = {
        "map": rng.random((steps, 2, 3, 3), np.float32),
        "features": rng.random((steps, 3), np.float32),
        "actions": np.arange(steps) % 3,
        "old_log_probs": np.full(steps, -1.0, np.float32),
        "value_preds": np.arange(steps + 1, dtype=np.float32),
        "rewards": np.ones(steps, np.float32),
        "dones": np.arange(steps) == steps - 1,
    }
    return whole | changes


def meta(**changes: object) -> dict[str, object]:
    return {"feature_names": NAMES, "action_dim": 3, **changes}


def sample(steps: int = 4, **changes: np.ndarray) -> ReplaySample:
    return make_sample(arrays(steps, **changes), meta())


def test_a_sample_survives_its_file_to_the_bit(tmp_path: Path) -> None:
    made = sample(action_masks=np.ones((4, 3), bool), policy_version=np.full(4, 7))
    path = write_sample(made, tmp_path / "a.npz")
    again = read_sample(path)
    assert again.digest() == made.digest()
    assert again.policy_version is not None
    assert again.policy_version.tolist() == [7, 7, 7, 7]
    about = json.loads(path.with_suffix(".json").read_text())
    assert about["timesteps"] == 4
    assert about["value_pred_steps"] == 5
    assert about["map_shape"] == [2, 3, 3]


def test_a_sample_that_was_changed_is_noticed(tmp_path: Path) -> None:
    path = write_sample(sample(), tmp_path / "a.npz")
    np.savez(path, **arrays(rewards=np.full(4, 2.0, np.float32)))
    with pytest.raises(ReplayError, match="was changed after it was written"):
        read_sample(path)


@pytest.mark.parametrize(
    ("given", "about", "says"),
    [
        ({"map": None}, {}, "lacks the array map"),
        ({"rewards": None, "dones": None}, {}, "lacks rewards, dones"),
        ({}, {"feature_names": []}, "no feature_names"),
        ({}, {"feature_names": ["a", "b", "rivalry_max"]}, "conflict features rivalry_avoid_count"),
        ({}, {"feature_names": [*NAMES, "more"]}, "4 feature_names but 3 features"),
        ({"rewards": np.ones(3, np.float32)}, {}, "rewards has 3 steps, features 4"),
        ({"value_preds": np.ones(6, np.float32)}, {}, "it must have 4 or 5"),
        ({"features": np.full((4, 3), np.nan, np.float32)}, {}, "features is not finite at step 0"),
        ({"actions": np.array([0, 1, 2, 3])}, {}, "action 3 at step 3; there are 3 actions"),
        ({"old_log_probs": np.full(4, 0.5, np.float32)}, {}, "a log-prob is at most 0"),
        ({"action_masks": np.eye(4, 3, dtype=bool)[::-1]}, {}, "forbidden by its mask"),
        ({"terminated": np.ones(4, bool)}, {}, "contradict"),
    ],
)
def test_what_is_wrong_with_a_sample_is_said_in_one_sentence(given: dict, about: dict, says: str) -> None:
    whole = {name: x for name, x in (arrays() | given).items() if x is not None}
    with pytest.raises(ReplayError, match=says):
        make_sample(whole, meta(**about), "a.npz")


def test_nothing_is_ever_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    np.savez(path, **arrays(), old=np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "worse.npz", **arrays(actions=np.array([print] * 4, dtype=object)))
    for name in ("evil", "worse"):
        (tmp_path / f"{name}.json").write_text(json.dumps(meta()))
    assert read_sample(path).steps == 4
    with pytest.raises(ReplayError, match="never loaded"):
        read_sample(tmp_path / "worse.npz")


def test_missing_and_torn_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no metadata"):
        read_sample(tmp_path / "a.npz")
    (tmp_path / "a.json").write_text(json.dumps(meta()))
    with pytest.raises(ReplayError, match="no sample"):
        read_sample(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04torn")
    with pytest.raises(ReplayError, match="cannot be read as NPZ"):
        read_sample(tmp_path / "a.npz")


def test_dones_alone_are_terminations_and_the_value_after_the_end_is_the_last_known() -> None:
    made = make_sample(arrays(value_preds=np.array([5.0, 6, 7, 8], np.float32)), meta())
    assert made.terminated.tolist() == [False, False, False, True]
    assert made.next_values.tolist() == [6, 7, 8, 8]


def test_numbers_of_many_samples_add_up() -> None:
    told = baseline([{"reward_sum": 2.0, "reward_mean": 1.0}, {"reward_sum": 4.0, "reward_mean": 2.0}])
    assert told == {"sample_count": 2.0, "reward_mean": 1.5, "reward_sum": 6.0, "reward_sum_mean": 3.0}
    assert sample_metrics(sample())["action_nonzero"] == 2.0
