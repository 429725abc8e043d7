"""Models of Stable-Baselines3, written here as it writes them."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.data.spaces import Box, Discrete
from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible, CheckpointMissing
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.learn.checkpoint.vecnormalize import Statistics
from surefoot.nets.policy import PolicyInput
from surefoot.train.interop import sb3_import
from surefoot.train.interop.sb3_import import action_of, observation_of, policy_from_sb3, read_sb3

PICKLED = base64.b64encode(b"cos\nsystem\n(S'touch /tmp/never'\ntR.").decode()
CART = {
    ":type:": "<class 'gymnasium.spaces.box.Box'>",
    ":serialized:": PICKLED,
    "dtype": "float32",
    "_shape": [4],
    "low": "[-4.8 -inf -0.41887903 -inf]",
    "high": "[4.8 inf 0.41887903 inf]",
}
PUSH = {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", ":serialized:": PICKLED, "n": "2", "start": "0"}
TORQUE = {
    ":type:": "<class 'gymnasium.spaces.box.Box'>",
    ":serialized:": PICKLED,
    "dtype": "float32",
    "_shape": [1],
    "low": "[-2.]",
    "high": "[2.]",
}


def weights(pi=(8, 6), vf=(5,), inputs=4, outputs=2, **more) -> OrderedDict[str, torch.Tensor]:
    """A state_dict by SB3's names."""
    torch.manual_seed(0)
    found: OrderedDict[str, torch.Tensor] = OrderedDict()
    for side, widths in (("policy", pi), ("value", vf)):
        before = inputs
        for place, width in enumerate(widths):
            found[f"mlp_extractor.{side}_net.{2 * place}.weight"] = torch.randn(width, before)
            found[f"mlp_extractor.{side}_net.{2 * place}.bias"] = torch.randn(width)
            before = width
        name, count = ("action_net", outputs) if side == "policy" else ("value_net", 1)
        found[f"{name}.weight"], found[f"{name}.bias"] = torch.randn(count, before), torch.randn(count)
    return OrderedDict(found, **more)


def write(path, tensors, *, observation=CART, action=PUSH, kwargs=None, **data):
    raw = io.BytesIO()
    torch.save(tensors, raw)
    said = {
        "policy_class": {":type:": "<class 'abc.ABCMeta'>", ":serialized:": PICKLED},
        "policy_kwargs": kwargs or {},
        "observation_space": observation,
        "action_space": action,
        "learning_rate": 0.0003,
        "n_steps": 64,
        "gamma": 0.98,
        "num_timesteps": 1000,
        "clip_range": {":type:": "<class 'function'>", ":serialized:": PICKLED},
        **data,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(said))
        archive.writestr("policy.pth", raw.getvalue())
        archive.writestr("pytorch_variables.pth", b"never read")
        archive.writestr("_stable_baselines3_version", "2.7.0")
    return path


def by_hand(tensors, obs, activation):
    """What the network gives, by definition."""
    answers = []
    for side, last in (("policy", "action_net"), ("value", "value_net")):
        x, place = obs, 0
        while f"mlp_extractor.{side}_net.{place}.weight" in tensors:
            name = f"mlp_extractor.{side}_net.{place}"
            x = activation(x @ tensors[f"{name}.weight"].t() + tensors[f"{name}.bias"])
            place += 2
        answers.append(x @ tensors[f"{last}.weight"].t() + tensors[f"{last}.bias"])
    return answers


@pytest.mark.parametrize(("name", "activation"), [(None, torch.tanh), ("ReLU", torch.relu), ("ELU", nn.functional.elu)])
def test_a_model_chooses_and_judges_as_its_weights_say(name, activation, tmp_path):
    tensors = weights()
    kwargs = (
        {}
        if name is None
        else {":serialized:": PICKLED, "activation_fn": f"<class 'torch.nn.modules.activation.{name}'>"}
    )
    policy = policy_from_sb3(read_sb3(write(tmp_path / "m.zip", tensors, kwargs=kwargs)))
    obs = torch.randn(50, 4)
    logits, value = by_hand(tensors, obs, activation)
    with torch.no_grad():
        out = policy.act(PolicyInput(obs={"obs": obs}), generator=torch.Generator(), deterministic=True)
    assert (out.action == logits.argmax(-1)).all()
    np.testing.assert_allclose(out.action_params["probs"], logits.softmax(-1), atol=1e-5)
    np.testing.assert_allclose(out.value, value[:, 0], rtol=1e-5, atol=1e-5)


