"""Models that are run by transformers' own forward pass and cache, and the checks that they can be sampled."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.errors import PolicyError
from surefoot.lm.policy.vocabulary_head import VocabularyHead


class TransformersLayers:
    """Runs a model by its own forward pass: its masks, windows, positions and soft caps are those of transformers."""

    def __init__(self, base: Any, layers: nn.ModuleList, first_trained: int) -> None:
        self.base, self.layers, self.first_trained = base, layers, first_trained
        # ALiBi models have no positions to pass.
        self.takes_position = "position_ids" in inspect.signature(base.forward).parameters
        self._inject: Tensor | None = None
        self._caught: list[Tensor] | None = None
        self._skipped = [_Skipped(layer, self) for layer in list(layers)[:first_trained]]
        self.returns_tuple = False
        """Layers of older models return (states, attention), of newer ones the states."""
        layers[first_trained].register_forward_pre_hook(self._before, with_kwargs=True)
        layers[first_trained].register_forward_hook(self._after)

    def hidden(
        self,
        ids: Tensor,
        *,
        position: Tensor,
        mask: Tensor | None,
        cache: Any,
        trunk: Tensor | None,
        caught: list[Tensor] | None,
    ) -> Tensor:
        """As `Backbone.hidden`; the input of the first layer that learns is appended to `caught`."""
        if mask is not None and mask.ndim != 2:
            # A mask of our own would replace the model's windows and its bias by distance.
            raise PolicyError(f"{type(self.base).__name__} is run by transformers, which builds its attention masks")
        options: dict[str, Any] = {"use_cache": cache is not None}
        if self.takes_position:
            options["position_ids"] = position
        if mask is not None:
            options["attention_mask"] = mask.long()
        if cache is not None:
            options["past_key_values"] = cache
        lower = list(self.layers)[: self.first_trained] if trunk is not None else []
        # transformers runs every layer in the list, so the lower ones are replaced for this pass.
        for number in range(len(lower)):
            self.layers[number] = self._skipped[number]
        self._inject, self._caught = trunk, caught
        try:
            return self.base(input_ids=ids, **options).last_hidden_state
        finally:
            for number, layer in enumerate(lower):
                self.layers[number] = layer
            self._inject = self._caught = None

    def _before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._caught is not None:
            self._caught.append((args[0] if args else kwargs["hidden_states"]).detach())
        if self._inject is None:
            return None
        return ((self._inject, *args[1:]), kwargs) if args else ((), {**kwargs, "hidden_states": self._inject})

    def _after(self, module: nn.Module, args: Any, output: Any) -> None:
        self.returns_tuple = isinstance(output, tuple)


class _Skipped(nn.Module):
    """Stands in for a frozen layer whose output is known: returns its input, and answers for the layer's attributes."""

    def __init__(self, layer: nn.Module, runner: TransformersLayers) -> None:
        super().__init__()
        self.__dict__.update(layer=layer, runner=runner)  # not registered: the layer belongs to the model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["layer"], name)

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        return (hidden_states, None) if self.__dict__["runner"].returns_tuple else hidden_states


class PaddedRows:
    """Rows that start together in transformers' own cache. Prompts are padded on the left, as its `generate` does."""

    def __init__(self, backbone: Any, prompts: list[Tensor]) -> None:
        from surefoot.lm.policy.loading import require_transformers

        device = backbone.device
        self.backbone = backbone
        self.length = torch.tensor([len(prompt) for prompt in prompts], device=device)
        self.size = int(self.length.max())
        self.ids = torch.zeros(len(prompts), self.size, dtype=torch.int64, device=device)
        for row, prompt in enumerate(prompts):
            self.ids[row, self.size - len(prompt) :] = prompt
        self.mask = torch.arange(self.size, device=device) >= self.size - self.length.unsqueeze(1)
        self.cache: Any = require_transformers().DynamicCache(config=backbone.model.config)

    def begin(self) -> Tensor:
        """Read the prompts and return the states of their last tokens, [rows, width]."""
        position = (torch.arange(self.size, device=self.ids.device) - (self.size - self.length).unsqueeze(1)).clamp(0)
        return self.backbone.hidden(self.ids, position=position, mask=self.mask, cache=self.cache)[:, -1]

    def step(self, tokens: Tensor) -> Tensor:
        """Read one more token per row, [rows], and return its state."""
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], 1)
        position, self.length = self.length.unsqueeze(1), self.length + 1
        return self.backbone.hidden(tokens.unsqueeze(1), position=position, mask=self.mask, cache=self.cache)[:, 0]

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.cache.batch_select_indices(rows)
        self.length, self.mask = self.length[rows], self.mask[rows]


