"""N single Gymnasium envs stepped by several processes, as one `World`: digit for digit what `EnvsWorld` gives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

import numpy as np

from surefoot.envs.api import Step, View
from surefoot.envs.board import open_board
from surefoot.envs.crew import Crew, Hand, shares
from surefoot.envs.gym import restart_seed, view_from_state, view_to_state
from surefoot.envs.gym_spaces import MASK, action_writer, choices
from surefoot.envs.vector import REPORTS, SingleEnv, written_actions
from surefoot.envs.worker import Failure, Hello
from surefoot.errors import CheckpointIncompatible, ConfigError, EnvError, SpaceError

_STATS = tuple(REPORTS.values())


class WorkerTraceback(Exception):
    """Where in a worker an error came from; the cause of the error that its world raises."""


class ProcessWorld:
    """Envs built by `env_fns`, shared out to `workers` processes and this one; stream i does what it does in one process.

    This process takes the first share itself: it would only wait, and a process that waits must be woken, which takes
    longer than a step of most envs. A function that builds an env is sent to a new Python, so it must be found by its
    name in a module that can be imported. The main script is not run again: it needs no `if __name__ == "__main__"`.
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
        self._lost: str | None = None
        self._view: View | None = None
        self._seed = self._count = 0
        self._crew = Crew(shares(self.num_envs, min(workers + 1, self.num_envs)))
        self._dismiss = weakref.finalize(self, self._crew.dismiss)
        try:
            for hand in self._crew.hands:
                self._ask(hand, "build", list(env_fns[hand.rows]), name, hand.rows.start)
            self._meet(self._hear(self._crew.hands))
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

    def reset(self, seed: int) -> View:
        for hand in self._ready():
            self._ask(hand, "reset", seed + hand.rows.start)
        self._hear(self._crew.hands)
        self._seed, self._count = seed, 0
        self._view = self._seen()
        return self._view

    def step(self, action: np.ndarray) -> Step:
        crew = self._ready()
        if self._view is None:
            raise EnvError(f"{self.name} was stepped before its first reset; call reset(seed) once")
        board = self._board
        board.action[:] = written_actions(self, action, self._write_action, self._count)
        for hand in crew:
            self._ask(hand, "step")
        self._hear(crew)
        self._count += 1
        view = self._view = View(
            obs={name: part.copy() for name, part in board.obs.items()},
            action_mask=None if self._view.action_mask is None else board.mask.copy(),
        )
        final, stats = None, {}
        if board.ended.any():
            final = {name: part.copy() for name, part in view.obs.items()}
            for kind in np.flatnonzero(board.told.any(axis=0)):
                stats[_STATS[kind]] = np.full(self.num_envs, np.nan)
            for hand in crew:
                if board.ended[hand.number]:
                    for name, part in final.items():
                        part[hand.rows] = board.final[name][hand.rows]
                for kind in np.flatnonzero(board.told[hand.number]):
                    stats[_STATS[kind]][hand.rows] = board.reports[hand.rows, kind]
        return Step(
            view=view,
            reward=board.reward.copy(),
            terminated=board.terminated.copy(),
            truncated=board.truncated.copy(),
            valid=np.ones(self.num_envs, np.bool_),
            final_obs=final,
            stats=stats,
        )

    def reset_streams(self, streams: np.ndarray) -> View | None:
        crew = self._ready()
        if self._view is None:
            return None
        asked = [hand for hand in crew if streams[hand.rows].any()]
        for hand in asked:
            self._ask(hand, "reset_streams", np.array(streams[hand.rows]))
        self._hear(asked)
        self._view = self._seen()
        return self._view

    def state(self) -> dict[str, Any]:
        if self._view is None or self.inexact is not None:
            return {"restart_seed": restart_seed(self._seed, self._count)}
        for hand in self._ready():
            self._ask(hand, "state")
        envs = [env for share in self._hear(self._crew.hands) for env in share]
        return {"seed": self._seed, "steps": self._count, "envs": envs, "view": view_to_state(self._view)}

    def set_state(self, state: dict[str, Any]) -> View:
        if "restart_seed" in state:
            return self.reset(int(state["restart_seed"]))
        if len(state["envs"]) != self.num_envs:
            raise CheckpointIncompatible(
                f"the state was kept for {len(state['envs'])} envs of {self.name}, but there are {self.num_envs} here"
            )
        view = view_from_state(state["view"])
        for hand in self._ready():
            rows = hand.rows
            mask = None if view.action_mask is None else view.action_mask[rows]
            seen = {"obs": {name: part[rows] for name, part in view.obs.items()}, "action_mask": mask}
            own = {"seed": state["seed"], "steps": state["steps"], "envs": list(state["envs"][rows]), "view": seen}
            self._ask(hand, "set_state", own)
        self._hear(self._crew.hands)
        self._seed, self._count = int(state["seed"]), int(state["steps"])
        self._view = view
        return view

    def render(self) -> np.ndarray | None:
        first = self._ready()[0]
        self._ask(first, "render")
        return self._hear([first])[0]

    def close(self) -> None:
        self._lost = self._lost or f"{self.name} is closed; make a new world"
        self._dismiss()
        self._crew.here.close()

    def _meet(self, hellos: list[Hello]) -> None:
        """Take the spaces of the first share, see that the others have the same, and open the board."""
        first = hellos[0]
        self.name, self.observation, self.action = first.name, first.observation, first.action
        self.gym_spaces = first.gym_spaces
        for hand, hello in zip(self._crew.hands, hellos, strict=True):
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
            len(self._crew.hands),
            observation=self.observation,
            action=np.empty(space.shape or (), space.dtype),
            choices=choices(self.action),
        )
        for hand in self._crew.hands:
            self._ask(hand, "open", self.num_envs, len(self._crew.hands), hand.number)
        self._hear(self._crew.hands)

    def _seen(self) -> View:
        """What the board shows, in arrays of its own."""
        masked = self._board.masked
        if masked.any() and not masked.all():
            first = next(hand.rows.start for hand in self._crew.hands if not masked[hand.number])
            raise EnvError(
                f"env {first} of {self.name} gives no {MASK} where others give one; put one into every info "
                "(all True where everything is allowed)"
            )
        obs = {name: part.copy() for name, part in self._board.obs.items()}
        return View(obs=obs, action_mask=self._board.mask.copy() if masked.all() else None)

    def _ready(self) -> list[Hand]:
        if self._lost is not None:
            raise EnvError(self._lost)
        return self._crew.hands

    def _ask(self, hand: Hand, command: str, *arguments: Any) -> None:
        try:
            hand.ask(command, arguments)
        except OSError:
            self._lose(hand)

    def _hear(self, hands: Sequence[Hand]) -> list[Any]:
        """One answer from each; if some failed, all are heard and the error of the first env is raised."""
        answers: list[Any] = []
        for hand in hands:
            try:
                answers.append(hand.hear())
            except (EOFError, OSError):
                self._lose(hand)
        for answer in answers:
            if isinstance(answer, Failure):
                if answer.trace is None:
                    raise answer.error
                raise answer.error from WorkerTraceback(answer.trace)
        return answers

    def _lose(self, hand: Hand) -> NoReturn:
        """A worker is gone, and its envs with it. Whoever starts another one and puts its envs back begins here."""
        first, last = hand.rows.start, hand.rows.stop - 1
        its = f"env {last}" if first == last else f"envs {first} to {last}"
        when = "before its first reset" if self._view is None else f"at step {self._count + 1} since its reset"
        self._lost = (
            f"worker {hand.number} of {self.name}, with {its}, {hand.ended()} {when}; resume the run, or set workers=0 "
            "to see in one process what happens"
        )
        self._dismiss()
        raise EnvError(self._lost)


def require_sendable(env_fns: Sequence[Callable[[], SingleEnv]]) -> None:
    """ConfigError for a function that a worker process could not be sent."""
    """ConfigError for a function that a worker process could not be sent."""
    try:
        sent = bytes(ForkingPickler.dumps(list(env_fns)))
    except Exception as why:
        raise ConfigError(
            f"what builds the env cannot be sent to a worker process ({why}); use an id or a function at the top of a "
            "module, or workers=0"
        ) from why
    if b"__main__" in sent:
        raise ConfigError(
            "what builds the env is defined in the script that runs, where a worker process cannot import it from; "
            "move it to a module of its own and import it, or use workers=0"
        )
