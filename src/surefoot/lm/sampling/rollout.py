"""Responses become a rollout: tokens are actions, the prompt is the context, the score arrives with the last token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from surefoot.data.rollout import Rollout
from surefoot.lm.policy.policy import Critic, LMPolicy
from surefoot.lm.policy.vocabulary_head import score
from surefoot.lm.rewards.kl_penalty import kl_rewards
from surefoot.lm.sampling.layout import Sequences, join, predicting, response_states
from surefoot.lm.sampling.sampler import Response


@dataclass(slots=True)
class ResponseBatch:
    """N responses as arrays [T, N], and what policy and reference say about them."""

    action: np.ndarray
    log_prob: np.ndarray
    value: np.ndarray
    valid: np.ndarray
    ended: np.ndarray
    """[N]: with an end token."""
    prompt: np.ndarray
    prompt_length: np.ndarray
    support: np.ndarray | None
    ref_log_prob: np.ndarray
    trunk: np.ndarray | None = None
    """[N, L, width]: what enters the first layer that learns."""
    reference: np.ndarray | None = None
    """[N, T, width]: the reference's states, where the exact KL is wanted in the loss."""
    exact_kl: np.ndarray | None = None
    """[T, N], where it is wanted in the reward."""
    mismatch: float | None = None
    """Mean |log p when sampled - log p when scored again|, where both are known."""

    @property
    def length(self) -> np.ndarray:
        """[N]: tokens of each response."""
        return self.valid.sum(0)

    @property
    def last(self) -> np.ndarray:
        """[T, N]: True at the last token of each response."""
        steps = np.arange(len(self.valid))[:, None]
        return self.valid & (steps == self.length - 1)

    def kl(self) -> np.ndarray:
        """[N]: nats that each response is away from the reference, by k1 or exactly."""
        per_token = self.exact_kl if self.exact_kl is not None else self.log_prob - self.ref_log_prob
        return np.where(self.valid, per_token, 0.0).sum(0)


def lay_out(responses: Sequence[Response]) -> ResponseBatch:
    """Arrays padded to the longest response; nothing is known of the reference yet."""
    steps, n = max(len(r.tokens) for r in responses), len(responses)
    shape = (steps, n)
    action, valid = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    log_prob, value = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    prompt = np.zeros((n, max(len(r.prompt) for r in responses)), np.int64)
    support = None
    if responses[0].support:
        support = np.full((*shape, len(responses[0].support[0])), 255, np.uint8)
    for i, r in enumerate(responses):
        t = len(r.tokens)
        action[:t, i], log_prob[:t, i], value[:t, i], valid[:t, i] = r.tokens, r.log_prob, r.value, True
        prompt[i, : len(r.prompt)] = r.prompt
        if support is not None:
            support[:t, i] = np.stack(r.support)
    return ResponseBatch(
        trunk=_trunk(responses),
        action=action,
        log_prob=log_prob,
        value=value,
        valid=valid,
        ended=np.array([r.ended for r in responses]),
        prompt=prompt,
        prompt_length=np.array([len(r.prompt) for r in responses]),
        support=support,
        ref_log_prob=np.zeros(shape, np.float32),
    )


def _trunk(responses: Sequence[Response]) -> np.ndarray | None:
    """[N, L, width], padded on the right, if the responses carry it."""
    each = [r.trunk for r in responses if r.trunk is not None]
    if len(each) < len(responses):
        return None
    return _numpy(torch.nn.utils.rnn.pad_sequence(each, batch_first=True))


