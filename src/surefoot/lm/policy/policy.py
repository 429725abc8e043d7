"""A language model as a policy: a stream is a response, its context the prompt, an action the next token."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, cast

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


class Critic(Protocol):
    """Where values come from: a head on the policy's own states, or a model of its own."""

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        """[n]: what the rest of the response is worth before each of its tokens."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


class ValueHead(nn.Module):
    """A linear layer on the policy's own hidden states; begins at 0 everywhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        return self.out(states.float()).squeeze(-1)


class ValueOf(nn.Module):
    """A critic that is a model of its own: `model(input_ids, attention_mask) → [B, L]`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        length = (rows.prompt_length + rows.response_length).unsqueeze(1)
        seen = torch.arange(rows.ids.shape[1], device=rows.ids.device) < length
        said = self.model(rows.ids, seen.long())
        row, at = predicting(rows)
        return said[row, at].float()


class NoCritic(nn.Module):
    """For methods that compare responses with each other (GRPO, RLOO): every value is 0."""

    def values(self, states: Tensor, rows: Sequences) -> Tensor:
        return torch.zeros(len(states), device=states.device)


class LMPolicy:
    """What the learner needs of a language model. `sequential`: a response is learned from as a whole."""

    sequential = True

    def __init__(
        self,
        backbone: Backbone,
        *,
        critic: nn.Module | None = None,
        temperature: float = 1.0,
        kl_in_loss: str | None = None,
        entropy_gradient: bool = False,
        packed: bool = False,
        reference: Backbone | None = None,
    ) -> None:
        if kl_in_loss is not None and kl_in_loss not in KL_IN_LOSS:
            raise ConfigError(f"the KL in the loss is {kl_in_loss!r}; it must be one of {', '.join(KL_IN_LOSS)}")
        self.backbone, self.temperature, self.packed = backbone, temperature, packed
        self.critic = (critic or ValueHead(backbone.width)).to(backbone.device)
        self.kl_in_loss, self.entropy_gradient = kl_in_loss, entropy_gradient
        self._reference = reference
        """A model of its own to compare with; None: the backbone as it came."""

    @contextmanager
    def reference(self) -> Generator[Backbone]:
        """The reference while the block lasts, without gradients."""
        if self._reference is not None:
            with torch.no_grad():
                yield self._reference
        else:
            with self.backbone.reference():
                yield self.backbone

    @property
    def reference_head(self) -> Any:
        """The head that turns the reference's states into logits."""
        return self.backbone.reference_head if self._reference is None else self._reference.head

    def evaluate(self, batch: Batch) -> Evaluation:
        """Log-prob, entropy and value [T, B] of stored responses under the weights of now."""
        rows = sequences_of(batch)
        # Kept in float32, which numpy knows; bfloat16 comes back from it without a loss.
        trunk = batch.context["trunk"].to(self.backbone.dtype) if "trunk" in batch.context else None
        states, _ = response_states(self.backbone, rows, trunk=trunk, packed=self.packed)
        row, at = predicting(rows)
        step = at - rows.prompt_length[row] + 1
        support = batch.obs["support"][step, row] if "support" in batch.obs else None
        reference = batch.context["reference"][row, step].to(states.dtype) if self.kl_in_loss == "exact" else None
        said = score(
            states,
            self.backbone.head,
            batch.action[step, row].long(),
            temperature=self.temperature,
            support=support,
            reference=reference,
            reference_head=self.reference_head,
            entropy_gradient=self.entropy_gradient,
        )
        value = cast(Critic, self.critic).values(states, rows)
        kl = said.kl
        if self.kl_in_loss == "k2" and batch.ref_log_prob is not None:
            kl = 0.5 * (said.log_prob - batch.ref_log_prob[step, row]).square()
        shape = batch.action.shape

        def laid_out(x: Tensor) -> Tensor:
            return torch.zeros(shape, dtype=x.dtype, device=x.device).index_put((step, row), x)

        return Evaluation(
            laid_out(said.log_prob), laid_out(said.entropy), laid_out(value), None if kl is None else laid_out(kl)
        )

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        """The next token of N streams, without a cache; `sample.generate` is the way to whole responses."""
        rows = self._last(inputs)
        with torch.no_grad():
            states, _ = response_states(self.backbone, rows)
            spread = Categorical(logits_of(states, self.backbone.head, temperature=self.temperature, support=None))
            action = spread.mode() if deterministic else spread.sample(generator)
            value = cast(Critic, self.critic).values(states, rows)
        return PolicyOutput(
            action=action, value=value, log_prob=spread.log_prob(action), distribution=spread, context=inputs.context
        )

    def value(self, inputs: PolicyInput) -> Tensor:
        """[N]: what the critic expects of a response to what was said so far."""
        rows = self._last(inputs)
        return cast(Critic, self.critic).values(response_states(self.backbone, rows)[0], rows)

    def _last(self, inputs: PolicyInput) -> Sequences:
        prompt, length = inputs.context["prompt"].long(), inputs.context["prompt_length"].long()
        return Sequences(prompt, length, torch.ones_like(length))

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        """A prompt cannot be made up: rollouts bring it along."""
        raise ConfigError("a language model's context is its prompt; make rollouts with surefoot.lm.sampling.sampler")

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        """The prompt stays as it is."""
        return context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        """Tokens are what they are."""
        return action

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Nothing is normalised."""

    def action_std(self) -> None:
        """Tokens have none."""

    def choices(self) -> tuple[int, ...]:
        """What may be chosen is kept as bits in `obs['support']`, not as a mask."""
        return ()

    def describe(self) -> dict[str, Any]:
        """What this policy is made of."""
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
        """What learns, the critic's last."""
        yield from self.backbone.trained().values()
        yield from self.critic.parameters()

    def critic_parameters(self) -> Iterator[nn.Parameter]:
        """What only the critic has."""
        return self.critic.parameters()

    def modules(self) -> Iterator[nn.Module]:
        """Every module of model and critic."""
        yield from self.backbone.model.modules()
        yield from self.critic.modules()

    def state_dict(self) -> dict[str, Tensor]:
        """What learns and nothing else: the frozen weights are the model's own, wherever it came from."""
        learned = {f"model.{name}": p.detach() for name, p in self.backbone.trained().items()}
        return learned | {f"critic.{name}": x.detach() for name, x in self.critic.state_dict().items()}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Put back what `state_dict` gave."""
        for name, parameter in self.backbone.trained().items():
            parameter.copy_(state_dict[f"model.{name}"].to(parameter.dtype))
        theirs = {name.removeprefix("critic."): x for name, x in state_dict.items() if name.startswith("critic.")}
        self.critic.load_state_dict(theirs)

    def to(self, device: torch.device) -> LMPolicy:
        """Move everything."""
        self.backbone.model.to(device)
        self.critic.to(device)
        if self._reference is not None:
            self._reference.model.to(device)
        return self
