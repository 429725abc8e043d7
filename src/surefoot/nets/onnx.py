"""A policy as an ONNX graph, written node by node; only a module of the user's own is traced, by torch (`splice`).

Inputs are the observation's parts, an optional `action_mask`, and the state of a memory, which is zero at the start of an
episode. Outputs are the most likely `action` in the environment's form, the distribution's parameters, the value, and the
new state of a memory. Normalisation, masks and action scaling are inside.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.spaces import Box
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.continuous_distributions import LOG_STD_RANGE
from surefoot.nets.continuous_heads import AnyHead, BetaHead, GaussianHead, HybridHead, StateDependentHead, TanhHead
from surefoot.nets.heads import DiscreteHead, MultiDiscreteHead
from surefoot.nets.images import Images, Parts
from surefoot.nets.networks import CustomNetwork, Trunks
from surefoot.nets.onnx_builder import BATCH, IR_VERSION, OPSET, ExportPort, Sheet, onnx_helper, optional_module, splice
from surefoot.nets.recurrent import Memory
from surefoot.nets.torsos import Flatten

MASK = "action_mask"
_RESERVED = {MASK, "action", "value", "mean", "std", "alpha", "beta", "memory", "critic_memory"}


def policy_graph(policy: ActorCritic, *, masks: bool = False) -> tuple[Any, Sheet]:
    """Return the ONNX model and the sheet it was written from; with `masks` it has the input `action_mask`."""
    if masks and not policy.choices():
        raise PolicyError(f"masks=True, but actions are {policy.action}; only discrete actions can be masked")
    policy.to("cpu")
    sheet, names = Sheet(), {id(value): name for name, value in policy.state_dict(keep_vars=True).items()}
    assert isinstance(policy.network, Trunks | CustomNetwork)
    _ModuleWriter(sheet, names).policy(policy, policy.network, masks=masks)
    helper, proto = onnx_helper(), optional_module("onnx").TensorProto
    kinds = {"float32": proto.FLOAT, "uint8": proto.UINT8, "bool": proto.BOOL, "int64": proto.INT64}

    def port(p: ExportPort) -> Any:
        return helper.make_tensor_value_info(p.name, kinds[p.dtype], list(p.shape))

    graph = helper.make_graph(
        sheet.nodes,
        "policy",
        [port(p) for p in sheet.inputs],
        [port(p) for p in sheet.outputs],
        list(sheet.constants.values()),
    )
    model = helper.make_model(
        graph, producer_name="surefoot", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    optional_module("onnx.checker").check_model(model, full_check=True)
    return model, sheet


def port_name(part: str) -> str:
    """Return the graph's name of an observation part: its own, prefixed if that is reserved."""
    return f"obs.{part}" if part in _RESERVED or part.startswith("probs") or part.endswith("_out") else part


