"""The standard policy for the kernel: its shape, and the addresses of its tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
from torch import Tensor, nn

from surefoot import native
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.continuous_distributions import LOG_STD_RANGE
from surefoot.nets.continuous_heads import GaussianHead, TanhHead
from surefoot.nets.heads import DiscreteHead
from surefoot.nets.networks import Trunks


class KernelNet:
    """A kernel network that reads and writes the weights of a policy. Call `learn.choose_path.why_not` first.

    `SUREFOOT_KERNEL` selects the instruction set (avx512, avx2, base); the default is the machine's best.
    """

    def __init__(self, policy: ActorCritic, instruction_set: str | None = None) -> None:
        kernel, network, config = native.kernel, policy.network, policy.config
        assert kernel is not None
        assert isinstance(network, Trunks)
        assert policy.flatten is not None
        self.kernel, self.policy, self.flatten = kernel, policy, policy.flatten
        head = policy.head
        if isinstance(head, GaussianHead):
            low, high = (np.broadcast_to(x, head.shape).astype(np.float32).ravel() for x in (head.low, head.high))
            kind, sizes = "squashed" if isinstance(head, TanhHead) else "gaussian", (head.outputs,)
        else:
            kind, sizes, low, high = "categorical", head.choices(), None, None
        critic = config.hidden if config.shared or config.critic_hidden is None else config.critic_hidden
        self.net = kernel.net_new(
            instruction_set=instruction_set or os.environ.get("SUREFOOT_KERNEL", "auto"),
            inputs=self.flatten.size,
            actor_widths=config.hidden,
            critic_widths=critic,
            shared=config.shared,
            activation=config.activation,
            head=kind,
            sizes=sizes,
            first_option=head.start if isinstance(head, DiscreteHead) else 0,
            log_std_low=LOG_STD_RANGE[0],
            log_std_high=LOG_STD_RANGE[1],
            low=low,
            high=high,
        )
        self._places: list[int] = []
        self.discrete = kind == "categorical"
        self.sizes = sizes
        self.tensors = list(_in_order(policy, network))
        """The policy's parameters in the kernel's order."""
        assert kernel.net_sizes(self.net) == tuple(p.numel() for p in self.tensors)

    def point(self, memory: Callable[[], dict[int, tuple[int, int, int]]] | None = None) -> None:
        """Pass the addresses of all tensors to the kernel if a parameter moved: torch may reallocate weights between calls.

        `memory` returns {id of a parameter: addresses of its two optimiser slots, step}; acting needs none.
        """
        places = [p.data_ptr() for p in self.tensors]
        if places == self._places:
            return
        slots = None if memory is None else memory()
        rows = [
            (address, *((0, 0, 0) if slots is None else slots[id(p)]))
            for address, p in zip(places, self.tensors, strict=True)
        ]
        normalizer = self.flatten.normalizer
        shift, scale, clip = (0, 0, 0.0) if normalizer is None else normalizer.addresses()
        self.kernel.net_point(self.net, np.array(rows, dtype=np.uint64), shift, scale, clip)
        self._places = places

    def refresh(self) -> None:
        """Copy the current weights for acting."""
        if getattr(self.policy.head, "temperature", 1.0) != 1.0:
            raise PolicyError("the kernel acts at temperature 1 only; create the Collector with path='torch'")
        self.point()
        self.kernel.net_pack(self.net)


def _in_order(policy: ActorCritic, network: Trunks) -> Iterator[Tensor]:
    trunks = [network.actor] if network.critic is network.actor else [network.actor, network.critic]
    for module in (*(x for trunk in trunks for x in trunk), network.value_out, network.policy_out):
        if isinstance(module, nn.Linear):
            yield module.weight
            yield module.bias
    if isinstance(policy.head, GaussianHead):
        yield policy.head.log_std
