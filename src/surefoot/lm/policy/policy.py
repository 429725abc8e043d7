"""A language model as a policy: a stream is a response, its context is the prompt, an action is the next token."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch, Evaluation
from surefoot.errors import ConfigError
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.vocabulary_head import logits_of, score
from surefoot.lm.sampling.layout import Sequences, predicting, response_states, sequences_of
from surefoot.nets.distributions import Categorical
from surefoot.nets.policy import PolicyInput, PolicyOutput

KL_IN_LOSS = ("k2", "k3", "exact")


class Critic(nn.Module):
    """The source of values: a head on the policy's hidden states, or a separate model."""

    @abstractmethod
    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        """Return the expected return from each response token on, [n]."""


class ValueHead(Critic):
    """A linear layer on the policy's hidden states; every value is 0 at the start."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        return self.out(states.float()).squeeze(-1)


class ValueOf(Critic):
    """A critic that is a separate model: `model(input_ids, attention_mask) → [B, L]`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        length = (rows.prompt_length + rows.response_length).unsqueeze(1)
        mask = torch.arange(rows.ids.shape[1], device=rows.ids.device) < length
        return self.model(rows.ids, mask.long())[predicting(rows)].float()


class NoCritic(Critic):
    """Every value is 0, for methods that compare responses with each other (GRPO, RLOO)."""

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        return torch.zeros(len(states), device=states.device)


