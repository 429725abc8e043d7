"""B4: random stories told to the service and to a store of checkpoints, and to models of them that are a few lines long."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from campaign.frame import Block, Found, from_tests

COMPANY = "a write is acknowledged while it waits for its batch"
REPLACES = "a second, different reward replaces the first"
UNPINNED = "pruning deletes pinned checkpoints"
STEPS = 50
ROWS = ([1.0, 0.0, 0.5, -1.0], [0.0, 1.0, -0.5, 1.0])


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.learn.checkpoint import retention
    from surefoot.server.decisions import service, store

    with contextlib.ExitStack() as undo:

        def patch(thing: Any, name: str, new: Any) -> None:
            undo.callback(setattr, thing, name, getattr(thing, name))
            setattr(thing, name, new)

        if defect == COMPANY:
            submit = store.Store.submit

            def later(self: Any, rows: Any, then: Any) -> None:
                held = self.__dict__.setdefault("held", [])
                held += rows
                if len(held) >= 3:
                    self.__dict__["held"] = []
                    submit(self, held, lambda error: None)
                asyncio.get_running_loop().call_soon(then, None)

            patch(store.Store, "submit", later)
        elif defect == REPLACES:
            patch(service.Service, "_is_repeat", lambda self, waiting, new, adds: bool(waiting.rewards))
        elif defect == UNPINNED:
            patch(retention, "pinned", lambda root: set())
        yield


def service_machine(template: Path, told: dict[str, int]) -> type[RuleBasedStateMachine]:
    """Decisions and rewards, asked twice, asked otherwise, and the power gone in between."""
    helpers = from_tests("unit/server/conftest.py")
    ids, rows = st.sampled_from([f"d{i}" for i in range(6)]), st.integers(0, 1)

    class Story(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.place = Path(tempfile.mkdtemp())
            self.loop = asyncio.new_event_loop()
            self.decided: dict[str, tuple[int, int]] = {}
            self.rewarded: dict[str, float] = {}
            self.lives = 0
            shutil.copytree(template, self.place / "0", symlinks=True)
            self.open()

        def open(self) -> None:
            from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
            from surefoot.server.decisions.service import Service
            from surefoot.server.http.access import AccessGuard
            from surefoot.server.http.app import App

            folder = self.place / str(self.lives)
            self.service = Service(folder, seed=0, durability="process")
            self.app = App(self.service, AccessGuard(), lifecycle=PolicyLifecycle(self.service))
            self.loop.run_until_complete(self.service.start())

        def ask(self, path: str, body: Any) -> Any:
            told["requests"] += 1
            answer = self.loop.run_until_complete(helpers.Asking(self.app)("POST", path, body))
            told["server errors"] += answer.status >= 500
            return answer

        @rule(id=ids, row=rows)
        def decide(self, id: str, row: int) -> None:
            answer = self.ask("/v1/policies/greet/decisions", {"decision_id": id, "embedding": ROWS[row]})
            known = self.decided.get(id)
            if known is not None and known[0] != row:
                assert answer.status == 409, answer.status
                return
            assert answer.status == 200, answer.status
            assert known is None or answer.json["action"] == known[1], "asked again, it chose otherwise"
            self.decided[id] = (row, answer.json["action"])

        @rule(id=ids, value=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
        def reward(self, id: str, value: float) -> None:
            status = self.ask(f"/v1/decisions/{id}/reward", {"value": value}).status
            if id not in self.decided:
                assert status == 404, status
            elif value > 1.0:
                assert status == 422, status
            elif id in self.rewarded:
                assert status == (200 if self.rewarded[id] == value else 409), status
            else:
                assert status == 200, status
                self.rewarded[id] = value

        @rule(dice=st.integers(0, 7))
        def crash(self, dice: int) -> None:
            """One time in eight: what is on the disk now is all there is."""
            if dice:
                return
            old = self.place / str(self.lives)
            self.lives += 1
            shutil.copytree(old, self.place / str(self.lives), symlinks=True)
            self.loop.run_until_complete(self.service.close())
            self.open()
            told["crashes"] += 1
            for id, (_, action) in self.decided.items():
                assert id in self.service.decisions, f"{id} was acknowledged and is lost"
                answer = self.service.decisions[id].answer
                assert answer is not None
                assert answer.action == action
            for id, value in self.rewarded.items():
                assert [r.value for r in self.service.decisions[id].rewards] == [value], f"the reward of {id} is lost"

        @invariant()
        def nothing_is_counted_twice(self) -> None:
            assert self.service.policy("greet").decision_count == len(self.decided)

        def teardown(self) -> None:
            told["runs"] += 1
            self.loop.run_until_complete(self.service.close())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            shutil.rmtree(self.place)

    return Story


def make_template(folder: Path) -> None:
    """A service with one policy, made once."""
    from msgspec import convert

    from surefoot.server.decisions.administration import create
    from surefoot.server.decisions.service import Service
    from surefoot.server.schema import NewPolicy

    helpers = from_tests("unit/server/conftest.py")

    async def make() -> None:
        service = Service(folder, seed=0)
        await service.start()
        await create(service, convert({**helpers.POLICY, "training": {"automatic": False, "least": 4}}, NewPolicy))
        await service.close()

    asyncio.run(make())


def check(count: int, defect: str = "") -> Found:
    """Half of the stories are the service's, half the checkpoints'."""
    found, told = Found(), {"requests": 0, "crashes": 0, "runs": 0, "server errors": 0}
    how = settings(
        max_examples=max(1, count // 2),
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    with tempfile.TemporaryDirectory() as place:
        machines: list[Any] = []
        if defect != UNPINNED:
            make_template(Path(place) / "template")
            machines.append(service_machine(Path(place) / "template", told))
        if defect in ("", UNPINNED):
            machines.append(from_tests("property/test_checkpoint_states.py").Retention)
        with with_defect(defect):
            for machine in machines:
                try:
                    run_state_machine_as_test(machine, settings=how)
                except AssertionError as error:
                    found.fault(f"{machine.__name__}: {type(error).__name__}: {str(error)[:200]}")
    found.tried, found.server_errors = count, told["server errors"]
    found.notes = {"steps per sequence": STEPS, "requests": told["requests"], "crashes": told["crashes"]}
    return found


BLOCK = Block(
    name="B4",
    title="random sequences of operations compared with models, crashes included",
    over="service, checkpoints",
    unit="sequences",
    smoke=4,
    count=200,
    long=20_000,
    check=check,
    mutants={COMPANY: 20, REPLACES: 20, UNPINNED: 40},
)