def require_causal(model: Any) -> None:
    """Raise `PolicyError` for a model that cannot be sampled token by token with an attention cache."""
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise PolicyError(f"{name} is an encoder-decoder model; pass a causal language model (decoder only)")
    if (
        getattr(model, "_is_stateful", False)
        or "past_key_values" not in inspect.signature(model.base_model.forward).parameters
    ):
        raise PolicyError(
            f"{name} keeps a recurrent state instead of an attention cache; such models are not supported"
        )
    if model.get_output_embeddings() is None:
        raise PolicyError(f"{name} has no output layer over a vocabulary; pass a causal language model")


@torch.no_grad()
def find_head(backbone: Any) -> tuple[float, float | None]:
    """Return (scale, soft cap) of the model's logits. Raise `PolicyError` if they are computed in any other way.

    The output layer is given large random states, because a soft cap does not show in the small logits of short texts.
    """
    model, layer = backbone.model, backbone.model.get_output_embeddings()
    name, vocabulary = type(model).__name__, len(layer.weight)
    ids = (torch.tensor([[3, 1, 4, 1, 5]], device=backbone.device) * 7) % vocabulary
    noise = torch.randn(1, 5, layer.weight.shape[1], generator=torch.Generator().manual_seed(0))
    # Logits of about ±100, beyond every cap in use (30 in Gemma 2).
    states = (noise.to(backbone.device) * 100 / layer.weight.float().norm(dim=1).mean().clamp(1e-6)).to(
        layer.weight.dtype
    )
    inputs: list[Tensor] = []

    def replace(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor]:
        inputs.append(args[0])
        return (states[:, -args[0].shape[1] :],)

    hook = layer.register_forward_pre_hook(replace)
    try:
        expected = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits.float()
    finally:
        hook.remove()
    if not inputs or not close(backbone.hidden(ids), inputs[0]):
        raise PolicyError(f"{name} does not pass its last hidden states to its output layer; it is not supported")
    config = model.config.get_text_config()
    scale, divisor = getattr(config, "logit_scale", None), getattr(config, "logits_scaling", None)
    cap = getattr(config, "final_logit_softcapping", None)
    for factor, limit in ((1.0, None), (scale, None), (1 / divisor if divisor else None, None), (1.0, cap)):
        if factor and close(VocabularyHead(layer.weight, layer.bias, float(factor), limit)(states), expected):
            return float(factor), limit
    raise PolicyError(f"{name} changes its logits in a way that is not supported (neither scaled nor soft-capped)")


@torch.no_grad()
def require_cache(backbone: Any) -> None:
    """Raise `PolicyError` if reading with transformers' cache gives other states than one pass over the whole row."""
    vocabulary, device = backbone.vocabulary, backbone.device
    rows = [torch.arange(3, 3 + size, device=device) * 7 % vocabulary for size in (5, 2)]
    name = type(backbone.model).__name__
    try:
        cache = PaddedRows(backbone, [row[:-1] for row in rows])
        cache.begin()
        read = cache.step(torch.stack([row[-1] for row in rows]))
    except Exception as why:  # any error of a family that nobody has tried
        raise PolicyError(f"{name} cannot be sampled with transformers' DynamicCache: {why}") from why
    whole = torch.stack([backbone.hidden(row.unsqueeze(0))[0, -1] for row in rows])
    if not close(read, whole):
        raise PolicyError(
            f"{name} computes other states with transformers' cache and left padding than without; it is not supported"
        )


def close(ours: Tensor, theirs: Tensor) -> bool:
    """Return True if two tensors agree up to the rounding of the dtype; wrong attention differs by much more."""
    # Means: one expert that flips by rounding must not count as another function.
    limit = 1e-3 if theirs.dtype == torch.float32 and ours.dtype == torch.float32 else 5e-2
    return bool((ours.float() - theirs.float()).abs().mean() <= limit * theirs.float().abs().mean() + 1e-6)
