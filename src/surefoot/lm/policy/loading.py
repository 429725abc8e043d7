"""Loads models and tokenizers from a folder or a hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.errors import ConfigError, DataError
from surefoot.lm.config import LMConfig
from surefoot.lm.data import Talk, messages_of
from surefoot.lm.policy.backbone import Backbone


def require_transformers() -> Any:
    """Return the transformers package. Raise `ConfigError` if it is not installed."""
    try:
        # Imported by name: a type checker needs minutes for its types.
        transformers: Any = import_module("transformers")
    except ImportError as why:
        raise ConfigError("language models need transformers; install surefoot[lm]") from why
    transformers.utils.logging.disable_progress_bar()  # files load in a second
    return transformers


def best_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """Return the dtype for "auto", "float32" or "bfloat16"; auto is bfloat16 if the device computes in it natively."""
    if wanted != "auto":
        return torch.bfloat16 if wanted == "bfloat16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    # Emulated bfloat16 is slower than float32. Only Linux lists the CPU's instructions in a file.
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return torch.float32
    return torch.bfloat16 if "avx512_bf16" in flags or "amx_bf16" in flags else torch.float32


def load_model(name: str | Path, *, dtype: torch.dtype, device: torch.device) -> Any:
    """Return a causal language model from a folder or a hub name."""
    transformers, folder = require_transformers(), resolve(name)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    except (OSError, ValueError) as why:
        raise ConfigError(
            f"no causal language model at {name}: {_first_line(why)}; pass a folder that save_pretrained wrote, a hub name, "
            "or `smollm2` after `surefoot lm get smollm2`"
        ) from why
    return model.to(device)


def is_encoder(name: str | Path) -> bool:
    """Return True for a model without a language-model head, such as MiniLM; False if its config names none."""
    transformers = require_transformers()
    try:
        config = transformers.AutoConfig.from_pretrained(resolve(name))
    except (OSError, ValueError):
        return False  # `load_model` reports what is wrong with the name
    heads = config.architectures or []
    return bool(heads) and not any(head.endswith(("ForCausalLM", "LMHeadModel")) for head in heads)


def resolve(name: str | Path) -> str:
    """Return the folder for a name that `surefoot lm get` knows; any other name unchanged."""
    from surefoot.lm.download import KNOWN, folder_of

    if str(name) in KNOWN and not (Path(name) / "config.json").is_file():  # a local folder of that name comes first
        folder = folder_of(str(name))
        if not (folder / "config.json").is_file():
            raise ConfigError(f"{name} is not downloaded; run `surefoot lm get {name}`")
        return str(folder)
    # A hub name has at most one slash and does not begin with one; transformers would complain about the form of the name.
    looks_like_path = str(name).startswith((".", "/", "~")) or str(name).count("/") > 1
    if looks_like_path and not Path(name).is_dir():
        raise ConfigError(
            f"there is no folder {name}; pass a folder that save_pretrained wrote, a hub name, or smollm2"
        )
    return str(name)


def _first_line(why: Exception) -> str:
    return str(why).strip().splitlines()[0] if str(why).strip() else type(why).__name__


def load_tokenizer(name: str | Path) -> Any:
    """Return the tokenizer of a model."""
    transformers = require_transformers()
    try:
        return transformers.AutoTokenizer.from_pretrained(resolve(name))
    except (OSError, ValueError) as why:
        raise ConfigError(f"no tokenizer at {name}: {_first_line(why)}") from why


def load_backbone(name: str | Path, config: LMConfig, *, device: str | torch.device = "cpu") -> tuple[Backbone, Any]:
    """Load a model and its tokenizer.

    Args:
        name: A folder, a hub name, or a name that `surefoot lm get` knows.
        config: Decides what learns (adapters, all weights, none) and the dtype.
        device: Where to put the model.
    """
    place = torch.device(device)
    dtype = best_dtype(config.dtype, place)
    if config.train == "full" and config.dtype == "auto":
        dtype = torch.float32  # steps of 1e-6 vanish in bfloat16
    model = load_model(name, dtype=dtype, device=place)
    return backbone_of(model, config), load_tokenizer(name)


def backbone_of(model: Any, config: LMConfig) -> Backbone:
    """Return a backbone in which the parts named by the config learn."""
    return Backbone(
        model,
        train=config.train,
        rank=config.rank,
        alpha=config.alpha,
        top=config.top,
        targets=config.targets,
        seed=config.seed,
    )


Prompt = Talk | Mapping[str, Any]
"""A prompt, or a row of a file with the key `prompt`."""


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A prompt that fits into the model."""

    talk: Talk
    ids: np.ndarray
    row: Mapping[str, Any]
    """All columns of the file, for rewards."""


