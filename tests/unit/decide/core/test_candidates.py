"""Candidates that decisions bring along."""

from __future__ import annotations

import numpy as np

from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.core.candidates import Candidates, CandidateSet
from surefoot.decide.encoders.encoder import HashingEncoder

MEANS = {"cheap": "budget", "quick": "express", "quiet": "silent", "warm": "heated"}
PLACES = ["room with a view", "train to the coast", "hotel by the lake", "flight at noon"]


def test_an_id_keeps_its_index_and_ids_that_never_return_take_none():
    known = CandidateSet(4)
    known.register([f"first{i}" for i in range(256)])
    for i in range(5000):
        known.register([f"once{i}", "first3"])
    vectors = np.eye(4, dtype=np.float32)[:3]
    option, _ = known.scene(vectors[0], Candidates(["first3", "once4999", "new"], vectors), register=False)
    # Ids without weights of their own are known by their place.
    assert option.tolist() == [3, 1001, 1002]
    known.register(["once4999"])
    assert known.scene(vectors[0], Candidates(["once4999"], vectors[:1]), register=False)[0].tolist() == [256]


def test_a_fixed_set_of_candidates_is_not_changing():
    known = CandidateSet(4)
    for _ in range(3):
        known.register(["a", "b"])
    assert not known.changing
    known.register(["a", "c"])
    assert known.changing


def test_something_is_learned_from_candidates_whose_ids_are_always_new():
    """A word of the query means another word of the description; no id comes twice."""
    encoder, rng = HashingEncoder(128), np.random.default_rng(0)
    agent, right = Agent(encoder, config=AgentConfig(abstain_below=0.0)), list[bool]()
    for i in range(800):
        word, order = rng.choice(list(MEANS)), rng.permutation(list(MEANS.values()))
        texts = [f"{w} {PLACES[rng.integers(4)]}" for w in order]
        ids = [f"article-{i}-{k}" for k in range(4)]
        record = agent.decide(f"something {word} please", candidates=Candidates(ids, encoder.encode(texts)))
        right.append(record.name == ids[list(order).index(MEANS[word])])
        agent.outcome(record.id, float(right[-1]))
        agent.learn()
    assert np.mean(right[:50]) < 0.5  # a quarter by chance
    assert np.mean(right[-200:]) > 0.8


def test_candidates_with_the_vectors_of_options_are_chosen_as_those_options_are():
    encoder, rng = HashingEncoder(64), np.random.default_rng(1)
    names = {"refund": "give the money back", "replace": "send a new cup", "person": "let a colleague answer"}
    by_name, by_candidate = Agent(encoder), Agent(encoder)
    for name, description in names.items():
        by_name.options.add(name, description)
    vectors = encoder.encode([f"{name}: {description}" for name, description in names.items()])
    for i in range(60):
        text = f"{rng.choice(['money', 'cup', 'colleague', 'help'])} please {i % 7}"
        one = by_name.decide(text)
        other = by_candidate.decide(text, candidates=Candidates(list(names), vectors))
        assert one.name == other.name
        for agent, record in ((by_name, one), (by_candidate, other)):
            agent.outcome(record.id, float(record.name == "replace"))
            agent.learn()


def test_the_state_of_candidates_continues():
    known = CandidateSet(3)
    known.register(["a", "b"])
    known.register(["c"])
    again = CandidateSet(3)
    again.set_state(known.state())
    assert again.state()["ids"] == ["a", "b", "c"]
    assert again.changing
