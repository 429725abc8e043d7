"""Responses sampled with a KV cache; rows that finish make room for the next prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from torch import Tensor

from surefoot.data.kinds import Interval, integer, real
from surefoot.data.knobs import knob, settle
from surefoot.errors import ConfigError
from surefoot.lm.policy.kv_cache import Prefill, Slots
from surefoot.lm.policy.policy import Critic, LMPolicy
from surefoot.lm.policy.vocabulary_head import FORBIDDEN, pack_support
from surefoot.lm.sampling.layout import Sequences


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How responses are drawn. Log-probs are those of exactly this distribution, whatever is set here."""

    max_new_tokens: int = knob(64, "The longest response, in tokens.", integer(Interval(1)))
    min_new_tokens: int = knob(0, "Before this many tokens a response cannot end.", integer(Interval(0)))
    temperature: float = knob(1.0, "Logits are divided by it; 0 takes the likeliest token.", real(Interval(0)))
    top_k: int = knob(0, "Only the likeliest so many tokens are sampled; 0 for all.", integer(Interval(0)))
    top_p: float = knob(
        1.0, "Only the likeliest tokens that make up this probability are sampled.", real(Interval(0, 1, open_low=True))
    )
    rows: int = knob(32, "Responses written side by side.", integer(Interval(1)))

    def __post_init__(self) -> None:
        settle(self)
        if self.min_new_tokens >= self.max_new_tokens:
            raise ConfigError(
                f"min_new_tokens is {self.min_new_tokens} but max_new_tokens is {self.max_new_tokens}; it must be less"
            )

    @property
    def truncates(self) -> bool:
        """True if some tokens can be ruled out, so that which ones has to be kept."""
        return self.top_k > 0 or self.top_p < 1.0 or self.min_new_tokens > 0


@dataclass(slots=True)
class Response:
    """What was said to one prompt, token by token."""

    prompt: np.ndarray
    tokens: list[int] = field(default_factory=list[int])
    log_prob: list[float] = field(default_factory=list[float])
    value: list[float] = field(default_factory=list[float])
    support: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """Bits of the tokens that could have been sampled; empty where all could."""
    ended: bool = False
    """With an end-of-text token, not because it had to stop."""
    trunk: Tensor | None = None
    """[read, width]: what entered the first layer that learns, token by token; None unless it was asked for."""


@torch.inference_mode()
def generate(
    policy: LMPolicy,
    prompts: Sequence[np.ndarray],
    sampling: Sampling,
    *,
    eos: Sequence[int],
    generator: torch.Generator,
    on_token: Callable[[int, int], None] | None = None,
    keep_trunk: bool = False,
) -> list[Response]:
    """One response a prompt, in their order.

    The random numbers of a response belong to it, not to the row it happens to be written in: what is said does not
    depend on how many rows there are. `on_token(response, token)` hears of each token as it comes. With `keep_trunk`
    each response carries what its layers that do not learn made of it, so that nobody runs them again.
    """
    backbone = policy.backbone
    limit = backbone.context_length
    for number, prompt in enumerate(prompts):
        if len(prompt) == 0:
            raise ConfigError(f"prompt {number} has no tokens; a response needs something to follow")
        if limit is not None and len(prompt) + sampling.max_new_tokens > limit:
            raise ConfigError(
                f"prompt {number} has {len(prompt)} tokens; with max_new_tokens={sampling.max_new_tokens} that is more "
                f"than the {limit} this model knows positions for"
            )
    uniform = torch.rand(len(prompts), sampling.max_new_tokens, generator=generator)
    writer = _Writer(policy, prompts, sampling, eos, uniform, on_token)
    if keep_trunk and backbone.caches_trunk and prompts:
        writer.trunk = torch.zeros(
            len(prompts), writer.longest, backbone.width, dtype=backbone.dtype, device=backbone.device
        )
    return writer.write()


