"""Whether the kernel can run a policy, and why not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from surefoot import native
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.continuous_heads import BetaHead, GaussianHead, HybridHead, StateDependentHead, TanhHead
from surefoot.nets.heads import DiscreteHead, Head, MultiDiscreteHead
from surefoot.nets.networks import Trunks
from surefoot.nets.policy import Policy
from surefoot.nets.recurrent import GATES, Memory
from surefoot.nets.torsos import ACTIVATIONS, Flatten

KINDS: dict[type, str] = {
    DiscreteHead: "categorical",
    MultiDiscreteHead: "categorical",
    GaussianHead: "gaussian",
    TanhHead: "squashed",
    StateDependentHead: "gsde",
    BetaHead: "beta",
}
"""What the kernel calls a head; one of hybrid actions has the name of its numbers."""
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(
    value for name, value in vars(torch_module).items() if name.startswith("_global_") and "_hooks" in name
)
"""Hooks that torch calls for every module."""


class Layers(NamedTuple):
    """The layers of a policy as they are now."""

    actor_widths: tuple[int, ...]
    critic_widths: tuple[int, ...]
    shared: bool
    activation: str
    tensors: list[nn.Parameter]
    """In the kernel's order."""


def parts_of(policy: ActorCritic) -> tuple[Head, BetaHead | GaussianHead | StateDependentHead | None]:
    """Return (the head of the choices, or the only head; the head of the numbers, or None without any)."""
    head = policy.head
    if isinstance(head, HybridHead):
        return head.chosen, head.numbers
    return head, head if isinstance(head, BetaHead | GaussianHead | StateDependentHead) else None


def why_not(policy: Policy) -> str | None:
    """Return why the kernel cannot run this policy as it is now, or None if it can."""
    if (unusable := native.unusable()) is not None:
        return unusable
    # The exact type: a subclass may compute something else than the kernel would.
    if not isinstance(policy, ActorCritic) or type(policy) is not ActorCritic or policy.own_module:
        return "the policy contains a custom network"
    head = policy.head
    if any(type(torso) is not Flatten for torso in policy.torsos):
        return "the kernel does not support images"
    if any(type(part) not in (*KINDS, HybridHead) for part in (head, *parts_of(policy)) if part is not None):
        return "the policy contains a custom head"
    if len(head.choices()) > native.kernel.MAX_CHOICES:
        return f"an action has more than {native.kernel.MAX_CHOICES} choices"
    layers = layers_of(policy)
    return layers if isinstance(layers, str) else _why_not_tensors(policy, layers.tensors)


def layers_of(policy: ActorCritic) -> Layers | str:
    """Return the layers, or why they are none that the kernel can run."""
    network, kernel = policy.network, native.kernel
    replaced = "the layers of the policy were replaced"
    if type(network) is not Trunks:
        return replaced
    if (network.torso, network.critic_torso or network.torso) != (policy.torsos[0], policy.torsos[-1]):
        return replaced
    if any(_is_altered(module) for module in policy.modules()) or any(_GLOBAL_HOOKS):
        return "a module of the policy has hooks or a replaced method"
    shared = network.critic is network.actor
    actor: list[Any] = list(network.actor)
    critic: list[Any] = list(network.critic)
    linear: list[Any] = [*actor[0::2], *([] if shared else critic[0::2]), network.value_out, network.policy_out]
    activations = [*actor[1::2], *critic[1::2]]
    kinds = {type(x) for x in activations} or {ACTIVATIONS[policy.config.activation]}
    if any(type(x) is not nn.Linear for x in linear) or len(kinds) > 1 or len(actor) % 2 or len(critic) % 2:
        return replaced
    # The kernel has the settings that torch's activations have by default.
    usual = {"alpha": 1.0, "negative_slope": 0.01, "approximate": "none"}
    if any(getattr(x, name, value) != value for x in activations for name, value in usual.items()):
        return replaced
    kind = kinds.pop()
    name = next((name for name, known in ACTIVATIONS.items() if known is kind), kind.__name__)
    if name not in kernel.ACTIVATIONS:
        return f"the kernel does not support the activation {name}"
    memories = list(network.memories().values())
    if any(type(x) is not Memory or not x.by_kernel for x in memories) or len(memories) != policy.sequential * (
        2 - shared
    ):
        return "the memory of the policy was replaced, or is set to torch"
    weights = [x for memory in memories for x in (memory.inward, memory.onward)]
    if any(type(x) is not nn.Linear for x in weights):
        return replaced
    linear += weights
    if max(len(actor), len(critic)) > 2 * kernel.MAX_DEPTH:
        return f"the network has more than {kernel.MAX_DEPTH} hidden layers"
    if any(x.bias is None for x in linear):
        return "a layer of the policy has no bias"
    widths, outputs = [policy.torsos[0].size, policy.torsos[-1].size], policy.head.outputs
    for memory, inputs in zip(memories, widths, strict=False):
        for part, size in ((memory.inward, inputs), (memory.onward, memory.size)):
            refuse_broken_chain([part], size, GATES[memory.kind] * memory.size)
    if memories:
        widths = [memories[0].size] * 2
    for inputs, trunk, last, width in zip(
        widths, (actor, critic), (network.policy_out, network.value_out), (outputs, 1), strict=True
    ):
        refuse_broken_chain([*trunk[0::2], last], inputs, width)
    tensors = [x for layer in linear[: len(linear) - len(weights)] for x in (layer.weight, layer.bias)]
    numbers = parts_of(policy)[1]
    if isinstance(numbers, GaussianHead | StateDependentHead):
        tensors.append(numbers.log_std)
    tensors += [x for layer in weights for x in (layer.weight, layer.bias)]
    actor_widths, critic_widths = ([x.weight.shape[0] for x in trunk[0::2]] for trunk in (actor, critic))
    return Layers(tuple(actor_widths), tuple(critic_widths), shared, name, tensors)


