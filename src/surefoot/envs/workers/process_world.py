"""N single Gymnasium envs stepped by several processes, as one `World`: digit for digit what `EnvsWorld` gives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.gym.nested_actions import row_like
from surefoot.envs.gym.single_envs import REPORTS, SingleEnv, written_actions
from surefoot.envs.gym.spaces import MASK, action_writer, choices
from surefoot.envs.gym.vector_env import restart_seed, view_from_state, view_to_state
from surefoot.envs.workers.env_workers import EnvStepper, EnvWorkers, require_sendable, shares
from surefoot.envs.workers.shared_memory import open_board
from surefoot.envs.workers.supervise import Supervisor, Timeout
from surefoot.envs.workers.worker import Hello, Place
from surefoot.envs.workers.worker_process import WorkerProcess, WorkerTraceback
from surefoot.errors import CheckpointIncompatible, ConfigError, EnvError, SpaceError, WorkersLost

__all__ = ["ProcessWorld", "WorkerTraceback"]

_STATS = tuple(REPORTS.values())


class ProcessWorld:
    """Envs built by `env_fns`, shared out to `workers` processes and this one; stream i does what it does in one process.

    This process takes the first share itself: it would only wait, and a process that waits must be woken, which takes
    longer than a step of most envs. A function that builds an env is sent to a new Python, so it must be found by its
    name in a module that can be imported. The main script is not run again: it needs no `if __name__ == "__main__"`.

    A worker that is killed, or that is silent for too long, is replaced. Until its new envs are there, its streams have
    ghost rows: what is seen stays what it was, and no row is `valid`. Then they begin new episodes.
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
        self._crew = EnvWorkers(shares(self.num_envs, min(workers + 1, self.num_envs)))
        self._dismiss = weakref.finalize(self, self._crew.pool.close)
        self._supervisor = Supervisor(self._crew, weakref.proxy(self))
        try:
            hands = self._crew.steppers
            build = {hand: (self._env_fns[hand.rows], name, hand.rows.start) for hand in hands}
            self._meet(list(self._supervisor.ask(build, "build").values()))
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """How many processes there are besides this one."""
        return len(self._crew.workers)

    @property
    def worker_pids(self) -> list[int]:
        """Their process ids, for whoever wants to look at them."""
        return [worker.process.pid for worker in self._crew.workers]

    @property
    def worker_timeout(self) -> Timeout:
        """Seconds after which a worker that gives no answer is replaced; "auto" for 30, or more where envs are slow."""
        return self._supervisor.timeout

    @worker_timeout.setter
    def worker_timeout(self, seconds: Timeout) -> None:
        self._supervisor.timeout = seconds

    def take_losses(self) -> list[str]:
        """A sentence for each worker that was lost since last asked."""
        return self._crew.pool.take_losses()

    @property
    def losses(self) -> int:
        """How many workers were lost so far."""
        return self._crew.pool.lost

    def reset(self, seed: int) -> View:
        hands = self._ready()
        self._supervisor.ask_all({hand.number: (seed + hand.rows.start,) for hand in hands}, "reset")
        self._supervisor.away.clear()
        self._seed, self._count = seed, 0
        self._view = self._seen()
        return self._view

    def step(self, action: np.ndarray) -> Step:
        crew, away = self._ready(), self._supervisor.away
        before, board, n = self._view, self._board, self.num_envs
        if before is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        board.action[:] = written_actions(self, action, self._write_action, self._count)
        self._supervisor.ask({hand: () for hand in crew if hand.number not in away}, "step")
        mask = None if before.action_mask is None else board.mask.copy()
        view = View(obs={name: part.copy() for name, part in board.obs.items()}, action_mask=mask)
        reward, valid = board.reward.copy(), np.ones(n, np.bool_)
        terminated, truncated = board.terminated.copy(), board.truncated.copy()
        for number in list(away):
            rows = crew[number].rows
            board.ended[number] = board.told[number] = False
            reward[rows], valid[rows], terminated[rows], truncated[rows] = 0.0, False, False, False
            # Show its new envs if they are there, else what was seen before.
            back = self._supervisor.is_back(number)
            _copy_rows(view, self._seen() if back else before, crew[number].rows)
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
        hands, away, before = self._ready(), self._supervisor.away, self._view
        if before is None:
            return None
        asked = [hand for hand in hands if streams[hand.rows].any() and hand.number not in away]
        self._supervisor.ask({hand: (np.array(streams[hand.rows]),) for hand in asked}, "reset_streams")
        view = self._seen()
        for number in away:
            rows = hands[number].rows
            _copy_rows(view, before, rows)
            for part in view.obs.values():  # what was to be reset must not be seen again; its next row is a ghost
                part[rows][streams[rows]] = 0
        self._view = view
        return view

    def settle(self) -> tuple[View, np.ndarray] | None:
        """Wait for new workers, and go on at once with what their envs see, without a ghost row.

        Gives that view, and [N] which streams begin anew with it; None if no worker is missing. Once workers are no
        longer replaced, all streams do.
        """
        supervisor, before = self._supervisor, self._view
        if before is None or self._closed:
            return None
        if self._crew.pool.over is not None:
            return before, np.ones(self.num_envs, np.bool_)
        supervisor.look()
        if not supervisor.away:
            return None
        supervisor.wait_for_all()
        anew = np.zeros(self.num_envs, np.bool_)
        for number in supervisor.away:
            anew[self._crew.steppers[number].rows] = True
        self._view = self._with_new_rows(before)
        supervisor.away.clear()
        return self._view, anew

    def state(self) -> dict[str, Any]:
        if self._view is None or self.inexact is not None or self._crew.pool.over is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        answers = self._supervisor.ask_all({hand.number: () for hand in self._ready()}, "state")
        envs = [env for share in answers for env in share]
        view = view_to_state(self._with_new_rows(self._view))
        return {"seed": self._seed, "steps": self._count, "envs": envs, "view": view}

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        if len(state["envs"]) != self.num_envs:
            raise CheckpointIncompatible(
                f"the state was kept for {len(state['envs'])} envs of {self.name}, but there are {self.num_envs} here"
            )
        view, asked = view_from_state(state["view"]), dict[int, tuple[Any, ...]]()
        for hand in self._ready():
            rows = hand.rows
            mask = None if view.action_mask is None else view.action_mask[rows]
            seen = {"obs": {name: part[rows] for name, part in view.obs.items()}, "action_mask": mask}
            own = {"seed": state["seed"], "steps": state["steps"], "envs": list(state["envs"][rows]), "view": seen}
            asked[hand.number] = (own,)
        self._supervisor.ask_all(asked, "set_state")
        self._supervisor.away.clear()
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self._view = view
        return view

    def render(self) -> np.ndarray | None:
        return self._supervisor.ask({self._ready()[0]: ()}, "render")[0]

    def close(self) -> None:
        self._closed = True
        self._dismiss()
        self._crew.here.close()

    def place_of(self, worker: WorkerProcess) -> tuple[Any, ...]:
        """What a new worker is sent: its place, with a seed that no other had, and what builds its envs."""
        seed = np.random.SeedSequence([self._seed, self._count, self._crew.pool.lost]).generate_state(1)[0]
        place = Place(
            name=self.name,
            number=worker.number,
            first=worker.rows.start,
            streams=self.num_envs,
            shares=len(self._crew.steppers),
            seed=int(seed),
            gym_spaces=self.gym_spaces,
        )
        return place, self._env_fns[worker.rows]

    def moment(self) -> str:
        """When it is, for a sentence about a worker."""
        return "before its first reset" if self._view is None else f"at step {self._count + 1} since its reset"

    def _meet(self, hellos: list[Hello]) -> None:
        """Take the spaces of the first share, see that the others have the same, and open the board."""
        first = hellos[0]
        self.name, self.observation, self.action = first.name, first.observation, first.action
        self.gym_spaces = first.gym_spaces
        for hand, hello in zip(self._crew.steppers, hellos, strict=True):
            if hello.gym_spaces != first.gym_spaces:
                sees, acts = hello.gym_spaces
                raise SpaceError(
                    f"env {hand.rows.start} of {self.name} sees {sees} and acts in {acts}, env 0 {first.gym_spaces[0]} "
                    f"and {first.gym_spaces[1]}; all envs of a world need the same spaces"
                )
        self.inexact = next((hello.inexact for hello in hellos if hello.inexact is not None), None)
        space = first.gym_spaces[1]
        self._write_action = action_writer(space)
        self._board = open_board(
            self._crew.memory,
            self.num_envs,
            len(self._crew.steppers),
            observation=self.observation,
            action=row_like(space),
            choices=choices(self.action),
        )
        shares = len(self._crew.steppers)
        self._supervisor.ask({hand: (self.num_envs, shares, hand.number) for hand in self._crew.steppers}, "open")
        for worker in self._crew.workers:
            worker.ready = True

    def _seen(self) -> View:
        """What the board shows, in arrays of its own."""
        masked = self._board.masked
        if masked.any() and not masked.all():
            first = next(hand.rows.start for hand in self._crew.steppers if not masked[hand.number])
            raise EnvError(
                f"env {first} of {self.name} gives no {MASK} where others give one; put one into every info "
                "(all True where everything is allowed)"
            )
        obs = {name: part.copy() for name, part in self._board.obs.items()}
        return View(obs=obs, action_mask=self._board.mask.copy() if masked.all() else None)

    def _with_new_rows(self, view: View) -> View:
        """`view`, and what new envs see that were not shown yet; all of them are there."""
        if not self._supervisor.away:
            return view
        whole = self._seen()
        for hand in self._crew.steppers:
            if hand.number not in self._supervisor.away:
                _copy_rows(whole, view, hand.rows)
        return whole

    def _ended(self, view: View) -> tuple[Arrays, Arrays]:
        """The true successors, and what the episodes report that ended in this step."""
        board, stats = self._board, dict[str, np.ndarray]()
        final = {name: part.copy() for name, part in view.obs.items()}
        for kind in np.flatnonzero(board.told.any(axis=0)):
            stats[_STATS[kind]] = np.full(self.num_envs, np.nan)
        for hand in self._crew.steppers:
            if board.ended[hand.number]:
                for name, part in final.items():
                    part[hand.rows] = board.final[name][hand.rows]
            for kind in np.flatnonzero(board.told[hand.number]):
                stats[_STATS[kind]][hand.rows] = board.reports[hand.rows, kind]
        return final, stats

    def _ready(self) -> list[EnvStepper]:
        if self._closed:
            raise EnvError(f"{self.name} is closed; make a new world")
        if self._crew.pool.over is not None:
            raise WorkersLost(self._crew.pool.over)
        return self._crew.steppers


def _copy_rows(into: View, from_: View, rows: slice) -> None:
    for name, part in into.obs.items():
        part[rows] = from_.obs[name][rows]
    if into.action_mask is not None and from_.action_mask is not None:
        into.action_mask[rows] = from_.action_mask[rows]
