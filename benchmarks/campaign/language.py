"""L1: the training of a language model is killed at random moments and resumed; weights and samples must not show it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from campaign.frame import ROOT, Block, Found, dice, from_tests, is_here

CURSOR = "the position in the prompts is not saved"
MUTANT = """
from surefoot.lm import training as t
mine = [x for x in vars(t).values() if isinstance(x, type) and x.__module__ == t.__name__]
for kind in [x for x in mine if hasattr(x, "set_state") and hasattr(x, "state")]:
    def forgetful(self, parts, whole=kind.set_state):
        fresh = self.state()
        if "lm" in parts:
            kept = {k: fresh["lm"][k] for k in ("generator", "cursor", "order")}
            parts = {**parts, "lm": {**parts["lm"], **kept}}
        whole(self, parts)
    kind.set_state = forgetful
"""
STEPS = 6


def check(count: int, defect: str = "") -> Found:
    found = Found()
    for module in ("surefoot.lm", "transformers"):
        if not is_here(module):
            found.not_here = f"not here yet: {module}"
            return found
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    lm, rng = from_tests("e2e/test_lm.py"), dice(13)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lm.tiny(vocabulary=lm.VOCABULARY).save_pretrained(folder / "tiny")
        lm.char_tokenizer(chat=True).save_pretrained(folder / "tiny")
        (folder / "prompts.txt").write_text("hello\nwhat is it\ngo on\nyes\nno\n")
        (folder / "my_rewards.py").write_text((MUTANT if defect else "") + lm.REWARD)
        _run(folder, lm.ppo("--name", "whole", steps=STEPS))
        for number in range(count):
            name, at = f"broken{number}", rng.randint(9, 4 * STEPS - 1)
            dead = _run(folder, lm.ppo("--name", name, steps=STEPS), DIE_AT=str(at))
            if dead.returncode != -signal.SIGKILL:
                found.fault(f"it was not killed at call {at}: {dead.stderr[-200:]}")
                continue
            found.kills += 1
            found.tried += 1
            on = _run(folder, ["lm", "ppo", "--resume", name, "--reward", "my_rewards:vowels"])
            if on.returncode:
                found.unreadable += 1
                found.fault(f"killed at call {at} it could not be resumed: {on.stderr[-200:]}")
            elif _made(folder, name) != _made(folder, "whole"):
                found.silent += 1
    return found


def _run(folder: Path, words: list[str], **env: str) -> Any:
    paths = [str(folder), str(ROOT / "src")]
    return subprocess.run(
        [sys.executable, "-m", "surefoot", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SUREFOOT_RUNS": str(folder / "runs"), **env},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def _made(folder: Path, name: str) -> tuple[bytes, list[Any]]:
    run = folder / "runs" / name
    samples = [json.loads(line) for line in (run / "samples.ndjson").read_text().splitlines()]
    return (run / "checkpoints/latest/weights.safetensors").read_bytes(), samples


BLOCK = Block(
    name="L1",
    title="kill -9 of a language model's training, resumed to the last bit",
    over="language models",
    unit="kills",
    smoke=1,
    count=4,
    long=100,
    check=check,
    mutants={CURSOR: 1},
)
