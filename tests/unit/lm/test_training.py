"""One step of a language run: every method, every guard, every bad input; and going on exactly."""

from __future__ import annotations

import itertools

import pytest
import torch
from lm_helpers import letters, training

from surefoot.errors import ConfigError, DataError, RewardError
from surefoot.lm.config import LMConfig

GRPO = {"algorithm": "grpo", "group": 4, "kl_in": "loss", "kl": "k3"}


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"kl": "exact"},
        {"kl_in": "loss", "kl": "k2"},
        {"kl_in": "loss", "kl": "k3"},
        {"kl_in": "loss", "kl": "exact", "train": "full"},
        {"kl_in": "off"},
        {"algorithm": "rloo", "group": 2},
        GRPO,
        {"top": 1, "top_p": 0.9},
        {"recompute_logprobs": True, "packed": True},
        {"kl_target": 3.0, "normalize_score": True, "whiten_rewards": True, "score_clip": 2.0},
    ],
    ids=str,
)
def test_every_way_to_learn_begins_with_ratio_1_and_moves_something(how):
    run = training(**how)
    before = {n: x.clone() for n, x in run.policy.state_dict().items()}
    step = run.step()
    assert step.report.skipped_reason is None
    assert step.report.first_ratio_error < 1e-5
    assert step.stats["kl"] == pytest.approx(0.0, abs=1e-4)
    assert any(not torch.equal(x, before[n]) for n, x in run.policy.state_dict().items())
    run.step()


def test_the_score_arrives_with_the_last_token_and_penalties_are_taken_from_it():
    run = training(lambda p, r: 1.0, missing_eos_penalty=0.5, length_penalty=0.01, kl_in="off")
    caught = {}
    update = run.learner.update
    run.learner.update = lambda rollout: caught.update(rollout=rollout) or update(rollout)
    run.step()
    rollout = caught["rollout"]
    for n in range(4):
        length = int(rollout.valid[:, n].sum())
        ended = rollout.action[length - 1, n] == 0
        assert rollout.reward[length - 1, n] == pytest.approx(1.0 - 0.01 * length - (0.0 if ended else 0.5), abs=1e-6)
        assert (rollout.reward[: length - 1, n] == 0).all()
        assert rollout.terminated[:, n].tolist() == [t == length - 1 for t in range(len(rollout.reward))]


def test_a_resumed_run_goes_on_to_the_last_bit():
    one = training(kl_target=2.0, normalize_score=True, top_k=20)
    one.step()
    parts = one.state()
    rest = [one.step() for _ in range(2)]
    two = training(kl_target=2.0, normalize_score=True, top_k=20)
    two.set_state(parts)
    again = [two.step() for _ in range(2)]
    assert [s.samples for s in rest] == [s.samples for s in again]
    assert all(torch.equal(x, two.policy.state_dict()[n]) for n, x in one.policy.state_dict().items())
    assert one.beta.beta == two.beta.beta


def test_nan_scores_are_left_out_and_counted():
    run = training(lambda p, r: float("nan") if p == "hello" else 1.0, prompts=["hello", "what is"])
    step = run.step()
    assert step.stats["nonfinite_scores"] == 2
    assert "2 of 4 scores were not numbers" in step.notes[0]
    assert 0 < step.report.samples < step.stats["tokens"]
    with pytest.raises(RewardError, match="none of 4 scores is a finite number"):
        training(lambda p, r: float("nan")).step()


@pytest.mark.parametrize("score", [float("inf"), float("-inf")])
@pytest.mark.parametrize("how", [{}, {"algorithm": "rloo", "group": 2}, GRPO], ids=str)
def test_an_infinite_score_is_left_out_by_every_algorithm(how, score):
    answered = itertools.count()
    run = training(lambda p, r: float(next(answered)) or score, **how)
    step = run.step()
    assert step.stats["nonfinite_scores"] == 1
    assert step.stopped is None
    assert step.report.skipped_reason is None
    assert all(torch.isfinite(x).all() for x in run.policy.state_dict().values())


def test_a_limit_of_fluency_ends_a_run_that_leaves_the_reference():
    run = training(
        steps=20, judge_every=1, nll_limit=0.01, beta=0.0, lr=3e-2, judge=lambda prompts, responses: [1.0] * 3
    )
    steps = [run.step()]
    while not run.finished:
        steps.append(run.step())
    assert "nll_limit=0.01" in str(run.stopped)
    assert steps[-1].stats["eval_nll_drift"] > 1.01
    assert {"nll_drift", "refusals", "repeated_4grams"} <= set(steps[0].stats)


def test_a_reward_that_raises_costs_nothing():
    angry = {"on": False}

    def reward(prompt, response):
        if angry["on"]:
            raise OSError("the scorer is down")
        return letters(prompt, response)

    run, smooth = training(reward), training()
    run.step()
    angry["on"] = True
    with pytest.raises(RewardError, match="the scorer is down"):
        run.step()
    angry["on"] = False
    after = run.step()
    smooth.step()
    assert [s.response for s in after.samples] == [s.response for s in smooth.step().samples]


