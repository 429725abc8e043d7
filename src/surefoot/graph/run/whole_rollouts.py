"""The plain loop in a native environment, one rollout per call of the kernel, while nobody looks inside a rollout."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.envs.api import View
from surefoot.envs.builtin.native import NativeWorld
from surefoot.graph.run.tick import Machine
from surefoot.graph.runtime.base import built
from surefoot.graph.spec.model import End
from surefoot.graph.wiring import plain_roles
from surefoot.train.collect.kernel_rollout import KernelRollout


class WholeRollouts:
    """Steps a machine from one update to the next. The digits are those of the six nodes fired one after the other.

    Between two updates it may alternate with ticks of the machine: all state is in the nodes and the machine's slots.
    """

    def __init__(self, machine: Machine, ids: dict[str, str]) -> None:
        nodes: dict[str, Any] = {role: machine.nodes[id] for role, id in ids.items()}
        self.machine, self.ids = machine, ids
        self.world: NativeWorld = nodes["env"].world
        self.agent, self.trainer = nodes["agent"], nodes["trainer"]
        self.steps: int = self.trainer.config.rollout_steps
        if nodes["action"].params.mode == "clip":
            # The kernel clips the actions that it steps the world with.
            self.agent.bounds = (nodes["action"].low, nodes["action"].high)
        index = {each.id: n for n, each in enumerate(machine.firings)}
        self._step, self._trainer = index[ids["step"]], index[ids["trainer"]]
        self._others = [n for each, n in index.items() if each not in ids.values()]
        self._observed = machine.slots[End(ids["step"], "observations")]
        self._register = next(register for slot, register, _ in machine.carried if slot == self._observed)
        self._outdated = [
            slot
            for end, slot in machine.slots.items()
            if end.node in ids.values() and end.node != ids["env"] and end != End(ids["agent"], "model")
        ]

    def is_possible(self, last: int) -> bool:
        """Return whether a rollout begins now and ends by the tick `last`; the first one builds the networks tick by tick."""
        tick = self.machine.tick
        return tick > 0 and tick % self.steps == 0 and tick + self.steps <= last and self.agent.actor is not None

    def run(self) -> None:
        """Collect one rollout, update, and fire the nodes behind the trainer."""
        machine, ticks, actor = self.machine, built(self.trainer.ticks), self.agent.actor
        # What the OR would read in the next tick: of a restored run, only the delayed edge has it.
        obs = machine.values[self._register]
        machine.tick += self.steps - 1
        machine.begin()
        for slot in self._outdated:
            # Values inside a rollout are not known here; an old one must not pass for the current one.
            machine.values[slot] = None
        try:
            rollout = KernelRollout(actor, self.world, self.steps, masked=False)
            view = rollout.collect_native(self.world, View(obs=obs), ticks.start, ticks.episodes)
        except Exception as why:
            raise machine.failure(self._step, why) from why
        machine.values[self._observed] = view.obs
        ticks.env_steps += rollout.valid.size
        reward, stats = rollout.reward, dict[str, float]()
        if ticks.scaler is not None:
            reward = ticks.scaler.scale(reward, rollout.terminated | rollout.truncated, rollout.valid)
            stats["return_std"] = float(np.sqrt(ticks.scaler.var))
        version = built(self.trainer.learner).policy_version
        try:
            outputs = self.trainer.learn(
                rollout.builder.build(version, stats=stats, reward=reward.astype(np.float32)), actor
            )
        except Exception as why:
            raise machine.failure(self._trainer, why) from why
        out = machine.steps[self._trainer][3]
        assert isinstance(out, slice)
        machine.values[out] = outputs
        for index in self._others:
            machine.fire(index)
        machine.end()


def whole_rollouts(machine: Machine) -> WholeRollouts | None:
    """Return the object that runs a plain loop in a native environment; None for any other graph."""
    ids = plain_roles(machine.plan)
    if ids is None or machine.plan.run.path == "torch":
        return None
    env: Any = machine.nodes[ids["env"]]
    return WholeRollouts(machine, ids) if isinstance(env.world, NativeWorld) else None
