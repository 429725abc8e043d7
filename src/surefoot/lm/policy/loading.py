"""Models and tokenizers from a folder, a hub or a file, and the few things about them that go wrong silently."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.errors import ConfigError, DataError
from surefoot.lm.config import LMConfig
from surefoot.lm.policy.backbone import Backbone


def require_transformers() -> Any:
    """transformers, or one sentence that says how to get it."""
    try:
        # By name: its types are so many that a checker would need minutes for them.
        transformers: Any = import_module("transformers")
    except ImportError as why:
        raise ConfigError("language models need transformers; install surefoot[lm]") from why
    transformers.utils.logging.disable_progress_bar()  # bars for files that load in a second
    return transformers


def best_dtype(wanted: str, device: torch.device) -> torch.dtype:
    """bfloat16 where the machine computes in it, float32 elsewhere."""
    if wanted != "auto":
        return torch.bfloat16 if wanted == "bfloat16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if _cpu_has_bfloat16() else torch.float32


def _cpu_has_bfloat16() -> bool:
    """Natively: emulated, bfloat16 is slower than float32."""
    if platform.system() == "Linux":
        try:
            return "avx512_bf16" in Path("/proc/cpuinfo").read_text() or "amx_bf16" in Path("/proc/cpuinfo").read_text()
        except OSError:
            return False
    return False


def load_model(name: str | Path, *, dtype: torch.dtype, device: torch.device) -> Any:
    """A causal LM by folder or hub name."""
    transformers = require_transformers()
    where = resolve(name)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(where, dtype=dtype)
    except (OSError, ValueError) as why:
        raise ConfigError(
            f"no causal language model at {name}: {_first_line(why)}; give a folder that save_pretrained wrote, a hub name, "
            "or `smollm2` after `surefoot lm get smollm2`"
        ) from why
    return model.to(device)


def resolve(name: str | Path) -> str:
    """A folder for the names `surefoot lm get` knows; anything else as it is."""
    from surefoot.lm.download import KNOWN, folder_of

    if str(name) in KNOWN and not (Path(name) / "config.json").is_file():  # a folder of that name comes first
        folder = folder_of(str(name))
        if not (folder / "config.json").is_file():
            raise ConfigError(f"{name} is not on this machine yet; `surefoot lm get {name}` fetches it")
        return str(folder)
    return str(name)


def _first_line(why: Exception) -> str:
    return str(why).strip().splitlines()[0] if str(why).strip() else type(why).__name__


def load_tokenizer(name: str | Path) -> Any:
    """The tokenizer beside a model."""
    transformers = require_transformers()
    try:
        return transformers.AutoTokenizer.from_pretrained(resolve(name))
    except (OSError, ValueError) as why:
        raise ConfigError(f"no tokenizer at {name}: {_first_line(why)}") from why


def load_backbone(name: str | Path, config: LMConfig, *, device: str | torch.device = "cpu") -> tuple[Backbone, Any]:
    """(backbone, tokenizer), with what learns as the config says."""
    place = torch.device(device)
    dtype = best_dtype(config.dtype, place)
    if config.train == "full" and config.dtype == "auto":
        dtype = torch.float32  # steps of 1e-6 vanish in bfloat16
    model = load_model(name, dtype=dtype, device=place)
    return backbone_of(model, config), load_tokenizer(name)


def backbone_of(model: Any, config: LMConfig) -> Backbone:
    """A model with what learns as the config says."""
    return Backbone(
        model,
        train=config.train,
        rank=config.rank,
        alpha=config.alpha,
        top=config.top,
        targets=config.targets,
        seed=config.seed,
    )


class Speech:
    """A tokenizer as training needs it: prompts in, responses out, and which tokens end one.

    Padding is never by token, so a tokenizer without a pad token is as good as any.
    """

    def __init__(self, tokenizer: Any, model: Any = None) -> None:
        self.tokenizer = tokenizer
        ends: list[Any] = [tokenizer.eos_token_id]
        generation = getattr(model, "generation_config", None)
        told = getattr(generation, "eos_token_id", None)
        ends += list(told) if isinstance(told, list | tuple) else [told]
        known = model.get_output_embeddings().weight.shape[0] if model is not None else np.inf
        # A config copied from another model names an end token of that one.
        self.eos = sorted({int(e) for e in ends if e is not None and int(e) < known})
        if not self.eos:
            raise ConfigError("neither the tokenizer nor the model names an end-of-text token; set tokenizer.eos_token")

    @property
    def has_chat(self) -> bool:
        """True if the tokenizer knows how to write a conversation."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    def prompt(self, text: str | Sequence[dict[str, str]]) -> np.ndarray:
        """Tokens of a plain prompt, or of a conversation with the assistant to speak next."""
        if isinstance(text, str):
            ids = self.tokenizer(text)["input_ids"]
        elif self.has_chat:
            rendered = self.tokenizer.apply_chat_template(list(text), add_generation_prompt=True, tokenize=False)
            ids = self.tokenizer(rendered, add_special_tokens=False)["input_ids"]
        else:
            raise DataError("a prompt is a conversation but this tokenizer has no chat template; give plain text")
        return np.asarray(ids, dtype=np.int64)

    def ask(self, question: str) -> np.ndarray:
        """A question put as a conversation where the model has one, as plain text where it has not."""
        return self.prompt([{"role": "user", "content": question}] if self.has_chat else question)

    def continuation(self, text: str) -> np.ndarray:
        """Tokens of a response, which follows a prompt: no begin-of-text token, an end token last."""
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.asarray([*ids, self.eos[0]], dtype=np.int64)

    def text(self, tokens: Sequence[int] | np.ndarray) -> str:
        """What tokens say, without special ones."""
        return str(self.tokenizer.decode([int(t) for t in tokens], skip_special_tokens=True))

    def without_end(self, tokens: Sequence[int]) -> np.ndarray:
        """A response's tokens but for the one that ended it."""
        kept = tokens[:-1] if tokens and tokens[-1] in self.eos else tokens
        return np.asarray(kept, dtype=np.int64)
