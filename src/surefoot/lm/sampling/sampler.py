"""Samples responses with a KV cache; finished rows are refilled with the next prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from surefoot.data.kinds import Interval, integer, real
from surefoot.data.knobs import knob, settle
from surefoot.errors import ConfigError
from surefoot.lm.policy.kv_cache import Prefill, Slots
from surefoot.lm.policy.policy import LMPolicy, ValueOf
from surefoot.lm.policy.transformers_layers import PaddedRows
from surefoot.lm.policy.vocabulary_head import FORBIDDEN, pack_support
from surefoot.lm.sampling.layout import Sequences


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How responses are sampled. The stored log-probs are those of exactly this distribution.

    Args:
        max_new_tokens: The longest response, in tokens.
        min_new_tokens: A response cannot end before this many tokens.
        temperature: Divides the logits; 0 takes the most likely token.
        top_k: Sample only from this many most likely tokens; 0 for all.
        top_p: Sample only from the most likely tokens that make up this probability.
        rows: Responses written in parallel.
    """

    max_new_tokens: int = knob(64, "The longest response, in tokens.", integer(Interval(1)))
    min_new_tokens: int = knob(0, "A response cannot end before this many tokens.", integer(Interval(0)))
    temperature: float = knob(1.0, "Divides the logits; 0 takes the most likely token.", real(Interval(0)))
    top_k: int = knob(0, "Sample only from this many most likely tokens; 0 for all.", integer(Interval(0)))
    top_p: float = knob(
        1.0,
        "Sample only from the most likely tokens that make up this probability.",
        real(Interval(0, 1, open_low=True)),
    )
    rows: int = knob(32, "Responses written in parallel.", integer(Interval(1)))

    def __post_init__(self) -> None:
        settle(self)
        if self.min_new_tokens >= self.max_new_tokens:
            raise ConfigError(
                f"min_new_tokens is {self.min_new_tokens} but max_new_tokens is {self.max_new_tokens}; it must be less"
            )

    @property
    def truncates(self) -> bool:
        """Return True if some tokens can be excluded, so that the allowed ones must be stored."""
        return self.top_k > 0 or self.top_p < 1.0 or self.min_new_tokens > 0


@dataclass(slots=True)
class Response:
    """The response to one prompt, token by token."""

    prompt: np.ndarray
    tokens: list[int] = field(default_factory=list[int])
    log_prob: list[float] = field(default_factory=list[float])
    value: list[float] = field(default_factory=list[float])
    support: list[np.ndarray] = field(default_factory=list[np.ndarray])
    """Bits of the tokens that could have been sampled; empty if all could."""
    ended: bool = False
    """True if it ended with an end-of-text token, not at the limit."""
    trunk: Tensor | None = None
    """[read, width]: the inputs of the first layer that learns; None unless `generate` was called with `keep_trunk`."""


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
    """Return one response per prompt, in the same order.

    The random numbers belong to the response and not to its row, so the result does not depend on the number of rows.

    Args:
        policy: The policy to sample from.
        prompts: Token ids of each prompt.
        sampling: How to sample.
        eos: Token ids that end a response.
        generator: The source of all random numbers.
        on_token: Called with (index of the response, token) after each token.
        keep_trunk: Store the outputs of the frozen lower layers with each response, so that learning can reuse them.
    """
    backbone = policy.backbone
    limit = backbone.context_length
    for number, prompt in enumerate(prompts):
        if len(prompt) == 0:
            raise ConfigError(f"prompt {number} has no tokens; pass at least one token")
        if limit is not None and len(prompt) + sampling.max_new_tokens > limit:
            raise ConfigError(
                f"prompt {number} has {len(prompt)} tokens; with max_new_tokens={sampling.max_new_tokens} that exceeds "
                f"the {limit} positions of this model"
            )
    # Drawn before sampling, [responses, tokens]: the order in which rows are refilled does not matter.
    uniform = torch.rand(len(prompts), sampling.max_new_tokens, generator=generator)
    writer = _Writer(policy, prompts, sampling, eos, uniform, on_token)
    if keep_trunk and backbone.caches_trunk and prompts:
        writer.trunk = torch.zeros(
            len(prompts), writer.longest, backbone.trunk_width, dtype=backbone.dtype, device=backbone.device
        )
    return writer.write()