def test_real_actions_come_with_their_deviation_and_bounds(tmp_path):
    tensors = weights(outputs=1, log_std=torch.tensor([-0.7]))
    policy = policy_from_sb3(read_sb3(write(tmp_path / "m.zip", tensors, action=TORQUE)))
    assert policy.action == Box((1,), -2.0, 2.0)
    assert policy.action_std() == pytest.approx(np.exp(-0.7))


def test_gsde_is_recognised_by_the_shape_of_its_deviations(tmp_path):
    tensors = weights(outputs=1, log_std=torch.zeros(6, 1))
    assert policy_from_sb3(read_sb3(write(tmp_path / "m.zip", tensors, action=TORQUE))).config.gsde


def test_spaces_are_read_from_the_zip_s_own_words(tmp_path):
    model = read_sb3(write(tmp_path / "m.zip", weights()))
    assert observation_of(model)["obs"].high[0] == 4.8
    assert action_of(model) == Discrete(2)


def test_a_schedule_is_read_only_where_it_is_written_in_words(tmp_path):
    still = {":type:": "FloatSchedule", ":serialized:": PICKLED, "value_schedule": "ConstantSchedule(val=0.15)"}
    model = read_sb3(write(tmp_path / "m.zip", weights(), clip_range=still, learning_rate={":serialized:": PICKLED}))
    assert model.settings["clip_range"] == 0.15
    assert model.left_out == ["learning_rate"]


def test_pictures_go_through_the_nature_network(tmp_path):
    torch.manual_seed(0)
    cnn = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten())  # fmt: skip
    linear = nn.Linear(64 * 7 * 7, 16)
    extractor = {f"cnn.{k}": v for k, v in cnn.state_dict().items()} | {
        f"linear.0.{k}": v for k, v in linear.state_dict().items()
    }
    tensors = weights(pi=(), vf=(), inputs=16, outputs=3)
    for prefix in ("", "pi_", "vf_"):
        tensors |= {f"{prefix}features_extractor.{name}": value for name, value in extractor.items()}
    screen = {
        ":type:": "<class 'gymnasium.spaces.box.Box'>",
        "dtype": "uint8",
        "_shape": [4, 84, 84],
        "low": "[[[0 ... 0]]]",
    }
    path = write(tmp_path / "m.zip", tensors, observation=screen, action={**PUSH, "n": "3"})
    policy = policy_from_sb3(read_sb3(path))
    obs = torch.randint(0, 256, (3, 4, 84, 84), dtype=torch.uint8)
    with torch.no_grad():
        features = torch.relu(linear(cnn(obs.float() / 255)))
        logits, value = by_hand(tensors, features, torch.tanh)
        out = policy.act(PolicyInput(obs={"obs": obs}), generator=torch.Generator(), deterministic=True)
    np.testing.assert_allclose(out.action_params["probs"], logits.softmax(-1), atol=1e-5)
    np.testing.assert_allclose(out.value, value[:, 0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lstm_actor.weight_ih_l0": torch.zeros(4, 4)}, "recurrent"),
        ({"features_extractor.extractors.map.0.weight": torch.zeros(4, 4)}, "MultiInputPolicy"),
        ({"mlp_extractor.shared_net.0.weight": torch.zeros(4, 4)}, "first layers are shared"),
        ({"pi_features_extractor.x": torch.zeros(1)}, "separate feature extractors"),
        ({"something.weight": torch.zeros(1)}, "something.weight of the model is unknown"),
        ({"mlp_extractor.policy_net.0.weight": torch.zeros(8, 7)}, "does not fit"),
    ],
)
def test_what_has_no_counterpart_is_refused_in_one_sentence(change, said, tmp_path):
    tensors = OrderedDict(weights(), **change)
    with pytest.raises(CheckpointIncompatible, match=said):
        policy_from_sb3(read_sb3(write(tmp_path / "m.zip", tensors)))


def test_weights_that_are_not_finite_are_refused(tmp_path):
    tensors = weights()
    tensors["value_net.bias"][0] = torch.nan
    with pytest.raises(CheckpointCorrupt, match="NaN"):
        policy_from_sb3(read_sb3(write(tmp_path / "m.zip", tensors)))


