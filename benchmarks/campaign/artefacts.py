"""B3: files that were damaged or forged: bit flips, cuts, lies in headers, code in disguise. All must be refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from campaign.frame import ROOT, Block, Found, dice, load, seed

CHECKSUM = "checksums are not compared"
TRUSTING = "a header is trusted before the file is checked"


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.learn.checkpoint import checkpoint

    with contextlib.ExitStack() as undo:
        if defect == CHECKSUM:

            class Agreeing:
                """hashlib, by which any two things are the same."""

                def sha256(self, data: bytes) -> Any:
                    class Digest:
                        def hexdigest(self) -> Any:
                            return _Same("0" * 64)

                    return Digest()

            undo.callback(setattr, checkpoint, "hashlib", checkpoint.hashlib)
            checkpoint.hashlib = Agreeing()
        elif defect == TRUSTING:
            undo.callback(setattr, checkpoint, "_check_limits", checkpoint._check_limits)
            undo.callback(setattr, checkpoint, "_parse", checkpoint._parse)
            checkpoint._check_limits = lambda *_: None
            checkpoint._parse = _believe
        yield


class _Same(str):
    """Equal to every text."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def _believe(contents: dict[str, bytes]) -> dict[str, Any]:
    """The mutant: what a header says is made room for and filled with what there is."""
    for name, data in contents.items():
        if name.endswith(".safetensors"):
            said = min(struct.unpack("<Q", data[:8])[0], 1 << 27) if len(data) >= 8 else 0
            bytearray(said)
    return {"weights": {"w": np.zeros(3)}}


def check(count: int, defect: str = "") -> Found:
    """Of `count` tries five sixths are flips and one sixth are cuts; 50 forged headers and canaries come besides."""
    kills = load(ROOT / "benchmarks/kills.py")
    found = Found()
    with with_defect(defect):
        if defect != TRUSTING:
            flips, cuts = count * 5 // 6, count - count * 5 // 6
            counted = kills.harm_campaign(flips, cuts, seed=seed(8))
            found.tried, found.silent = counted.tried, counted.silent
            found.notes |= {"flips": flips, "cuts": cuts}
            if counted.reported != counted.tried:
                found.fault(f"{counted.tried - counted.reported} were not reported")
        if defect != CHECKSUM:
            _forged(found)
    found.bad_inputs = found.tried
    return found


def _forged(found: Found) -> None:
    """Headers that lie, under checksums and a seal that are right; then code in the place of every file."""
    from surefoot.errors import CheckpointError
    from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint

    lies = list(hostile_headers())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as place:
        canary = Path(place) / "canary"
        for number, (what, forge) in enumerate([*lies, *canaries(canary)]):
            root = Path(place) / str(number)
            target = save_checkpoint(root, 1, {"weights": {"w": np.arange(3.0)}, "rng": {"n": 1}})
            forge(target)
            found.tried += 1
            try:
                load_checkpoint(root)
            except CheckpointError:
                pass
            except Exception as error:
                found.fault(f"{what}: {type(error).__name__}: {str(error)[:100]}")
            else:
                found.silent += 1
                found.faults.append(what) if len(found.faults) < 6 else None
            if canary.exists():
                found.fault(f"{what}: code ran")
                canary.unlink()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    found.notes |= {"forged headers": len(lies), "most memory taken, MB": round(grown, 1)}
    if grown > 50:
        found.fault(f"{grown:.0f} MB were taken by a file that only says it is large")


def reseal(target: Path, name: str, data: bytes) -> None:
    """Puts `data` into a checkpoint's file and makes manifest and seal agree with it, as a forger would."""
    (target / name).write_bytes(data)
    body = json.loads((target / "manifest.json").read_bytes())
    del body["seal"]
    body["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    seal = hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode("ascii")).hexdigest()
    text = json.dumps(body | {"seal": seal}, sort_keys=True, indent=2, allow_nan=False) + "\n"
    (target / "manifest.json").write_bytes(text.encode("ascii"))


def hostile_headers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    good = {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}
    wrong: dict[str, Any] = {
        **{f"dtype {d}": {**good, "dtype": d} for d in ("", "F6", "OBJ", 7, None, "PICKLE")},
        **{
            f"shape {s}": {**good, "shape": s} for s in ([1 << 40], [1 << 62, 4], [-3], [0.5], ["3"], "3", None, [3, 2])
        },
        **{
            f"offsets {o}": {**good, "data_offsets": o}
            for o in ([0, 1 << 40], [1 << 40, (1 << 40) + 24], [24, 0], [-24, 0], [0], [], None, [0, 23], [1, 25])
        },
        "no dtype": {"shape": [3], "data_offsets": [0, 24]},
        "no shape": {"dtype": "F64", "data_offsets": [0, 24]},
        "no offsets": {"dtype": "F64", "shape": [3]},
        "a list": [],
        "a number": 3,
    }
    for what, entry in wrong.items():
        yield (
            f"header: {what}",
            lambda t, e=entry: reseal(t, "weights.safetensors", _file(json.dumps({"w": e}).encode())),
        )
    overlap = {"w": good, "v": good}
    yield "header: overlap", lambda t: reseal(t, "weights.safetensors", _file(json.dumps(overlap).encode()))
    yield "header: other name", lambda t: reseal(t, "weights.safetensors", _file(json.dumps({"x": good}).encode()))
    yield "header: deep", lambda t: reseal(t, "weights.safetensors", _file(b'{"w":' * 5000 + b"1" + b"}" * 5000))
    yield "header: not json", lambda t: reseal(t, "weights.safetensors", _file(b"hello"))
    yield "header: empty", lambda t: reseal(t, "weights.safetensors", _file(b""))
    yield "header: not text", lambda t: reseal(t, "weights.safetensors", _file(b"\xff\xfe{}"))
    for size in (0, 1, 7, 25, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1):
        said = struct.pack("<Q", size) + b"{}" + bytes(24)
        yield f"header of {size} bytes", lambda t, d=said: reseal(t, "weights.safetensors", d)
    for text in (
        b"[]",
        b"7",
        b'{"weights": {"$array": "gone"}}',
        b'{"weights": {"$eval": "1"}}',
        b'{"a": NaN}',
        b"\xff",
    ):
        yield f"state {text!r}", lambda t, d=text: reseal(t, "state.json", d)
    rng = dice(9)
    for noise in map(rng.randbytes, (0, 1, 8, 100, 10_000)):
        yield f"{len(noise)} random bytes", lambda t, d=noise: reseal(t, "weights.safetensors", d)


def _file(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + bytes(24)


def canaries(canary: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """A pickle that would leave a file behind, in each place, with and without honest checksums."""
    code = b"cos\nsystem\n(S'touch " + os.fsencode(canary) + b"'\ntR."
    for name in ("weights.safetensors", "state.json"):
        yield f"a pickle as {name}, sealed", lambda t, n=name: reseal(t, n, code)
    for name in (
        "weights.safetensors",
        "state.json",
        "manifest.json",
        "state.safetensors",
        "extra.pkl",
        "optimizer.safetensors",
    ):
        yield f"a pickle as {name}", lambda t, n=name: (t / n).write_bytes(code) and None


BLOCK = Block(
    name="B3",
    title="damaged and forged checkpoints",
    over="checkpoints",
    unit="files",
    smoke=120,
    count=1200,
    long=100_000,
    check=check,
    mutants={CHECKSUM: 60, TRUSTING: 1},
)
