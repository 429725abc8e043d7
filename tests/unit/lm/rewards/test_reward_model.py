"""Reward models: the loss by hand, a split that is no tail, stopping that stops, and weights of their own."""

from __future__ import annotations

import math

import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.errors import ConfigError, DataError
from surefoot.lm.data import PreferencePair
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech
from surefoot.lm.rewards.reward_fit import bradley_terry, train_reward_model
from surefoot.lm.rewards.reward_model import BackboneReward, RewardModel, ValueModel, last_token
from surefoot.lm.rewards.rewards import as_rewards

WORDS = ["sun", "tree", "river", "stone", "cloud", "house", "road", "bird"]
PAIRS = [PreferencePair("say ", f"{w} good {v}", f"{w} evil {v}") for w in WORDS for v in WORDS]


def speech():
    return Speech(char_tokenizer())


def test_bradley_terry_is_log_1_plus_exp():
    found = bradley_terry(torch.tensor([2.0, 0.0]), torch.tensor([0.5, 0.0]), torch.tensor([0.5, 0.0]))
    assert found.tolist() == pytest.approx([math.log(1 + math.exp(-1.0)), math.log(2)])


@pytest.mark.parametrize("mask", [[[1, 1, 0], [1, 1, 1]], [[0, 1, 1], [1, 1, 1]]])
def test_the_last_token_is_found_on_either_side(mask):
    states = torch.arange(6.0).view(2, 3, 1)
    expected = [1.0, 5.0] if mask[0][0] else [2.0, 5.0]
    assert last_token(states, torch.tensor(mask)).flatten().tolist() == expected


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_pooling_averages_over_the_tokens_that_are_not_padding(pooling):
    model = RewardModel(tiny(vocabulary=VOCABULARY), pooling=pooling).eval()
    ids, mask = torch.tensor([[5, 6, 7, 0]]), torch.tensor([[1, 1, 1, 0]])
    states = model.trunk(input_ids=ids, attention_mask=mask).last_hidden_state[0, :3]
    if model.query is not None:
        with torch.no_grad():
            model.query[:] = torch.randn(len(model.query))
        expected = (states @ model.query).softmax(0) @ states
    else:
        expected = states.sum(0) / 3
    assert torch.allclose(model.features(ids, mask)[0], expected, atol=1e-5)


def test_adapters_on_the_trunk_learn_and_its_weights_stay():
    model = RewardModel(tiny(vocabulary=VOCABULARY), frozen=True, rank=2, pooling="attention")
    assert not model.frozen, "features of a trunk that learns must not be computed once"
    before = {name: x.clone() for name, x in model.state_dict().items()}
    train_reward_model(model, PAIRS[:12], speech(), epochs=1, lr=1e-2)
    moved = {name for name, x in model.state_dict().items() if not torch.equal(x, before[name])}
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    # B of an adapter starts at 0, so that A has no gradient in the first step and moves after it.
    assert {name for name in moved if name.startswith("trunk.")} == {n for n in trained if n.startswith("trunk.")}
    assert "query" in moved
    with pytest.raises(ConfigError, match="pooling is 'max'; it must be last, mean, attention"):
        RewardModel(tiny(vocabulary=VOCABULARY), pooling="max")


def test_padding_does_not_change_a_score():
    model = RewardModel(tiny(vocabulary=VOCABULARY)).eval()
    ids, mask = torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.int64)
    wide = torch.tensor([[5, 6, 7, 9, 9]])
    padded = torch.tensor([[1, 1, 1, 0, 0]])
    assert torch.allclose(model(ids, mask), model(wide, padded), atol=1e-5)


@pytest.mark.parametrize("kind", ["own", "frozen", "backbone"])
def test_preferences_are_learned_and_scores_have_mean_0_and_deviation_1(kind):
    base = tiny(vocabulary=VOCABULARY)
    if kind == "backbone":
        model = BackboneReward(Backbone(base))
    else:
        model = RewardModel(base, frozen=kind == "frozen")
    lr = 3e-3 if kind == "own" else 3e-2
    fit = train_reward_model(model, PAIRS, speech(), epochs=6 if kind == "own" else 30, lr=lr, validation=0.25)
    assert fit.final_accuracy > 0.8
    assert fit.held_out == 16
    assert fit.calibration_error < 0.5
    assert len(fit.to_json()["losses"]) == fit.to_json()["epochs"]


def test_early_stopping_stops_and_keeps_the_best():
    model = RewardModel(tiny(vocabulary=VOCABULARY), frozen=True)
    noise = [
        PreferencePair("x", p.chosen, p.rejected) if i % 2 else PreferencePair("x", p.rejected, p.chosen)
        for i, p in enumerate(PAIRS)
    ]
    fit = train_reward_model(model, noise, speech(), epochs=200, lr=0.1, patience=4, validation=0.3)
    assert fit.stopped_early
    assert len(fit.losses) < 200
    assert fit.val_losses[fit.best_epoch] == min(fit.val_losses)


def test_neither_model_shares_weights_with_what_it_was_made_from():
    base = tiny(vocabulary=VOCABULARY)
    own = {p.data_ptr() for p in base.parameters()}
    for made in (RewardModel(base, hidden_size=32), ValueModel(base, hidden_size=32)):
        assert not own & {p.data_ptr() for p in made.parameters()}
    with pytest.raises(ConfigError, match="hidden_size is 768 but"):
        RewardModel(base, hidden_size=768)


def test_a_value_model_begins_at_0_and_gives_a_value_a_token():
    model = ValueModel(tiny(vocabulary=VOCABULARY))
    ids = torch.tensor([[1, 2, 3]])
    assert model(ids, torch.ones_like(ids)).tolist() == [[0.0, 0.0, 0.0]]


def test_one_pair_is_too_few():
    with pytest.raises(DataError, match="1 pairs are too few"):
        train_reward_model(RewardModel(tiny(vocabulary=VOCABULARY)), PAIRS[:1], speech())


def test_a_reward_on_the_policys_trunk_saves_the_reference_its_pass():
    from test_training import training

    runs = []
    for sharing in (True, False):
        run = training(steps=1)
        backbone = run.policy.backbone
        torch.manual_seed(0)
        run.reward = as_rewards(BackboneReward(backbone), pad=0)
        asked = []
        hidden, recall = backbone.hidden, backbone.recall
        backbone.hidden = lambda *a, h=hidden, asked=asked, **k: asked.append(torch.is_grad_enabled()) or h(*a, **k)
        if not sharing:
            backbone.recall = lambda *_, r=recall: (r(*_), None)[1]
        runs.append((run.step(), len(asked)))
    (shared, fewer), (apart, more) = runs
    assert fewer < more
    assert shared.stats["reference_nll"] == pytest.approx(apart.stats["reference_nll"], abs=1e-6)
    assert shared.stats["score"] == apart.stats["score"]


def test_remembered_states_are_given_once_and_only_for_the_same_tokens():
    backbone = Backbone(tiny())
    ids, states, read = torch.tensor([[1, 2, 3, 0]]), torch.zeros(1, 4, 32), torch.tensor([3])
    backbone.remember(ids, states)
    assert backbone.recall(torch.tensor([[1, 2, 3, 9]]), read) is states  # what is not read may differ
    assert backbone.recall(ids, read) is None
    backbone.remember(ids, states)
    assert backbone.recall(torch.tensor([[1, 9, 3, 0]]), read) is None
