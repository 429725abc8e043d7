"""One causal language model in memory: the policy with its adapters on, the reference with them off."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError, PolicyError
from surefoot.lm.policy.adapters import Adapter, adapt, adapters_in, targets_in
from surefoot.lm.policy.direct_layers import Direct
from surefoot.lm.policy.transformers_layers import TransformersLayers, find_head, require_cache, require_causal
from surefoot.lm.policy.vocabulary_head import VocabularyHead

TRAINABLE = ("lora", "full", "none")


class Backbone:
    """A Hugging Face causal LM of which some weights learn and the others are frozen.

    `reference()` gives the original model: adapters off, or the original weights swapped in, so that it costs only a copy
    of what learns. Dropout is set to 0, so that a response has the same log-prob when it is scored again.

    Args:
        model: A Hugging Face causal language model; it is modified.
        train: "lora" (adapters), "full" (all weights) or "none".
        rank: Rank of the adapters.
        alpha: Adapters are scaled by alpha / rank; None: twice the rank.
        top: Only this many upper layers learn; None: all.
        targets: Layers that get adapters: "attention", "all", or names.
        seed: Seed for the initial adapters.
    """

    def __init__(
        self,
        model: Any,
        *,
        train: str = "lora",
        rank: int = 8,
        alpha: float | None = None,
        top: int | None = None,
        targets: str | Sequence[str] = "attention",
        seed: int = 0,
    ) -> None:
        if train not in TRAINABLE:
            raise ConfigError(f"train is {train!r}; it must be one of {', '.join(TRAINABLE)}")
        require_causal(model)
        self.model: Any = model
        self.base: Any = model.base_model
        self.train, self.rank, self.alpha = train, rank, float(2 * rank if alpha is None else alpha)
        self.layers_name, self.layers = layers_of(self.base)
        if top is not None and not 0 < top <= len(self.layers):
            raise ConfigError(f"top is {top}; this model has {len(self.layers)} layers, so 1 to {len(self.layers)}")
        self.first_trained = 0 if top is None else len(self.layers) - top
        """Index of the lowest layer that learns; the output of those below is computed once per rollout."""
        _replace_modules(model)
        model.eval()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        self.originals: dict[nn.Parameter, Tensor] = {}
        if train == "lora":
            generator = torch.Generator().manual_seed(seed)
            for layer in self.layers[self.first_trained :]:
                for path in targets_in(layer, targets):
                    adapt(layer, path, rank=self.rank, alpha=self.alpha, generator=generator)
        elif train == "full":
            learning = model if top is None else nn.ModuleList(self.layers[self.first_trained :])
            for parameter in learning.parameters():
                parameter.requires_grad_(True)
                self.originals[parameter] = parameter.detach().clone()
        self._captured: list[Tensor] | None = None
        self._by_transformers = TransformersLayers(self.base, self.layers, self.first_trained)
        self.direct = Direct.of(self.base, self.first_trained)
        """The layers written out for GPT-2 and Llama; None: transformers runs them."""
        self._remembered: tuple[Tensor, Tensor] | None = None
        self._scale, self._cap = find_head(self)
        if self.direct is None:
            require_cache(self)

    @property
    def width(self) -> int:
        """Return the size of a last hidden state."""
        return int(self.model.get_output_embeddings().weight.shape[1])

    @property
    def trunk_width(self) -> int:
        """Return the size of the states between two layers, which OPT projects to another one at the end."""
        return int(self.model.config.get_text_config().hidden_size)

    @property
    def vocabulary(self) -> int:
        """Return the number of tokens."""
        return len(self.head.weight)

    @property
    def context_length(self) -> int | None:
        """Return the longest sequence that the model has positions for; None if its config has no limit."""
        config = self.model.config.get_text_config()
        names = ("max_position_embeddings", "n_positions", "max_seq_len")
        return next((int(x) for name in names if (x := getattr(config, name, None))), None)

    @property
    def embedding(self) -> Any:
        """Return the layer that turns tokens into vectors."""
        return self.model.get_input_embeddings()

    @property
    def head(self) -> VocabularyHead:
        """Return the layer that turns hidden states into logits."""
        layer = self.model.get_output_embeddings()
        return VocabularyHead(layer.weight, layer.bias, self._scale, self._cap)

    @property
    def reference_head(self) -> VocabularyHead:
        """Return the original head."""
        layer, originals = self.model.get_output_embeddings(), self.originals
        weight, bias = (originals[x] if x in originals else x for x in (layer.weight, layer.bias))  # noqa: SIM401
        return VocabularyHead(weight, bias, self._scale, self._cap)

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of hidden states."""
        return self.embedding.weight.dtype

    @property
    def caches_trunk(self) -> bool:
        """Return True if there are frozen lower layers, whose output can be reused."""
        return self.first_trained > 0

    def adapters(self) -> Iterator[tuple[str, Adapter]]:
        """Return every adapter with its path in the model."""
        return adapters_in(self.model)

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the parameters that learn, by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    @contextmanager
    def reference(self) -> Generator[None]:
        """Make the model the original one within the block, with gradients off."""
        # Settled adapters of an earlier stage belong to the reference.
        adapters = [adapter for _, adapter in self.adapters() if not adapter.settled]
        now = {parameter: parameter.data for parameter in self.originals}
        for adapter in adapters:
            adapter.on = False
        # Only pointers are swapped, nothing is copied.
        for parameter, original in self.originals.items():
            parameter.data = original
        try:
            with torch.no_grad():
                yield
        finally:
            for adapter in adapters:
                adapter.on = True
            for parameter, data in now.items():
                parameter.data = data

    def hidden(
        self,
        ids: Tensor,
        *,
        position: Tensor | None = None,
        mask: Tensor | None = None,
        cache: Any = None,
        trunk: Tensor | None = None,
    ) -> Tensor:
        """Return the last hidden states of [B, L] tokens, [B, L, width].

        Without `mask` attention is causal over the row, so rows must be padded on the right. `mask` is
        [B or 1, 1, L, keys], True where a token attends; for models that transformers runs (`direct` is None) it is
        [B, keys], False for padding. With `trunk`, the inputs of the first layer that learns, the layers below it are
        skipped.
        """
        if position is None:
            position = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0).expand(ids.shape[0], -1)
        runner = self.direct or self._by_transformers
        return runner.hidden(ids, position=position, mask=mask, cache=cache, trunk=trunk, caught=self._captured)

    def remember(self, ids: Tensor, states: Tensor) -> None:
        """Store the reference's states of [B, L] tokens for the next call of `recall`."""
        self._remembered = (ids, states)

    def recall(self, ids: Tensor, read: Tensor) -> Tensor | None:
        """Return the stored states, [B, L, width], once, if their first `read` [B] tokens are those of `ids`; else None."""
        stored, self._remembered = self._remembered, None
        size = int(read.max())
        if stored is None or len(stored[0]) != len(ids) or stored[0].shape[1] < size:
            return None
        mask = torch.arange(size, device=ids.device) < read.unsqueeze(1)
        same = bool(((stored[0][:, :size] == ids[:, :size]) | ~mask).all())
        return stored[1] if same else None

    @contextmanager
    def catching_trunk(self) -> Generator[list[Tensor]]:
        """Yield a list that collects the inputs of the first layer that learns, one entry per pass."""
        self._captured = []
        try:
            yield self._captured
        finally:
            self._captured = None