class _ModuleWriter:
    """Write modules into a sheet, with the parameter names of torch."""

    def __init__(self, sheet: Sheet, names: dict[int, str]) -> None:
        self.sheet, self.names = sheet, names

    def policy(self, policy: ActorCritic, network: Trunks | CustomNetwork, *, masks: bool) -> None:
        sheet = self.sheet
        hidden = set(policy.config.critic_only)
        parts: dict[str, str] = {}
        for name, box in policy.observation.items():
            if name not in hidden:
                parts[name] = sheet.take(port_name(name), "uint8" if box.dtype == "uint8" else "float32", *box.shape)
        mask = sheet.take(MASK, "bool", sum(policy.choices())) if masks else None
        carried: dict[str, str] = {}
        if isinstance(network, CustomNetwork):
            raw, value = splice(sheet, network.module, policy.observation, parts, 2)
            features, value = raw, sheet.reshape(value)
        else:
            raw, value, features = self.trunks(policy, network, parts, carried)
        action, dtype, shape = self.head(policy.head, raw, features, mask)
        # The action first: a program that reads a single output reads this one.
        sheet.outputs.insert(0, ExportPort("action", dtype, (BATCH, *shape)))
        sheet.nodes.append(onnx_helper().make_node("Identity", [action], ["action"]))
        if value is not None:
            sheet.give("value", value, "float32")
        for name, source in carried.items():
            memory = network.memories()[name]
            sheet.give(f"{name}_out", source, "float32", memory.carried)

    def trunks(
        self, policy: ActorCritic, network: Trunks, parts: dict[str, str], carried: dict[str, str]
    ) -> tuple[str, str | None, str]:
        """Return the names of the head's input, the value (None for a critic that sees more) and the actor's features."""
        if policy.own_module:
            encoded = splice(self.sheet, network.torso, policy.observation, parts, 1)[0]
        else:
            encoded = self.torso(network.torso, parts)
        features = self.layers(network.actor, self._remember("memory", network.memory, encoded, carried))
        raw = self.linear(network.policy_out, features)
        if network.critic_torso is not None:  # a deployed policy does not have the parts for the critic only
            return raw, None, features
        critic = features
        if network.critic is not network.actor:
            critic = self.layers(
                network.critic, self._remember("critic_memory", network.critic_memory, encoded, carried)
            )
        return raw, self.sheet.reshape(self.linear(network.value_out, critic)), features

    def torso(self, torso: nn.Module, parts: dict[str, str]) -> str:
        if isinstance(torso, Flatten):
            return self._flatten(torso, parts)
        assert isinstance(torso, Parts)
        features = [self._image(image, parts[name]) for name, image in zip(torso.names, torso.images, strict=True)]
        if torso.flatten is not None:
            features.append(self._flatten(torso.flatten, parts))
        return self.sheet.join(features)

    def linear(self, module: nn.Module, x: str) -> str:
        assert isinstance(module, nn.Linear)
        return self.sheet.op("Gemm", x, self._parameter(module.weight), self._parameter(module.bias), transB=1)

    def layers(self, modules: nn.Sequential, x: str) -> str:
        for module in modules:
            x = self.linear(module, x) if isinstance(module, nn.Linear) else self._activation(module, x)
        return x

    def head(self, head: AnyHead, raw: str, features: str, mask: str | None) -> tuple[str, str, tuple[int, ...]]:
        """Return the action in the environment's form, its dtype and shape; the distribution's parameters become outputs."""
        sheet = self.sheet
        match head:
            case DiscreteHead():
                chosen = self._choose([raw], [head.outputs], ["probs"], mask)[0]
                if head.start:
                    chosen = sheet.op("Add", chosen, sheet.constant(np.array(head.start, np.int64)))
                return chosen, "int64", ()
            case MultiDiscreteHead():
                return self._columns(head, raw, mask), "int64", (len(head.nvec),)
            case HybridHead():
                choices, numbers = sheet.split(raw, [head.chosen.outputs, head.numbers.outputs])
                columns = sheet.op("Cast", self._columns(head.chosen, choices, mask), to=1)
                row = self._numbers(head.numbers, numbers, features)
                size = math.prod(head.numbers.shape)
                return sheet.join([columns, sheet.reshape(row, size)]), "float32", (head.columns + size,)
            case _:
                row = self._numbers(head, raw, features)
                return sheet.reshape(row, *head.shape), "float32", head.shape

    def _columns(self, head: MultiDiscreteHead, raw: str, mask: str | None) -> str:
        sizes = list(head.nvec)
        chosen = self._choose(self.sheet.split(raw, sizes), sizes, [f"probs_{k}" for k in range(len(sizes))], mask)
        return self.sheet.join([self.sheet.reshape(one, 1) for one in chosen])

    def _choose(self, logits: list[str], sizes: list[int], names: list[str], mask: str | None) -> list[str]:
        sheet = self.sheet
        allowed = [None] * len(sizes) if mask is None else sheet.split(mask, sizes)
        floor = float(torch.finfo(torch.float32).min) / 2
        chosen: list[str] = []
        for raw, size, name, may in zip(logits, sizes, names, allowed, strict=True):
            masked = raw if may is None else sheet.op("Where", may, raw, sheet.constant(np.float32(floor)))
            log_probs = sheet.op("LogSoftmax", masked, axis=1)
            sheet.give(name, sheet.op("Exp", log_probs), "float32", size)
            chosen.append(sheet.op("ArgMax", log_probs, axis=1, keepdims=0))
        return chosen

    def _numbers(self, head: GaussianHead | TanhHead | BetaHead | StateDependentHead, raw: str, features: str) -> str:
        """Return the most likely numbers within the bounds, [batch, size]."""
        sheet, size = self.sheet, math.prod(head.shape)
        low, high = (bound.reshape(-1).astype(np.float32) for bound in (head.low, head.high))
        if isinstance(head, BetaHead):
            return sheet.clip(self._beta_mode(head, raw, size), low, high)
        sheet.give("mean", raw, "float32", size)
        sheet.give("std", self._std(head, raw, features), "float32", size)
        if isinstance(head, TanhHead):
            raw = self._stretch(head, sheet.op("Tanh", raw))
        return sheet.clip(raw, low, high)

    def _beta_mode(self, head: BetaHead, raw: str, size: int) -> str:
        sheet = self.sheet
        above_one = sheet.op("Add", sheet.op("Softplus", raw), sheet.constant(np.float32(1.0 + 1e-4)))
        alpha, beta = sheet.split(above_one, [size, size])
        sheet.give("alpha", alpha, "float32", size)
        sheet.give("beta", beta, "float32", size)
        one, two = sheet.constant(np.float32(1.0)), sheet.constant(np.float32(2.0))
        share = sheet.op("Div", sheet.op("Sub", alpha, one), sheet.op("Sub", sheet.op("Add", alpha, beta), two))
        mode = sheet.clip(share, np.float32(1e-6), np.float32(1.0 - 1e-6))
        return self._stretch(head, sheet.op("Sub", sheet.op("Mul", mode, two), one))

    def _stretch(self, head: TanhHead | BetaHead, unit: str) -> str:
        sheet = self.sheet
        middle, half = (x.reshape(-1).astype(np.float32) for x in (head.middle, head.half_width))
        return sheet.op("Add", sheet.op("Mul", unit, sheet.constant(half)), sheet.constant(middle))

    def _std(self, head: GaussianHead | StateDependentHead, raw: str, features: str) -> str:
        sheet = self.sheet
        std = head.log_std.detach().clamp(*LOG_STD_RANGE).exp()
        if isinstance(head, GaussianHead):
            return sheet.op("Expand", sheet.constant(std), sheet.op("Shape", raw))
        squares = sheet.op("MatMul", sheet.op("Mul", features, features), sheet.constant(std.square()))
        log = sheet.op("Log", sheet.op("Add", squares, sheet.constant(np.float32(1e-6))))
        halved = sheet.op("Mul", log, sheet.constant(np.float32(0.5)))
        return sheet.op("Exp", sheet.clip(halved, np.float32(LOG_STD_RANGE[0]), np.float32(20.0)))

    def _flatten(self, torso: Flatten, parts: dict[str, str]) -> str:
        sheet = self.sheet
        row = sheet.join([self._row(parts[name], box) for name, box in torso.parts])
        norm = torso.normalizer
        if norm is None:
            return row
        shift, scale = norm.mean.float(), norm.var.clamp(min=1e-8).rsqrt().float()
        row = sheet.op("Mul", sheet.op("Sub", row, sheet.constant(shift)), sheet.constant(scale))
        return sheet.clip(row, np.float32(-norm.clip), np.float32(norm.clip))

    def _row(self, x: str, box: Box) -> str:
        sheet = self.sheet
        if len(box.shape) != 1:
            x = sheet.reshape(x, box.size)
        if box.dtype != "uint8":
            return x
        return sheet.op("Div", sheet.op("Cast", x, to=1), sheet.constant(np.float32(255.0)))

    def _image(self, image: nn.Module, name: str) -> str:
        assert isinstance(image, Images)
        sheet, bytes_in = self.sheet, next(p for p in self.sheet.inputs if p.name == name).dtype == "uint8"
        x = sheet.op("Cast", name, to=1) if bytes_in else name
        if image.flat_channel:
            x = sheet.op("Unsqueeze", x, sheet.constant(np.array([1], np.int64)))
        elif not image.first:
            x = sheet.op("Transpose", x, perm=[0, 3, 1, 2])
        for place, module in enumerate(image.layers):
            match module:
                case nn.Conv2d():
                    assert module.bias is not None
                    # The first weights scale bytes to 0 … 1, as in `Images`.
                    scaled = sheet.constant(module.weight * (1.0 / 255.0)) if bytes_in and place == 0 else None
                    sides = [int(edge) for edge in module.padding] * 2
                    weight = scaled or self._parameter(module.weight)
                    strides = [int(s) for s in module.stride]
                    x = sheet.op("Conv", x, weight, self._parameter(module.bias), strides=strides, pads=sides)
                case nn.Flatten():
                    x = sheet.op("Flatten", x, axis=1)
                case nn.Linear():
                    x = self.linear(module, x)
                case _:
                    x = self._activation(module, x)
        return x

    def _remember(self, name: str, memory: Memory | None, x: str, carried: dict[str, str]) -> str:
        if memory is None:
            return x
        sheet, size = self.sheet, memory.size
        carry = sheet.take(name, "float32", memory.carried)
        inward = self.linear(memory.inward, x)
        if memory.kind == "lstm":
            h, c = sheet.split(carry, [size, size])
            i, f, g, o = sheet.split(sheet.op("Add", inward, self.linear(memory.onward, h)), [size] * 4)
            remaining = sheet.op("Mul", sheet.op("Sigmoid", f), c)
            c = sheet.op("Add", remaining, sheet.op("Mul", sheet.op("Sigmoid", i), sheet.op("Tanh", g)))
            h = sheet.op("Mul", sheet.op("Sigmoid", o), sheet.op("Tanh", c))
            carried[name] = sheet.join([h, c])
            return h
        (r_in, z_in, n_in), (r_on, z_on, n_on) = (
            sheet.split(rows, [size] * 3) for rows in (inward, self.linear(memory.onward, carry))
        )
        r = sheet.op("Sigmoid", sheet.op("Add", r_in, r_on))
        z = sheet.op("Sigmoid", sheet.op("Add", z_in, z_on))
        n = sheet.op("Tanh", sheet.op("Add", n_in, sheet.op("Mul", r, n_on)))
        h = sheet.op("Add", n, sheet.op("Mul", z, sheet.op("Sub", carry, n)))
        carried[name] = h
        return h

    def _activation(self, module: nn.Module, x: str) -> str:
        sheet = self.sheet
        match module:
            case nn.Tanh():
                return sheet.op("Tanh", x)
            case nn.ReLU():
                return sheet.op("Relu", x)
            case nn.ELU():
                return sheet.op("Elu", x, alpha=float(module.alpha))
            case nn.LeakyReLU():
                return sheet.op("LeakyRelu", x, alpha=float(module.negative_slope))
            case nn.SiLU():
                return sheet.op("Mul", x, sheet.op("Sigmoid", x))
            case nn.GELU():
                bell = sheet.op("Erf", sheet.op("Mul", x, sheet.constant(np.float32(math.sqrt(0.5)))))
                half = sheet.op("Mul", x, sheet.constant(np.float32(0.5)))
                return sheet.op("Mul", half, sheet.op("Add", bell, sheet.constant(np.float32(1.0))))
            case _:
                raise PolicyError(f"{type(module).__name__} is not supported by the ONNX exporter")

    def _parameter(self, parameter: Tensor) -> str:
        return self.sheet.constant(parameter, self.names[id(parameter)])