class _Writer:
    """The state of one call of `generate`: which row writes which response."""

    def __init__(
        self,
        policy: LMPolicy,
        prompts: Sequence[np.ndarray],
        sampling: Sampling,
        eos: Sequence[int],
        uniform: Tensor,
        on_token: Callable[[int, int], None] | None,
    ) -> None:
        self.policy, self.sampling, self.eos = policy, sampling, list(eos)
        self.uniform, self.on_token = uniform, on_token
        self.responses = [Response(prompt=np.asarray(prompt, dtype=np.int64)) for prompt in prompts]
        rows = min(sampling.rows, len(prompts))
        self.longest = max((len(p) for p in prompts), default=0) + sampling.max_new_tokens
        self.slots = Slots(rows, self.longest)
        self.trunk: Tensor | None = None
        """[responses, longest, width], if it is stored."""
        self.owner = [-1] * rows  # the response that each row is writing; -1: none
        self.next = 0
        self.device = policy.backbone.device

    def write(self) -> list[Response]:
        if self.policy.backbone.direct is None:
            for begin in range(0, len(self.responses), max(1, self.slots.rows)):
                self._write_together([*range(begin, min(begin + self.slots.rows, len(self.responses)))])
        else:
            self._write_refilled()
        if self.trunk is not None:
            for i, response in enumerate(self.responses):
                response.trunk = self.trunk[i, : len(response.prompt) + len(response.tokens) - 1]
        return self.responses

    def _write_together(self, who: list[int]) -> None:
        """Write these responses in one batch, in transformers' own cache, whose rows cannot be refilled."""
        prompts = [torch.from_numpy(self.responses[i].prompt) for i in who]
        rows = PaddedRows(self.policy.backbone, prompts)
        with self.policy.backbone.catching_trunk() as caught:
            states = rows.begin()
        if self.trunk is not None:
            for row, (i, prompt) in enumerate(zip(who, prompts, strict=True)):
                self.trunk[i, : len(prompt)] = caught[0][row, rows.size - len(prompt) :]
        writing = [True] * len(who)
        while True:
            active = [row for row, busy in enumerate(writing) if busy]
            ended = self._choose([who[row] for row in active], states[active])
            for row, end in zip(active, ended, strict=True):
                writing[row] = not end
            if not any(writing):
                return
            # Idle rows are dropped once they are half of the work.
            if sum(writing) * 2 <= len(who):
                active = [row for row, busy in enumerate(writing) if busy]
                rows.keep(torch.tensor(active, device=self.device))
                who, writing = [who[row] for row in active], [True] * len(active)
            position = rows.length.tolist()
            last = torch.tensor([self.responses[i].tokens[-1] for i in who], device=self.device)
            with self.policy.backbone.catching_trunk() as caught:
                states = rows.step(last)
            if self.trunk is not None:
                for row in (row for row, busy in enumerate(writing) if busy):
                    self.trunk[who[row], position[row]] = caught[0][row, 0]

    def _write_refilled(self) -> None:
        """Write all responses; a row that ends is refilled with the next prompt."""
        while True:
            free = [row for row, owner in enumerate(self.owner) if owner < 0]
            waiting = len(self.responses) - self.next
            # Wait until a quarter of the rows is free: refilling one row at a time costs a pass of the model each.
            if waiting and len(free) >= min(waiting, max(1, self.slots.rows // 4)):
                self._begin(free[:waiting])
                continue
            if len(free) == self.slots.rows:
                break
            # At the end drop idle rows, once they are half of the work.
            if free and not waiting and len(free) * 2 >= self.slots.rows:
                writing = [row for row, owner in enumerate(self.owner) if owner >= 0]
                self.slots.keep(torch.tensor(writing, device=self.device))
                self.owner = [self.owner[row] for row in writing]
            self._step()

    def _begin(self, rows: list[int]) -> None:
        """Read the next prompts into `rows` and sample their first tokens."""
        who = list(range(self.next, self.next + len(rows)))
        self.next += len(rows)
        prompts = [self.responses[i].prompt for i in who]
        length = torch.tensor([len(p) for p in prompts])
        ids = torch.zeros(len(rows), int(length.max()), dtype=torch.int64)
        for i, prompt in enumerate(prompts):
            ids[i, : len(prompt)] = torch.from_numpy(prompt)
        cache, size = Prefill(), ids.shape[1]
        # The prompts have no past, so the mask is plain causal.
        causal = torch.ones(size, size, dtype=torch.bool, device=self.device).tril()[None, None]
        with self.policy.backbone.catching_trunk() as caught:
            states = self.policy.backbone.hidden(ids.to(self.device), mask=causal, cache=cache)
        if self.trunk is not None:
            self.trunk[who, :size] = caught[0]
        self.slots.fill(torch.tensor(rows, device=self.device), cache, length)
        for row, i in zip(rows, who, strict=True):
            self.owner[row] = i
        self._choose_in(rows, states[torch.arange(len(rows)), length - 1])

    def _step(self) -> None:
        """Read the last token of every row and sample the next one."""
        last = [self.responses[owner].tokens[-1] if owner >= 0 else 0 for owner in self.owner]
        position, mask = self.slots.begin()
        ids = torch.tensor(last, device=self.device).unsqueeze(1)
        with self.policy.backbone.catching_trunk() as caught:
            states = self.policy.backbone.hidden(ids, position=position, mask=mask, cache=self.slots)[:, 0]
        writing = [row for row, owner in enumerate(self.owner) if owner >= 0]
        if self.trunk is not None:
            who = [self.owner[row] for row in writing]
            self.trunk[who, position[writing, 0]] = caught[0][writing, 0]
        self.slots.at[writing] += 1
        self._choose_in(writing, states[writing] if len(writing) < len(last) else states)

    def _choose_in(self, rows: list[int], states: Tensor) -> None:
        """Sample the next token of these rows, and free the rows whose response has ended."""
        ended = self._choose([self.owner[row] for row in rows], states)
        for row in (row for row, end in zip(rows, ended, strict=True) if end):
            self.owner[row] = -1
            self.slots.at[row] = 0

    def _choose(self, who: list[int], states: Tensor) -> list[bool]:
        """Sample the next token of these responses; return True for those that have ended."""
        policy, sampling = self.policy, self.sampling
        logits = policy.backbone.head(states)
        responses = [self.responses[i] for i in who]
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
            drawn = self.uniform[who, steps].to(self.device)
            # By inverse CDF. The last entry of the sum may differ from 1 by rounding, hence the product.
            total = p.cumsum(-1)
            token = torch.searchsorted(total, drawn.unsqueeze(-1) * total[:, -1:], right=True).squeeze(-1)
            token = token.clamp(max=p.shape[-1] - 1)
        chosen = p.gather(-1, token.unsqueeze(-1)).squeeze(-1).log().tolist()
        # A separate value model reads whole rows: `consult` fills its values in later.
        separate = isinstance(policy.critic, ValueOf)
        value = [0.0] * len(who) if separate else policy.critic.values(states, _NO_ROWS).tolist()
        bits = None if allowed is None else pack_support(allowed).cpu().numpy()
        for i, (response, chosen_token) in enumerate(zip(responses, token.tolist(), strict=True)):
            response.tokens.append(chosen_token)
            response.log_prob.append(chosen[i])
            response.value.append(value[i])
            if bits is not None:
                response.support.append(bits[i])
            if self.on_token is not None:
                self.on_token(who[i], chosen_token)
            response.ended = chosen_token in self.eos
        return [r.ended or len(r.tokens) == sampling.max_new_tokens for r in responses]

    def _allowed(self, logits: Tensor, responses: list[Response]) -> Tensor | None:
        """Return the tokens that may be sampled, [rows, V]; None if all may."""
        sampling = self.sampling
        if not sampling.truncates:
            return None
        allowed = torch.ones_like(logits, dtype=torch.bool)
        short = [i for i, response in enumerate(responses) if len(response.tokens) < sampling.min_new_tokens]
        for end in self.eos:
            allowed[short, end] = False
        if sampling.top_k and sampling.top_k < logits.shape[-1]:
            least = logits.masked_fill(~allowed, FORBIDDEN).topk(sampling.top_k, -1).values[:, -1:]
            allowed &= logits >= least
        if sampling.top_p < 1.0:
            ordered, index = logits.masked_fill(~allowed, FORBIDDEN).softmax(-1).sort(-1, descending=True)
            # A token is allowed if those before it do not make up top_p yet, so the first one always is.
            allowed &= torch.zeros_like(allowed).scatter(-1, index, ordered.cumsum(-1) - ordered < sampling.top_p)
        return allowed


# A value head does not look at rows.
_NO_ROWS = Sequences(*(torch.zeros(0, dtype=torch.int64) for _ in range(3)))
