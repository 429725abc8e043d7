"""A policy as a C99 header: weights, normalisation and head, without allocation and without a library.

`policy_act` takes the observation's parts and returns what the ONNX model returns. The arithmetic is that of the kernel's base
instruction set (`c_runtime.h`), so that every conforming compiler gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.c_text import c_name, c_numbers, c_struct, called_functions, is_c_name, optional, with_prefix
from surefoot.nets.continuous_distributions import LOG_STD_RANGE
from surefoot.nets.continuous_heads import AnyHead, BetaHead, GaussianHead, HybridHead, StateDependentHead, TanhHead
from surefoot.nets.heads import DiscreteHead, MultiDiscreteHead
from surefoot.nets.networks import Trunks
from surefoot.nets.onnx import MASK, port_name
from surefoot.nets.onnx_builder import ExportPort
from surefoot.nets.recurrent import Memory
from surefoot.nets.torsos import ACTIVATIONS, Flatten

# Up to this many outputs the kernel's output layers are dot products (FEW_OUTPUTS in layers.inc).
_FEW_OUTPUTS = 8
_FLT_MAX = float(np.finfo(np.float32).max)


@dataclass(slots=True)
class CHeader:
    """The text of a header and what it reads and writes."""

    name: str
    """The prefix of its functions and types."""
    code: str = ""
    inputs: list[ExportPort] = field(default_factory=list[ExportPort])
    memories: list[ExportPort] = field(default_factory=list[ExportPort])
    outputs: list[ExportPort] = field(default_factory=list[ExportPort])


def c_header(policy: ActorCritic, *, name: str = "policy", masks: bool = False) -> CHeader:
    """Return the policy as C; with `masks` the input has an `action_mask`. Raise `PolicyError` if it cannot be written."""
    network = policy.network
    if policy.own_module or not isinstance(network, Trunks):
        raise PolicyError("this policy contains your own network, which the C exporter cannot write; use --to onnx")
    if not isinstance(network.torso, Flatten):
        raise PolicyError("this policy has convolutional layers, which the C exporter does not support; use --to onnx")
    if masks and not policy.choices():
        raise PolicyError(f"masks=True, but actions are {policy.action}; only discrete actions can be masked")
    if not is_c_name(name):
        raise PolicyError(f"{name!r} cannot be a prefix in C; name the file with letters, digits and _, as in policy.h")
    policy.to("cpu")
    return _HeaderWriter(policy, network, network.torso, name).header(masks=masks)


class _HeaderWriter:
    """Write one policy: constants into `constants`, statements of `policy_act` into `body`."""

    def __init__(self, policy: ActorCritic, network: Trunks, torso: Flatten, name: str) -> None:
        self.policy, self.network, self.torso, self.name = policy, network, torso, name
        self.constants: list[str] = []
        self.body: list[str] = []
        self.buffers: dict[str, int] = {}
        self.result = CHeader(name)
        self.names = {id(value): key for key, value in policy.state_dict(keep_vars=True).items()}

    def header(self, *, masks: bool) -> CHeader:
        result, network = self.result, self.network
        self._load()
        if masks:
            result.inputs.append(ExportPort(MASK, "bool", (sum(self.policy.choices()),)))
        features = self._layers(network.actor, self._remember("memory", network.memory))
        head = self.policy.head
        raw = self._output(network.policy_out, features, "raw", head.outputs)
        self._head(head, raw, features, "in->action_mask" if masks else "0")
        if network.critic_torso is None:  # a deployed policy does not have the parts for the critic only
            self._value(features)
        for member in (result.inputs, result.outputs):
            names = [c_name(port.name) for port in member]
            if len(set(names)) < len(names):
                raise PolicyError(f"two parts of the observation have the same name in C: {sorted(names)}; rename one")
        result.code = self._text()
        return result

    def _text(self) -> str:
        result, memory = self.result, "policy_memory *memory, " if self.result.memories else ""
        structs = [c_struct("input", result.inputs), c_struct("output", result.outputs)]
        if result.memories:
            note = "/* The state of the policy: zeros at the start of an episode. */\n"
            structs.insert(1, note + c_struct("memory", result.memories))
        buffers = [f"    float {name}[{size}];" for name, size in self.buffers.items()]
        act = [
            "/* The most likely action and its distribution, for one observation. */",
            f"static inline void policy_act(const policy_input *in, {memory}policy_output *out) {{",
            *buffers,
            "    int i;",
            *self.body,
            "}",
        ]
        code = "\n".join(["\n\n".join([*structs, *self.constants]), "", *act])
        return with_prefix(f"{called_functions(code)}\n\n{code}\n", self.name)

    def _line(self, text: str) -> None:
        self.body.append(f"    {text}")

    def _each(self, count: int, statement: str) -> None:
        self._line(f"for (i = 0; i < {count}; i++) {statement}")

    def _array(self, name: str, values: Any) -> str:
        array = (
            (values.detach().numpy() if isinstance(values, Tensor) else np.asarray(values)).astype(np.float32).ravel()
        )
        if not np.isfinite(array).all():
            raise PolicyError(f"{name} has values that are not finite; this policy cannot be exported")
        self.constants.append(f"static const float policy_{name}[{array.size}] = {{{c_numbers(array)}\n}};")
        return f"policy_{name}"

    def _parameter(self, parameter: Tensor) -> str:
        return self._array(self.names[id(parameter)].removeprefix("network.").replace(".", "_"), parameter)

    def _buffer(self, name: str, size: int) -> str:
        self.buffers[name] = max(size, self.buffers.get(name, 0))
        return name

    def _load(self) -> None:
        """Copy the parts into one row, normalised if the policy does."""
        self.buffers["row"], at = self.torso.size, 0
        for name, box in self.torso.parts:
            port = port_name(name)
            self.result.inputs.append(ExportPort(port, "uint8" if box.dtype == "uint8" else "float32", box.shape))
            scaled = " / 255.0f" if box.dtype == "uint8" else ""
            member = f"in->{c_name(port)}[i]" if box.shape else f"in->{c_name(port)}"
            self._each(box.size, f"row[{at} + i] = {member}{scaled};")
            at += box.size
        if (norm := self.torso.normalizer) is not None:
            shift, scale = (
                self._array(f"obs_{key}", x) for key, x in zip(("shift", "scale"), norm.rows(), strict=True)
            )
            clip = c_numbers([float(norm.clip)]).strip(" ,")
            self._each(at, f"row[i] = policy_clamp((row[i] - {shift}[i]) * {scale}[i], -{clip}, {clip});")

    def _remember(self, name: str, memory: Memory | None) -> str:
        """Advance a memory and return its hidden state; without one, the row."""
        if memory is None:
            return "row"
        self.result.memories.append(ExportPort(name, "float32", (memory.carried,)))
        inner, onward = memory.inward, memory.onward
        weights = ", ".join(self._parameter(x) for x in (inner.weight, inner.bias, onward.weight, onward.bias))
        following, inputs = self._buffer("next", memory.size), inner.weight.shape[1]
        self._line(f"policy_{memory.kind}({inputs}, {memory.size}, {weights}, row, memory->{name}, {following});")
        return f"memory->{name}"

    def _layers(self, modules: nn.Sequential, x: str) -> str:
        size = 0
        for place, module in enumerate(modules):
            if isinstance(module, nn.Linear):
                size = module.out_features
                y = self._buffer(f"layer_{place // 2 % 2}", size)
                self._line(f"policy_layer({self._shape(module)}, {self._weights(module)}, {x}, {y});")
                x = y
            else:
                self._each(size, f"{x}[i] = policy_{self._activation(module)}({x}[i]);")
        return x

    def _output(self, module: nn.Module, x: str, y: str, outputs: int) -> str:
        assert isinstance(module, nn.Linear)
        kind = "dots" if outputs <= _FEW_OUTPUTS else "layer"
        self._line(f"policy_{kind}({self._shape(module)}, {self._weights(module)}, {x}, {self._buffer(y, outputs)});")
        return y

    def _shape(self, module: nn.Linear) -> str:
        outputs, inputs = module.weight.shape
        return f"{inputs}, {outputs}"

    def _weights(self, module: nn.Linear) -> str:
        return f"{self._parameter(module.weight)}, {self._parameter(module.bias)}"

    def _activation(self, module: nn.Module) -> str:
        kind = next((name for name, known in ACTIVATIONS.items() if known is type(module)), None)
        # Settings of the activation would be in its text: ELU(alpha=2.0).
        if kind is None or str(module) != str(ACTIVATIONS[kind]()):
            raise PolicyError(f"{module} is not supported by the C exporter")
        return kind

    def _value(self, features: str) -> None:
        constants, body, network = len(self.constants), len(self.body), self.network
        if network.critic is not network.actor:
            features = self._layers(network.critic, self._remember("critic_memory", network.critic_memory))
        weights, bias = (self._parameter(x) for x in (network.value_out.weight, network.value_out.bias))
        self._line(f"policy_dots({network.value_out.in_features}, 1, {weights}, {bias}, {features}, &out->value);")
        self.result.outputs.append(ExportPort("value", "float32", ()))
        self.constants[constants:] = [optional("\n\n".join(self.constants[constants:]))]
        self.body[body:] = [optional("\n".join(self.body[body:]))]

    def _head(self, head: AnyHead, raw: str, features: str, mask: str) -> None:
        outputs = self.result.outputs
        match head:
            case DiscreteHead():
                outputs += [ExportPort("action", "int32", ()), ExportPort("probs", "float32", (head.outputs,))]
                start = f" + ({head.start})" if head.start else ""
                self._line(f"out->action = policy_choose({head.outputs}, {raw}, {mask}, out->probs){start};")
            case MultiDiscreteHead():
                outputs.append(ExportPort("action", "int32", (len(head.nvec),)))
                self._choices(head, raw, mask, "")
            case HybridHead():
                size = math.prod(head.numbers.shape)
                outputs.append(ExportPort("action", "float32", (head.columns + size,)))
                self._choices(head.chosen, raw, mask, "(float)")
                self._numbers(
                    head.numbers, f"{raw}[{head.chosen.outputs} + ", features, f"out->action[{head.columns} + i]"
                )
            case _:
                outputs.append(ExportPort("action", "float32", head.shape))
                self._numbers(head, f"{raw}[", features, "out->action[i]" if head.shape else "out->action")

    def _choices(self, head: MultiDiscreteHead, raw: str, mask: str, cast: str) -> None:
        at = 0
        for k, options in enumerate(head.nvec):
            self.result.outputs.append(ExportPort(f"probs_{k}", "float32", (options,)))
            allowed = f"{mask} + {at}" if mask != "0" else mask
            self._line(f"out->action[{k}] = {cast}policy_choose({options}, {raw} + {at}, {allowed}, out->probs_{k});")
            at += options

    def _numbers(
        self, head: GaussianHead | TanhHead | BetaHead | StateDependentHead, raw: str, features: str, action: str
    ) -> None:
        """Write the most likely numbers within the bounds; `raw` is the network's output up to the index in it."""
        size = math.prod(head.shape)
        # An infinite bound does not clip.
        low, high = (np.clip(bound, -_FLT_MAX, _FLT_MAX) for bound in (head.low, head.high))
        bounds = f"{self._array('action_low', low)}[i], {self._array('action_high', high)}[i]"
        names = ("alpha", "beta") if isinstance(head, BetaHead) else ("mean", "std")
        self.result.outputs += [ExportPort(name, "float32", (size,)) for name in names]
        if isinstance(head, BetaHead):
            self._each(2 * size, f"{raw}i] = 1.0001f + policy_softplus({raw}i]);")
            self._each(size, f"out->alpha[i] = {raw}i];")
            self._each(size, f"out->beta[i] = {raw}{size} + i];")
            unit = "policy_beta_mode(out->alpha[i], out->beta[i])"
        else:
            self._each(size, f"out->mean[i] = {raw}i];")
            self._std(head, features, size)
            unit = "policy_tanh(out->mean[i])" if isinstance(head, TanhHead) else "out->mean[i]"
        if isinstance(head, TanhHead | BetaHead):
            middle, half = self._array("action_middle", head.middle), self._array("action_half_width", head.half_width)
            unit = f"{middle}[i] + {half}[i] * {unit}"
        self._each(size, f"{action} = policy_clamp({unit}, {bounds});")

    def _std(self, head: GaussianHead | StateDependentHead, features: str, size: int) -> None:
        log_std = head.log_std.detach().float().clamp(*LOG_STD_RANGE)
        if isinstance(head, GaussianHead):
            self._each(size, f"out->std[i] = {self._array('std', log_std.exp())}[i];")
            return
        width = len(log_std)
        squares = self._array("std_squared", (2.0 * log_std).exp().t())
        smallest = self._array("smallest_variance", np.full(size, 1e-6))
        squared = self._buffer("squared", width)
        self._each(width, f"{squared}[i] = {features}[i] * {features}[i];")
        self._line(f"policy_dots({width}, {size}, {squares}, {smallest}, {squared}, out->std);")
        self._each(
            size, f"out->std[i] = policy_exp(policy_clamp(0.5f * policy_log(out->std[i]), {LOG_STD_RANGE[0]}f, 20.0f));"
        )
