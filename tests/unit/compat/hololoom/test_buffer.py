"""Episodes in the reflection buffer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from surefoot.compat.hololoom import (
    ReflectionBuffer,
    RewardConfig,
    Spacetime,
)
from surefoot.errors import RecordingError


def woven(tool_used: str = "a", confidence: float = 0.9, **more) -> Spacetime:
    return Spacetime(
        id=more.pop("id", f"{time.perf_counter_ns()}"),
        query_text="q",
        response="r",
        tool_used=tool_used,
        confidence=confidence,
        **more,
    )


def test_episodes_are_there_again_after_the_buffer_is_opened_anew(tmp_path: Path):
    # There was no loader at all.
    one = ReflectionBuffer(persist_path=tmp_path)
    found = woven()
    one.store_now(found, {"helpful": True, "comment": "nice"})
    one.close()
    two = ReflectionBuffer(persist_path=tmp_path)
    (episode,) = two.get_recent_episodes()
    assert episode["spacetime"] == found
    assert (episode["reward"], episode["raw_reward"], episode["success"]) == (1.0, 1.0, True)
    assert episode["feedback"] == {"helpful": True, "comment": "nice"}


def test_a_batch_has_the_real_observations_and_actions():
    # There, they were random tensors.
    buffer = ReflectionBuffer()
    for name in ("calc", "search", "calc"):
        buffer.store_now(woven(name), {"rating": 5})
    batch = buffer.get_ppo_batch(batch_size=2)
    assert batch["actions"] == ["search", "calc"]
    assert batch["rewards"] == [1.0, 1.0]
    assert batch["dones"] == [True, True]
    assert set(batch["observations"][0]) == {
        *(
            "motifs_detected",
            "embedding_scales_used",
            "context_shards_count",
            "retrieval_mode",
            "threads_activated_count",
        )
    }
    assert len(buffer.get_ppo_batch(64, recent_only=False)["actions"]) == 3


def test_the_buffer_is_first_in_first_out():
    buffer = ReflectionBuffer(capacity=5)
    for i in range(12):
        buffer.store_now(woven(f"t{i}"))
    assert len(buffer) == 5
    assert [e["spacetime"].tool_used for e in buffer.get_recent_episodes(9)] == [f"t{i}" for i in range(7, 12)]


def test_feedback_within_the_grace_time_counts_and_later_is_only_kept():
    found = woven(confidence=0.5)
    buffer = ReflectionBuffer(grace=60.0)
    buffer.store_now(found)
    assert buffer.store_now(found, {"rating": 0}).value == -1.0
    assert buffer.get_recent_episodes()[0]["raw_reward"] == -1.0
    assert buffer.runs.store.finished(0) == [], "nothing is learned before its grace time is over"
    strict = ReflectionBuffer(grace=0.0)
    strict.store_now(found)
    before = strict.get_recent_episodes()[0]["raw_reward"]
    strict.store_now(found, {"rating": 0})
    assert strict.get_recent_episodes()[0]["raw_reward"] == before
    assert strict.get_metrics().late_feedback == 1


def test_consolidation_really_removes():
    # There, episodes to be pruned were only counted.
    buffer = ReflectionBuffer(capacity=20, learning_window=4)
    for i in range(18):
        buffer.store_now(woven(f"t{i}"), {"rating": 0})
    told = buffer.consolidate_now()
    assert told == {"pruned": 14, "merged": 0, "left": 4}
    assert len(buffer) == 4


def test_export_and_import_are_equal_and_a_torn_file_takes_nothing_in(tmp_path: Path):
    one, two = ReflectionBuffer(), ReflectionBuffer()
    for i in range(3):
        one.store_now(woven(f"t{i}"), {"rating": i})
    assert one.export(tmp_path / "e.ndjson") == 3
    assert two.import_(tmp_path / "e.ndjson") == 3
    assert [e["spacetime"] for e in two.get_recent_episodes()] == [e["spacetime"] for e in one.get_recent_episodes()]
    (tmp_path / "torn.ndjson").write_bytes((tmp_path / "e.ndjson").read_bytes()[:-40])
    three = ReflectionBuffer()
    with pytest.raises(RecordingError, match="line 3"):
        three.import_(tmp_path / "torn.ndjson")
    assert len(three) == 0


def test_recommendations_are_by_success_confidence_and_use():
    buffer = ReflectionBuffer()
    for _ in range(4):
        buffer.store_now(woven("good", 0.8), {"helpful": True})
        buffer.store_now(woven("bad", 0.2), {"helpful": False})
    scores = buffer.get_tool_recommendations()
    assert list(scores) == ["good", "bad"]
    assert scores["good"] == pytest.approx(0.5 + 0.3 * 0.8 + 0.2 * 0.04)


def test_a_slow_reward_config_is_the_buffers_own():
    buffer = ReflectionBuffer(reward_config=RewardConfig(base_weight=1.0, efficiency_weight=0.0))
    assert buffer.store_now(woven(confidence=0.25)).value == pytest.approx(0.25)
