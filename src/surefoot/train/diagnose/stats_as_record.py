"""Apply the doctor's rules to numbers without a record: those of a probe, or settings before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.doctor.rules import Rule
from surefoot.telemetry.schema import VERSION, HeaderRecord, UpdateRecord
from surefoot.train.spec import RunSpec

# Records that a rule may need before it opens.
RECORDS = 20


def findings_of_stats(
    spec: RunSpec, stats: Mapping[str, float], rules: Sequence[Rule], *, longest: int
) -> list[Finding]:
    """Return the findings of a record of which every update shows the same numbers.

    Args:
        spec: The run, whose settings the header has.
        stats: The numbers of every update.
        rules: The rules to apply.
        longest: Steps of the longest episode.
    """
    doctor = Doctor(rules)
    common: dict[str, Any] = {"v": VERSION, "run": "probe", "t": 0.0}
    config = {"ppo": spec.ppo.to_json(), "net": spec.net.to_json(), "collect": spec.collect.to_json()}
    header = HeaderRecord(
        **common,
        seq=1,
        env_steps=0,
        updates=0,
        env=spec.env,
        seed=0,
        config=config,
        session="probe",
        total_steps=spec.total_steps,
    )
    doctor.observe(header)
    doctor.history.longest = longest
    for update in range(1, RECORDS + 1):
        steps = update * spec.total_steps // RECORDS
        doctor.observe(UpdateRecord(**common, seq=update + 1, env_steps=steps, updates=update, m=dict(stats)))
    return doctor.findings()
