"""Runs the blocks, two at a time and each in a process of its own, tells how far it is, and keeps what was found.

    python benchmarks/campaign                     all blocks, under ten minutes on two quiet cores
    python benchmarks/campaign --long              the counts of a release; hours
    python benchmarks/campaign --only K2,B3        some of them
    python benchmarks/campaign --list              what there is

A block is green if it found nothing and each of its mutants, the same check against code with one defect put in, was
caught. Exit code 0 if all are green, 1 if not; what could not be tried is said and is neither.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from campaign.frame import ROOT, Block, Found, caught

HOMES = {
    "K1": "kill_service",
    "K2": "kill_saves",
    "K3": "kill_workers",
    "K4": "kill_learner",
    "T1": "kill_record",
    "K5": "crash_states",
    "B1": "numbers",
    "B2": "bad_requests",
    "B3": "artefacts",
    "B4": "models",
    "S1": "town_soak",
    "D1": "same_digits",
    "D2": "two_paths",
    "M1": "mutation",
    "G1": "graphs",
    "L1": "language",
    "K3b": "backends",
    "K3c": "kill_ranks",
    "A1": "audits",
    "A2": "audits",
}
"""Where each block is written. Only those that are run are imported: some bring torch, which takes seconds."""
RESULTS = ROOT / "benchmarks/results"
FIRST = ("B2", "K1", "M1", "L1", "K3", "K4", "K3b", "S1", "K3c", "K2", "B4")
"""The longest begin first, so that two cores are done at about the same time."""
LIMIT = {"smoke": 120.0, "campaign": 900.0, "long": 24 * 3600.0}
"""Seconds after which a block counts as hanging."""


def block_called(name: str) -> Block:
    module = importlib.import_module(f"campaign.{HOMES[name]}")
    blocks: list[Block] = getattr(module, "BLOCKS", None) or [module.BLOCK]
    return next(block for block in blocks if block.name == name)


def all_blocks() -> dict[str, Block]:
    return {name: block_called(name) for name in HOMES}


def run_block(block: Block, how: str) -> dict[str, Any]:
    """The check as shipped, then each of its mutants."""
    began = time.monotonic()
    told = _checked(block, block.size(how), "")
    seconds = time.monotonic() - began
    mutants: dict[str, Any] = {}
    if not told.not_here:
        mutants = {defect: _checked(block, tries, defect).to_json() for defect, tries in block.mutants.items()}
    return {
        "title": block.title,
        "over": block.over,
        "unit": block.unit,
        "size": how,
        "found": told.to_json(),
        "seconds": round(seconds, 1),
        "mutants": mutants,
        "mutant_seconds": round(time.monotonic() - began - seconds, 1),
        "cpu_seconds": round(cpu_seconds(), 1),
    }


def cpu_seconds() -> float:
    """Of this process and of the children it has waited for: what a block costs, however busy the machine is."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _checked(block: Block, count: int, defect: str) -> Found:
    try:
        return block.check(count, defect)
    except Exception as error:
        found = Found(tried=1, crashed=True)
        found.fault(f"{type(error).__name__}: {str(error)[:300]}")
        if not defect:
            traceback.print_exc()
        return found


def verdict(told: dict[str, Any]) -> str:
    """green, RED, or why it was not tried."""
    if told["found"]["not_here"]:
        return told["found"]["not_here"]
    survivors = [name for name, mutant in told["mutants"].items() if not caught(mutant)]
    if told["found"]["green"] and not survivors:
        return "green"
    return "RED" if not told["found"]["green"] else f"RED: not caught: {', '.join(survivors)}"


def line(name: str, told: dict[str, Any]) -> str:
    found, seen = told["found"], sum(map(caught, told["mutants"].values()))
    counted = f"{found['tried']:,} {told['unit']}, {seen} of {len(told['mutants'])} mutants caught"
    return f"{name:4} {verdict(told):8} {counted}, {told['seconds'] + told['mutant_seconds']:.0f} s   {told['title']}"


