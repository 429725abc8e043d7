"""Does a model that was written answer as the policy it was written from? A thousand questions to both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from surefoot.data.spaces import Box
from surefoot.envs.api import World
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.images import Parts
from surefoot.nets.onnx import MASK, port_name
from surefoot.nets.policy import PolicyInput

TOLERANCE = 1e-5
STREAMS = 20
EXAMPLES, LONGEST_EXAMPLE = 3, 256
"""Worked examples that are kept, and the most numbers one may have to be worth keeping."""

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Question:
    """What some streams see at one moment."""

    obs: Arrays
    mask: np.ndarray | None
    start: np.ndarray
    """[N] bool: an episode begins, with nothing remembered."""


@dataclass(slots=True)
class Proof:
    """How far the model's answers are from the policy's, over all questions."""

    observations: int = 0
    shown: int = 0
    """How many of them a world showed; the others were drawn."""
    difference: dict[str, float] = field(default_factory=dict[str, float])
    """The largest |a - b| / max(1, |b|) of each output."""
    other_choices: int = 0
    """Choices that differ although the best was clearly the best."""
    examples: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def worst(self) -> float:
        """Of all outputs."""
        return max(self.difference.values(), default=0.0)

    @property
    def holds(self) -> bool:
        """True if nothing differs by more than rounding."""
        return self.other_choices == 0 and self.worst <= TOLERANCE  # NaN is not


@torch.no_grad()
def prove(policy: ActorCritic, session: Any, world: World | None, *, masks: bool, observations: int) -> Proof:
    """Ask both at least `observations` questions: half from the world, if there is one, and the rest drawn.

    With a memory, each goes on with what it remembers itself.
    """
    proof, generator = Proof(), torch.Generator().manual_seed(0)
    shown = 0 if world is None else observations // 2
    if world is not None:
        _ask(proof, policy, session, _live(world, policy, generator), shown, masks=masks)
    proof.shown = proof.observations
    _ask(proof, policy, session, _drawn(policy, masks=masks), observations - shown, masks=masks)
    return proof


def _ask(
    proof: Proof, policy: ActorCritic, session: Any, questions: Iterator[Question], wanted: int, *, masks: bool
) -> None:
    names = [port.name for port in session.get_outputs()]
    count, context = 0, dict[str, torch.Tensor]()
    carry: Arrays = {}
    while count < wanted:
        question = next(questions)
        if not count:
            context = policy.initial_context(len(question.start))
            carry = {name: context[name].numpy() for name in policy.network.memories()}
        mask = question.mask if masks else None
        feed = {port_name(name): x for name, x in question.obs.items() if name not in policy.config.critic_only}
        feed |= {name: np.where(question.start[:, None], np.float32(0), x) for name, x in carry.items()}
        feed |= {} if mask is None else {MASK: mask}
        answers = dict(zip(names, session.run(None, feed), strict=True))
        output = policy.act(_policy_input(question, context, mask), generator=torch.Generator(), deterministic=True)
        carry, context = {name: answers[f"{name}_out"] for name in carry}, output.context
        expected = {name: x.numpy() for name, x in output.action_params.items()}
        expected |= {f"{name}_out": context[name].numpy() for name in carry}
        expected |= {"value": output.value.numpy()} if "value" in answers else {}
        _compare(proof, answers, expected, policy.env_action(output.action.numpy()), len(policy.choices()))
        if len(proof.examples) < EXAMPLES and sum(x[0].size for x in feed.values()) <= LONGEST_EXAMPLE:
            proof.examples.append({"inputs": _first(feed), "outputs": _first(answers)})
        count += len(question.start)
    proof.observations += count


def _policy_input(question: Question, context: dict[str, torch.Tensor], mask: np.ndarray | None) -> PolicyInput:
    return PolicyInput(
        obs={name: torch.from_numpy(x) for name, x in question.obs.items()},
        action_mask=None if mask is None else torch.from_numpy(mask),
        start=torch.from_numpy(question.start),
        context=context,
    )


def _first(arrays: Arrays) -> dict[str, Any]:
    return {name: x[0].tolist() for name, x in arrays.items()}


def _compare(proof: Proof, answers: Arrays, expected: Arrays, action: np.ndarray, choices: int) -> None:
    """`choices`: how many columns of an action are choices, which are right or wrong, not near."""
    actual, right = (x.reshape(len(x), -1) for x in (answers["action"], action))
    pairs = {name: (answers[name], x) for name, x in expected.items()}
    pairs["action"] = actual[:, choices:], right[:, choices:]
    for name, (a, b) in pairs.items():
        if b.size:
            given_numbers, right_numbers = a.astype(np.float64).reshape(b.shape), b.astype(np.float64)
            off = np.abs(given_numbers - right_numbers) / np.maximum(1.0, np.abs(right_numbers))
            worst = float(off.max()) if np.isfinite(off).all() else math.inf
            proof.difference[name] = max(proof.difference.get(name, 0.0), worst)
    for k in range(choices):
        probs = np.sort(expected["probs" if "probs" in expected else f"probs_{k}"], axis=1)
        clear = probs.shape[1] == 1 or probs[:, -1] - probs[:, -2] > TOLERANCE
        proof.other_choices += int(((actual[:, k] != right[:, k]) & clear).sum())


def _live(world: World, policy: ActorCritic, generator: torch.Generator) -> Iterator[Question]:
    """What a world shows while the policy acts by chance, so that much of it is seen."""
    view, start = world.reset(1), np.ones(world.num_envs, bool)
    context = policy.initial_context(world.num_envs)
    while True:
        question = Question(view.obs, view.action_mask, start)
        yield question
        out = policy.act(_policy_input(question, context, view.action_mask), generator=generator)
        context = out.context
        step = world.step(policy.env_action(out.action.numpy()))
        view, start = step.view, step.terminated | step.truncated | ~step.valid


def _drawn(policy: ActorCritic, *, masks: bool) -> Iterator[Question]:
    """Observations from everywhere the policy may come to."""
    rng, spread, start = np.random.default_rng(0), _spread(policy), np.ones(STREAMS, bool)
    while True:
        obs = {name: _draw(box, rng, spread.get(name)) for name, box in policy.observation.items()}
        parts = [rng.random((STREAMS, n)) < 0.6 for n in policy.choices()] if masks else []
        for part in parts:  # at least one choice is allowed
            part[np.arange(STREAMS), rng.integers(part.shape[1], size=STREAMS)] = True
        yield Question(obs, np.concatenate(parts, axis=1) if parts else None, start)
        start = rng.random(STREAMS) < 0.05


def _spread(policy: ActorCritic) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Mean and deviation of each part's numbers, where the policy keeps statistics of them."""
    torso = policy.torsos[0]
    rows = torso.flatten if isinstance(torso, Parts) else torso
    if rows is None or rows.normalizer is None:
        return {}
    mean, std = rows.normalizer.mean.numpy(), rows.normalizer.var.clamp(min=1e-8).sqrt().numpy()
    edges = np.cumsum([0, *(box.size for _, box in rows.parts)])
    return {name: (mean[a:b], std[a:b]) for (name, _), a, b in zip(rows.parts, edges, edges[1:], strict=False)}


def _draw(box: Box, rng: np.random.Generator, spread: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    shape = (STREAMS, *box.shape)
    if box.dtype == "uint8":
        return rng.integers(0, 256, shape, dtype=np.uint8)
    low, high = (bound.astype(np.float64) for bound in box.bounds())
    if spread is not None:
        mean, std = (x.reshape(box.shape) for x in spread)
        return np.clip(mean + 2.0 * std * rng.standard_normal(shape), low, high).astype(np.float32)
    narrow = high - low < 1e3
    inside = np.where(narrow, low, 0.0) + rng.random(shape) * np.where(narrow, high - low, 1.0)
    return np.clip(np.where(narrow, inside, rng.standard_normal(shape)), low, high).astype(np.float32)
