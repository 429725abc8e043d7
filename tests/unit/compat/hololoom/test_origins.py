"""What was wrong in the first system (origins.md §1), each with the test that would have failed there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surefoot.compat.hololoom import QueryCache, ReflectionBuffer, WeavingShuttle, tool
from surefoot.compat.hololoom.shuttle import Memory
from surefoot.compat.hololoom.spacetime import Spacetime, WeavingTrace

HERE = Path(__file__).parents[2]
DEFECTS = {
    "every tool was a stub, calc always 42": "decide/tools/toolbox/test_calc.py::test_calc_is_exact",
    "search gave source1 to source3": "decide/tools/toolbox/test_assistant.py::test_each_tool_answers_its_shipped_questions_correctly",
    "the policy knew none of the motifs that were detected": (
        "compat/hololoom/test_shuttle.py::test_every_motif_the_detector_finds_is_one_the_policy_knows"
    ),
    "cards named scales that did not exist": (
        "compat/hololoom/test_shuttle.py::test_retrieval_with_every_card_works_at_every_scale"
    ),
    "small scales were cut off or projected at random": (
        "decide/encoders/test_encoder.py::test_scales_keep_the_directions_that_vary_most"
    ),
    "vectors were other ones in every process": (
        "decide/encoders/test_encoder.py::test_the_hashing_encoder_gives_the_same_numbers_in_another_process"
    ),
    "the trainer could not run on the policy": (
        "compat/hololoom/test_usage_examples.py::test_the_seeds_examples_run_with_only_their_imports_changed"
    ),
    "helpful was ignored": "decide/test_rewards.py::test_helpful_replaces_the_reward",
    "every stored episode was a torn JSON file without a loader": (
        "compat/hololoom/test_buffer.py::test_episodes_are_there_again_after_the_buffer_is_opened_anew"
    ),
    "Spacetime.save never worked": "compat/hololoom/test_spacetime.py::test_a_spacetime_comes_back_equal_from_a_file",
    "save_all never worked": "compat/hololoom/test_spacetime.py::test_many_are_saved_loaded_and_counted",
    "from_dict dropped analytical_metrics": "compat/hololoom/test_origins.py::test_no_field_of_the_trace_is_dropped",
    "looking for patterns sliced a deque": (
        "compat/hololoom/test_origins.py::test_a_full_buffer_is_looked_back_on_and_consolidated"
    ),
    "pruning removed nothing": "compat/hololoom/test_buffer.py::test_consolidation_really_removes",
    "signals were only logged": "compat/hololoom/test_signals.py::test_signals_are_found_and_acted_on",
    "observations and actions were random tensors": (
        "compat/hololoom/test_buffer.py::test_a_batch_has_the_real_observations_and_actions"
    ),
    "old log-probabilities were those of the moment of training": (
        "compat/hololoom/test_shuttle.py::test_the_log_prob_learned_with_is_the_one_of_the_choice"
    ),
    "batch_size was never used": "compat/hololoom/test_trainer.py::test_the_minibatch_size_is_used",
    "the whole buffer was new at each update": "compat/hololoom/test_trainer.py::test_an_episode_is_new_only_once",
    "the cache's key was the text alone, its object shared, a miss counted twice": (
        "compat/hololoom/test_shuttle.py::test_a_cached_answer_is_a_copy_and_belongs_to_one_policy"
    ),
    "cached queries could never be explored again": (
        "compat/hololoom/test_origins.py::test_a_repeated_query_can_be_learned_from"
    ),
    "the policy was made anew in every weave": (
        "compat/hololoom/test_shuttle.py::test_the_policy_outlives_its_queries_and_learns"
    ),
    "another bandit than the one that learned chose the tool": (
        "compat/hololoom/test_shuttle.py::test_the_likeliest_tool_is_taken_with_the_confidence_of_its_worth"
    ),
    "a weave with a memory ended in an error": "compat/hololoom/test_origins.py::test_a_weave_with_a_memory_has_no_error",
    "nothing stopped what ran in the background": (
        "compat/hololoom/test_shuttle.py::test_it_learns_by_itself_on_the_side_and_goes_on_after_a_restart"
    ),
    "an untrained network's probability was called quality": (
        "decide/core/test_agent.py::test_calibration_turns_overconfidence_into_what_really_happened"
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_there_is_a_test_for_it(defect: str):
    file, name = DEFECTS[defect].split("::")
    assert re.search(rf"^(async )?def {name}\(", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE)


@tool
def answer(text: str) -> str:
    """Answer questions about anything."""
    return "42"


@tool
def sing(text: str) -> str:
    """Sing a song."""
    return "la"


def test_no_field_of_the_trace_is_dropped():
    trace = WeavingTrace(analytical_metrics={"a": 1.5}, bandit_statistics={"pulls": 3}, warnings=["slow"])
    made = Spacetime(query_text="q", response="r", tool_used="answer", confidence=0.5, trace=trace)
    assert Spacetime.from_dict(made.to_dict()).trace == trace


async def _look_back(buffer: ReflectionBuffer) -> tuple[int, dict[str, int]]:
    return len(await buffer.analyze_and_learn(force=True)), await buffer.consolidate()


def test_a_full_buffer_is_looked_back_on_and_consolidated(encoder):
    import asyncio

    buffer = ReflectionBuffer(capacity=50, learning_window=20)
    agent = WeavingShuttle([answer, sing], encoder=encoder, buffer=buffer)
    assert agent.buffer is buffer, "an empty buffer is false, and still the one that was given"
    for n in range(60):
        agent.reflect_sync(agent.weave_sync(f"question {n % 5}"), {"rating": n % 6})
    signals, told = asyncio.run(_look_back(buffer))
    assert signals >= 1
    assert told["left"] == len(buffer) <= 50


def test_a_repeated_query_can_be_learned_from(encoder):
    agent = WeavingShuttle([answer, sing], encoder=encoder, cache=QueryCache())
    agent.weave_sync("a question")
    assert agent.weave_sync("a question").decision is None
    assert agent.weave_sync("a question", bypass_cache=True).decision is not None


def test_a_weave_with_a_memory_has_no_error(encoder):
    memory = Memory(encoder)
    agent = WeavingShuttle([answer, sing], encoder=encoder, memory=memory)
    memory.add("PPO clips the ratio of new and old policy.", "clip")
    woven = agent.weave_sync("what does PPO clip?")
    assert woven.trace.errors == []
    assert woven.trace.context_shards_count == 1
