"""The doctor beside a run that goes on: it is told every record as it is written, and keeps what changed until asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surefoot.telemetry.doctor.doctor import Doctor
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.doctor.rules import Rule
from surefoot.telemetry.reader import scan
from surefoot.telemetry.schema import Record


class Attending:
    """A recorder's mirror. Whoever owns the run takes the news and writes them into the record."""

    def __init__(self, rules: Sequence[Rule] | None = None, *, at_length: bool = False) -> None:
        self.doctor, self.at_length = Doctor(rules), at_length
        """`at_length`: notes name the causes too, and advice is told as well."""
        self._news: list[Finding] = []

    def catch_up(self, path: Path | str) -> None:
        """Read what a run that is taken up again has written so far; none of it is news."""
        for record in scan(path):
            self.doctor.see(record)

    def write(self, record: Record) -> None:
        """Take one record."""
        self._news += self.doctor.see(record)

    def take(self) -> list[Finding]:
        """What opened, became graver or is resolved since last asked."""
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """Nothing is held back."""
