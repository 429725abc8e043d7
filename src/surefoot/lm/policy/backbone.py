"""One causal language model in memory. Adapters on, it is the policy; adapters off, the reference."""

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
    """Wraps a Hugging Face causal LM and freezes what shall not learn.

    `train` is "lora" (adapters in every layer, or in the `top` layers only), "full" (all weights, or those of the `top`
    layers) or "none". `reference()` is the model as it came: adapters off, or the original weights swapped back in, so
    that it costs only a copy of what learns. Dropout is set to 0, so that a response scored again has the log-prob it
    was sampled with, in eval mode and in train mode.
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
        """Index of the lowest layer that learns; what is below can be computed once a rollout."""
        _no_dropout(model)
        _one_gelu(model)
        model.eval()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        self.originals: dict[nn.Parameter, Tensor] = {}
        self._prepare(targets, top, seed)
        self._upper = nn.ModuleList(self.layers[self.first_trained :])
        self._inject: Tensor | None = None
        self._captured: list[Tensor] | None = None
        self.layers[self.first_trained].register_forward_pre_hook(self._at_first_trained)
        self.direct = Direct.of(self.base, self.first_trained)
        """The layers written out, for the families where they are; else transformers runs them."""
        self._remembered: tuple[Tensor, Tensor] | None = None
        self._check_head()

    def _prepare(self, targets: str | Sequence[str], top: int | None, seed: int) -> None:
        """Make what learns: adapters, or weights that are kept a copy of."""
        if self.train == "lora":
            generator = torch.Generator().manual_seed(seed)
            for layer in self.layers[self.first_trained :]:
                for path in targets_in(layer, targets):
                    adapt(layer, path, rank=self.rank, alpha=self.alpha, generator=generator)
        elif self.train == "full":
            learning = self.model if top is None else nn.ModuleList(self.layers[self.first_trained :])
            for parameter in learning.parameters():
                parameter.requires_grad_(True)
                self.originals[parameter] = parameter.detach().clone()

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        return int(self.embedding.weight.shape[1])

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return int(self.head.weight.shape[0])

    @property
    def context_length(self) -> int | None:
        """The longest sequence the model knows positions for; None if it does not say."""
        config = self.model.config
        found = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
        return int(found) if found else None

    @property
    def embedding(self) -> Any:
        """The layer that turns tokens into vectors."""
        return self.model.get_input_embeddings()

    @property
    def head(self) -> Any:
        """The layer that turns hidden states into logits."""
        return self.model.get_output_embeddings()

    @property
    def reference_head(self) -> Any:
        """The head as it came, where that is another than the one of now."""
        head = self.head
        if head.weight not in self.originals:
            return head
        bias = None if head.bias is None else self.originals[head.bias]
        return SimpleNamespace(weight=self.originals[head.weight], bias=bias)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """What hidden states are made of."""
        return self.embedding.weight.dtype

    @property
    def caches_trunk(self) -> bool:
        """True if layers below the first that learns can be computed once and used again."""
        return self.first_trained > 0

    def adapters(self) -> Iterator[tuple[str, Adapter]]:
        """Every adapter with its path in the model."""
        return adapters_in(self.model)

    def trained(self) -> dict[str, nn.Parameter]:
        """What learns, by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    @contextmanager
    def reference(self) -> Generator[None]:
        """While the block lasts, the model is the one it was before anything learned. Gradients are off."""
        adapters = [adapter for _, adapter in self.adapters() if not adapter.settled]
        now = {parameter: parameter.data for parameter in self.originals}
        for adapter in adapters:
            adapter.on = False
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
        """[B, L, width]: the last hidden states of [B, L] tokens.

        Without `mask` attention is causal over the row, so rows are padded on the right, where nothing looks. `mask`
        is [B or 1, 1, L, keys], True = sees. With `trunk`, the states that entered the first layer that learns
        (`trunk_of`), the layers below it are not run.
        """
        if position is None:
            position = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0).expand(ids.shape[0], -1)
        if self.direct is not None:
            return self.direct.hidden(
                ids, position=position, mask=mask, cache=cache, trunk=trunk, caught=self._captured
            )
        said: dict[str, Any] = {"position_ids": position, "attention_mask": mask, "use_cache": cache is not None}
        if cache is not None:
            said["past_key_values"] = cache
        if trunk is None:
            return self.base(inputs_embeds=self.embedding(ids), **said).last_hidden_state
        modules: dict[str, Any] = self.base._modules
        modules[self.layers_name], self._inject = self._upper, trunk
        try:
            return self.base(inputs_embeds=trunk, **said).last_hidden_state
        finally:
            modules[self.layers_name], self._inject = self.layers, None

    def remember(self, ids: Tensor, states: Tensor) -> None:
        """Keep the reference's states of [B, L] tokens for the next who asks for those very tokens."""
        self._remembered = (ids, states)

    def recall(self, ids: Tensor, read: Tensor) -> Tensor | None:
        """[B, L, width] of `remember`, once, if it was for rows whose first `read` [B] tokens are these."""
        found, self._remembered = self._remembered, None
        if found is None or len(found[0]) != len(ids) or found[0].shape[1] < int(read.max()):
            return None
        size = int(read.max())
        counts = torch.arange(size, device=ids.device) < read.unsqueeze(1)
        same = bool(((found[0][:, :size] == ids[:, :size]) | ~counts).all())
        return found[1] if same else None

    @contextmanager
    def catching_trunk(self) -> Generator[list[Tensor]]:
        """Collects, pass by pass, the hidden states that enter the first layer that learns."""
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
        """Refuse a model whose logits are more than its head times its hidden states (soft caps, scaled logits)."""
        ids = torch.tensor([[0, 1, 2]], device=self.device)
        own = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits.float()
        ours = self.head(self.hidden(ids)).float()
        if not torch.allclose(own, ours, rtol=1e-2, atol=1e-2 * float(own.abs().max() + 1)):
            raise PolicyError(
                f"{type(self.model).__name__} does not compute logits as head times hidden state; "
                "models with capped or scaled logits are not supported"
            )


def _layers(base: nn.Module) -> tuple[str, nn.ModuleList]:
    """The list of blocks: the longest ModuleList the model holds itself."""
    lists = [(name, module) for name, module in base.named_children() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise PolicyError(f"{type(base).__name__} has no list of layers; GPT-2, Llama and their like do")
    return max(lists, key=lambda found: len(found[1]))


def _one_gelu(model: nn.Module) -> None:
    """GPT-2's activation by torch's one operation for it instead of eight; the numbers agree to rounding."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child).__name__ == "NewGELUActivation":
                setattr(module, name, nn.GELU(approximate="tanh"))


def _no_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif isinstance(module.__dict__.get("attention_dropout"), float):
            module.__dict__["attention_dropout"] = 0.0