class Speech:
    """A tokenizer as training needs it: encodes prompts, decodes responses, knows the end tokens.

    Padding is masked and never by token, so a pad token is not needed.

    Args:
        tokenizer: A Hugging Face tokenizer.
        model: Its model, which may name more end tokens.
        chat: Whether plain prompts go through the chat template: "auto" (if there is one), "never" or "always".
    """

    def __init__(self, tokenizer: Any, model: Any = None, *, chat: str = "auto") -> None:
        self.tokenizer = tokenizer
        if chat == "always" and not self.has_template:
            raise ConfigError("chat is 'always' but this tokenizer has no chat template; set chat=auto or chat=never")
        self.chat = chat != "never" and self.has_template
        ends: list[Any] = [tokenizer.eos_token_id]
        generation = getattr(model, "generation_config", None)
        more = getattr(generation, "eos_token_id", None)
        ends += list(more) if isinstance(more, list | tuple) else [more]
        known = model.get_output_embeddings().weight.shape[0] if model is not None else np.inf
        # A config that was copied from another model can name a token that this one does not have.
        self.eos = sorted({int(e) for e in ends if e is not None and int(e) < known})
        if not self.eos:
            raise ConfigError("neither the tokenizer nor the model names an end-of-text token; set tokenizer.eos_token")

    @property
    def has_template(self) -> bool:
        """Return True if the tokenizer has a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    def prompt(self, text: Talk) -> np.ndarray:
        """Return the tokens of a prompt: a conversation up to the assistant's next message, or plain text without `chat`."""
        if isinstance(text, str) and not self.chat:
            ids = self.tokenizer(text)["input_ids"]
        elif self.has_template:
            talk = messages_of(text)
            rendered = self.tokenizer.apply_chat_template(talk, add_generation_prompt=True, tokenize=False)
            ids = self.tokenizer(rendered, add_special_tokens=False)["input_ids"]
        else:
            raise DataError("a prompt is a conversation but this tokenizer has no chat template; pass plain text")
        return np.asarray(ids, dtype=np.int64)

    def usable(self, prompts: Sequence[Prompt], room: int | None) -> tuple[list[PromptRow], list[str]]:
        """Return (prompts with their tokens, one sentence per prompt that is empty or longer than `room` tokens)."""
        usable: list[PromptRow] = []
        skipped: list[str] = []
        for number, prompt in enumerate(prompts, 1):
            row: Mapping[str, Any] = prompt if isinstance(prompt, Mapping) else {"prompt": prompt}
            talk: Talk = row["prompt"]
            tokens = self.prompt(talk)
            if len(tokens) == 0 or (isinstance(talk, str) and not talk.strip()):
                skipped.append(f"prompt {number} is empty")
            elif room is not None and len(tokens) > room:
                skipped.append(f"prompt {number} has {len(tokens)} tokens; {room} fit beside max_new_tokens")
            else:
                usable.append(PromptRow(talk, tokens, row))
        if not usable:
            raise DataError(f"none of {len(prompts)} prompts can be used{'; ' + skipped[0] if skipped else ''}")
        return usable, skipped

    def continuation(self, text: str) -> np.ndarray:
        """Return the tokens of a response that follows a prompt: no begin-of-text token, an end token last."""
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.asarray([*ids, self.eos[0]], dtype=np.int64)

    def text(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Return the text of tokens, without special ones."""
        return str(self.tokenizer.decode([int(t) for t in tokens], skip_special_tokens=True))

    def without_end(self, tokens: Sequence[int]) -> np.ndarray:
        """Return the tokens of a response without its end token."""
        return np.asarray(tokens[:-1] if tokens and tokens[-1] in self.eos else tokens, dtype=np.int64)