def refuse_broken_chain(chain: Iterable[Any], inputs: int, outputs: int) -> None:
    """Raise `PolicyError` if a linear layer does not take what the layer before it returns: torch cannot run it either."""
    for layer in chain:
        shape, bias = list(layer.weight.shape), list(layer.bias.shape)
        if len(shape) != 2 or shape[1] != inputs or bias != shape[:1]:
            raise PolicyError(
                f"a layer of the policy has a weight {shape} and a bias {bias} but gets {inputs} inputs; "
                "a weight must be [outputs, inputs] and a bias [outputs]"
            )
        inputs = shape[0]
    if inputs != outputs:
        raise PolicyError(f"the last layer of the policy has {inputs} outputs; its head or its value needs {outputs}")


def _is_altered(module: nn.Module) -> bool:
    """Return True if calling the module does more than its class defines: hooks, or a method replaced on the instance."""
    if any(getattr(module, name) for name in _HOOKS):
        return True
    return any(callable(getattr(type(module), name, None)) for name in vars(module))


def _why_not_tensors(policy: ActorCritic, tensors: list[nn.Parameter]) -> str | None:
    normalizers = [torso.normalizer for torso in policy.torsos if isinstance(torso, Flatten)]
    rows = [x for normalizer in normalizers if normalizer is not None for x in normalizer.rows()]
    if len({normalizer.clip for normalizer in normalizers if normalizer is not None}) > 1:
        return "actor and critic clip observations at different bounds"
    if any(x.dtype != torch.float32 or x.device.type != "cpu" for x in (*tensors, *rows)):
        return "the weights are not float32 on the CPU"
    if not all(p.requires_grad for p in tensors):
        return "some weights are frozen"
    if not all(type(p) is nn.Parameter and p.is_contiguous() for p in tensors) or not all(
        x.is_contiguous() and x.numel() == torso.size
        for torso, x in zip([t for t in policy.torsos for _ in range(2)], rows, strict=False)
    ):
        return "some weights are views, transposed or of another type"
    if any(p._backward_hooks or p._post_accumulate_grad_hooks for p in tensors):  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        return "some weights have hooks"
    if len({p.data_ptr() for p in tensors}) < len(tensors):
        return "two layers share their weights"
    return None


def containers_of(policy: nn.Module) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Return (dict or list, its values) of everything whose change could change what the policy computes."""
    for module in policy.modules():
        state = vars(module)
        # `training` changes nothing in the modules that the kernel supports, and some callers set it in every update; the kernel
        # gets the temperature before each call.
        yield state, tuple(... if name in ("training", "temperature") else value for name, value in state.items())
        for value in state.values():
            if isinstance(value, dict | list):
                yield value, tuple(value.values() if isinstance(value, dict) else value)
    for hooks in _GLOBAL_HOOKS:
        yield hooks, tuple(hooks.values())