@torch.no_grad()
def consult(
    policy: LMPolicy, laid: ResponseBatch, *, exact_in_reward: bool, exact_in_loss: bool, rescore: bool, values: bool
) -> None:
    """Ask the reference, and the policy again where that is needed; fills in what `lay_out` left open.

    `rescore` replaces the log-probs of sampling by those of a second look, `values` the values.
    """
    device = policy.backbone.device
    rows = _sequences(laid, device)
    row, at = predicting(rows)
    step = at - rows.prompt_length[row] + 1
    token = torch.from_numpy(laid.action).to(device)[step, row]
    support = None if laid.support is None else torch.from_numpy(laid.support).to(device)[step, row]
    place = (step.cpu().numpy(), row.cpu().numpy())
    said: dict[str, Any] = {"temperature": policy.temperature, "support": support}
    with policy.reference() as reference:
        shared = reference is policy.backbone
        own = torch.from_numpy(laid.trunk).to(device, policy.backbone.dtype) if laid.trunk is not None else None
        known, below = reference.recall(rows.ids, rows.read), None
        if known is not None and (own is not None or policy.packed or not reference.caches_trunk):
            ref_states = known[row, at]
        else:
            ref_states, below = response_states(reference, rows, trunk=own if shared else None, packed=policy.packed)
        laid.ref_log_prob[place] = _numpy(score(ref_states, reference.head, token, **said).log_prob)
    if below is not None and shared:
        laid.trunk, own = _numpy(below), below
    if exact_in_loss:
        laid.reference = np.zeros((*laid.action.T.shape, ref_states.shape[-1]), np.float32)
        laid.reference[place[::-1]] = _numpy(ref_states)
    if not (exact_in_reward or rescore or values):
        return
    states, _ = response_states(policy.backbone, rows, trunk=own, packed=policy.packed)
    now = score(
        states,
        policy.backbone.head,
        token,
        **said,
        reference=ref_states if exact_in_reward else None,
        reference_head=policy.reference_head,
    )
    fresh = _numpy(now.log_prob)
    laid.mismatch = float(np.abs(laid.log_prob[place] - fresh).mean()) if len(fresh) else 0.0
    if now.kl is not None:
        laid.exact_kl = np.zeros(laid.action.shape, np.float32)
        laid.exact_kl[place] = _numpy(now.kl)
    if rescore:
        laid.log_prob[place] = fresh
    if rescore or values:
        laid.value[place] = _numpy(cast(Critic, policy.critic).values(states, rows))


def _sequences(laid: ResponseBatch, device: torch.device) -> Sequences:
    def load(x: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(x)).to(device)

    return join(load(laid.prompt), load(laid.prompt_length), load(laid.action.T), load(laid.length))


def _numpy(x: Tensor) -> np.ndarray:
    return x.detach().float().cpu().numpy()


def token_rewards(
    laid: ResponseBatch, score: np.ndarray, *, beta: float, decay: float, whiten: bool = False
) -> np.ndarray:
    """[T, N]: -β·KL for every token and the score on the last one. β = 0 leaves the score alone."""
    reward = np.zeros(laid.action.shape, np.float32)
    if beta:
        cost = kl_rewards(laid.log_prob, laid.ref_log_prob, laid.valid, beta=beta, exact=laid.exact_kl, decay=decay)
        reward += cost.astype(np.float32)
    reward += np.where(laid.last, score[None, :], 0.0).astype(np.float32)
    if whiten:
        deviation = float(reward[laid.valid].std())
        reward = reward / deviation if deviation > 1e-8 else reward
    return np.where(laid.valid, reward, 0.0).astype(np.float32)


def group_advantages(score: np.ndarray, group: int, *, scale: bool) -> np.ndarray:
    """[N] scores of groups that lie side by side, each compared with its own group.

    RLOO: score minus the mean of the *others*. GRPO (`scale`): minus the mean of all, over their deviation. A group with
    a NaN is compared without it.
    """
    groups = score.reshape(-1, group)
    count = np.isfinite(groups).sum(1, keepdims=True)
    total = np.nansum(groups, axis=1, keepdims=True)
    if not scale:
        others = np.where(count > 1, (total - np.nan_to_num(groups)) / np.maximum(count - 1, 1), 0.0)
        return (groups - others).ravel()
    mean = total / np.maximum(count, 1)
    deviation = np.sqrt(np.nansum((groups - mean) ** 2, axis=1, keepdims=True) / np.maximum(count, 1))
    return ((groups - mean) / np.where(deviation > 1e-8, deviation, 1.0)).ravel()


def to_rollout(
    laid: ResponseBatch, reward: np.ndarray, *, version: int, kl_in_loss: bool, stats: dict[str, float]
) -> Rollout:
    """What the learner takes. Every response ends: by its own end token, or because its tokens were used up."""
    steps, n = laid.action.shape
    following = np.concatenate([laid.value[1:], np.zeros((1, n), np.float32)])
    start = np.zeros((steps, n), np.bool_)
    start[0] = True
    context = {"prompt": laid.prompt, "prompt_length": laid.prompt_length}
    if laid.trunk is not None:
        context["trunk"] = laid.trunk
    if laid.reference is not None:
        context["reference"] = laid.reference
    return Rollout(
        obs={} if laid.support is None else {"support": laid.support},
        action=laid.action,
        log_prob=laid.log_prob,
        value=laid.value,
        next_value=np.where(laid.last, 0.0, following).astype(np.float32),
        reward=reward,
        terminated=laid.last,
        truncated=np.zeros_like(laid.last),
        start=start,
        valid=laid.valid,
        policy_version=np.full((steps, n), version, np.int64),
        ref_log_prob=laid.ref_log_prob if kl_in_loss else None,
        context=context,
        stats=stats,
    )
