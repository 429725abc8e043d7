"""The standard policy for the kernel: its shape and the addresses of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot import native
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.continuous_distributions import LOG_STD_RANGE
from surefoot.nets.heads import DiscreteHead, MultiDiscreteHead
from surefoot.nets.kernel_support import KINDS, containers_of, layers_of, parts_of, why_not
from surefoot.nets.torsos import Flatten


class KernelNet:
    """A kernel network that reads and writes the weights of a policy; raises `PolicyError` for one it does not support.

    `SUREFOOT_KERNEL` selects the instruction set (avx512, avx2, base); the default is the machine's best.
    """

    def __init__(self, policy: ActorCritic, instruction_set: str | None = None) -> None:
        kernel = native.kernel
        if (reason := why_not(policy)) is not None:
            raise PolicyError(f"{reason}; use path='torch'")
        layers, (head, numbers) = layers_of(policy), parts_of(policy)
        assert not isinstance(layers, str)
        self.kernel, self.policy = kernel, policy
        self.torsos = [torso for torso in policy.torsos if isinstance(torso, Flatten)]
        """The actor's, then the critic's if it sees something else."""
        self._choices = head if isinstance(head, DiscreteHead | MultiDiscreteHead) else None
        self.sizes, low, high = policy.choices(), None, None
        """The options of each choice, in the order of the mask."""
        if numbers is not None:
            low, high = (
                np.broadcast_to(x, numbers.shape).astype(np.float32).ravel() for x in (numbers.low, numbers.high)
            )
        self.instruction_set = instruction_set or native.instruction_set()
        self.net = kernel.net_new(
            instruction_set=self.instruction_set,
            inputs=self.torsos[0].size,
            critic_inputs=self.torsos[1].size if len(self.torsos) > 1 else 0,
            actor_widths=layers.actor_widths,
            critic_widths=layers.critic_widths,
            shared=layers.shared,
            activation=layers.activation,
            head=KINDS[type(head if numbers is None else numbers)],
            sizes=self.sizes,
            numbers=0 if low is None else low.size,
            first_option=head.start if isinstance(head, DiscreteHead) else 0,
            log_std_low=LOG_STD_RANGE[0],
            log_std_high=LOG_STD_RANGE[1],
            noise_every=max(0, policy.config.gsde_every),
            memory=policy.config.memory,
            memory_size=policy.config.memory_size,
            low=low,
            high=high,
        )
        self.discrete = numbers is None
        """True if actions are choices only, which are integers; else they are floats."""
        self.tensors = layers.tensors
        """The policy's parameters in the kernel's order."""
        if kernel.net_sizes(self.net) != tuple(p.numel() for p in self.tensors):
            raise PolicyError("the weights of the policy do not have the sizes of its layers; use path='torch'")
        self._held: list[Tensor] = []
        """Aliases of all memory that the kernel has addresses of: it must outlive a tensor that the user replaces."""
        self._containers, self._items = zip(*containers_of(policy), strict=True)
        self._now = self._tensor_state()

    def _tensor_state(self) -> list[Any]:
        # Without dtype: what `_held` keeps alive cannot be given to a tensor of another dtype, and torch allows no weight
        # that is an integer view.
        state: list[Any] = [
            (p.data_ptr(), p.shape, p.is_contiguous(), p.requires_grad, p._backward_hooks)  # pyright: ignore[reportPrivateUsage]
            for p in self.tensors
        ]
        return state + [(x.data_ptr(), x.shape) for x in self._normalizer_rows()]

    def _normalizer_rows(self) -> list[Tensor]:
        """Return shift and scale of each torso; none without normalisation."""
        return [x for torso in self.torsos if torso.normalizer is not None for x in torso.normalizer.rows()]

    def rows(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the rows [M, inputs] that the kernel acts on, not normalised: it does that."""
        rows = [torso.rows(dict(obs)) for torso in self.torsos]
        return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)

    def features(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the rows [M, inputs] that the kernel learns from, normalised."""
        if not self._normalizer_rows():
            return self.rows(obs)
        tensors = {name: torch.from_numpy(x) for name, x in obs.items()}
        with torch.no_grad():
            return torch.cat([torso(tensors) for torso in self.torsos], dim=-1).contiguous().numpy()

    def unchanged(self) -> bool:
        """Return True if the policy has the modules, hooks, settings and tensors that this network was made for."""
        return self.kernel.holds(self._containers, self._items) and self._tensor_state() == self._now

    def point(self, slots: Mapping[int, tuple[Tensor, ...]] | None = None) -> None:
        """Pass the addresses of all tensors to the kernel.

        `slots` is {id of a parameter: its two optimiser slots and its step count}; acting needs none.
        """
        held, rows = list[Tensor](), list[tuple[int, ...]]()
        for p in self.tensors:
            memory = [p.detach(), *(() if slots is None else slots[id(p)])]
            held += memory
            addresses = [x.data_ptr() for x in memory]
            # A slot that this optimiser does not have is an empty tensor, whose address is 0.
            rows.append((*addresses, *([0] * (4 - len(addresses)))))
        moments = [x.detach() for x in self._normalizer_rows()]
        clip = 0.0 if (normalizer := self.torsos[0].normalizer) is None else normalizer.clip
        addresses = [x.data_ptr() for x in moments] + [0] * (4 - len(moments))
        self.kernel.net_point(self.net, np.array(rows, dtype=np.uint64), *addresses, clip)
        self._held = held + moments

    def pack(self) -> None:
        """Copy the current weights for acting."""
        self.set_temperature()
        if not self._held:
            self.point()
        self.kernel.net_pack(self.net)

    def set_temperature(self) -> None:
        """Pass the temperature of the choices as it is now to the kernel."""
        self.kernel.net_temperature(self.net, 1.0 if self._choices is None else self._choices.temperature)