class LMPolicy:
    """A language model as the learner needs it. It is sequential: a response is one stream.

    Args:
        backbone: The language model.
        critic: The source of values; None: a `ValueHead`.
        temperature: The sampling temperature, which log-probs are computed at.
        kl_in_loss: The estimator of the KL to the reference in the loss: "k2", "k3" or "exact"; None: no KL.
        entropy_gradient: Let gradients flow through the entropy; needed for an entropy bonus only.
        packed: Compute several responses in one row instead of in buckets of similar length.
        reference: A separate reference model; None: the backbone without what it has learned.
    """

    sequential = True

    def __init__(
        self,
        backbone: Backbone,
        *,
        critic: Critic | None = None,
        temperature: float = 1.0,
        kl_in_loss: str | None = None,
        entropy_gradient: bool = False,
        packed: bool = False,
        reference: Backbone | None = None,
    ) -> None:
        if kl_in_loss is not None and kl_in_loss not in KL_IN_LOSS:
            raise ConfigError(f"the KL in the loss is {kl_in_loss!r}; it must be one of {', '.join(KL_IN_LOSS)}")
        if packed and backbone.direct is None:
            raise ConfigError(
                f"packed=true needs layers that are written out here (GPT-2, Llama); {type(backbone.model).__name__} is run by "
                "transformers, so leave packed at false"
            )
        self.backbone, self.temperature, self.packed = backbone, temperature, packed
        self.critic = (critic or ValueHead(backbone.width)).to(backbone.device)
        self.kl_in_loss, self.entropy_gradient = kl_in_loss, entropy_gradient
        self._reference = reference

    @contextmanager
    def reference(self) -> Generator[Backbone]:
        """Yield the reference, with gradients off."""
        if self._reference is not None:
            with torch.no_grad():
                yield self._reference
        else:
            with self.backbone.reference():
                yield self.backbone

    @property
    def reference_head(self) -> Any:
        """Return the layer that turns the reference's hidden states into logits."""
        return self.backbone.reference_head if self._reference is None else self._reference.head

    def evaluate(self, batch: Batch) -> Evaluation:
        """Return log-prob, entropy and value of stored responses under the current weights, [T, B] each."""
        rows = sequences_of(batch)
        # Stored in float32, because numpy has no bfloat16; the cast back is exact.
        trunk = batch.context["trunk"].to(self.backbone.dtype) if "trunk" in batch.context else None
        states, _ = response_states(self.backbone, rows, trunk=trunk, packed=self.packed)
        row, position = predicting(rows)
        step = position - rows.prompt_length[row] + 1
        support = batch.obs["support"][step, row] if "support" in batch.obs else None
        reference = batch.context["reference"][row, step].to(states.dtype) if self.kl_in_loss == "exact" else None
        scores = score(
            states,
            self.backbone.head,
            batch.action[step, row].long(),
            temperature=self.temperature,
            support=support,
            reference=reference,
            reference_head=self.reference_head,
            entropy_gradient=self.entropy_gradient,
        )
        value, kl = self.critic.values(states, rows), scores.kl
        # k3 needs no case: the loss computes it from the two log-probs.
        if self.kl_in_loss == "k2" and batch.ref_log_prob is not None:
            kl = 0.5 * (scores.log_prob - batch.ref_log_prob[step, row]).square()

        def spread(x: Tensor) -> Tensor:
            return torch.zeros(batch.action.shape, dtype=x.dtype, device=x.device).index_put((step, row), x)

        return Evaluation(
            spread(scores.log_prob), spread(scores.entropy), spread(value), None if kl is None else spread(kl)
        )

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """Sample the next token of N streams, without a cache; `sampler.generate` writes whole responses."""
        rows = self._last(inputs)
        with torch.no_grad():
            states, _ = response_states(self.backbone, rows)
            tokens = Categorical(logits_of(states, self.backbone.head, temperature=self.temperature, support=None))
            action = tokens.mode() if deterministic else tokens.sample(generator)
            value = self.critic.values(states, rows)
        return PolicyOutput(
            action=action, value=value, log_prob=tokens.log_prob(action), distribution=tokens, context=inputs.context
        )

    def value(self, inputs: PolicyInput) -> Tensor:
        """Return the value of the next token's state, [N]."""
        rows = self._last(inputs)
        return self.critic.values(response_states(self.backbone, rows)[0], rows)

    def _last(self, inputs: PolicyInput) -> Sequences:
        prompt, length = inputs.context["prompt"].long(), inputs.context["prompt_length"].long()
        # One response token, whose predicting state is the last of the prompt.
        return Sequences(prompt, length, torch.ones_like(length))

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """Raise: the context is the prompt, which only rollouts carry."""
        raise ConfigError("the context of a language model is its prompt; collect with surefoot.lm.sampling.sampler")

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the prompt unchanged."""
        return context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Return the tokens unchanged."""
        return action

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Do nothing: tokens are not normalised."""

    def action_std(self) -> None:
        """Return None: tokens have no standard deviation."""

    def choices(self) -> tuple[int, ...]:
        """Return (): allowed tokens are bits in `obs['support']`, not an action mask."""
        return ()

    def describe(self) -> dict[str, Any]:
        """Return what this policy consists of, as JSON."""
        backbone = self.backbone
        return {
            "kind": "language model",
            "model": type(backbone.model).__name__,
            "train": backbone.train,
            "rank": backbone.rank,
            "alpha": backbone.alpha,
            "first_trained": backbone.first_trained,
            "critic": type(self.critic).__name__,
        }

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters that learn, the critic's last."""
        yield from self.backbone.trained().values()
        yield from self.critic.parameters()

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        """Return the parameters that only the critic uses."""
        return self.critic.parameters()

    def modules(self) -> Iterator[nn.Module]:
        """Yield every module of model and critic."""
        yield from self.backbone.model.modules()
        yield from self.critic.modules()

    def state_dict(self) -> dict[str, Tensor]:
        """Return only the weights that learn; the frozen ones are those of the base model."""
        # Checkpoints hold only these; the frozen weights come from the base model.
        learned = {f"model.{name}": p.detach() for name, p in self.backbone.trained().items()}
        return learned | {f"critic.{name}": x.detach() for name, x in self.critic.state_dict().items()}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Load what `state_dict` returned."""
        for name, parameter in self.backbone.trained().items():
            parameter.copy_(state_dict[f"model.{name}"].to(parameter.dtype))
        critic = {name.removeprefix("critic."): x for name, x in state_dict.items() if name.startswith("critic.")}
        self.critic.load_state_dict(critic)

    def to(self, device: torch.device) -> LMPolicy:
        """Move model, critic and reference to a device."""
        self.backbone.model.to(device)
        self.critic.to(device)
        if self._reference is not None:
            self._reference.model.to(device)
        return self
