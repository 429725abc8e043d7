"""`surefoot tune`: finding settings."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.options import Json, Pairs, Runs, Settings, at_least_one, pairs
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs

if TYPE_CHECKING:
    from surefoot.cli.verbs.tune_progress import TrialRunner
    from surefoot.train.tune.report import SearchResult
    from surefoot.train.tune.search import Plan, TuneTask

SEARCH_SHARE = 0.75
"""Of --minutes, where a play-off follows the search."""


@dataclass(frozen=True, kw_only=True)
class TuneArgs:
    """Find settings for an env with Optuna: several seeds a trial, hopeless trials given up early.

        surefoot tune Pendulum-v1 --trials 60 --minutes 30 --jobs 2
        surefoot train Pendulum-v1 --config runs/Pendulum-v1-tune-…/best.yaml

    A trial trains its seeds side by side and is judged --rungs times by the interquartile mean (IQM) of their evaluations.
    The first trial is the base: the preset of the env's family, or what --preset, --config and --set say; what --set
    says is not searched. In the end the best settings and the base meet again on fresh seeds, and the winner there is
    written as best.yaml. report.html shows all trials and what mattered. Ctrl-C saves; --resume goes on.
    On a Ray cluster --backend ray runs the trials there, with ASHA or a population (PBT). Ray is never started by itself,
    and a cluster must ask for a token. Needs "surefoot[tune]", for Ray "surefoot[ray-tune]".
    Exit codes: 0 fine, 1 no trial was trained to its end, 2 failed or refused.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """What `surefoot train` takes; or a graph's .json file, whose node parameters have ranges."""
    trials: int = 50
    """Settings to try in all."""
    seeds: int = 3
    """Seeds of each trial."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Env steps that each seed trains for; the preset says if you do not."""
    minutes: float | None = None
    """End after this long; a quarter of it is kept for the play-off."""
    timeout: float | None = None
    """Give a trial up after this many seconds."""
    jobs: int | None = None
    """Trials side by side, each in a process of its own: 1 if you do not say, on Ray as many as there are CPUs."""
    backend: str = "local"
    """Where trials run: local, ray (a cluster that runs), ray@HOST:PORT, or ray@here to start Ray on this machine."""
    scheduler: Literal["asha", "pbt"] = "asha"
    """On Ray: asha gives trials up; pbt has --trials members, the worst of which go on with the weights of the best."""
    insecure_cluster: bool = False
    """Let in a Ray cluster that asks nobody for a token. Whoever reaches such a cluster can run code on it."""
    sampler: Literal["tpe", "random"] = "tpe"
    """What proposes settings."""
    pruner: Literal["median", "hyperband", "none"] = "median"
    """What gives trials up, where Ray's --scheduler does not."""
    rungs: int = 5
    """How often a trial is judged."""
    finalists: int = 3
    """How many of the best meet the base again on fresh seeds; 0: the best trial wins."""
    space: Path | None = None
    """A YAML file of ranges that change the usual ones: lr: {low: 1e-5, high: 1e-2, log: true}, a list of values, or null."""
    set: Settings = ()
    """Fix a setting."""
    config: Path | None = None
    """A YAML file of settings to start from."""
    preset: str | None = None
    """Start from this preset; sb3 for Stable-Baselines3's defaults."""
    seed: int = 0
    """Of the search, and the first seed of each trial."""
    eval_episodes: int = 10
    """Episodes of each judgement, a seed."""
    env_arg: Annotated[Pairs, tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """An argument for the env's constructor."""
    name: str | None = None
    """The search's name; default <env>-tune-<date>-<time>."""
    resume: bool = False
    """Go on with the search of --name, or the newest of this env, until it has --trials in all."""
    as_json: Json = False
    """Print what came of it as JSON."""
    runs: Runs = None

    def run(self) -> int:
        from surefoot.cli.verbs.tune_progress import LocalTrials, RayTrials
        from surefoot.learn.checkpoint.atomic_files import RunLock
        from surefoot.train.device import pin_threads
        from surefoot.train.tune.search import Plan, optuna, read_plan, write_plan

        self._refuse()
        pin_threads()
        optuna()
        if self.resume:
            directory = self._found()
            kept, about = read_plan(directory)
            plan = replace(kept, trials=self.trials, minutes=self.minutes, timeout=self.timeout)
            if plan.scheduler == "pbt" and not self._address:
                raise Usage(f"{directory.name} is a population (pbt); it goes on with --backend ray")
            args = replace(self, **_restored(about))
            if (directory / SEARCHED).exists():  # as it was when the search began, whatever became of the file
                args = replace(args, env=str(directory / SEARCHED))
        else:
            fields: dict[str, Any] = {name: getattr(self, name) for name in Plan.__dataclass_fields__}
            fields["scheduler"] = self.scheduler if self._address else None
            plan, args = Plan(**fields), self
            plain = {name: getattr(self, name) for name in _KEPT}  # what `_restored` needs to make the same task again
            about = {name: str(x.resolve()) if isinstance(x, Path) else x for name, x in plain.items()}
            directory = None
        task = args.task()
        runner = (
            RayTrials(args._address, args.jobs, insecure=args.insecure_cluster) if args._address else LocalTrials(args)
        )
        with runner as place:
            directory = directory or self._new()
            with RunLock(directory):
                write_plan(directory, plan, about)
                if self.env.endswith(".json") and not (directory / SEARCHED).exists():
                    shutil.copyfile(self.env, directory / SEARCHED)
                found = args._search(task, plan, directory, place)
        return self._end(found, task, directory)

    def _refuse(self) -> None:
        at_least_one(jobs=self.jobs)
        if self.backend != "local" and not self._address:
            raise Usage(f"--backend is {self.backend!r}; it is local, ray, ray@HOST:PORT or ray@here")
        if self.scheduler == "pbt" and not self._address:
            raise Usage("a population (--scheduler pbt) runs on Ray; add --backend ray")
        if self.scheduler == "pbt" and self.jobs is not None:
            raise Usage("a population runs on all CPUs of the cluster; leave --jobs out")

    @property
    def _address(self) -> str:
        """Of the Ray cluster; "" if trials run here."""
        match = re.fullmatch(r"ray(?:@(\S+))?", self.backend)
        return "" if match is None else match[1] or "auto"

    def task(self) -> TuneTask:
        """What is searched."""
        from surefoot.learn.search_ranges import read_space
        from surefoot.train.tune.env_trials import EnvTask

        if self.env.endswith(".json"):
            from surefoot.graph.tuning import task

            return task(Path(self.env))
        given = TrainArgs(
            env=self.env,
            steps=self.steps,
            seed=self.seed,
            set=self.set,
            config=self.config,
            preset=self.preset,
            env_arg=self.env_arg,
            eval_episodes=self.eval_episodes,
        )
        make, spec = given.resolve()
        probe = make(1)
        probe.close()
        ranges = read_space(self.space) if self.space else None
        return EnvTask(spec, make, probe.action, held=pairs(self.set, "--set"), space=ranges)

    @property
    def _stem(self) -> str:
        from surefoot.envs.ids import short_name

        return re.sub(r"[^A-Za-z0-9._-]+", "-", short_name(self.env).removesuffix(".json")).strip("-.")

    def _new(self) -> Path:
        from surefoot.train.rundir.rundir import new_run_dir, runs_root

        name = self.name or f"{self._stem}-tune-{time.strftime('%Y%m%d-%H%M%S')}"
        return new_run_dir(self.env, 0, root=runs_root(self.runs), name=name).path

    def _found(self) -> Path:
        from surefoot.train.rundir.rundir import runs_root
        from surefoot.train.tune.search import PLAN

        root = runs_root(self.runs)
        if self.name is not None:
            return root / self.name
        found = sorted(root.glob(f"{self._stem}-tune-*/{PLAN}"), key=lambda path: path.stat().st_mtime)
        if not found:
            raise Usage(
                f"there is no search of {self.env} under {root} to go on with; leave --resume out, or give --name"
            )
        return found[-1].parent

    def _search(self, task: TuneTask, plan: Plan, directory: Path, place: TrialRunner) -> SearchResult:
        from surefoot.cli.verbs.tune_progress import TuneScreen
        from surefoot.train.interrupt import GentleStop
        from surefoot.train.tune.final_round import play_off
        from surefoot.train.tune.report import search_result, write_result
        from surefoot.train.tune.search import begin, open_study

        study = open_study(directory, plan)
        begin(study, task)
        started, finals = time.monotonic(), []
        with GentleStop() as stop, TuneScreen(task.name, plan, quiet=self.as_json) as screen:

            def over(share: float) -> Callable[[], bool]:
                until = None if plan.minutes is None else started + 60 * plan.minutes * share
                return lambda: stop.requested or (until is not None and time.monotonic() > until)

            place.search(task, study, plan, directory, over(SEARCH_SHARE if plan.finalists else 1.0), screen)
            if plan.finalists and not stop.requested:
                screen.say("play-off on fresh seeds")
                finals = play_off(task, study, plan, stop=over(1.0), tell=screen.tell_final, play=place.play)
        found = search_result(study, task.space, finals)
        write_result(directory, found, task, plan)
        return found

    def _end(self, found: SearchResult, task: TuneTask, directory: Path) -> int:
        from surefoot.cli.verbs.tune_progress import lines

        if self.env.endswith(".json") and found.best is not None:
            from surefoot.graph.tuning import GraphTask

            assert isinstance(task, GraphTask)
            task.write_best(directory, found.best.params)
        if self.as_json:
            best, base = found.best, found.base
            document = {
                "directory": str(directory),
                "trials": len(found.trials),
                "best": None if best is None else {"trial": best.number, "iqm": best.value, "scores": best.scores},
                "settings": None if best is None else task.settings(best.params),
                "base": None if base is None else {"iqm": base.value, "scores": base.scores},
                "importance": found.importance,
                "on_fresh_seeds": bool(found.finals),
            }
            print(json.dumps(document))
        else:
            print("\n".join(lines(found, task, directory)))
        return 0 if found.best is not None else 1


SEARCHED = "graph.json"
"""The graph that is searched, kept beside its trials."""
_KEPT = ("env", "steps", "set", "config", "preset", "eval_episodes", "env_arg", "space")


def _restored(about: dict[str, Any]) -> dict[str, Any]:
    kept = {name: about[name] for name in _KEPT if name in about}
    paths = {name: None if kept[name] is None else Path(kept[name]) for name in ("config", "space")}
    return kept | paths | {name: tuple(kept[name]) for name in ("set", "env_arg")}


def main_in_child(args: TuneArgs, directory: Path, worker: int, seconds: float | None) -> None:
    """A process of its own that tries settings beside others."""
    from surefoot.train.device import pin_threads
    from surefoot.train.interrupt import GentleStop
    from surefoot.train.tune.search import open_study, read_plan, search

    pin_threads()
    plan, _ = read_plan(directory)
    until = None if seconds is None else time.monotonic() + seconds
    with GentleStop() as stop:
        task = args.task()
        study = open_study(directory, plan, worker=worker)
        search(
            task,
            study,
            plan,
            directory,
            stop=lambda: stop.requested or (until is not None and time.monotonic() > until),
        )
    sys.stdout.flush()
