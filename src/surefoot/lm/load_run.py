"""Saves and loads the policy of a run, weights that learned, and reward models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech, best_dtype, load_backbone, load_model
from surefoot.lm.policy.policy import LMPolicy, NoCritic
from surefoot.lm.rewards.reward_fit import RewardFit
from surefoot.lm.rewards.reward_model import BackboneReward, RewardModel
from surefoot.lm.rewards.text_reward import TextReward
from surefoot.lm.run import saved_config
from surefoot.nets.policy import load_weights
from surefoot.train.rundir.rundir import RunDir


def load_policy(directory: RunDir, *, checkpoint: str = "latest", device: str = "cpu") -> tuple[LMPolicy, Speech, int]:
    """Return (policy, speech, step) of a language run; `checkpoint` is "latest", "best" or a step."""
    spec = directory.read_header()["spec"]
    if "lm" not in spec:
        raise ConfigError(f"{directory.path} is not a language run")
    config = saved_config(spec)
    backbone, tokenizer = load_backbone(spec["model"], config, device=device)
    critic = NoCritic() if config.algorithm != "ppo" else None
    policy = LMPolicy(backbone, critic=critic, temperature=config.temperature)
    path = directory.checkpoints
    if checkpoint != "latest":
        path = path / (checkpoint if checkpoint == "best" else f"{int(checkpoint):06d}")
    loaded = load_checkpoint(path)
    load_weights(policy, loaded.parts["weights"])
    return policy, Speech(tokenizer, backbone.model, chat=config.chat), loaded.step


def save_reward(model: RewardModel | BackboneReward, folder: Path | str, *, base: str, fit: RewardFit) -> Path:
    """Write the trained weights and the result of the fit to a folder, and return it."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # What is frozen is that of the base model.
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    state = {name: x for name, x in model.state_dict().items() if name not in frozen}
    save_file({name: x.detach().cpu().contiguous().clone() for name, x in state.items()}, folder / "reward.safetensors")
    about = {"base": base, "frozen": bool(model.frozen), **fit.to_json()}
    if isinstance(model, RewardModel):
        about |= {"rank": model.rank, "pooling": model.pooling, "trunk": not frozen}
    (folder / "reward.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return folder


def reward_base(folder: Path | str) -> str | None:
    """Return the base model of the reward model in a folder; None if there is no reward model."""
    file = Path(folder) / "reward.json"
    return str(json.loads(file.read_text(encoding="utf-8"))["base"]) if file.is_file() else None


def load_reward(folder: Path | str, *, beside: Backbone | None = None, beside_name: str = "") -> Any:
    """Return a reward module, or a function of conversations if it is a model on text features.

    With a frozen trunk of the same base model a module shares the backbone `beside`.
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / "reward.json").read_text(encoding="utf-8"))
        if about.get("kind") == "text":
            return TextReward.load(folder, device=beside.device if beside is not None else "cpu")
        state = load_file(folder / "reward.safetensors")
    except (OSError, ValueError) as why:
        raise ConfigError(f"{folder} holds no reward model: {why}") from why
    pooling, rank = about.get("pooling", "last"), about.get("rank", 0)
    if about["frozen"] and pooling == "last" and beside is not None and about["base"] == beside_name:
        model: Any = BackboneReward(beside)
        model.load_state_dict(state)
        return model
    # Only a frozen trunk may be bfloat16: its features are computed once and the head is float32.
    cpu, whole = torch.device("cpu"), about.get("trunk", not about["frozen"])
    dtype = torch.float32 if whole else best_dtype("auto", cpu)
    base = load_model(about["base"], dtype=dtype, device=cpu)
    model = RewardModel(base, frozen=not whole, rank=rank, pooling=pooling)
    # Not strict: the file has what was trained.
    unexpected = model.load_state_dict(state, strict=False).unexpected_keys
    missing = {name for name, parameter in model.named_parameters() if parameter.requires_grad} - set(state)
    if unexpected or missing:
        raise CheckpointIncompatible(f"{folder} was made for another model than {about['base']}")
    return model


def save_trained(backbone: Backbone, path: Path) -> None:
    """Write the weights that learn to a file."""
    save_file({name: p.detach().contiguous() for name, p in backbone.trained().items()}, path)


@torch.no_grad()
def load_trained(backbone: Backbone, path: Path) -> None:
    """Load what `save_trained` wrote."""
    for name, value in load_file(path).items():
        backbone.model.get_parameter(name).copy_(value)
