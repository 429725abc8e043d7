"""Trains a run in a process of its own and writes a fingerprint per update; dies by SIGKILL if told to."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TextIO

import torch

from surefoot.train.run import Run, create_run, resume_run
from surefoot.train.rundir.resume_check import fingerprint
from surefoot.train.rundir.rundir import RunDir
from surefoot.train.spec import RunSpec


def go_on(run: Run, last: int, kill_after: int, told: TextIO) -> None:
    if run.training.learner.updates == last:  # killed when it was saved and not yet told
        print(last, fingerprint(run.training.state()), 0.0, file=told, flush=True)
    for moment in run.moments():
        print(
            moment.report.update,
            fingerprint(run.training.state()),
            moment.report.first_ratio_error,
            file=told,
            flush=True,
        )
        if moment.report.update == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        if moment.report.update == last:
            return


def main(directory: str, spec: str, last: int, kill_after: int, told: TextIO) -> None:
    torch.set_num_threads(1)
    run_dir = RunDir(Path(directory))
    if run_dir.header.exists():
        run, _ = resume_run(run_dir)
    else:
        run_dir.path.mkdir(parents=True)
        run = create_run(run_dir, RunSpec.from_json(json.loads(spec)))
    go_on(run, last, kill_after, told)


def into_file(out: str, directory: str, spec: str, last: int, kill_after: int) -> None:
    """What a fork of the tests runs."""
    with Path(out).open("w") as told:
        main(directory, spec, last, kill_after, told)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.stdout)
