"""D1: the same seed gives the same bits: twice, by both paths, and through a save and a load in the middle."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.frame import Block, Found

FORGETS = "the state of the shuffling is not saved"
CLOCK = "minibatches are shuffled by the clock"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "discrete": ("CartPole-v1", {"lr": "lin_1e-3"}),
    "continuous": ("Pendulum-v1", {"use_sde": True, "sde_sample_freq": 4}),
    "normalised": ("MountainCarContinuous-v0", {"normalize": True, "use_sde": False}),
    "by torch": ("CartPole-v1", {"path": "torch"}),
}
UPDATES = 6


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.learn.learner import Learner

    whole, built = Learner.set_state, Learner.__init__

    def forgetful(self: Any, state: dict[str, Any]) -> None:
        whole(self, {**state, "learner": {**state["learner"], "generator": self.generator.get_state()}})

    def by_the_clock(self: Any, *args: Any, **more: Any) -> None:
        built(self, *args, **more)
        self.generator.seed()

    if defect == FORGETS:
        Learner.set_state = forgetful  # type: ignore[method-assign]
    elif defect == CLOCK:
        Learner.__init__ = by_the_clock  # type: ignore[method-assign]
    try:
        yield
    finally:
        Learner.set_state, Learner.__init__ = whole, built  # type: ignore[method-assign]


def check(count: int, defect: str = "") -> Found:
    """`count` seeds of each kind of run."""
    import torch

    from surefoot.envs.make import make_world
    from surefoot.train.spec import make_spec

    torch.set_num_threads(1)
    found = Found()
    with with_defect(defect):
        for seed, (kind, (env, settings)) in itertools.product(range(count), KINDS.items()):
            small = {"envs": 3, "rollout_steps": 16, "epochs": 2, "minibatch_size": 16, "seed": seed, **settings}
            spec = make_spec(
                env,
                make_world(env, 1).action,
                preset_name="sb3",
                settings=small,
                total_steps=UPDATES * 48,
                eval_every=0,
            )
            straight, again = _prints(spec), _prints(spec)
            resumed = _prints(spec, middle=1 + seed % (UPDATES - 1))
            found.tried += 2
            for what, other in (("a second run", again), ("a resumed run", resumed)):
                wrong = sum(a != b for a, b in zip(straight, other, strict=True))
                found.silent += wrong
                if wrong:
                    found.fault(f"{kind}, seed {seed}: {what} differs in {wrong} of {UPDATES} updates")
    found.notes = {"kinds of run": len(KINDS), "updates per run": UPDATES}
    return found


def _prints(spec: Any, middle: int = 0) -> list[str]:
    """Fingerprints of the whole state after each update; with a save and a load into a new training after `middle`."""
    from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
    from surefoot.train.rundir.resume_check import fingerprint
    from surefoot.train.training import Training

    training, prints = Training(spec), list[str]()
    for update in range(UPDATES):
        if middle and update == middle:
            with tempfile.TemporaryDirectory() as place:
                save_checkpoint(Path(place), update, training.state())
                training.close()
                training = Training(spec)
                training.set_state(load_checkpoint(Path(place)).parts)
        training.update()
        prints.append(fingerprint(training.state()))
    training.close()
    return prints


BLOCK = Block(
    name="D1",
    title="the same seed, the same bits",
    over="engine",
    unit="runs compared",
    smoke=1,
    count=3,
    long=20,
    check=check,
    mutants={FORGETS: 1, CLOCK: 1},
)
