import torch
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.engine.learners import TorchOptimizer, is_plain_adam
from surefoot.compat.sb3.ppo import PPO


def test_the_torch_optimizer_shows_the_engines_moments():
    model = PPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8, n_epochs=1).learn(8)
    p = next(model.policy.mlp_extractor.parameters())
    state = model.policy.optimizer.state[p]
    assert float(state["step"]) == 1.0
    assert state["exp_avg"].abs().sum() > 0


def test_a_foreign_optimizer_steps_at_the_rate_it_is_given():
    p = torch.nn.Parameter(torch.zeros(2))
    optimizer = TorchOptimizer(torch.optim.SGD([p], lr=9.0))
    p.grad = torch.ones(2)
    optimizer.step(0.5)
    assert p.tolist() == [-0.5, -0.5]


def test_only_adam_with_its_usual_betas_is_the_engines():
    p = [torch.nn.Parameter(torch.zeros(2))]
    assert is_plain_adam(torch.optim.Adam(p, lr=1.0, eps=1e-5))
    assert not is_plain_adam(torch.optim.Adam(p, lr=1.0, betas=(0.5, 0.9)))
    assert not is_plain_adam(torch.optim.AdamW(p, lr=1.0))