def layers_of(base: nn.Module) -> tuple[str, nn.ModuleList]:
    """Return the name and the list of the blocks: the longest of the outermost ModuleLists (OPT has them in `decoder`)."""
    lists: list[tuple[str, nn.ModuleList]] = [
        (name, module) for name, module in base.named_modules() if isinstance(module, nn.ModuleList)
    ]
    if not lists:
        raise PolicyError(f"{type(base).__name__} has no list of layers, as GPT-2, Llama and similar models have")
    # Experts and sublayers are lists too, inside the blocks.
    depth = min(name.count(".") for name, _ in lists)
    outermost = [entry for entry in lists if entry[0].count(".") == depth]
    name, layers = max(outermost, key=lambda entry: len(entry[1]))
    return name.rsplit(".", 1)[-1], layers


def _replace_modules(model: nn.Module) -> None:
    """Set dropout to 0, and replace GPT-2's activation by torch's; both agree to rounding."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in module.__dict__.items():
            # Rates that are passed to functions: attention_dropout, hidden_dropout, attn_dropout_p, layerdrop.
            if "drop" in name and isinstance(value, float):
                module.__dict__[name] = 0.0
        for name, child in module.named_children():
            # transformers computes it in eight operations, torch in one.
            if type(child).__name__ == "NewGELUActivation":
                setattr(module, name, nn.GELU(approximate="tanh"))
