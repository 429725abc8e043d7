"""Kills a saving process again and again, flips bits, cuts files short, and counts what was lost.

    python benchmarks/kills.py --kills 60 --flips 1000 --truncations 200

Each line with a * is a control: the same campaign against a way of saving or loading that must fail it.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import CheckpointError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.retention import prune

MODES = ("sound", "early", "in place", "torch.save")
"""As shipped; acknowledging before the save; copying over the only checkpoint; a plain torch.save over the only file."""
ONLY_FILE = "only.pt"


def parts_of(step: int) -> dict[str, dict[str, Any]]:
    """3 MB that say which step they belong to in every number."""
    weight = np.full(1 << 18, step, dtype=np.float32)
    return {
        "weights": {"w": weight},
        "optimizer": {"m": weight, "v": weight},
        "rng": {"n": step, "torch": np.full(5000, step % 251, dtype=np.uint8)},
    }


def is_whole(step: int, parts: dict[str, dict[str, Any]]) -> bool:
    expected = parts_of(step)
    return all(np.array_equal(leaf, parts[part][key]) for part in expected for key, leaf in expected[part].items())


def save_for_ever(root: Path, mode: str, start: int) -> None:
    """The child: saves, prunes and writes each acknowledged step to its standard output until it is killed."""
    os.write(1, b"ready\n")
    for step in itertools.count(start):
        acknowledgement = b"%d\n" % step
        if mode == "early":
            os.write(1, acknowledgement)
            save_checkpoint(root, step, parts_of(step))
        else:
            save_checkpoint(root, step, parts_of(step))
            os.write(1, acknowledgement)
            prune(root, keep_last=3)


def copy_for_ever(root: Path) -> None:
    """The child that writes in place: two checkpoints take turns in being copied over the only one."""
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        sources = [save_checkpoint(Path(scratch), step, parts_of(step)) for step in (0, 1)]
        os.write(1, b"ready\n")
        for source in itertools.cycle(sources):
            shutil.copytree(source, root / "only", dirs_exist_ok=True)
            os.write(1, b"0\n")


def pickle_for_ever(root: Path) -> None:
    """The child that does what most programs do: torch.save over the same path."""
    import torch

    states = [
        {part: {"w": torch.full((1 << 20,), float(step))} for part in ("weights", "optimizer")} for step in (0, 1)
    ]
    os.write(1, b"ready\n")
    for state in itertools.cycle(states):
        torch.save(state, root / ONLY_FILE)
        os.write(1, b"0\n")


@dataclass(slots=True)
class Kills:
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Times that the loaded step is behind an acknowledged one."""
    unreadable: int = 0
    damaged: int = 0
    """Times that a checkpoint had to be passed over, or that its numbers are of another step."""


def kill_campaign(kills: int, *, mode: str = "sound", seed: int = 0) -> Kills:
    """Starts a saving child `kills` times on one root and kills it at a random moment each time."""
    rng = random.Random(seed)
    count = Kills()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "checkpoints"
        root.mkdir()
        newest = -1
        for i in range(kills):
            # A step that was saved but not acknowledged is saved again, so that replacing is killed too.
            steps = _kill_one([str(root), mode, str(newest + 1)], after=i % 4, share=rng.random())
            newest = max([newest, *steps])
            count.kills += 1
            count.acknowledged += len(steps)
            if not _examine(root, mode, newest, count):
                shutil.rmtree(root)
                root.mkdir()
                newest = -1
    return count


def _kill_one(arguments: list[str], after: int, share: float) -> list[int]:
    """The acknowledged steps of a child that was killed `after` of them and a share of the time that one takes."""
    child = subprocess.Popen([sys.executable, __file__, "--child", *arguments], stdout=subprocess.PIPE)
    assert child.stdout is not None
    ready, began = child.stdout.readline(), time.monotonic()
    lines = [child.stdout.readline() for _ in range(after)]
    time.sleep(share * max(0.05, (time.monotonic() - began) / max(1, after)))
    child.kill()
    lines += child.stdout.read().splitlines(keepends=True)
    child.stdout.close()
    if child.wait() != -9 or ready != b"ready\n":
        raise RuntimeError(f"the child ended by itself with {child.returncode}")
    return [int(line) for line in lines if line.endswith(b"\n")]


