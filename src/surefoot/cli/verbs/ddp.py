"""`surefoot train --ddp` and `surefoot resume --ddp`: what each process that torchrun started does."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.cli.verbs.train import ResumeArgs, TrainArgs
    from surefoot.train.rundir.rundir import RunDir
    from surefoot.train.spec import RunSpec
    from surefoot.train.training import WorldMaker


def train_together(args: TrainArgs, spec: RunSpec, make: WorldMaker) -> int:
    """Train with all of them; where torchrun started them anew after a loss, go on from the newest checkpoint."""
    from surefoot.train.rundir.rundir import RunDir, new_run_dir, runs_root

    if args.name is None:
        raise Usage("--ddp needs --name: processes that are started anew must find the run again")
    root = runs_root(args.runs)
    anew = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    directory = RunDir(root / args.name)
    if int(os.environ.get("RANK", "0")) == 0 and not anew:
        directory = new_run_dir(spec.env, spec.seed, root=root, name=args.name)
    return _go(args, directory, spec, make, going_on=anew and (directory.checkpoints / "latest").exists())


def resume_together(args: ResumeArgs, directory: RunDir, spec: RunSpec, make: WorldMaker) -> int:
    """Go on with a run that several processes learned."""
    return _go(args, directory, spec, make, going_on=True)


def _go(args: TrainArgs | ResumeArgs, directory: RunDir, spec: RunSpec, make: WorldMaker, *, going_on: bool) -> int:
    from surefoot.cli.drive import attending, drive
    from surefoot.learn.checkpoint.checkpoint import load_checkpoint
    from surefoot.scale.process_group import join_group
    from surefoot.scale.shared_training import SharedTraining
    from surefoot.train.run import create_run, resume_run

    group = join_group()
    try:
        going_on = bool(group.broadcast(int(going_on)))  # the first process decides for all
        training = SharedTraining(spec, group, make=make)
        if group.rank > 0:
            if going_on:
                training.set_state(load_checkpoint(directory.checkpoints).parts)
            training.follow()
            return 0
        command, doctor = ["surefoot", *sys.argv[1:]], attending(args.doctor, args.no_doctor)
        if going_on:
            run, _ = resume_run(directory, training=training, command=command, doctor=doctor)
        else:
            run = create_run(directory, training.spec, training=training, command=command, doctor=doctor)
        return drive(run, args.display)
    finally:
        group.close()