def test_files_that_are_no_models_are_refused(tmp_path):
    with pytest.raises(CheckpointMissing):
        read_sb3(tmp_path / "nowhere.zip")
    (tmp_path / "text.zip").write_text("hello")
    with pytest.raises(CheckpointCorrupt):
        read_sb3(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(CheckpointIncompatible, match="does not contain policy.pth"):
        read_sb3(tmp_path / "other.zip")


def test_a_model_without_its_env_can_be_loaded(tmp_path, capsys):
    path = write(tmp_path / "m.zip", weights())
    assert main(["import", "sb3", str(path), "-o", str(tmp_path / "model")]) == 0
    assert "clip_range" in capsys.readouterr().out
    model = PPO.load(tmp_path / "model")
    action, _ = model.predict([0.0, 0.0, 0.0, 0.0], deterministic=True)
    assert action in (0, 1)
    assert model.spec.ppo.gamma == 0.98


def test_a_model_with_its_env_becomes_a_run(tmp_path, capsys):
    path = write(tmp_path / "m.zip", weights())
    runs = ["--runs", str(tmp_path / "runs")]
    assert main(["import", "sb3", str(path), "--env", "CartPole-v1", "-o", "old", *runs]) == 0
    assert main(["eval", "old", "--episodes", "2", *runs]) == 0
    assert "checkpoint 0" in capsys.readouterr().out


def test_an_env_that_does_not_fit_is_refused(tmp_path, capsys):
    path = write(tmp_path / "m.zip", weights())
    assert main(["import", "sb3", str(path), "--env", "Acrobot-v1", "-o", "old", "--runs", str(tmp_path / "runs")]) == 2
    assert "pass the env it was trained in" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


STATISTICS = Statistics(np.array([0.5, -1.0, 0.0, 2.0]), np.array([4.0, 0.25, 1.0, 9.0]), 100.0, 1e-8, 1.5)


def test_with_the_statistics_of_vecnormalize_it_acts_on_raw_observations_as_it_did_on_normalised_ones(tmp_path):
    model = read_sb3(write(tmp_path / "m.zip", weights()))
    plain, whole = policy_from_sb3(model), policy_from_sb3(model, statistics=STATISTICS)
    raw = np.random.default_rng(0).normal(size=(50, 4)) * 3
    normalised = np.clip((raw - STATISTICS.mean) / np.sqrt(STATISTICS.var + 1e-8), -1.5, 1.5)
    with torch.no_grad():
        there = plain.act(PolicyInput(obs={"obs": torch.from_numpy(normalised).float()}), generator=torch.Generator())
        here = whole.act(PolicyInput(obs={"obs": torch.from_numpy(raw).float()}), generator=torch.Generator())
    np.testing.assert_allclose(here.action_params["probs"], there.action_params["probs"], atol=1e-5)
    np.testing.assert_allclose(here.value, there.value, rtol=1e-4, atol=1e-5)


def test_statistics_of_another_size_are_refused(tmp_path):
    model = read_sb3(write(tmp_path / "m.zip", weights()))
    short = Statistics(np.zeros(3), np.ones(3), 1.0, 1e-8, 10.0)
    with pytest.raises(CheckpointIncompatible, match="does not fit"):
        policy_from_sb3(model, statistics=short)


def test_the_statistics_are_in_the_run_that_is_written(tmp_path, capsys):
    tensors = weights(inputs=3, outputs=1, log_std=torch.tensor([-0.7]))
    seen = {**CART, "_shape": [3], "low": "[-1. -1. -8.]", "high": "[1. 1. 8.]"}
    path = write(tmp_path / "m.zip", tensors, observation=seen, action=TORQUE)
    sample = Path(__file__).parents[3] / "samples" / "sb3" / "vecnormalize.pkl"
    told = ["--vecnormalize", str(sample), "--env", "Pendulum-v1", "-o", "pend", "--runs", str(tmp_path / "runs")]
    assert main(["import", "sb3", str(path), *told]) == 0
    assert "statistics of 514 observations" in capsys.readouterr().out
    parts = load_checkpoint(tmp_path / "runs" / "pend" / "checkpoints").parts
    assert parts["weights"]["network.torso.normalizer.mean"][0] == -0.147740302579343
    assert main(["eval", "pend", "--episodes", "1", "--runs", str(tmp_path / "runs")]) == 0


@pytest.mark.parametrize("present", ["action_net.weight", "value_net.weight"])
def test_a_model_with_one_of_the_two_outputs_is_refused(present):
    with pytest.raises(CheckpointIncompatible, match="no action_net and value_net"):
        sb3_import._refuse_unknown({present: np.zeros((1, 1), np.float32)})
