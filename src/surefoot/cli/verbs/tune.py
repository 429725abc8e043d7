"""`surefoot tune`: search for better settings."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from surefoot.cli import options
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs

if TYPE_CHECKING:
    from surefoot.cli.verbs.tune_progress import TrialRunner
    from surefoot.train.tune.plan import Plan
    from surefoot.train.tune.report import SearchResult
    from surefoot.train.tune.search import TuneTask

SEARCH_SHARE = 0.75
"""Share of --minutes for the search; the final comparison on new seeds gets the other quarter."""
SEARCHED = "graph.json"
"""Copy of the searched graph in the directory of the search."""
_TASK = ("env", "steps", "set", "config", "preset", "env_arg", "space")
"""Arguments that define what is searched; stored with the plan, so that --resume searches the same."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Keys of --search; see `Plan` for their meaning."""

    sampler: Literal["tpe", "random"] = "tpe"
    pruner: Literal["median", "hyperband", "none"] = "median"
    scheduler: Literal["asha", "pbt"] = "asha"
    rungs: int = 5
    finalists: int = 3
    timeout: float | None = None
    insecure_cluster: bool = False


@dataclass(frozen=True, kw_only=True)
class TuneArgs:
    """Search for better settings of an environment with Optuna.

        surefoot tune Pendulum-v1 --trials 60 --minutes 30 --jobs 2
        surefoot train Pendulum-v1 --config runs/Pendulum-v1-tune-…/best.yaml

    A trial trains several seeds and is evaluated several times; the score is the interquartile mean (IQM) over seeds, and
    bad trials are stopped early. The first trial is the baseline: the preset of the environment, or what --preset,
    --config and --set give; settings of --set are not searched. At the end the best trials and the baseline are compared
    on new seeds, and the winner is written to best.yaml. report.html shows all trials and which settings mattered. Ctrl-C
    saves the search; --resume continues it.

    --trial-backend ray runs the trials on a Ray cluster, which must require a token; Ray is never started implicitly.
    Needs "surefoot[tune]", for Ray "surefoot[ray-tune]".
    Exit codes: 0 success, 1 no trial was trained to its end, 2 failed or refused.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """An environment as for `surefoot train`, or the .json file of a graph whose node parameters have ranges."""
    trials: int = 50
    """Trials in total."""
    seeds: int = 3
    """Seeds per trial."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Environment steps to train each seed for (default: the preset's)."""
    minutes: float | None = None
    """Time limit; a quarter of it is reserved for the final comparison."""
    jobs: int | None = None
    """Trials to run in parallel, each in its own process (default: 1; on Ray, one per CPU)."""
    trial_backend: Annotated[str, tyro.conf.arg(metavar="local|ray|ray@HOST:PORT|ray@here")] = "local"
    """Where trials run: on this machine, on the running Ray cluster, on the cluster at an address, or on Ray started here."""
    search: options.Pairs = ()
    """Option of the search; repeatable. sampler=tpe|random proposes settings, pruner=median|hyperband|none stops bad trials,
    scheduler=asha|pbt does so on Ray (pbt: the worst members copy the best), rungs=5 evaluations per trial, finalists=3
    trials in the final comparison (0: the best trial wins), timeout=SECONDS per trial."""
    space: Path | None = None
    """YAML file of ranges that replace the default ones: lr: {low: 1e-5, high: 1e-2, log: true}, a list, or null."""
    set: options.Settings = ()
    """Fix a setting; repeatable. Also eval_episodes=10, the episodes per evaluation of one seed."""
    config: Path | None = None
    """YAML file of settings to start from."""
    preset: str | None = None
    """Preset to start from; sb3 has the defaults of Stable-Baselines3."""
    seed: int = 0
    """Seed of the search; the seeds of each trial count up from it."""
    env_arg: options.EnvArgs = ()
    name: str | None = None
    """Name of the search (default: <env>-tune-<date>-<time>)."""
    resume: bool = False
    """Continue the search --name, or the newest one of this environment, until it has --trials in total."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.cli.verbs.tune_progress import LocalTrials, RayTrials
        from surefoot.learn.checkpoint.atomic_files import RunLock
        from surefoot.train.device import pin_threads
        from surefoot.train.tune.plan import Plan, read_plan, write_plan
        from surefoot.train.tune.search import optuna

        search = self._search_options()
        pin_threads()
        optuna()
        if self.resume:
            directory = self._previous()
            stored, about = read_plan(directory)
            plan = replace(stored, trials=self.trials, minutes=self.minutes, timeout=search.timeout)
            if plan.scheduler == "pbt" and not self._address:
                raise Usage(f"{directory.name} is a population (pbt); continue it with --trial-backend ray")
            args = replace(self, **_restored(about))
            if (directory / SEARCHED).exists():  # the user's file may have changed since the search began
                args = replace(args, env=str(directory / SEARCHED))
        else:
            names = ("trials", "seeds", "seed", "minutes")
            fields: dict[str, Any] = {name: getattr(self, name) for name in names} | asdict(search)
            fields.pop("insecure_cluster")
            fields["scheduler"] = search.scheduler if self._address else None
            plan, args = Plan(**fields), self
            plain = {name: getattr(self, name) for name in _TASK}
            about = {name: str(x.resolve()) if isinstance(x, Path) else x for name, x in plain.items()}
            directory = None
        task = args.task()
        runner = (
            RayTrials(args._address, args.jobs, insecure=args._search_options().insecure_cluster)
            if args._address
            else LocalTrials(args)
        )
        with runner as trials:
            directory = directory or self._new()
            with RunLock(directory):
                write_plan(directory, plan, about)
                if self.env.endswith(".json") and not (directory / SEARCHED).exists():
                    shutil.copyfile(self.env, directory / SEARCHED)
                result = self._search(task, plan, directory, trials)
        return self._end(result, task, directory)

    def _search_options(self) -> SearchOptions:
        """Return the options of --search; raise `Usage` if options contradict each other."""
        search = options.options_from(SearchOptions, options.pairs(self.search, "--search"), "--search")
        options.at_least_one(jobs=self.jobs)
        if self.trial_backend != "local" and not self._address:
            raise Usage(f"--trial-backend is {self.trial_backend!r}; it must be local, ray, ray@HOST:PORT or ray@here")
        if search.scheduler == "pbt" and not self._address:
            raise Usage("a population (scheduler=pbt) runs on Ray; add --trial-backend ray")
        if search.scheduler == "pbt" and self.jobs is not None:
            raise Usage("a population runs on all CPUs of the cluster; leave --jobs out")
        return search

    @property
    def _address(self) -> str:
        """Address of the Ray cluster; "" if trials run on this machine."""
        match = re.fullmatch(r"ray(?:@(\S+))?", self.trial_backend)
        return "" if match is None else match[1] or "auto"

    def task(self) -> TuneTask:
        """Return the task whose settings are searched."""
        from surefoot.learn.search_ranges import read_space
        from surefoot.train.tune.env_trials import EnvTask

        if self.env.endswith(".json"):
            from surefoot.graph.tuning import task

            return task(Path(self.env))
        args = TrainArgs(
            env=self.env,
            steps=self.steps,
            seed=self.seed,
            set=self.set,
            config=self.config,
            preset=self.preset,
            env_arg=self.env_arg,
        )
        make, spec = args.resolve()
        probe = make(1)
        probe.close()
        ranges = read_space(self.space) if self.space else None
        return EnvTask(
            spec, make, probe.action, held=options.split_settings(options.RunOptions, self.set)[1], space=ranges
        )

    @property
    def _stem(self) -> str:
        from surefoot.envs.ids import short_name

        return re.sub(r"[^A-Za-z0-9._-]+", "-", short_name(self.env).removesuffix(".json")).strip("-.")

    def _new(self) -> Path:
        from surefoot.train.rundir.rundir import new_run_dir

        name = self.name or f"{self._stem}-tune-{time.strftime('%Y%m%d-%H%M%S')}"
        return new_run_dir(self.env, 0, name=name).path

    def _previous(self) -> Path:
        """Return the directory of the search to continue."""
        from surefoot.train.rundir.rundir import runs_root
        from surefoot.train.tune.plan import PLAN

        root = runs_root()
        if self.name is not None:
            return root / self.name
        plans = sorted(root.glob(f"{self._stem}-tune-*/{PLAN}"), key=lambda path: path.stat().st_mtime)
        if not plans:
            raise Usage(f"no search of {self.env} exists under {root}; leave --resume out, or pass --name")
        return plans[-1].parent

    def _search(self, task: TuneTask, plan: Plan, directory: Path, trials: TrialRunner) -> SearchResult:
        from surefoot.cli.verbs.tune_progress import TuneScreen
        from surefoot.train.interrupt import GentleStop
        from surefoot.train.tune.final_round import compare_finalists
        from surefoot.train.tune.report import search_result, write_result
        from surefoot.train.tune.search import begin, open_study

        study = open_study(directory, plan)
        begin(study, task)
        started, finals = time.monotonic(), []
        with GentleStop() as stop, TuneScreen(task.name, plan, quiet=self.as_json) as screen:

            def over(share: float) -> Callable[[], bool]:
                until = None if plan.minutes is None else started + 60 * plan.minutes * share
                return lambda: stop.requested or (until is not None and time.monotonic() > until)

            trials.search(task, study, plan, directory, over(SEARCH_SHARE if plan.finalists else 1.0), screen)
            if plan.finalists and not stop.requested:
                screen.print_line("final comparison on new seeds")
                finals = compare_finalists(
                    task, study, plan, stop=over(1.0), on_score=screen.show_final_score, evaluate=trials.play
                )
        result = search_result(study, task.space, finals)
        write_result(directory, result, task, plan)
        return result

    def _end(self, result: SearchResult, task: TuneTask, directory: Path) -> int:
        from surefoot.cli.verbs.tune_progress import lines

        if self.env.endswith(".json") and result.best is not None:
            from surefoot.graph.tuning import GraphTask

            assert isinstance(task, GraphTask)
            task.write_best(directory, result.best.params)
        if self.as_json:
            best, base = result.best, result.base
            document = {
                "directory": str(directory),
                "trials": len(result.trials),
                "best": None if best is None else {"trial": best.number, "iqm": best.value, "scores": best.scores},
                "settings": None if best is None else task.settings(best.params),
                "base": None if base is None else {"iqm": base.value, "scores": base.scores},
                "importance": result.importance,
                "on_fresh_seeds": bool(result.finals),
            }
            print(json.dumps(document))
        else:
            print("\n".join(lines(result, task, directory)))
        return 0 if result.best is not None else 1


def _restored(about: dict[str, Any]) -> dict[str, Any]:
    stored = {name: about[name] for name in _TASK if name in about}
    paths = {name: None if stored[name] is None else Path(stored[name]) for name in ("config", "space")}
    return stored | paths | {name: tuple(stored[name]) for name in ("set", "env_arg")}


def main_in_child(args: TuneArgs, directory: Path, worker: int, seconds: float | None) -> None:
    """Run trials in a child process; all processes share the file of the study."""
    from surefoot.train.device import pin_threads
    from surefoot.train.interrupt import GentleStop
    from surefoot.train.tune.plan import read_plan
    from surefoot.train.tune.search import open_study, search

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
