"""Exports a trained policy as a Hugging Face folder: weights or adapters, tokenizer, and a model card."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from surefoot.errors import ConfigError
from surefoot.lm.download import KNOWN, folder_of
from surefoot.lm.policy.adapters import Adapter, adapters_in, merge
from surefoot.lm.policy.backbone import Backbone

# The base models of `surefoot lm get` by the names under which others can find them.
HUB_NAMES = {"smollm2": "HuggingFaceTB/SmolLM2-135M-Instruct", "minilm": "sentence-transformers/all-MiniLM-L6-v2"}


def export(
    backbone: Backbone,
    tokenizer: Any,
    folder: Path | str,
    *,
    merged: bool,
    base: str = "",
    numbers: Mapping[str, Any] | None = None,
) -> Path:
    """Write the folder and return it; `from_pretrained` (merged) or peft (adapters) loads it with the same logits.

    Args:
        backbone: The trained model.
        tokenizer: Its tokenizer.
        folder: An empty or new folder.
        merged: Merge the adapters into the weights; False writes the adapters only.
        base: Name of the base model, for the card and for peft.
        numbers: Measurements for the card.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; choose another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    # A name of `surefoot lm get` means nothing to transformers and peft.
    base = HUB_NAMES.get(base, base)
    # A model of this machine is named by its folder, which peft finds from any directory.
    local = folder_of(base) if base in KNOWN else Path(base)
    base = str(local.resolve()) if base and local.is_dir() else base
    if merged or backbone.train == "full":
        # A copy: the policy may still be trained, and merging removes its adapters.
        model = copy.deepcopy(backbone.model)
        merge(model)
        model.save_pretrained(folder)
    else:
        _write_adapters(backbone, folder, base)
    tokenizer.save_pretrained(folder)
    weights = "full" if backbone.train == "full" else "merged" if merged else "adapters"
    (folder / "README.md").write_text(card(base, numbers or {}, weights=weights), encoding="utf-8")
    return folder


def _write_adapters(backbone: Backbone, folder: Path, base: str) -> None:
    """Write adapter_config.json and adapter_model.safetensors in the format of peft."""
    adapters = dict(adapters_in(backbone.model))
    if any(isinstance(adapter.base, Adapter) for adapter in adapters.values()):
        raise ConfigError("this model has adapters of two stages, which peft cannot represent; export it with --merge")
    if not adapters:
        raise ConfigError("this model has no adapters; export it with --merge")
    tensors = {
        f"base_model.model.{name}.lora_{side.upper()}.weight": getattr(adapter, side).detach().cpu().contiguous()
        for name, adapter in adapters.items()
        for side in ("a", "b")
    }
    save_file(tensors, folder / "adapter_model.safetensors")
    trained = sorted({int(part) for name in adapters for part in name.split(".") if part.isdigit()})
    all_layers = len(trained) == len(backbone.layers)
    linear = isinstance(next(iter(adapters.values())).base, torch.nn.Linear)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": backbone.rank,
        "lora_alpha": backbone.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        # peft's word for Conv1D's transposed weights.
        "fan_in_fan_out": not linear,
        "inference_mode": True,
        "target_modules": sorted({name.rsplit(".", 1)[-1] for name in adapters}),
        "layers_to_transform": None if all_layers else trained,
        "layers_pattern": None if all_layers else backbone.layers_name,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def card(base: str, numbers: Mapping[str, Any], *, weights: str) -> str:
    """Return the model card: base model, kind of weights ("full", "merged" or "adapters") and measurements."""
    rows = "\n".join(f"| {name} | {_shown(value)} |" for name, value in numbers.items())
    table = f"\n| measured | |\n|---|---|\n{rows}\n" if rows else "\nNothing was measured.\n"
    how = {
        "full": "all weights were trained",
        "merged": "adapters merged into the weights",
        "adapters": "adapters apart; load them with peft",
    }[weights]
    return f"""---
library_name: {"peft" if weights == "adapters" else "transformers"}
base_model: {base or "unknown"}
tags: [surefoot, ppo, rlhf]
---
Trained with surefoot (PPO) from {base or "a model"}; {how}.
{table}"""


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