def test_prompts_that_cannot_be_answered_are_left_out_and_said():
    run = training(prompts=["ok", "", "x" * 62])
    assert len(run.prompts) == 1
    assert run.skipped == ["prompt 2 is empty", "prompt 3 has 62 tokens; 58 fit beside max_new_tokens"]
    with pytest.raises(DataError, match="none of 1 prompts can be used"):
        training(prompts=["x" * 90])


def test_conversations_need_a_chat_template():
    talk = [[{"role": "user", "content": "hi"}]]
    assert training(prompts=talk, chat=True).step().samples[0].prompt == "hi"
    with pytest.raises(DataError, match="no chat template"):
        training(prompts=talk)


def test_a_tokenizer_without_a_pad_token_is_as_good_as_one_with():
    class Counting(torch.nn.Module):
        def forward(self, input_ids, attention_mask):
            return attention_mask.sum(1).float()

    without, having = (training(Counting(), pad=pad) for pad in (False, True))
    assert without.speech.tokenizer.pad_token_id is None
    assert having.speech.tokenizer.pad_token_id is not None
    for _ in range(2):
        assert without.step().stats == having.step().stats


def test_every_prompt_comes_once_a_pass():
    run = training(prompts=["a", "b", "c", "d", "e"])
    taken = run.cursor.take(10)
    assert sorted(taken[:5]) == sorted(taken[5:]) == [0, 1, 2, 3, 4]


def test_beyond_the_budget_the_weights_go_back_and_the_run_ends():
    run = training(kl_budget=0.5, lr=0.3, kl_in="off", steps=20)
    kept = None
    while not run.finished:
        before = {n: x.clone() for n, x in run.policy.state_dict().items()}
        step = run.step()
        if step.stats["kl"] <= 0.5:
            kept = before
    assert "exceed kl_budget=0.5" in run.stopped
    assert step.report.skipped_reason == "beyond kl_budget"
    assert all(torch.equal(x, kept[n]) for n, x in run.policy.state_dict().items())


def test_over_budget_back_makes_kl_dearer_and_goes_on():
    run = training(kl_budget=0.3, over_budget="back", lr=0.1, steps=12)
    began = run.beta.beta
    steps = [run.step() for _ in range(12) if not run.finished]
    assert any("and beta is" in note for step in steps for note in step.notes)
    assert run.beta.beta > began


def test_a_judge_that_no_longer_agrees_ends_the_run_at_its_best():
    verdicts = iter([0.2, 0.9, 0.5, 0.4, 0.3])
    weights = []

    def judge(prompts, responses):
        weights.append({n: x.clone() for n, x in run.policy.state_dict().items()})
        return [next(verdicts)] * len(responses)

    run = training(judge=judge, judge_every=1, judge_patience=2, steps=10)
    steps = []
    while not run.finished:
        steps.append(run.step())
    assert len(steps) == 4
    assert "its best was 0.9 at step 2" in run.stopped
    assert all(torch.equal(x, weights[1][n]) for n, x in run.policy.state_dict().items())
    assert steps[-1].stats["judge"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"kl": "k3"}, "no optimum"),
        ({"kl_in": "loss"}, "zero on average"),
        ({"algorithm": "rloo"}, "group must be 2 or more"),
        ({"algorithm": "grpo", "group": 2}, "grpo has its KL in the loss"),
        ({"kl_in": "loss", "kl": "k3", "kl_target": 1.0}, "kl_target needs kl_in='reward'"),
        ({"min_new_tokens": 9}, "it must be less"),
        ({"beta": -1}, "beta is -1"),
    ],
)
def test_settings_that_cannot_work_are_refused(how, said):
    with pytest.raises(ConfigError, match=said):
        training(**how)


def test_the_kl_never_counts_twice():
    with pytest.raises(ConfigError, match="would count twice"):
        LMConfig().ppo(kl_coef=0.1)


def test_the_defaults_are_the_fields():
    ppo = LMConfig().ppo()
    assert (ppo.gamma, ppo.lam, ppo.vf_coef, ppo.clip, ppo.value_clip, ppo.epochs) == (1.0, 0.95, 0.1, 0.2, 0.2, 4)
    assert LMConfig.from_json(LMConfig(kl="exact", top=3).to_json()) == LMConfig(kl="exact", top=3)


def test_reward_and_judge_see_the_whole_conversation_and_the_row():
    talk = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    seen: dict[str, list] = {"reward": [], "judge": []}

    def reward(conversation, row):
        seen["reward"].append((conversation[:-1], row["answer"]))
        return 1.0

    def judge(conversation, prompt):
        seen["judge"].append((conversation[:-1], prompt))
        return 1.0

    run = training(reward, [{"prompt": talk, "answer": "hi"}], chat=True, judge=judge, judge_every=1, steps=1)
    run.step()
    assert seen["reward"][0] == (talk, "hi")
    assert seen["judge"][0] == ([{"role": "user", "content": "hello"}], "hello")
