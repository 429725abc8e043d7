"""K2: a process that saves is killed at random moments; what it acknowledged must load."""

from __future__ import annotations

from campaign.frame import ROOT, Block, Found, load, seed

MUTANTS = {
    "acknowledges before the save": ("early", 6),
    "a plain torch.save over the only file": ("torch.save", 6),
    "copies over the only checkpoint": ("in place", 4),
}


def check(count: int, defect: str = "") -> Found:
    kills = load(ROOT / "benchmarks/kills.py")
    mode = MUTANTS[defect][0] if defect else "sound"
    counted = kills.kill_campaign(count, mode=mode, seed=seed(2))
    found = Found(tried=counted.kills, kills=counted.kills, acknowledged=counted.acknowledged)
    found.lost, found.unreadable, found.silent = counted.lost, counted.unreadable, counted.damaged
    if counted.acknowledged < count // 2:
        found.fault(f"only {counted.acknowledged} saves were acknowledged: the children were killed before they saved")
    return found


BLOCK = Block(
    name="K2",
    title="kill -9 while a checkpoint is saved",
    over="checkpoints",
    unit="kills",
    smoke=4,
    count=60,
    long=2000,
    check=check,
    mutants={name: tries for name, (_, tries) in MUTANTS.items()},
)
