"""The names, numbers and example of the original trainer."""

from __future__ import annotations

import math
import os

import pytest
import torch
from lm_helpers import VOCABULARY, char_tokenizer, tiny

from surefoot.compat.constitutional_ai import PPOTrainer, RewardModel, ValueModel
from surefoot.errors import CheckpointMissing, ConfigError

PROMPTS = ["hello there", "what is it", "go on", "yes"]


def trainer(**how):
    base = tiny(vocabulary=VOCABULARY)
    said = {"learning_rate": 1e-3, **how}
    return PPOTrainer(
        policy_model=base,
        value_model=said.pop("value_model", ValueModel(base, hidden_size=32)),
        reward_model=said.pop("reward_model", RewardModel(base, hidden_size=32)),
        tokenizer=char_tokenizer(),
        **said,
    )


def test_the_original_defaults():
    base = tiny(vocabulary=VOCABULARY)
    made = PPOTrainer(base, None, RewardModel(base), char_tokenizer()).config
    assert (made.lr, made.clip, made.kl_coef, made.gamma) == (1e-5, 0.2, 0.1, 0.99)
    assert (made.lam, made.vf_coef, made.max_grad_norm) == (0.95, 0.5, 1.0)


def test_gae_by_hand():
    made = trainer(gamma=0.5, gae_lambda=0.5)
    advantage, returns = made.compute_gae(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 1.0]))
    last = 2.0 - 1.0
    first = 1.0 + 0.5 * 1.0 - 0.5 + 0.25 * last
    assert advantage.tolist() == pytest.approx([first, last])
    assert returns.tolist() == pytest.approx([first + 0.5, last + 1.0])


def test_gae_ends_at_a_done_and_padding_has_none():
    made = trainer(gamma=1.0, gae_lambda=1.0)
    reward, value = torch.ones(1, 4), torch.zeros(1, 4)
    done = torch.tensor([[0, 1, 0, 0]])
    assert made.compute_gae(reward, value, done)[0].tolist() == [[2.0, 1.0, 2.0, 1.0]]
    mask = torch.tensor([[1, 1, 0, 0]])
    assert made.compute_gae(reward, value, None, mask)[0].tolist() == [[2.0, 1.0, 0.0, 0.0]]
    behind = torch.tensor([[0.0, 0.0, 7.0, 7.0]])
    assert made.compute_gae(reward, behind, None, mask)[0].tolist() == [[2.0, 1.0, 0.0, 0.0]]


