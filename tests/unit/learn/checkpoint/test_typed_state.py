"""A checkpoint whose content was made up is refused in a sentence; every part of the state is tried."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from surefoot.data.spaces import Discrete
from surefoot.errors import CheckpointCorrupt, CheckpointError, SurefootError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.typed_state import LearnerState, RunProgress, restoring, typed
from surefoot.nets.actor_critic import policy_from_description
from surefoot.train.run import create_run, resume_run
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import make_spec

LEARNER = {
    "updates": 1,
    "total_updates": None,
    "lr_scale": 1.0,
    "bad_in_a_row": 0,
    "rollbacks_in_a_row": 0,
    "generator": 0,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"updates": -1},
        {"updates": 2**60},
        {"updates": "1"},
        {"updates": None},
        {"lr_scale": 0.0},
        {"lr_scale": math.nan},
        {"lr_scale": math.inf},
        {"values": {"mean": "x"}},
    ],
)
def test_a_value_out_of_range_is_named(wrong):
    assert typed({"learner": LEARNER}, "learner", LearnerState).kl_scale == 1.0
    with pytest.raises(CheckpointCorrupt, match=rf"the part 'learner' .*\$\.{next(iter(wrong))}"):
        typed({"learner": LEARNER | wrong}, "learner", LearnerState)


def test_a_part_that_is_missing_is_named():
    with pytest.raises(CheckpointCorrupt, match="no part 'run'; it has 'weights'"):
        typed({"weights": {}}, "run", RunProgress)


def test_an_error_while_restoring_names_what_was_restored():
    with (
        pytest.raises(CheckpointCorrupt, match="the collector of the checkpoint cannot be restored: 'start'"),
        restoring("collector"),
    ):
        raise KeyError("start")


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> RunDir:
    directory = RunDir(tmp_path_factory.mktemp("run"))
    settings = {"envs": 2, "rollout_steps": 8, "epochs": 1, "minibatch_size": 8, "normalize_obs": True}
    spec = make_spec(
        "CartPole-v1",
        Discrete(2),
        preset_name="sb3",
        settings=settings,
        total_steps=32,
        eval_every=0,
        checkpoint_every=16,
    )
    run = create_run(directory, spec)
    list(run.moments())
    run.close("finished")
    return directory


def leaves(tree: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of everything in a tree, parts and whole branches included."""
    below = [path for name, x in tree.items() for path in leaves(x, (*at, name))] if isinstance(tree, dict) else []
    return [at, *below] if at else below


def changed(parts: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of the tree with one value replaced, or removed if it is `...`."""
    name, *rest = path
    if rest:
        return {**parts, name: changed(parts[name], tuple(rest), value)}
    return {k: v for k, v in parts.items() if k != name} if value is ... else {**parts, name: value}


WRONG = [..., None, "text", -(10**15), 10**15, math.nan, [], {}, np.zeros(3), np.full((2, 2), -1, np.int32)]


def test_every_value_of_the_state_may_be_wrong(saved):
    """Each is replaced by something else: the run resumes, or says in one sentence why it does not."""
    intact = load_checkpoint(saved.checkpoints)
    paths, refused = leaves(intact.parts), 0
    for number, path in enumerate(paths):
        wrong = WRONG[number % len(WRONG)]
        save_checkpoint(saved.checkpoints, intact.step, changed(intact.parts, path, wrong), meta=intact.meta)
        try:
            run, _ = resume_run(saved)
        except SurefootError:
            refused += 1
        else:
            run.training.update()
            run.close("finished")
        if path[0] == "policy":
            try:
                policy_from_description(load_checkpoint(saved.checkpoints).parts["policy"])
            except SurefootError:
                refused += 1
    save_checkpoint(saved.checkpoints, intact.step, intact.parts, meta=intact.meta)
    assert refused > len(paths) / 2


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("run", "next_checkpoint"), -(10**15), "next_checkpoint"),
        (("run",), ..., "no part 'run'"),
        (("weights", "network.value_out.bias"), np.array([np.nan], np.float32), "network.value_out.bias holds NaN"),
        (("weights", "network.value_out.bias"), np.array([1], np.int32), "network.value_out.bias is torch.int32"),
        (("weights",), ..., "no part 'weights'"),
        (("collector", "env_steps"), "9", "env_steps"),
        (
            ("collector", "start"),
            np.zeros(2, np.int64),
            r"collector.start of the checkpoint is int64 \[2\]; it must be bool \[2\]",
        ),
        (("collector", "episodes", "lengths"), np.zeros(3, np.int64), r"lengths of the checkpoint is int64 \[3\]"),
        (("collector", "episodes", "finished"), -1, "finished of the checkpoint is -1"),
        (("collector", "outliers", "mean"), math.nan, "outliers.mean of the checkpoint is nan"),
        (("collector", "scaler", "var"), -1.0, "the variance of the returns is -1.0"),
        (("run", "versions"), np.zeros(2), "the part 'run' of the checkpoint has a bad value"),
    ],
)
def test_what_was_made_up_is_named(saved, path, value, sentence):
    intact = load_checkpoint(saved.checkpoints)
    save_checkpoint(saved.checkpoints, intact.step, changed(intact.parts, path, value), meta=intact.meta)
    try:
        with pytest.raises(CheckpointError, match=sentence):
            resume_run(saved)
    finally:
        save_checkpoint(saved.checkpoints, intact.step, intact.parts, meta=intact.meta)
