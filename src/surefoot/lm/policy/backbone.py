"""One causal language model in memory: the policy with its adapters on, the reference with them off."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError, PolicyError
from surefoot.lm.policy.adapters import Adapter, adapt, adapters_in, targets_in
from surefoot.lm.policy.direct_layers import Direct

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
        self.model: Any = model
        self.base: Any = model.base_model
        self.train, self.rank, self.alpha = train, rank, float(2 * rank if alpha is None else alpha)
        self.layers_name, self.layers = _layers(self.base)
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
        self._upper = nn.ModuleList(self.layers[self.first_trained :])
        self._inject: Tensor | None = None
        self._captured: list[Tensor] | None = None
        # For models that transformers runs: a hook reads or replaces the input of the first layer that learns.
        self.layers[self.first_trained].register_forward_pre_hook(self._at_first_trained)
        self.direct = Direct.of(self.base, self.first_trained)
        """The layers written out for GPT-2 and Llama; None: transformers runs them."""
        self._remembered: tuple[Tensor, Tensor] | None = None
        self._check_head()

    @property
    def width(self) -> int:
        """Return the size of a hidden state."""
        return int(self.embedding.weight.shape[1])

    @property
    def vocabulary(self) -> int:
        """Return the number of tokens."""
        return int(self.head.weight.shape[0])

    @property
    def context_length(self) -> int | None:
        """Return the longest sequence that the model has positions for; None if its config has no limit."""
        config = self.model.config
        length = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
        return int(length) if length else None

    @property
    def embedding(self) -> Any:
        """Return the layer that turns tokens into vectors."""
        return self.model.get_input_embeddings()

    @property
    def head(self) -> Any:
        """Return the layer that turns hidden states into logits."""
        return self.model.get_output_embeddings()

    @property
    def reference_head(self) -> Any:
        """Return the original head."""
        head = self.head
        if head.weight not in self.originals:
            return head
        bias = None if head.bias is None else self.originals[head.bias]
        return SimpleNamespace(weight=self.originals[head.weight], bias=bias)

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
        [B or 1, 1, L, keys], True where a token attends. With `trunk`, the inputs of the first layer that learns, the
        layers below it are skipped.
        """
        if position is None:
            position = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0).expand(ids.shape[0], -1)
        if self.direct is not None:
            return self.direct.hidden(
                ids, position=position, mask=mask, cache=cache, trunk=trunk, caught=self._captured
            )
        options: dict[str, Any] = {"position_ids": position, "attention_mask": mask, "use_cache": cache is not None}
        if cache is not None:
            options["past_key_values"] = cache
        if trunk is None:
            return self.base(inputs_embeds=self.embedding(ids), **options).last_hidden_state
        # transformers runs every layer in the list, so the list is replaced for this pass.
        modules: dict[str, Any] = self.base._modules
        modules[self.layers_name], self._inject = self._upper, trunk
        try:
            return self.base(inputs_embeds=trunk, **options).last_hidden_state
        finally:
            modules[self.layers_name], self._inject = self.layers, None

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

    def _at_first_trained(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self._inject is not None:
            return (self._inject, *args[1:])
        if self._captured is not None:
            self._captured.append(args[0].detach())
        return None

    @torch.no_grad()
    def _check_head(self) -> None:
        """Raise `PolicyError` for a model whose logits are not head times hidden state (soft caps, scaled logits)."""
        ids = torch.tensor([[0, 1, 2]], device=self.device)
        expected = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits.float()
        ours = self.head(self.hidden(ids)).float()
        # 1 %: bfloat16 has 8 bits of precision; caps and scales differ by much more.
        if not torch.allclose(expected, ours, rtol=1e-2, atol=1e-2 * float(expected.abs().max() + 1)):
            raise PolicyError(
                f"{type(self.model).__name__} does not compute logits as head times hidden state; "
                "models with capped or scaled logits are not supported"
            )


def _layers(base: nn.Module) -> tuple[str, nn.ModuleList]:
    """Return the name and the list of the blocks: the longest ModuleList among the model's children."""
    lists = [(name, module) for name, module in base.named_children() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise PolicyError(f"{type(base).__name__} has no list of layers, as GPT-2, Llama and similar models have")
    return max(lists, key=lambda entry: len(entry[1]))


def _replace_modules(model: nn.Module) -> None:
    """Set dropout to 0, and replace GPT-2's activation by torch's; both agree to rounding."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module.__dict__.get("attention_dropout"), float):
            module.__dict__["attention_dropout"] = 0.0
        for name, child in module.named_children():
            # transformers computes it in eight operations, torch in one.
            if type(child).__name__ == "NewGELUActivation":
                setattr(module, name, nn.GELU(approximate="tanh"))
