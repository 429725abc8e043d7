"""Renders episodes: in the terminal with half blocks, and as a GIF."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

from surefoot.envs.api import World
from surefoot.errors import EnvError
from surefoot.nets.policy import Policy, PolicyInput


class MissingPillow(EnvError):
    """A GIF was wanted and pillow is not installed."""


@torch.no_grad()
def film(
    policy: Policy, world: World, episodes: int, *, seed: int, deterministic: bool, longest: int
) -> tuple[list[np.ndarray], list[float]]:
    """Return a picture of every step of some episodes, and the returns."""
    generator = torch.Generator().manual_seed(seed)
    view, context = world.reset(seed), policy.initial_context(1)
    policy.to(torch.device("cpu"))
    frames, returns, total = [_picture(world)], list[float](), 0.0
    for _ in range(longest * episodes):
        inputs = PolicyInput.from_arrays(view.obs, view.action_mask, context=context)
        out = policy.act(inputs, generator=generator, deterministic=deterministic)
        step = world.step(policy.env_action(out.action.numpy()))
        context, view = out.context, step.view
        total += float(step.reward[0])
        frames.append(_picture(world))
        if step.terminated[0] or step.truncated[0]:
            returns.append(total)
            total = 0.0
            if len(returns) == episodes:
                break
    return frames, returns or [total]


def _picture(world: World) -> np.ndarray:
    picture = world.render()
    if picture is None:
        raise EnvError(f"{world.name} renders no picture; create the env with render_mode='rgb_array'")
    return picture


def write_gif(frames: list[np.ndarray], path: Path, *, fps: int) -> Path:
    """Write the pictures as a looping GIF: at most 400 of them, evenly chosen, to limit the size of the file."""
    try:
        from PIL import Image
    except ImportError as why:
        raise MissingPillow('a GIF needs pillow: pip install "surefoot[video]"') from why
    keep = [frames[i] for i in np.linspace(0, len(frames) - 1, min(len(frames), 400)).astype(int)]
    images = [Image.fromarray(frame) for frame in keep]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / fps), loop=0, optimize=True)
    return path


def show_in_terminal(frames: list[np.ndarray], *, fps: int, width: int = 76) -> None:
    """Play the pictures in the terminal, two pixels per character: upper and lower half."""
    out, due = sys.stdout, time.monotonic()
    height = max(2, 2 * (round(frames[0].shape[0] / frames[0].shape[1] * width / 2)))
    out.write("\x1b[?25l")
    try:
        for number, frame in enumerate(frames):
            if number:
                out.write(f"\x1b[{height // 2}A")
            out.write(_half_blocks(_shrink(frame, height, width)))
            out.flush()
            due += 1 / fps
            time.sleep(max(0.0, due - time.monotonic()))
    except KeyboardInterrupt:
        pass  # the caller still writes the GIF
    finally:
        out.write("\x1b[0m\x1b[?25h")
        out.flush()


def _shrink(frame: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the mean colour of each cell."""
    rows = np.linspace(0, frame.shape[0], height + 1).astype(int)
    columns = np.linspace(0, frame.shape[1], width + 1).astype(int)
    sums = np.add.reduceat(np.add.reduceat(frame.astype(np.float32), rows[:-1], axis=0), columns[:-1], axis=1)
    area = np.diff(rows)[:, None, None] * np.diff(columns)[None, :, None]
    return (sums / np.maximum(area, 1)).astype(np.uint8)


def _half_blocks(cells: np.ndarray) -> str:
    lines: list[str] = []
    for upper, lower in zip(cells[0::2].tolist(), cells[1::2].tolist(), strict=True):
        blocks = (
            f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m▀" for a, b in zip(upper, lower, strict=True)
        )
        lines.append("".join(blocks) + "\x1b[0m\n")
    return "".join(lines)
