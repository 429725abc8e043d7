"""The standard policy for the kernel: its shape and the addresses of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from surefoot import native
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.continuous_distributions import LOG_STD_RANGE
from surefoot.nets.continuous_heads import GaussianHead, StateDependentHead
from surefoot.nets.heads import DiscreteHead
from surefoot.nets.kernel_support import KINDS, containers_of, layers_of, why_not


class KernelNet:
    """A kernel network that reads and writes the weights of a policy; raises `PolicyError` for one it does not support.

    `SUREFOOT_KERNEL` selects the instruction set (avx512, avx2, base); the default is the machine's best.
    """

    def __init__(self, policy: ActorCritic, instruction_set: str | None = None) -> None:
        kernel = native.kernel
        if (reason := why_not(policy)) is not None:
            raise PolicyError(f"{reason}; use path='torch'")
        layers, head = layers_of(policy), policy.head
        assert not isinstance(layers, str) and policy.flatten is not None  # noqa: PT018
        self.kernel, self.policy, self.flatten = kernel, policy, policy.flatten
        if isinstance(head, GaussianHead | StateDependentHead):
            low, high = (np.broadcast_to(x, head.shape).astype(np.float32).ravel() for x in (head.low, head.high))
            kind, sizes = KINDS[type(head)], (head.outputs,)
        else:
            kind, sizes, low, high = "categorical", head.choices(), None, None
        self.instruction_set = instruction_set or native.instruction_set()
        self.net = kernel.net_new(
            instruction_set=self.instruction_set,
            inputs=self.flatten.size,
            actor_widths=layers.actor_widths,
            critic_widths=layers.critic_widths,
            shared=layers.shared,
            activation=layers.activation,
            head=kind,
            sizes=sizes,
            first_option=head.start if isinstance(head, DiscreteHead) else 0,
            log_std_low=LOG_STD_RANGE[0],
            log_std_high=LOG_STD_RANGE[1],
            noise_every=max(0, policy.config.gsde_every),
            low=low,
            high=high,
        )
        self.discrete, self.sizes = kind == "categorical", sizes
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
        if (normalizer := self.flatten.normalizer) is not None:
            state += [(x.data_ptr(), x.shape) for x in normalizer.rows()]
        return state

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
        shift, scale, clip = 0, 0, 0.0
        if (normalizer := self.flatten.normalizer) is not None:
            held += [x.detach() for x in normalizer.rows()]
            shift, scale, clip = held[-2].data_ptr(), held[-1].data_ptr(), normalizer.clip
        self.kernel.net_point(self.net, np.array(rows, dtype=np.uint64), shift, scale, clip)
        self._held = held

    def pack(self) -> None:
        """Copy the current weights for acting."""
        if getattr(self.policy.head, "temperature", 1.0) != 1.0:
            raise PolicyError("the kernel acts at temperature 1 only; create the Collector with path='torch'")
        if not self._held:
            self.point()
        self.kernel.net_pack(self.net)
