"""Files of VecNormalize: the numbers come out right, and nothing in a hostile one is run."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible, CheckpointMissing
from surefoot.learn.checkpoint.vecnormalize import read_vecnormalize

SAMPLE = Path(__file__).parents[3] / "samples" / "sb3" / "vecnormalize.pkl"
"""Written by Stable-Baselines3 2.9.2: Pendulum-v1, 512 steps of two envs, clip_obs=5, gamma=0.98."""


def test_the_statistics_are_those_that_sb3_wrote():
    found = read_vecnormalize(SAMPLE)
    assert found is not None
    assert found.mean.tolist() == [-0.147740302579343, 0.008500244655608662, 0.13900504667566824]
    assert found.var.tolist() == [0.5019403646644306, 0.4761603789674783, 13.514857136871003]
    assert (found.count, found.epsilon, found.clip) == (514.0001, 1e-8, 5.0)


def hand_written(**changes: bytes) -> bytes:
    """The least that is a VecNormalize, by hand; a change is the program of a value."""

    def text(word: str) -> bytes:
        return b"\x8c" + bytes([len(word)]) + word.encode()

    def real(number: float) -> bytes:
        return b"G" + struct.pack(">d", number)

    def array(*numbers: float) -> bytes:
        raw = np.array(numbers, "<f8").tobytes()
        made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
        dtype = b"cnumpy\ndtype\n" + text("f8") + b"\x89\x88\x87R"
        state = b"(K\x01K" + bytes([len(numbers)]) + b"\x85" + dtype + b"\x89C" + bytes([len(raw)]) + raw + b"tb"
        return made + state

    def thing(module: str, name: str, state: dict[str, bytes]) -> bytes:
        pairs = b"".join(text(key) + value for key, value in state.items())
        return f"c{module}\n{name}\n".encode() + b")\x81}(" + pairs + b"ub"

    moments = {"mean": array(1.0, 2.0), "var": array(4.0, 9.0), "count": real(100.0)}
    moments |= {name: value for name, value in changes.items() if name in moments}
    state = {
        "norm_obs": b"\x88",
        "obs_rms": thing("stable_baselines3.common.running_mean_std", "RunningMeanStd", moments),
        "clip_obs": real(10.0),
        "epsilon": real(1e-8),
    }
    state |= {name: value for name, value in changes.items() if name not in moments}
    return b"\x80\x04" + thing("stable_baselines3.common.vec_env.vec_normalize", "VecNormalize", state) + b"."


def written(path: Path, program: bytes) -> Path:
    path.write_bytes(program)
    return path


def test_what_older_versions_of_numpy_wrote_is_read_too(tmp_path: Path):
    found = read_vecnormalize(written(tmp_path / "v.pkl", hand_written()))
    assert found is not None
    assert (found.mean.tolist(), found.var.tolist(), found.count) == ([1.0, 2.0], [4.0, 9.0], 100.0)


def test_where_observations_were_not_normalised_there_is_nothing_to_take_over(tmp_path: Path):
    assert read_vecnormalize(written(tmp_path / "v.pkl", hand_written(norm_obs=b"\x89"))) is None


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_would_run_something_is_refused_and_does_not(protocol: int, tmp_path: Path):
    ran = tmp_path / "ran"
    hostile = pickle.dumps(Canary(ran), protocol)
    inside = hostile[2:-1] if protocol < 4 else hostile[11:-1]  # without its version, frame and end
    for program in (hostile, hand_written(epsilon=inside), hand_written(old_obs=inside)):
        with pytest.raises(CheckpointCorrupt, match="nothing of it was run"):
            read_vecnormalize(written(tmp_path / "v.pkl", program))
    assert not ran.exists()


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"var": b"G" + struct.pack(">d", 1.0)}, CheckpointCorrupt),  # another shape than the mean
        ({"count": b"G" + struct.pack(">d", float("nan"))}, CheckpointCorrupt),
        ({"clip_obs": b"G" + struct.pack(">d", 0.0)}, CheckpointCorrupt),
        ({"epsilon": b"N"}, CheckpointCorrupt),
        ({"mean": b"cnumpy\ndtype\n)R"}, CheckpointCorrupt),
        ({"obs_rms": b"}"}, CheckpointIncompatible),  # a Dict observation
    ],
)
def test_statistics_that_make_no_sense_are_refused(changes: dict[str, bytes], kind: type, tmp_path: Path):
    with pytest.raises(kind, match=r"v\.pkl"):
        read_vecnormalize(written(tmp_path / "v.pkl", hand_written(**changes)))


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (b"", CheckpointCorrupt),
        (b"\x80\x04N.", CheckpointIncompatible),
        (b"\x80\x04cnumpy\nndarray\n)\x81.", CheckpointIncompatible),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", CheckpointCorrupt),
        (b"\x80\x04(X\x01\x00\x00\x00aios\nsystem\n.", CheckpointCorrupt),  # INST
        (b"\x80\x04cnumpyx\nload\n.", CheckpointCorrupt),  # a name that only begins like a known one
    ],
)
def test_what_is_no_vecnormalize_is_refused(program: bytes, kind: type, tmp_path: Path):
    with pytest.raises(kind):
        read_vecnormalize(written(tmp_path / "v.pkl", program))


def test_every_cut_and_every_flip_of_a_file_is_read_or_refused(tmp_path: Path):
    whole, path = SAMPLE.read_bytes(), tmp_path / "v.pkl"
    rng = np.random.default_rng(0)
    broken = [whole[:end] for end in range(0, len(whole), 37)]
    for at in rng.integers(0, len(whole), 200):
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        broken.append(bytes(changed))
    for program in broken:
        try:
            read_vecnormalize(written(path, program))
        except (CheckpointCorrupt, CheckpointIncompatible):
            continue


def test_a_file_that_is_not_there_is_missing(tmp_path: Path):
    with pytest.raises(CheckpointMissing, match="there is no file"):
        read_vecnormalize(tmp_path / "no.pkl")
