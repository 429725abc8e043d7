"""Manifests, batches and buffers of replay samples."""

import json
from pathlib import Path

import numpy as np
import pytest

from surefoot.data.replay import ReplaySample, make_sample, write_sample
from surefoot.data.replayset import (
    ReplayBatch,
    ReplayDataset,
    RolloutBuffer,
    read_manifest,
    samples_of,
    write_manifest,
)
from surefoot.data.rollout import Rollout
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


@pytest.mark.parametrize("form", ["names", "entries", "whole", "yaml"])
def test_manifests_of_every_form_are_read(tmp_path: Path, form: str) -> None:
    for name in ("a", "b"):
        write_sample(sample(), tmp_path / f"{name}.npz")
    path = tmp_path / ("m.yaml" if form == "yaml" else "m.json")
    entries = [{"sample": "a.npz", "meta": "a.json", "agent_id": "anna"}, {"sample": "b.npz", "agent_id": "ben"}]
    if form in ("whole", "yaml"):
        write_manifest(path, entries, {"seed": 3})
    else:
        path.write_text(json.dumps(["a.npz", "b.npz"] if form == "names" else entries))
    assert len(read_manifest(path).entries) == 2
    if form == "yaml":
        assert read_manifest(path).metadata == {"seed": 3}
        assert len(read_manifest(path, agents=["ben"]).entries) == 1
        with pytest.raises(ReplayError, match="no sample of zoe; there are samples of anna, ben"):
            read_manifest(path, agents=["zoe"])


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "cannot be read"), ("[]", "lists no samples"), ("[3]", "entry 0"), ('["x.npz"]', "names x.npz")],
)
def test_a_bad_manifest_is_one_clear_error(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ReplayError, match=says):
        read_manifest(tmp_path / "m.json")


def test_batches_are_bucketed_by_shape_and_shuffled_by_seed_and_pass() -> None:
    dataset = ReplayDataset([sample(4), sample(6), sample(4), sample(6), sample(4)], batch_size=2, shuffle=True, seed=1)
    assert len(dataset) == 3
    for number in range(6):
        assert len({s.steps for s in dataset.batch(number).samples}) == 1
    assert [len(b.samples) for b in ReplayDataset([sample(4)] * 5, batch_size=2, drop_last=True)] == [2, 2]
    orders = [[id(s) for i in range(3) for s in dataset.batch(3 * lap + i).samples] for lap in range(4)]
    assert len({tuple(order) for order in orders}) > 1
    assert [id(s) for s in dataset.batch(2).samples] == [id(s) for s in dataset.batch(2).samples]


def test_streaming_reads_a_file_each_time(tmp_path: Path) -> None:
    write_sample(sample(), tmp_path / "a.npz")
    (tmp_path / "m.json").write_text('["a.npz"]')
    entries = read_manifest(tmp_path / "m.json").entries
    kept, streamed = ReplayDataset(entries), ReplayDataset(entries, streaming=True)
    assert kept.sample(0) is kept.sample(0)
    assert streamed.sample(0) is not streamed.sample(0)


def test_conflict_stats_are_the_mean_and_the_largest() -> None:
    seen = np.zeros((2, 3), np.float32)
    seen[:, 1] = [0.2, 0.6]
    one = make_sample(arrays(2, features=seen), meta())
    two = make_sample(arrays(2, features=seen * 0), meta())
    stats = ReplayBatch(samples=[one, two]).conflict_stats()
    assert stats["rivalry_max_mean"] == pytest.approx(0.2)
    assert stats["rivalry_max_max"] == pytest.approx(0.6)


def test_a_rollout_becomes_samples_and_a_rollout_again() -> None:
    steps, streams = 5, 2
    rng = np.random.default_rng(0)
    flags = np.zeros((steps, streams), bool)
    truncated = flags.copy()
    truncated[3, 1] = True
    valid = ~flags
    valid[:2, 0] = False
    rollout = Rollout(
        obs={"features": rng.random((steps, streams, 3), np.float32)},
        action=rng.integers(0, 3, (steps, streams)),
        log_prob=-rng.random((steps, streams), np.float32),
        value=rng.random((steps, streams), np.float32),
        next_value=rng.random((steps, streams), np.float32),
        reward=rng.random((steps, streams), np.float32),
        terminated=flags,
        truncated=truncated,
        start=flags,
        valid=valid,
        policy_version=np.full((steps, streams), 3),
    )
    made = samples_of(rollout, agents=["anna", "ben"], feature_names=NAMES, meta={}, actions=["a", "b", "c"])
    assert [s.steps for s in made] == [3, 5]
    assert [s.meta["agent_id"] for s in made] == ["anna", "ben"]
    again = ReplayBatch(samples=[made[1]]).rollout()
    for name in ("action", "log_prob", "value", "reward", "truncated", "next_value", "policy_version"):
        assert np.array_equal(getattr(again, name)[:, 0], getattr(rollout, name)[:, 1]), name
    assert again.start[:, 0].tolist() == [True, False, False, False, True]


def test_a_buffer_saves_what_it_holds_and_refuses_when_empty(tmp_path: Path) -> None:
    buffer = RolloutBuffer()
    with pytest.raises(ReplayError, match="nothing was captured"):
        buffer.build_dataset()
    buffer.extend([sample()])
    buffer.record_events({"queue_conflict_events": 2.0, "chat_quality_mean": 0.5})
    buffer.record_events({"queue_conflict_events": 3.0, "chat_quality_mean": 0.7})
    assert buffer.counts == {"queue_conflict_events": 5.0, "chat_quality_mean": 0.7}
    manifest = buffer.save(tmp_path, "cap")
    assert manifest.name == "cap_manifest.json"
    assert (tmp_path / "cap_metrics.json").is_file()
    assert len(buffer.build_dataset()) == 1