def in_a_process(name: str, how: str) -> dict[str, Any]:
    """One block by a child; one that hangs is ended with everything it started, and is red."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        part = Path(place) / "part.json"
        command = [sys.executable, str(Path(__file__).parent), "--only", name, "--size", how, "--part", str(part)]
        child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = child.communicate(timeout=LIMIT[how])
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            said, _ = child.communicate()
        if part.exists():
            told = json.loads(part.read_text())
            if not told["found"]["green"] and not told["found"]["not_here"]:
                sys.stderr.write(said.decode(errors="replace")[-3000:])
            return told
    block, found = block_called(name), Found(tried=1)
    found.fault(f"its process ended with {child.returncode} after {time.monotonic() - began:.0f} s")
    sys.stderr.write(said.decode(errors="replace")[-3000:])
    return {
        "title": block.title,
        "over": block.over,
        "unit": block.unit,
        "size": how,
        "found": found.to_json(),
        "seconds": round(time.monotonic() - began, 1),
        "mutants": {},
        "mutant_seconds": 0.0,
        "cpu_seconds": 0.0,
    }


def parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of blocks, with commas between")
    parser.add_argument("--list", action="store_true", help="say what there is and do nothing")
    parser.add_argument("--long", action="store_true", help="the counts of a release")
    parser.add_argument("--size", choices=("smoke", "campaign", "long"), default="campaign", help="which counts")
    parser.add_argument(
        "--seed", type=int, default=int(os.environ.get("CAMPAIGN_SEED", "0")), help="other moments, other mutants"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="blocks at a time")
    parser.add_argument(
        "--out", type=Path, help="where to keep what was found; the longer counts have a file of their own"
    )
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    args = parse(words)
    how = "long" if args.long else args.size
    args.out = args.out or RESULTS / ("campaign_long.json" if how == "long" else "campaign.json")
    if args.list:
        for block in all_blocks().values():
            print(f"{block.name:4} {block.size(how):>7,} {block.unit:22} {block.title} ({block.over})")
            for defect in block.mutants:
                print(f"{'':12} mutant: {defect}")
        return 0
    names = [name.strip() for name in args.only.split(",") if name.strip()] or list(HOMES)
    if unknown := [name for name in names if name not in HOMES]:
        print(f"no block is called {unknown[0]}; there are {', '.join(HOMES)}", file=sys.stderr)
        return 64
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CAMPAIGN_SEED"] = str(args.seed)
    # Hundreds of processes are started and killed; where none may keep what it compiled, that is most of the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "build/pycache"))
    if args.part:
        args.part.write_text(json.dumps(run_block(block_called(names[0]), how)))
        return 0
    return campaign(sorted(names, key=lambda n: FIRST.index(n) if n in FIRST else len(FIRST)), how, args)


def campaign(names: list[str], how: str, args: argparse.Namespace) -> int:
    began, fine = time.monotonic(), True
    with ThreadPoolExecutor(args.jobs) as pool:
        waiting = {pool.submit(in_a_process, name, how): name for name in names}
        for number, done in enumerate(as_completed(waiting), 1):
            name, told = waiting[done], done.result()
            fine &= verdict(told) == "green" or bool(told["found"]["not_here"])
            print(f"[{number:2} of {len(names)}, {time.monotonic() - began:4.0f} s] {line(name, told)}", flush=True)
            for sentence in told["found"]["faults"]:
                print(f"      {sentence}", flush=True)
            if how != "smoke":
                keep(args.out, how, {name: told})
    if how != "smoke" and set(names) == set(HOMES):
        keep(args.out, how, {}, seconds=round(time.monotonic() - began))
    return 0 if fine else 1


def keep(file: Path, how: str, blocks: dict[str, Any], seconds: float | None = None) -> None:
    """Put blocks beside those that are in the file by now: another campaign may be under way."""
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"blocks": {}}
    found, order = kept["blocks"] | blocks, list(HOMES)
    ranked = sorted(found, key=lambda n: order.index(n) if n in order else len(order))
    command = "make campaign-long" if how == "long" else "make campaign"
    took = {} if seconds is None else {f"{how}_seconds": seconds}
    kept = {"command": command, **kept, **took, "blocks": {name: found[name] for name in ranked}}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