def _examine(root: Path, mode: str, newest: int, count: Kills) -> bool:
    """Whether the root still loads. A root in which nothing was acknowledged may be empty."""
    if newest < 0 and not any(p.name.isdecimal() or p.name in ("only", ONLY_FILE) for p in root.iterdir()):
        return False
    if mode == "torch.save":
        return _examine_pickle(root / ONLY_FILE, count)
    try:
        loaded = load_checkpoint(root / "only" if mode == "in place" else root)
    except CheckpointError:
        count.unreadable += 1
        return False
    count.lost += loaded.step < newest
    count.damaged += bool(loaded.skipped) or not is_whole(loaded.step, loaded.parts)
    return True


def _examine_pickle(file: Path, count: Kills) -> bool:
    import torch

    try:
        torch.load(file, weights_only=True)
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError):
        count.unreadable += 1
        return False
    return True


@dataclass(slots=True)
class Harms:
    tried: int = 0
    reported: int = 0
    """Times that the damaged checkpoint was refused, and the one before it loaded with a sentence about it."""
    silent: int = 0
    """Times that it was loaded."""


def harm_campaign(flips: int, truncations: int, *, seed: int = 0) -> Harms:
    """Flips one bit or cuts one file of the newer of two checkpoints, loads, and puts it right again."""
    rng = random.Random(seed)
    count = Harms()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        small = {"weights": {"w": np.arange(300.0)}, "optimizer": {"m": np.ones(300)}, "rng": {"n": 2**127, "k": [0.5]}}
        for step in (1, 2):
            newest = save_checkpoint(root, step, small, meta={"exact": True})
        files = {path: path.read_bytes() for path in sorted(newest.iterdir())}
        for harm in [_flip] * flips + [_cut] * truncations:
            path = rng.choices(list(files), weights=[len(data) for data in files.values()])[0]
            _overwrite(path, harm(files[path], rng))
            _count_harm(root, count)
            _overwrite(path, files[path])
        assert load_checkpoint(root).step == 2
    return count


def _overwrite(path: Path, data: bytes) -> None:
    # Not write_bytes: it empties the file first, and ext4 then waits for the disk at each close.
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _count_harm(root: Path, count: Harms) -> None:
    count.tried += 1
    loaded = load_checkpoint(root)
    count.silent += loaded.step == 2
    count.reported += loaded.step == 1 and len(loaded.skipped) == 1


def bare_flips(flips: int, *, seed: int = 0) -> Harms:
    """The control: the same flips in a safetensors file that is read without a manifest."""
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    rng = random.Random(seed)
    count = Harms(tried=flips)
    data = save({"w": np.arange(300.0)})
    for _ in range(flips):
        try:
            load(_flip(data, rng))
        except (SafetensorError, KeyError, ValueError):
            count.reported += 1
        else:
            count.silent += 1
    return count


def main() -> int:
    import argparse

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--truncations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results/kills.json")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        root, mode, start = args.child
        if mode == "in place":
            copy_for_ever(Path(root))
        if mode == "torch.save":
            pickle_for_ever(Path(root))
        save_for_ever(Path(root), mode, int(start))

    print(f"{'kill -9 while saving':28} kills  acknowledged  lost  unreadable  damaged  seconds")
    sound = Kills()
    told: dict[str, Any] = {"command": "make bench-kills", "kills": {}, "damage": {}}
    for mode in MODES:
        kills = args.kills if mode == "sound" else max(1, args.kills // 5)
        began = time.monotonic()
        k = kill_campaign(kills, mode=mode, seed=args.seed)
        sound = k if mode == "sound" else sound
        name = mode if mode == "sound" else mode + " *"
        numbers = f"{k.kills:5}  {k.acknowledged:12}  {k.lost:4}  {k.unreadable:10}  {k.damaged:7}"
        print(f"{name:28} {numbers}  {time.monotonic() - began:7.1f}", flush=True)
        told["kills"][name] = asdict(k)

    print(f"\n{'damage':28} tried  reported  loaded silently")
    rows = {
        "bit flips": (flips := harm_campaign(args.flips, 0, seed=args.seed)),
        "truncations": (cuts := harm_campaign(0, args.truncations, seed=args.seed)),
        "bit flips, no manifest *": bare_flips(args.flips, seed=args.seed),
    }
    for name, h in rows.items():
        print(f"{name:28} {h.tried:5}  {h.reported:8}  {h.silent:15}")
        told["damage"][name] = asdict(h)
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(json.dumps(told, indent=2) + "\n")
    kept = not (sound.lost or sound.unreadable or sound.damaged)
    return 0 if kept and all(h.reported == h.tried for h in (flips, cuts)) else 1


if __name__ == "__main__":
    sys.exit(main())