def test_kl_and_loss_by_hand_and_without_the_padding():
    made = trainer()
    new, old = torch.tensor([[math.log(0.5), 9.0]]), torch.tensor([[math.log(0.25), -9.0]])
    mask = torch.tensor([[1, 0]])
    assert float(made.compute_kl_divergence(new, old, mask)) == pytest.approx(math.log(2))
    # Ratio 2, advantage 1: clipped at 1.2. Advantage -1: not clipped.
    assert float(made.compute_ppo_loss(old, new, torch.tensor([[1.0, 5.0]]), mask)) == pytest.approx(-1.2)
    assert float(made.compute_ppo_loss(old, new, torch.tensor([[-1.0, 5.0]]), mask)) == pytest.approx(2.0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_log_probs_do_not_see_the_padding_on_either_side(side):
    made = trainer()
    row = [5, 9, 12, 7]
    alone = made.get_logprobs(torch.tensor([row]), torch.ones(1, 4, dtype=torch.int64))
    pad, ones = [0, 0], [1] * 4
    ids = torch.tensor([pad + row if side == "left" else row + pad])
    mask = torch.tensor([[0, 0, *ones] if side == "left" else [*ones, 0, 0]])
    padded = made.get_logprobs(ids, mask)
    part = padded[:, 2:] if side == "left" else padded[:, :3]
    assert torch.allclose(part, alone, atol=1e-5)
    assert torch.allclose(made.get_reference_logprobs(ids, mask), padded, atol=1e-5)


@pytest.mark.parametrize(
    "how", [{}, {"kl_in": "reward"}, {"kl_in": "loss", "kl": "exact"}, {"value_model": None}], ids=str
)
def test_a_step_returns_the_five_numbers_and_moves_policy_and_critic_but_not_reward_and_reference(how):
    made = trainer(**how)
    ids = torch.tensor([[5, 6, 7, 8]])
    ones = torch.ones_like(ids)
    before = made.get_logprobs(ids, ones).detach()
    reference = made.get_reference_logprobs(ids, ones)
    scored = made.reward_model(ids, ones).detach()
    said = made.train_step(PROMPTS, num_epochs_per_batch=2, max_length=20)
    assert list(said) == ["policy_loss", "value_loss", "kl_divergence", "mean_reward", "mean_advantage"]
    assert not torch.allclose(made.get_logprobs(ids, ones), before)
    assert float(made.compute_values(ids, ones).detach().abs().max()) > 0
    assert torch.equal(made.get_reference_logprobs(ids, ones), reference)
    assert torch.equal(made.reward_model(ids, ones), scored)


def test_training_and_going_on_from_a_checkpoint_are_the_same(tmp_path):
    one = trainer(value_learning_rate=1e-4)
    one.train(PROMPTS, num_steps=2, batch_size=2, max_length=16, checkpoint_dir=tmp_path, checkpoint_freq=1)
    two = trainer(value_learning_rate=1e-4)
    assert two.load_checkpoint(tmp_path) == 2
    ended = [t.train(PROMPTS, num_steps=1, batch_size=2, max_length=16) for t in (one, two)]
    assert ended[0]["training_history"] == ended[1]["training_history"]
    assert list(ended[0]) == ["training_history", "final_stats", "final_avg_reward", "final_kl_divergence"]
    assert all(torch.equal(x, two.policy.state_dict()[n]) for n, x in one.policy.state_dict().items())
    assert two.get_statistics()["steps"] == 3
    with pytest.raises(CheckpointMissing):
        two.load_checkpoint(tmp_path / "nowhere")


def test_models_that_share_weights_are_refused():
    base = tiny(vocabulary=VOCABULARY)
    sharing = RewardModel(base)
    sharing.trunk = base.base_model
    with pytest.raises(ConfigError, match="reward_model shares"):
        PPOTrainer(base, None, sharing, char_tokenizer())


def test_a_plain_function_is_a_reward_and_bad_prompts_are_named():
    made = trainer(reward_model=lambda prompt, response: float(len(response)))
    assert made.train_step(PROMPTS[:2], 1, max_length=16)["mean_reward"] > 0
    with pytest.raises(ConfigError, match="no room in max_length=5"):
        made.train_step(["much too long"], max_length=5)
    with pytest.raises(ConfigError, match="never in both"):
        trainer(kl_in="both")


EXAMPLE = """
from transformers import AutoModelForCausalLM, AutoTokenizer
from surefoot.compat.constitutional_ai import PPOTrainer, RewardModel, ValueModel

# Load models
policy_model = AutoModelForCausalLM.from_pretrained('gpt2')
tokenizer = AutoTokenizer.from_pretrained('gpt2')

# Create reward and value models
reward_model = RewardModel(base_model, hidden_size=768)
value_model = ValueModel(base_model, hidden_size=768)

# Initialize PPO trainer
ppo_trainer = PPOTrainer(
    policy_model=policy_model,
    value_model=value_model,
    reward_model=reward_model,
    tokenizer=tokenizer,
    device=device,
    clip_epsilon=0.2,
    kl_penalty=0.1
)

# Train
results = ppo_trainer.train(
    prompts=training_prompts,
    num_steps=100,
    batch_size=4
)
"""


def test_the_original_example_runs_with_only_its_imports_changed(tmp_path, monkeypatch):
    # A folder called gpt2 stands in for the hub; fewer steps only because it is a test.
    model = tiny(vocabulary=VOCABULARY, width=768, layers=1)
    model.config.n_positions = 64
    model.save_pretrained(tmp_path / "gpt2")
    char_tokenizer().save_pretrained(tmp_path / "gpt2")
    monkeypatch.chdir(tmp_path)
    assert os.path.isdir("gpt2")
    given = {"base_model": model, "device": "cpu", "training_prompts": PROMPTS}
    shorter = EXAMPLE.replace("num_steps=100", "num_steps=1, max_length=16")
    exec(compile(shorter, "example", "exec"), given)
    assert len(given["results"]["training_history"]["policy_losses"]) == 1


def test_the_name_in_lm_works_for_one_more_release():
    import surefoot.lm

    with pytest.warns(DeprecationWarning, match=r"is now surefoot\.compat\.constitutional_ai\.PPOTrainer"):
        assert surefoot.lm.PPOTrainer is PPOTrainer
