"""Compares two models on the same prompts: answers side by side, win rate with an interval, fluency of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError
from surefoot.lm.config import LMConfig
from surefoot.lm.constitution.compare import wilson
from surefoot.lm.held_out import reward_inputs, room_for_prompts
from surefoot.lm.load_run import load_policy
from surefoot.lm.policy.loading import Prompt, Speech, load_backbone
from surefoot.lm.policy.policy import LMPolicy, NoCritic
from surefoot.lm.rewards.fluency import fluency
from surefoot.lm.rewards.rewards import RewardInputs, Rewards
from surefoot.lm.sampling.sampler import Sampling, generate
from surefoot.lm.sft import nll
from surefoot.telemetry.export.html import page, section, table
from surefoot.train.rundir.rundir import RunDir

Chooser = Callable[[str, str, str], int | None]
"""(prompt, one, other) → 0, 1, or None for a tie; the order of the two is random."""


def answers(
    name: str, run: RunDir | None, prompts: Sequence[Prompt], *, tokens: int, temperature: float = 0.7, seed: int = 0
) -> tuple[RewardInputs, dict[str, float]]:
    """Return (answers of a run or a model, their fluency under the base model)."""
    if run is not None:
        policy, speech, _ = load_policy(run)
    else:
        backbone, tokenizer = load_backbone(name, LMConfig(train="none"))
        policy, speech = LMPolicy(backbone, critic=NoCritic()), Speech(tokenizer, backbone.model)
    policy.temperature = temperature or 1.0
    room = room_for_prompts(policy.backbone, LMConfig(max_new_tokens=tokens))
    usable, skipped = speech.usable(prompts, room)
    if skipped:
        raise ConfigError(f"{name}: {skipped[0]}; both models must answer every prompt")
    sampling = Sampling(max_new_tokens=tokens, temperature=temperature)
    generator = torch.Generator().manual_seed(seed_for("eval", seed))
    responses = generate(policy, [p.ids for p in usable], sampling, eos=speech.eos, generator=generator)
    inputs = reward_inputs(speech, usable, responses)
    rows = [(r.prompt, np.asarray(r.tokens)) for r in responses]
    with policy.reference() as reference, torch.no_grad():
        per_token = torch.cat([nll(reference, rows[i : i + 16]) for i in range(0, len(rows), 16)])
    measured = fluency([r.tokens for r in responses], inputs.responses, float(per_token.mean()))
    length = float(np.mean([len(r.tokens) for r in responses]))
    return inputs, {"reference_nll": measured.nll, "repetition": measured.repetition, "refusals": measured.refusals} | {
        "length": length
    }


def by_judge(judge: Rewards, one: RewardInputs, other: RewardInputs) -> list[int | None]:
    """Return for each prompt which answer the judge scores higher: 0, 1, or None for a tie or a score that is no number."""
    a, b = judge(one)[0], judge(other)[0]
    return [None if not np.isfinite(x + y) or x == y else int(y > x) for x, y in zip(a, b, strict=True)]


def by_person(choose: Chooser, one: RewardInputs, other: RewardInputs, *, seed: int = 0) -> list[int | None]:
    """Return what a person chooses for each prompt, without knowing which model wrote what."""
    # A drawn order, so that a preference for the first answer favours neither model.
    swapped = np.random.default_rng(seed).random(len(one.prompts)) < 0.5
    results: list[int | None] = []
    for prompt, a, b, swap in zip(one.prompts, one.responses, other.responses, swapped.tolist(), strict=True):
        if a == b:
            results.append(None)
            continue
        choice = choose(prompt, b, a) if swap else choose(prompt, a, b)
        results.append(None if choice is None else choice ^ int(swap))
    return results


def win_rate(wins: Sequence[int | None]) -> dict[str, Any]:
    """Return wins of both, ties, and the second model's win rate among decided prompts with its 95 % interval."""
    first, second = sum(w == 0 for w in wins), sum(w == 1 for w in wins)
    decided = first + second
    return {
        "prompts": len(wins),
        "first": first,
        "second": second,
        "ties": len(wins) - decided,
        "win_rate": second / decided if decided else 0.5,
        "interval": wilson(second, decided),
    }


def write_page(
    path: Path, names: Sequence[str], sides: Sequence[RewardInputs], wins: Sequence[int | None], result: Any
) -> Path:
    """Write both answers to every prompt side by side, and return the path."""
    low, high = result["interval"]
    marks = {0: names[0], 1: names[1], None: "tie"}
    rows = [
        [prompt, a, b, marks[win]]
        for prompt, a, b, win in zip(sides[0].prompts, sides[0].responses, sides[1].responses, wins, strict=True)
    ]
    lead = f"{names[1]} wins {result['win_rate']:.0%} [{low:.0%}, {high:.0%}] of the decided prompts"
    body = section("Answers", "", table(["prompt", *names, "better"], rows), wide=True)
    path.write_text(page(f"{names[0]} and {names[1]}", lead, [body]), encoding="utf-8")
    return path