class _Writer:
    """The rows of one call of `generate`."""

    def __init__(
        self,
        policy: LMPolicy,
        prompts: Sequence[np.ndarray],
        sampling: Sampling,
        eos: Sequence[int],
        uniform: Tensor,
        on_token: Callable[[int, int], None] | None,
    ) -> None:
        self.policy, self.sampling, self.eos, self.uniform, self.on_token = (
            policy,
            sampling,
            list(eos),
            uniform,
            on_token,
        )
        self.responses = [Response(prompt=np.asarray(prompt, dtype=np.int64)) for prompt in prompts]
        rows = min(sampling.rows, len(prompts))
        self.longest = max((len(p) for p in prompts), default=0) + sampling.max_new_tokens
        self.slots = Slots(rows, self.longest)
        self.trunk: Tensor | None = None
        """[responses, longest, width], where it is kept."""
        self.whose = [-1] * rows
        """Which response each row is writing; -1: none."""
        self.next = 0
        self.device = policy.backbone.device

    def write(self) -> list[Response]:
        while True:
            free = [row for row, who in enumerate(self.whose) if who < 0]
            waiting = len(self.responses) - self.next
            # A handful of prompts is read at once: one at a time would cost a pass of the whole model each.
            if waiting and len(free) >= min(waiting, max(1, self.slots.rows // 4)):
                self._begin(free[:waiting])
                continue
            if len(free) == self.slots.rows:
                return self._done()
            if free and not waiting and len(free) * 2 >= self.slots.rows:
                self._compact()
            self._step()

    def _done(self) -> list[Response]:
        if self.trunk is not None:
            for i, response in enumerate(self.responses):
                response.trunk = self.trunk[i, : len(response.prompt) + len(response.tokens) - 1]
        return self.responses

    def _begin(self, rows: list[int]) -> None:
        """Read the next prompts into `rows` and choose their first tokens."""
        who = list(range(self.next, self.next + len(rows)))
        self.next += len(rows)
        prompts = [self.responses[i].prompt for i in who]
        length = torch.tensor([len(p) for p in prompts])
        ids = torch.zeros(len(rows), int(length.max()), dtype=torch.int64)
        for i, prompt in enumerate(prompts):
            ids[i, : len(prompt)] = torch.from_numpy(prompt)
        cache = Prefill()
        size = ids.shape[1]
        causal = torch.ones(size, size, dtype=torch.bool, device=self.device).tril()[None, None]
        with self.policy.backbone.catching_trunk() as caught:
            states = self.policy.backbone.hidden(ids.to(self.device), mask=causal, cache=cache)
        if self.trunk is not None:
            self.trunk[who, :size] = caught[0]
        self.slots.fill(torch.tensor(rows, device=self.device), cache, length)
        for row, i in zip(rows, who, strict=True):
            self.whose[row] = i
        self._choose(rows, states[torch.arange(len(rows)), length - 1])

    def _step(self) -> None:
        """Read the last token of every row and choose the next one."""
        last = [self.responses[who].tokens[-1] if who >= 0 else 0 for who in self.whose]
        position, mask = self.slots.begin()
        ids = torch.tensor(last, device=self.device).unsqueeze(1)
        with self.policy.backbone.catching_trunk() as caught:
            states = self.policy.backbone.hidden(ids, position=position, mask=mask, cache=self.slots)[:, 0]
        writing = [row for row, who in enumerate(self.whose) if who >= 0]
        if self.trunk is not None:
            who = [self.whose[row] for row in writing]
            self.trunk[who, position[writing, 0]] = caught[0][writing, 0]
        self.slots.at[writing] += 1
        self._choose(writing, states[writing] if len(writing) < len(last) else states)

    def _choose(self, rows: list[int], states: Tensor) -> None:
        policy, sampling = self.policy, self.sampling
        head = policy.backbone.head
        logits = torch.nn.functional.linear(states, head.weight, head.bias).float()
        responses = [self.responses[self.whose[row]] for row in rows]
        if sampling.temperature not in (0.0, 1.0):
            logits = logits / sampling.temperature
        allowed = self._allowed(logits, responses)
        if allowed is not None:
            logits = logits.masked_fill(~allowed, FORBIDDEN)
        p = logits.softmax(-1)
        if sampling.temperature == 0.0:
            token = p.argmax(-1)
        else:
            steps = [len(response.tokens) for response in responses]
            drawn = self.uniform[[self.whose[row] for row in rows], steps].to(self.device)
            token = _draw(p, drawn)
        chosen = p.gather(-1, token.unsqueeze(-1)).squeeze(-1).log().tolist()
        value = cast(Critic, policy.critic).values(states, _NO_ROWS).tolist() if not _own_model(policy) else None
        bits = None if allowed is None else pack_support(allowed).cpu().numpy()
        for i, (row, response, said) in enumerate(zip(rows, responses, token.tolist(), strict=True)):
            response.tokens.append(said)
            response.log_prob.append(chosen[i])
            response.value.append(0.0 if value is None else value[i])
            if bits is not None:
                response.support.append(bits[i])
            if self.on_token is not None:
                self.on_token(self.whose[row], said)
            response.ended = said in self.eos
            if response.ended or len(response.tokens) == sampling.max_new_tokens:
                self.whose[row] = -1
                self.slots.at[row] = 0

    def _allowed(self, logits: Tensor, responses: list[Response]) -> Tensor | None:
        """[rows, V]: what may be sampled; None if that is everything."""
        sampling = self.sampling
        if not sampling.truncates:
            return None
        allowed = torch.ones_like(logits, dtype=torch.bool)
        young = [i for i, response in enumerate(responses) if len(response.tokens) < sampling.min_new_tokens]
        for end in self.eos:
            allowed[young, end] = False
        if sampling.top_k and sampling.top_k < logits.shape[-1]:
            least = logits.masked_fill(~allowed, FORBIDDEN).topk(sampling.top_k, -1).values[:, -1:]
            allowed &= logits >= least
        if sampling.top_p < 1.0:
            ordered, index = logits.masked_fill(~allowed, FORBIDDEN).softmax(-1).sort(-1, descending=True)
            # A token is in if those before it do not yet make up top_p, so that the first one always is.
            allowed &= torch.zeros_like(allowed).scatter(-1, index, ordered.cumsum(-1) - ordered < sampling.top_p)
        return allowed

    def _compact(self) -> None:
        """Drop the rows nobody writes in any more."""
        writing = [row for row, who in enumerate(self.whose) if who >= 0]
        self.slots.keep(torch.tensor(writing, device=self.device))
        self.whose = [self.whose[row] for row in writing]


_NO_ROWS = Sequences(*(torch.zeros(0, dtype=torch.int64) for _ in range(3)))


def _own_model(policy: LMPolicy) -> bool:
    from surefoot.lm.policy.policy import ValueOf

    return isinstance(policy.critic, ValueOf)


def _draw(p: Tensor, uniform: Tensor) -> Tensor:
    """[rows]: tokens by inverse CDF, one uniform number each. A token of probability 0 is never first beyond the mark."""
    heaped = p.cumsum(-1)
    return (
        torch.searchsorted(heaped, (uniform.unsqueeze(-1) * heaped[:, -1:]), right=True)
        .squeeze(-1)
        .clamp(max=p.shape[-1] - 1)
    )
