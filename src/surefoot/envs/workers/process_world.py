"""`ProcessWorld`: N single Gymnasium envs stepped by several processes, with the digits of `EnvsWorld`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.gym.nested_actions import row_like
from surefoot.envs.gym.single_envs import REPORTS, SingleEnv, check_env_count, written_actions
from surefoot.envs.gym.spaces import MASK, action_writer, choices
from surefoot.envs.gym.vector_env import restart_seed, view_from_state, view_to_state
from surefoot.envs.workers.env_workers import EnvStepper, EnvWorkers, Timeout, require_sendable, shares
from surefoot.envs.workers.shared_memory import open_board
from surefoot.envs.workers.worker import Hello, Place
from surefoot.envs.workers.worker_process import WorkerProcess, WorkerTraceback
from surefoot.errors import ConfigError, EnvError, SpaceError, WorkersLost

__all__ = ["ProcessWorld", "WorkerTraceback"]

_STATS = tuple(REPORTS.values())


class ProcessWorld:
    """Envs built by `env_fns`, stepped by `workers` processes and this one; each stream is the same as in one process.

    This process steps the first share itself: otherwise it would only wait, and waking a waiting process takes longer than
    a step of most envs. The functions in `env_fns` are sent to a new Python, so they must be importable by name. The main
    script is not run again: it needs no `if __name__ == "__main__"`.

    A worker that is killed or does not respond is replaced. Until its new envs are built, its streams have rows that are
    not `valid` and repeat the last view. Then they start new episodes.
    """

    backend = "gymnasium"
    placed: str | None = None
    """Why the envs run in several processes."""

    def __init__(self, env_fns: Sequence[Callable[[], SingleEnv]], workers: int, name: str | None = None) -> None:
        if not env_fns:
            raise EnvError("a world needs at least one env; env_fns is empty")
        if workers < 1:
            raise ConfigError(f"workers is {workers}; a ProcessWorld needs at least 1")
        require_sendable(env_fns)
        self.num_envs, self.name = len(env_fns), name or "this world"
        self.inexact: str | None = None
        self._closed = False
        self._env_fns = list(env_fns)
        self._view: View | None = None
        self._seed = self._count = 0
        # A proxy: with a reference from its own finalizer this world would never be collected.
        self._workers = EnvWorkers(shares(self.num_envs, min(workers + 1, self.num_envs)), weakref.proxy(self))
        self._dismiss = weakref.finalize(self, self._workers.pool.close)
        try:
            steppers = self._workers.steppers
            build = {stepper: (self._env_fns[stepper.rows], name, stepper.rows.start) for stepper in steppers}
            self._open(list(self._workers.ask(build, "build").values()))
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """Number of processes besides this one."""
        return len(self._workers.workers)

    @property
    def worker_pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers.workers]

    @property
    def worker_timeout(self) -> Timeout:
        """Seconds after which a worker that does not respond is replaced; "auto": 30, or more where envs are slow."""
        return self._workers.timeout

    @worker_timeout.setter
    def worker_timeout(self, seconds: Timeout) -> None:
        self._workers.timeout = seconds

    def take_losses(self) -> list[str]:
        """Return one sentence per worker that was lost since the last call."""
        return self._workers.pool.take_losses()

    @property
    def losses(self) -> int:
        """Number of workers that were lost so far."""
        return self._workers.pool.lost

    def reset(self, seed: int) -> View:
        steppers = self._ready()
        self._workers.ask_all({stepper.number: (seed + stepper.rows.start,) for stepper in steppers}, "reset")
        self._workers.away.clear()
        self._seed, self._count = seed, 0
        self._view = self._read_board()
        return self._view

    def step(self, action: np.ndarray) -> Step:
        steppers, away = self._ready(), self._workers.away
        before, board, n = self._view, self._board, self.num_envs
        if before is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        board.action[:] = written_actions(self.name, n, action, self._write_action, self._count)
        self._workers.ask({stepper: () for stepper in steppers if stepper.number not in away}, "step")
        mask = None if before.action_mask is None else board.mask.copy()
        view = View(obs={name: part.copy() for name, part in board.obs.items()}, action_mask=mask)
        reward, valid = board.reward.copy(), np.ones(n, np.bool_)
        terminated, truncated = board.terminated.copy(), board.truncated.copy()
        for number in list(away):
            rows = steppers[number].rows
            board.ended[number] = board.reported[number] = False
            reward[rows], valid[rows], terminated[rows], truncated[rows] = 0.0, False, False, False
            # Show the new envs if they are built, otherwise repeat the last view.
            back = self._workers.is_back(number)
            _copy_rows(view, self._read_board() if back else before, rows)
            if back:
                del away[number]
        self._view, self._count = view, self._count + 1
        final, stats = self._ended(view) if board.ended.any() else (None, {})
        return Step(
            view=view,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            valid=valid,
            final_obs=final,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        steppers, away, before = self._ready(), self._workers.away, self._view
        if before is None:
            return None
        affected = [stepper for stepper in steppers if streams[stepper.rows].any() and stepper.number not in away]
        self._workers.ask({stepper: (np.array(streams[stepper.rows]),) for stepper in affected}, "reset_streams")
        view = self._read_board()
        for number in away:
            rows = steppers[number].rows
            _copy_rows(view, before, rows)
            for part in view.obs.values():  # the old episode must not be shown again; the next row is not valid
                part[rows][streams[rows]] = 0
        self._view = view
        return view

    def settle(self) -> tuple[View, np.ndarray] | None:
        """Wait for new workers and show their envs immediately, without rows that are not `valid`.

        Return the view and which streams start new episodes in it, [N] bool; None if no worker is missing. If workers are
        no longer replaced, these are all streams.
        """
        workers, before = self._workers, self._view
        if before is None or self._closed:
            return None
        if workers.pool.over is not None:
            return before, np.ones(self.num_envs, np.bool_)
        workers.look()
        if not workers.away:
            return None
        workers.wait_for_all()
        new = np.zeros(self.num_envs, np.bool_)
        for number in workers.away:
            new[workers.steppers[number].rows] = True
        self._view = self._with_new_rows(before)
        workers.away.clear()
        return self._view, new

    def state(self) -> dict[str, Any]:
        if self._view is None or self.inexact is not None or self._workers.pool.over is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        responses = self._workers.ask_all({stepper.number: () for stepper in self._ready()}, "state")
        envs = [env for share in responses for env in share]
        view = view_to_state(self._with_new_rows(self._view))
        return {"seed": self._seed, "steps": self._count, "envs": envs, "view": view}

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        check_env_count(state, self.name, self.num_envs)
        view, states = view_from_state(state["view"]), dict[int, tuple[Any, ...]]()
        for stepper in self._ready():
            rows = stepper.rows
            mask = None if view.action_mask is None else view.action_mask[rows]
            part = {"obs": {name: part[rows] for name, part in view.obs.items()}, "action_mask": mask}
            states[stepper.number] = ({**state, "envs": list(state["envs"][rows]), "view": part},)
        self._workers.ask_all(states, "set_state")
        self._workers.away.clear()
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self._view = view
        return view

    def render(self) -> np.ndarray | None:
        return self._workers.ask({self._ready()[0]: ()}, "render")[0]

    def close(self) -> None:
        self._closed = True
        self._dismiss()
        self._workers.local.close()

    def place_of(self, worker: WorkerProcess) -> tuple[Any, ...]:
        """Return what a new worker is sent: its place with a seed that no other has, and the functions of its envs."""
        seed = np.random.SeedSequence([self._seed, self._count, self._workers.pool.lost]).generate_state(1)[0]
        place = Place(
            name=self.name,
            number=worker.number,
            first=worker.rows.start,
            streams=self.num_envs,
            shares=len(self._workers.steppers),
            seed=int(seed),
            gym_spaces=self.gym_spaces,
        )
        return place, self._env_fns[worker.rows]

    def moment(self) -> str:
        """Return the current step in words, for a sentence about a worker."""
        return "before its first reset" if self._view is None else f"at step {self._count + 1} since its reset"

    def _open(self, hellos: list[Hello]) -> None:
        """Take the spaces of the first share, check that the others have the same, and open the board."""
        first, workers = hellos[0], self._workers
        self.name, self.observation, self.action = first.name, first.observation, first.action
        self.gym_spaces = first.gym_spaces
        for stepper, hello in zip(workers.steppers, hellos, strict=True):
            if hello.gym_spaces != first.gym_spaces:
                raise SpaceError(
                    f"env {stepper.rows.start} of {self.name} has the spaces {hello.gym_spaces}, env 0 has "
                    f"{first.gym_spaces}; all envs of a world need the same spaces"
                )
        self.inexact = next((hello.inexact for hello in hellos if hello.inexact is not None), None)
        space, count = first.gym_spaces[1], len(workers.steppers)
        self._write_action = action_writer(space)
        self._board = open_board(
            workers.memory,
            self.num_envs,
            count,
            observation=self.observation,
            action=row_like(space),
            choices=choices(self.action),
        )
        workers.ask({stepper: (self.num_envs, count, stepper.number) for stepper in workers.steppers}, "open")
        for worker in workers.workers:
            worker.ready = True

    def _read_board(self) -> View:
        """Return copies of what the board holds."""
        masked = self._board.masked
        if masked.any() and not masked.all():
            first = next(stepper.rows.start for stepper in self._workers.steppers if not masked[stepper.number])
            raise EnvError(
                f"env {first} of {self.name} gives no {MASK} where others give one; put one into every info "
                "(all True where everything is allowed)"
            )
        obs = {name: part.copy() for name, part in self._board.obs.items()}
        return View(obs=obs, action_mask=self._board.mask.copy() if masked.all() else None)

    def _with_new_rows(self, view: View) -> View:
        """Return `view` with the rows of new envs that were not shown yet; all of them are built."""
        if not self._workers.away:
            return view
        current = self._read_board()
        for stepper in self._workers.steppers:
            if stepper.number not in self._workers.away:
                _copy_rows(current, view, stepper.rows)
        return current

    def _ended(self, view: View) -> tuple[Arrays, Arrays]:
        """Return the true successors and the metrics of the episodes that ended in this step."""
        board, stats = self._board, dict[str, np.ndarray]()
        final = {name: part.copy() for name, part in view.obs.items()}
        for kind in np.flatnonzero(board.reported.any(axis=0)):
            stats[_STATS[kind]] = np.full(self.num_envs, np.nan)
        for stepper in self._workers.steppers:
            if board.ended[stepper.number]:
                for name, part in final.items():
                    part[stepper.rows] = board.final[name][stepper.rows]
            for kind in np.flatnonzero(board.reported[stepper.number]):
                stats[_STATS[kind]][stepper.rows] = board.reports[stepper.rows, kind]
        return final, stats

    def _ready(self) -> list[EnvStepper]:
        if self._closed:
            raise EnvError(f"{self.name} is closed; make a new world")
        if self._workers.pool.over is not None:
            raise WorkersLost(self._workers.pool.over)
        return self._workers.steppers


def _copy_rows(into: View, from_: View, rows: slice) -> None:
    for name, part in into.obs.items():
        part[rows] = from_.obs[name][rows]
    if into.action_mask is not None and from_.action_mask is not None:
        into.action_mask[rows] = from_.action_mask[rows]
