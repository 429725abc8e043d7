"""Verification of an exported ONNX model: its outputs are compared with those of the policy on many observations."""

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

# Largest relative difference. float32 has about 1e-7; sums over a layer and other exp and tanh implementations add to it.
TOLERANCE = 1e-5
# Batch size of the comparison. Larger batches give fewer, more similar moments of the environment.
STREAMS = 20
# Number of examples in the contract, and the most input numbers of one. Images would make contract.json unreadably long.
EXAMPLES, LONGEST_EXAMPLE = 3, 256

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class BatchInput:
    """The inputs of one step, [N, …] for N streams."""

    obs: Arrays
    mask: np.ndarray | None
    start: np.ndarray
    """[N] bool: an episode starts, so the memory is zero."""


@dataclass(slots=True)
class Verification:
    """The differences between the outputs of the model and of the policy, over all batches."""

    observations: int = 0
    from_world: int = 0
    """Number of observations from an environment; the others are random."""
    difference: dict[str, float] = field(default_factory=dict[str, float])
    """The largest |a - b| / max(1, |b|) of each output."""
    wrong_choices: int = 0
    """Number of discrete actions that differ although the most likely one is unambiguous."""
    examples: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def worst(self) -> float:
        """The largest difference of all outputs."""
        return max(self.difference.values(), default=0.0)

    @property
    def holds(self) -> bool:
        """Whether the outputs agree up to rounding."""
        # False for NaN: every comparison with it is False.
        return self.wrong_choices == 0 and self.worst <= TOLERANCE


@torch.no_grad()
def verify(policy: ActorCritic, session: Any, world: World | None, *, masks: bool, observations: int) -> Verification:
    """Compare model and policy on at least `observations` observations: half from the world, if any, the others random.

    Each continues with its own memory, so that differences can accumulate as they would in use.
    """
    result, generator = Verification(), torch.Generator().manual_seed(0)
    from_world = 0 if world is None else observations // 2
    if world is not None:
        _compare_on(result, policy, session, _played_batches(world, policy, generator), from_world, masks=masks)
    result.from_world = result.observations
    _compare_on(result, policy, session, _random_batches(policy, masks=masks), observations - from_world, masks=masks)
    return result


def _compare_on(
    result: Verification, policy: ActorCritic, session: Any, batches: Iterator[BatchInput], least: int, *, masks: bool
) -> None:
    names = [port.name for port in session.get_outputs()]
    count, context = 0, dict[str, torch.Tensor]()
    carry: Arrays = {}
    while count < least:
        batch = next(batches)
        if not count:
            context = policy.initial_context(len(batch.start))
            carry = {name: context[name].numpy() for name in policy.network.memories()}
        mask = batch.mask if masks else None
        feed = {port_name(name): x for name, x in batch.obs.items() if name not in policy.config.critic_only}
        # The policy resets its memory at `start`; the model's caller has to, as the contract states.
        feed |= {name: np.where(batch.start[:, None], np.float32(0), x) for name, x in carry.items()}
        feed |= {} if mask is None else {MASK: mask}
        answers = dict(zip(names, session.run(None, feed), strict=True))
        inputs = PolicyInput.from_arrays(batch.obs, mask, batch.start, context)
        output = policy.act(inputs, generator=torch.Generator(), deterministic=True)
        carry, context = {name: answers[f"{name}_out"] for name in carry}, output.context
        expected = {name: x.numpy() for name, x in output.action_params.items()}
        expected |= {f"{name}_out": context[name].numpy() for name in carry}
        expected |= {"value": output.value.numpy()} if "value" in answers else {}
        _compare(result, answers, expected, policy.env_action(output.action.numpy()), len(policy.choices()))
        if len(result.examples) < EXAMPLES and sum(x[0].size for x in feed.values()) <= LONGEST_EXAMPLE:
            result.examples.append({"inputs": _first(feed), "outputs": _first(answers)})
        count += len(batch.start)
    result.observations += count


def _first(arrays: Arrays) -> dict[str, Any]:
    return {name: x[0].tolist() for name, x in arrays.items()}


def _compare(result: Verification, answers: Arrays, expected: Arrays, action: np.ndarray, choices: int) -> None:
    """Add the differences of one batch. The first `choices` columns of an action are discrete: equal or wrong."""
    actual, wanted = (x.reshape(len(x), -1) for x in (answers["action"], action))
    pairs = {name: (answers[name], x) for name, x in expected.items()}
    pairs["action"] = actual[:, choices:], wanted[:, choices:]
    for name, (a, b) in pairs.items():
        if b.size:
            a, b = a.astype(np.float64).reshape(b.shape), b.astype(np.float64)
            difference = np.abs(a - b) / np.maximum(1.0, np.abs(b))
            # max() with NaN depends on the order of its arguments.
            worst = float(difference.max()) if np.isfinite(difference).all() else math.inf
            result.difference[name] = max(result.difference.get(name, 0.0), worst)
    for k in range(choices):
        probs = np.sort(expected["probs" if "probs" in expected else f"probs_{k}"], axis=1)
        # If the two best are equally likely up to rounding, either choice is right.
        clear = probs.shape[1] == 1 or probs[:, -1] - probs[:, -2] > TOLERANCE
        result.wrong_choices += int(((actual[:, k] != wanted[:, k]) & clear).sum())


def _played_batches(world: World, policy: ActorCritic, generator: torch.Generator) -> Iterator[BatchInput]:
    """Yield the observations of a world. Actions are sampled, so that more of its states are visited."""
    view, start = world.reset(1), np.ones(world.num_envs, bool)
    context = policy.initial_context(world.num_envs)
    while True:
        batch = BatchInput(view.obs, view.action_mask, start)
        yield batch
        inputs = PolicyInput.from_arrays(view.obs, view.action_mask, start, context)
        out = policy.act(inputs, generator=generator)
        context = out.context
        step = world.step(policy.env_action(out.action.numpy()))
        view, start = step.view, step.terminated | step.truncated | ~step.valid


def _random_batches(policy: ActorCritic, *, masks: bool) -> Iterator[BatchInput]:
    """Yield random observations from the whole observation space, or around the policy's running statistics."""
    rng, spread, start = np.random.default_rng(0), _spread(policy), np.ones(STREAMS, bool)
    while True:
        obs = {name: _draw(box, rng, spread.get(name)) for name, box in policy.observation.items()}
        # 0.6: most masks then have both allowed and forbidden actions.
        parts = [rng.random((STREAMS, n)) < 0.6 for n in policy.choices()] if masks else []
        # At least one choice must be allowed.
        for part in parts:
            part[np.arange(STREAMS), rng.integers(part.shape[1], size=STREAMS)] = True
        yield BatchInput(obs, np.concatenate(parts, axis=1) if parts else None, start)
        # Episodes of 20 steps on average: long enough to fill the memory, short enough to test resets.
        start = rng.random(STREAMS) < 0.05


def _spread(policy: ActorCritic) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the running mean and deviation of each part of the observation that the policy normalizes."""
    torso = policy.torsos[0] if policy.torsos else None
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
        # Twice the deviation: unusual observations are covered too.
        return np.clip(mean + 2.0 * std * rng.standard_normal(shape), low, high).astype(np.float32)
    # Wide or infinite bounds are usually placeholders; uniform samples would be unrealistically large.
    narrow = high - low < 1e3
    inside = np.where(narrow, low, 0.0) + rng.random(shape) * np.where(narrow, high - low, 1.0)
    return np.clip(np.where(narrow, inside, rng.standard_normal(shape)), low, high).astype(np.float32)
