"""Turns responses into a rollout: tokens are actions, the prompt is the context, the score is paid at the last token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from surefoot.data.rollout import Rollout
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.policy.vocabulary_head import score
from surefoot.lm.rewards.fluency import fluency
from surefoot.lm.rewards.kl_penalty import kl_rewards
from surefoot.lm.rewards.rewards import ResponseDrift, repetition
from surefoot.lm.sampling.layout import join, predicting, response_states
from surefoot.lm.sampling.sampler import Response


@dataclass(slots=True)
class ResponseBatch:
    """N responses as arrays [T, N], with log-probs and values of the policy and log-probs of the reference."""

    action: np.ndarray
    log_prob: np.ndarray
    value: np.ndarray
    valid: np.ndarray
    ended: np.ndarray
    """[N]: True if the response has an end token."""
    prompt: np.ndarray
    prompt_length: np.ndarray
    support: np.ndarray | None
    ref_log_prob: np.ndarray
    trunk: np.ndarray | None = None
    """[N, L, width]: the input of the first layer that learns."""
    reference: np.ndarray | None = None
    """[N, T, width]: hidden states of the reference, for the exact KL in the loss."""
    exact_kl: np.ndarray | None = None
    """[T, N], for the exact KL in the reward."""
    mismatch: float | None = None
    """Mean |log p when sampled - log p when scored again|, if responses were scored again."""

    @property
    def length(self) -> np.ndarray:
        """Return the number of tokens of each response, [N]."""
        return self.valid.sum(0)

    @property
    def last(self) -> np.ndarray:
        """Return True at the last token of each response, [T, N]."""
        steps = np.arange(len(self.valid))[:, None]
        return self.valid & (steps == self.length - 1)

    def kl(self) -> np.ndarray:
        """Return the KL of each response to the reference in nats, [N], by k1 or exactly."""
        per_token = self.exact_kl if self.exact_kl is not None else self.log_prob - self.ref_log_prob
        return np.where(self.valid, per_token, 0.0).sum(0)


def lay_out(responses: Sequence[Response]) -> ResponseBatch:
    """Return the responses as arrays, padded to the longest one; `consult` adds the reference."""
    steps, n = max(len(r.tokens) for r in responses), len(responses)
    shape = (steps, n)
    action, valid = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    log_prob, value = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    prompt = np.zeros((n, max(len(r.prompt) for r in responses)), np.int64)
    support = None
    if responses[0].support:
        support = np.full((*shape, len(responses[0].support[0])), 255, np.uint8)
    trunks = [r.trunk for r in responses if r.trunk is not None]
    for i, r in enumerate(responses):
        t = len(r.tokens)
        action[:t, i], log_prob[:t, i], value[:t, i], valid[:t, i] = r.tokens, r.log_prob, r.value, True
        prompt[i, : len(r.prompt)] = r.prompt
        if support is not None:
            support[:t, i] = np.stack(r.support)
    return ResponseBatch(
        trunk=_numpy(pad_sequence(trunks, batch_first=True)) if len(trunks) == n else None,
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


@torch.no_grad()
def consult(
    policy: LMPolicy, laid: ResponseBatch, *, exact_in_reward: bool, exact_in_loss: bool, rescore: bool, values: bool
) -> None:
    """Score the responses with the reference, and with the policy again if needed; the results go into `laid`.

    `rescore` replaces the log-probs and values of sampling, `values` the values only.
    """
    device = policy.backbone.device
    parts = (laid.prompt, laid.prompt_length, laid.action.T, laid.length)
    rows = join(*(torch.from_numpy(np.ascontiguousarray(x)).to(device) for x in parts))
    row, position = predicting(rows)
    step = position - rows.prompt_length[row] + 1
    token = torch.from_numpy(laid.action).to(device)[step, row]
    support = None if laid.support is None else torch.from_numpy(laid.support).to(device)[step, row]
    place = (step.cpu().numpy(), row.cpu().numpy())
    settings: dict[str, Any] = {"temperature": policy.temperature, "support": support}
    with policy.reference() as reference:
        shared = reference is policy.backbone
        trunk = torch.from_numpy(laid.trunk).to(device, policy.backbone.dtype) if laid.trunk is not None else None
        # A reward model on the same backbone has just computed these states.
        recalled, below = reference.recall(rows.ids, rows.read), None
        if recalled is not None and (trunk is not None or policy.packed or not reference.caches_trunk):
            ref_states = recalled[row, position]
        else:
            shared_trunk = trunk if shared else None
            ref_states, below = response_states(reference, rows, trunk=shared_trunk, packed=policy.packed)
        laid.ref_log_prob[place] = _numpy(score(ref_states, reference.head, token, **settings).log_prob)
    if below is not None and shared:
        laid.trunk, trunk = _numpy(below), below
    if exact_in_loss:
        laid.reference = np.zeros((*laid.action.T.shape, ref_states.shape[-1]), np.float32)
        laid.reference[place[::-1]] = _numpy(ref_states)
    if not (exact_in_reward or rescore or values):
        return
    states, _ = response_states(policy.backbone, rows, trunk=trunk, packed=policy.packed)
    scores = score(
        states,
        policy.backbone.head,
        token,
        **settings,
        reference=ref_states if exact_in_reward else None,
        reference_head=policy.reference_head,
    )
    fresh = _numpy(scores.log_prob)
    laid.mismatch = float(np.abs(laid.log_prob[place] - fresh).mean()) if len(fresh) else 0.0
    if scores.kl is not None:
        laid.exact_kl = np.zeros(laid.action.shape, np.float32)
        laid.exact_kl[place] = _numpy(scores.kl)
    if rescore:
        laid.log_prob[place] = fresh
    if rescore or values:
        laid.value[place] = _numpy(policy.critic.values(states, rows))


def _numpy(x: Tensor) -> np.ndarray:
    return x.detach().float().cpu().numpy()


def token_rewards(
    laid: ResponseBatch, score: np.ndarray, *, beta: float, decay: float, whiten: bool = False
) -> np.ndarray:
    """Return -β·KL for every token plus the score at the last one, [T, N]; β = 0 leaves only the score.

    `decay` is γλ, see `kl_rewards`; `whiten` divides by the standard deviation over the rollout.
    """
    reward = np.zeros(laid.action.shape, np.float32)
    if beta:
        cost = kl_rewards(laid.log_prob, laid.ref_log_prob, laid.valid, beta=beta, exact=laid.exact_kl, decay=decay)
        reward += cost.astype(np.float32)
    reward += np.where(laid.last, score[None, :], 0.0).astype(np.float32)
    if whiten:
        # The mean stays: subtracting it would pay or charge every token for its position.
        scored = reward[laid.valid]
        deviation = float(scored[np.isfinite(scored)].std()) if np.isfinite(scored).any() else 0.0
        # Equal scores have no scale; dividing by rounding noise would create one.
        reward = reward / deviation if deviation > 1e-8 else reward
    return np.where(laid.valid, reward, 0.0).astype(np.float32)


def group_advantages(score: np.ndarray, group: int, *, scale: bool) -> np.ndarray:
    """Return the score of each response relative to its group, [N]; groups are contiguous.

    RLOO: the score minus the mean of the *others*. GRPO (`scale`): minus the mean of all, divided by their standard
    deviation. Scores that are not finite are left out of both and stay NaN; a response without others to compare has 0.
    """
    groups = score.reshape(-1, group)
    good = np.isfinite(groups)
    groups = np.where(good, groups, np.nan)
    count, total = good.sum(1, keepdims=True), np.nansum(groups, axis=1, keepdims=True)
    if not scale:
        others = (total - np.nan_to_num(groups)) / np.maximum(count - 1, 1)
        return np.where(good & (count < 2), 0.0, groups - others).ravel()
    mean = total / np.maximum(count, 1)
    deviation = np.sqrt(np.nansum((groups - mean) ** 2, axis=1, keepdims=True) / np.maximum(count, 1))
    return ((groups - mean) / np.where(deviation > 1e-8, deviation, 1.0)).ravel()


def to_rollout(
    laid: ResponseBatch, reward: np.ndarray, *, version: int, kl_in_loss: bool, stats: dict[str, float]
) -> Rollout:
    """Return the rollout. Every response terminates: by an end token or by the limit of tokens, which the prompt sets."""
    steps, n = laid.action.shape
    # The successor of a token is the next one; after the last there is nothing to come.
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


def response_stats(
    batch: ResponseBatch,
    responses: Sequence[Response],
    texts: Sequence[str],
    scores: np.ndarray,
    parts: Mapping[str, np.ndarray],
    drift: ResponseDrift,
) -> dict[str, float]:
    """Return the metrics of a step, over the responses whose score is finite; `parts` are the scores per reward."""
    tokens, good = float(sum(len(r.tokens) for r in responses)), np.isfinite(scores)
    log_ratio = (batch.ref_log_prob - batch.log_prob)[batch.valid]
    length = float(batch.length[good].mean())
    repeats = float(np.mean([repetition(r.tokens) for r, ok in zip(responses, good, strict=True) if ok]))
    nll = float(-batch.ref_log_prob[batch.valid].mean())
    measured = fluency([r.tokens for r in responses], texts, nll)
    stats = {
        "score": float(scores[good].mean()),
        "score_std": float(scores[good].std()),
        "kl": float(batch.kl()[good].mean()),
        # Clipped like the learner's log-ratios: one token of probability ~0 would make the mean infinite.
        "kl_k3": float(np.mean(np.expm1(np.clip(log_ratio, -20, 20)) - log_ratio)),
        "kl_token": float(batch.kl()[good].sum() / max(1, int(batch.length[good].sum()))),
        "reference_nll": nll,
        "response_length": length,
        "ended": float(batch.ended[good].mean()),
        "distinct_2": measured.diversity,
        "repetition": repeats,
        "repeated_4grams": measured.repetition,
        "refusals": measured.refusals,
        "tokens": tokens,
        **drift.see(length=length, repetition=repeats, nll=nll, refusals=measured.refusals),
    }
    if batch.mismatch is not None:
        stats["sampler_mismatch"] = batch.mismatch
    if len(parts) > 1:
        stats |= {f"reward_{name}": float(np.nanmean(x)) for name, x in parts.items()}
    return stats
