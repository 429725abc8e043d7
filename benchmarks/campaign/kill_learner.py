"""K4: a training is killed at random moments and resumed; every update must be that of the run that was not."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from campaign.frame import ROOT, Block, Found, dice, from_tests

CHILD = ROOT / "tests/e2e/resume_child.py"
MUTANT = """
from surefoot.train.collect.collector import Collector
whole = Collector.set_state
def forgetful(self, state):
    generator, rng = self.generator.get_state(), None if self.actor is None else self.actor.rng.copy()
    whole(self, {**state, "generator": generator, **({} if rng is None else {"kernel_rng": rng})})
Collector.set_state = forgetful
"""
RUN = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def train(directory: Path, spec: str, last: int, defect: str, *, lines: int = 0, share: float = 0.0) -> dict[int, str]:
    """{update: fingerprint} of a child; with `lines` it is killed that many updates and a moment after its start."""
    code = (MUTANT if defect else "") + RUN
    command = [sys.executable, "-c", code, str(CHILD), str(directory), spec, str(last), "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said: list[str] = []
    if lines:
        said.append(child.stdout.readline())
        began = time.monotonic()
        said += [child.stdout.readline() for _ in range(lines - 1)]
        time.sleep(share * max(0.02, (time.monotonic() - began) / lines))
        child.kill()
    rest, errors = child.communicate()
    if child.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the child ended with {child.returncode}: {errors[-800:]}")
    text = "".join(said) + rest
    return {int(w[0]): w[1] for line in text.splitlines(keepends=True) if line.endswith("\n") and (w := line.split())}


def check(count: int, defect: str = "") -> Found:
    resume = from_tests("e2e/test_resume.py")
    found, rng = Found(), dice(4)
    kinds = list(resume.KINDS)[: max(1, min(3, count // 3))]
    for number, kind in enumerate(kinds):
        mine = count // len(kinds) + (number < count % len(kinds))
        spec = json.dumps(resume.spec_for(kind).to_json())
        with tempfile.TemporaryDirectory() as place:
            straight = train(Path(place) / "straight", spec, 18, defect)
            if 18 not in straight:
                raise RuntimeError(f"the run that nobody kills told {len(straight)} of 18 updates")
            left = mine
            run = 0
            while left:
                directory, run = Path(place) / f"killed{run}", run + 1
                left = _one_run(found, directory, spec, straight, defect, rng, left, kind)
    found.notes["kinds of run"] = len(kinds)
    return found


def _one_run(
    found: Found, directory: Path, spec: str, straight: dict, defect: str, rng: random.Random, left: int, kind: str
) -> int:
    """Up to four kills on the way to update 18, then to its end; how many kills are still to be made."""
    for _ in range(min(4, left)):
        said = train(directory, spec, 18, defect, lines=rng.randint(1, 4), share=rng.random())
        found.kills += 1
        found.tried += 1
        left -= 1
        _compare(found, said, straight, kind)
        if 18 in said:
            return left
    said = train(directory, spec, 18, defect)
    _compare(found, said, straight, kind)
    if 18 not in said:
        found.fault(f"{kind}: after its kills it did not come to its end")
    return left


def _compare(found: Found, said: dict[int, str], straight: dict[int, str], kind: str) -> None:
    found.acknowledged += len(said)
    wrong = [update for update, print_ in said.items() if straight.get(update) != print_]
    found.silent += len(wrong)
    if wrong:
        found.fault(f"{kind}: updates {wrong[:4]} are not those of the run that was not killed")


BLOCK = Block(
    name="K4",
    title="kill -9 of a training, resumed to the last bit",
    over="engine",
    unit="kills",
    smoke=1,
    count=10,
    long=500,
    check=check,
    mutants={"the state of the random generators is not saved": 2},
)
