import pytest
import torch
from gymnasium import spaces
from torch import nn

from surefoot.compat.sb3.contrib.recurrent_policies import RecurrentActorCriticPolicy, run_lstm

BOX = spaces.Box(-1, 1, (3,))


@pytest.mark.parametrize("layers", [1, 2])
def test_an_lstm_with_starts_is_torchs_lstm_on_each_episode(layers):
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 4, num_layers=layers)
    x, zeros = torch.randn(5, 2, 3), torch.zeros(layers, 2, 4)
    starts = torch.zeros(5, 2, dtype=torch.bool)
    starts[2] = True
    outputs, (hidden, cell) = run_lstm(lstm, x, (torch.randn(layers, 2, 4), torch.randn(layers, 2, 4)), starts)
    second, (last_hidden, last_cell) = lstm(x[2:], (zeros, zeros))
    torch.testing.assert_close(outputs[2:], second)
    torch.testing.assert_close(hidden, last_hidden)
    torch.testing.assert_close(cell, last_cell)


def test_one_step_without_gradients_is_the_same_as_with_them():
    lstm = nn.LSTM(3, 4)
    x, state = torch.randn(1, 2, 3), (torch.randn(1, 2, 4), torch.randn(1, 2, 4))
    starts = torch.zeros(1, 2, dtype=torch.bool)
    with torch.no_grad():
        fast, _ = run_lstm(lstm, x, state, starts)
    torch.testing.assert_close(fast, lstm(x, state)[0])


def test_weight_names_are_those_of_sb3_contrib():
    names = set(RecurrentActorCriticPolicy(BOX, spaces.Discrete(2), lambda _: 1e-3, lstm_hidden_size=4).state_dict())
    assert {"lstm_actor.weight_ih_l0", "lstm_critic.bias_hh_l0", "mlp_extractor.policy_net.0.weight"} <= names


def test_predict_carries_the_state_until_an_episode_starts():
    policy = RecurrentActorCriticPolicy(BOX, BOX, lambda _: 1e-3, lstm_hidden_size=4)
    obs = torch.ones(2, 3).numpy()
    first, state = policy.predict(obs, deterministic=True)
    later, _ = policy.predict(obs, state, deterministic=True)
    again, _ = policy.predict(obs, state, episode_start=[True, False], deterministic=True)
    assert (again[0] == first[0]).all()
    assert (again[1] == later[1]).all()
    assert not (first == later).all()


def test_a_shared_lstm_excludes_a_critics_lstm():
    with pytest.raises(AssertionError, match="enable_critic_lstm=False"):
        RecurrentActorCriticPolicy(BOX, BOX, lambda _: 1e-3, shared_lstm=True)
