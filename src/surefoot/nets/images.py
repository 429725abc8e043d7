"""Torsos for images: convolutional layers, and dicts of images and rows."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.spaces import Box, ObservationSpace
from surefoot.errors import ConfigError
from surefoot.nets.config import NetConfig
from surefoot.nets.torsos import Flatten, layer


class Images(nn.Module):
    """Convolutional layers for one image. Bytes are scaled to 0 … 1 inside (detail A9), so that rollouts store bytes (P38).

    `nature` is the network of Mnih et al. 2015; `small` has two 3x3 layers, for sides of 8 or more. The shortest axis is
    the channels: the first one (stacked frames) or the last one (cameras).
    """

    def __init__(self, box: Box, kind: str, features: int | None, *, ortho_init: bool) -> None:
        super().__init__()
        channels, height, width = _image_shape(box)
        self.first = len(box.shape) == 3 and box.shape[0] == channels and box.shape[0] <= min(box.shape[1:])
        self.flat_channel = len(box.shape) == 2
        modules: list[nn.Module] = []
        for outputs, size, stride, edge in CONVOLUTIONS[kind]:
            convolution = nn.Conv2d(channels, outputs, size, stride, edge)
            if ortho_init:
                nn.init.orthogonal_(convolution.weight, math.sqrt(2.0))
                assert convolution.bias is not None
                nn.init.zeros_(convolution.bias)
            modules += [convolution, nn.ReLU()]
            channels = outputs
            height, width = ((n + 2 * edge - size) // stride + 1 for n in (height, width))
        self.size = features or FEATURES[kind]
        modules += [
            nn.Flatten(),
            layer(channels * height * width, self.size, gain=math.sqrt(2.0), ortho_init=ortho_init),
            nn.ReLU(),
        ]
        self.layers = nn.Sequential(*modules)
        # Channels last in memory: a third faster on a CPU, forward and backward.
        self.layers.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def forward(self, x: Tensor) -> Tensor:
        if self.flat_channel:
            x = x.unsqueeze(1)
        elif not self.first:
            x = x.permute(0, 3, 1, 2)
        x = x.contiguous(memory_format=torch.channels_last)
        first, *others = self.layers
        assert isinstance(first, nn.Conv2d)
        # Divide the few weights of the first layer by 255 instead of the many bytes of the images.
        weight = first.weight * (1.0 / 255.0) if x.dtype == torch.uint8 else first.weight
        x = nn.functional.conv2d(x.float(), weight, first.bias, first.stride, first.padding)
        for module in others:
            x = module.forward(x)
        return x


class Parts(nn.Module):
    """A dict of images and rows: each image has its own layers, everything else goes through `Flatten`."""

    def __init__(
        self,
        observation: ObservationSpace,
        *,
        cnn: str,
        features: int | None,
        ortho_init: bool,
        normalize: bool,
        clip: float,
    ) -> None:
        super().__init__()
        kinds = {name: kind for name, box in sorted(observation.items()) if (kind := image_kind(box, cnn, name))}
        self.names = list(kinds)
        self.images = nn.ModuleList(
            Images(observation[name], kind, features, ortho_init=ortho_init) for name, kind in kinds.items()
        )
        rows = {name: box for name, box in observation.items() if name not in kinds}
        self.flatten = Flatten(rows, normalize=normalize, clip=clip) if rows else None
        widths = [image.size for image in self.images if isinstance(image, Images)]
        self.size = sum(widths) + (0 if self.flatten is None else self.flatten.size)

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        features = [image(obs[name]) for name, image in zip(self.names, self.images, strict=True)]
        if self.flatten is not None:
            features.append(self.flatten(obs))
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1)

    def absorb(self, obs: dict[str, np.ndarray]) -> None:
        """Add raw rows to the normaliser of the parts that are not images, if there is one."""
        if self.flatten is not None:
            self.flatten.absorb(obs)


CONVOLUTIONS = {"nature": ((32, 8, 4, 0), (64, 4, 2, 0), (64, 3, 1, 0)), "small": ((32, 3, 2, 1), (64, 3, 2, 1))}
"""{kind: (channels, kernel size, stride, padding) of each layer}"""
# 512 is Mnih et al.'s; small images get a quarter of it.
FEATURES = {"nature": 512, "small": 128}
# nature: the smallest side that leaves one output of the last layer. small: 8 leaves 2x2.
_SHORTEST_SIDE = {"nature": 36, "small": 8}


def image_kind(box: Box, cnn: str, name: str) -> str | None:
    """Return the kind of layers for an observation part; None if it is flattened."""
    if cnn == "off" or len(box.shape) not in (2, 3) or (len(box.shape) == 2 and box.dtype != "uint8"):
        return None
    side = min(_image_shape(box)[1:])
    fitting = [kind for kind, least in _SHORTEST_SIDE.items() if side >= least]
    if cnn == "auto":
        return fitting[0] if fitting else None
    if cnn not in fitting:
        raise ConfigError(
            f"cnn is {cnn!r} but the observation part {name!r} is {list(box.shape)}; it needs sides of "
            f"{_SHORTEST_SIDE[cnn]} or more: set cnn to {fitting[0] if fitting else 'off'!r}"
        )
    return cnn


def _image_shape(box: Box) -> tuple[int, int, int]:
    """Return (channels, height, width) for channels first or last."""
    if len(box.shape) == 2:
        return 1, *box.shape
    a, b, c = box.shape
    return (a, b, c) if a <= min(b, c) else (c, a, b)


def make_torso(observation: ObservationSpace, config: NetConfig) -> Flatten | Parts:
    """Return the torso for these parts: `Flatten`, unless there are images among them."""
    normalize, clip = config.normalize_obs, config.obs_clip
    if not any(image_kind(box, config.cnn, name) for name, box in observation.items()):
        return Flatten(observation, normalize=normalize, clip=clip)
    return Parts(
        observation,
        cnn=config.cnn,
        features=config.cnn_features,
        ortho_init=config.ortho_init,
        normalize=normalize,
        clip=clip,
    )
