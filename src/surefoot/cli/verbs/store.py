"""`surefoot store …`: copies of what a service keeps, and deletion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class StoreBackupArgs:
    """Copy everything a service keeps into a new folder. It may go on serving meanwhile.

    surefoot store backup decisions -o backup-monday
    """

    dir: tyro.conf.Positional[Path]
    """The folder of `surefoot serve --data-dir`."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """A folder that is not there yet."""

    def run(self) -> int:
        """Copy it."""
        from surefoot.server.decisions.backup import backup

        print(f"{backup(self.dir, self.out):,} decisions copied to {self.out}, and found whole")
        return 0


@dataclass(frozen=True, kw_only=True)
class StoreRestoreArgs:
    """Put a backup where a service will find it. The backup is checked first; nothing is overwritten.

    surefoot store restore backup-monday -o decisions
    """

    dir: tyro.conf.Positional[Path]
    """The backup."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """A folder that is not there yet; serve it with `surefoot serve --data-dir`."""

    def run(self) -> int:
        """Copy it back."""
        from surefoot.server.decisions.backup import restore

        print(f"{restore(self.dir, self.out):,} decisions restored to {self.out}; surefoot serve --data-dir {self.out}")
        return 0


@dataclass(frozen=True, kw_only=True)
class StorePurgeArgs:
    """Delete decisions and their rewards for good. The service must not run meanwhile.

        surefoot store purge decisions --older-than 90d     what is older
        surefoot store purge decisions --subject user-17    all that is about one person

    Policies keep what they have learned; what they learned it from is gone.
    """

    dir: tyro.conf.Positional[Path]
    """The folder of `surefoot serve --data-dir`."""
    older_than: str | None = None
    """Such as 90d, 12h or 4w."""
    subject: str | None = None
    """The `subject` that decisions were made about."""

    def run(self) -> int:
        """Delete it."""
        from surefoot.server.decisions.backup import purge, seconds_of

        if (self.older_than is None) == (self.subject is None):
            raise Usage("say what to delete: --older-than TIME or --subject ID, one of them")
        age = None if self.older_than is None else seconds_of(self.older_than)
        gone = purge(self.dir, older_than=age, subject=self.subject)
        print(f"{gone.decisions:,} decisions and {gone.rewards:,} rewards deleted")
        return 0
