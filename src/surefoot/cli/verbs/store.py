"""`surefoot store …`: back up, restore and purge the data of a decision service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class StoreBackupArgs:
    """Copy all data of a service into a new directory. The service can keep running.

    surefoot store backup decisions -o backup-monday
    """

    dir: tyro.conf.Positional[Path]
    """The directory of `surefoot serve --data-dir`."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """New directory; it must not exist yet."""

    def run(self) -> int:
        from surefoot.server.decisions.backup import backup

        print(f"{backup(self.dir, self.out):,} decisions copied to {self.out} and verified")
        return 0


@dataclass(frozen=True, kw_only=True)
class StoreRestoreArgs:
    """Restore a backup into a new directory. The backup is verified first; nothing is overwritten.

    surefoot store restore backup-monday -o decisions
    """

    dir: tyro.conf.Positional[Path]
    """Directory of the backup."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """New directory; it must not exist yet. Serve it with `surefoot serve --data-dir`."""

    def run(self) -> int:
        from surefoot.server.decisions.backup import restore

        print(f"{restore(self.dir, self.out):,} decisions restored to {self.out}; surefoot serve --data-dir {self.out}")
        return 0


@dataclass(frozen=True, kw_only=True)
class StorePurgeArgs:
    """Delete decisions and their rewards permanently. The service must be stopped.

        surefoot store purge decisions --older-than 90d     decisions older than 90 days
        surefoot store purge decisions --subject user-17    all decisions about one person

    Trained policies are kept; the data they learned from is deleted.
    """

    dir: tyro.conf.Positional[Path]
    """The directory of `surefoot serve --data-dir`."""
    older_than: str | None = None
    """Minimum age, such as 90d, 12h or 4w."""
    subject: str | None = None
    """Value of `subject` in the requests."""

    def run(self) -> int:
        from surefoot.server.decisions.backup import purge, seconds_of

        if (self.older_than is None) == (self.subject is None):
            raise Usage("pass one of --older-than TIME and --subject ID")
        age = None if self.older_than is None else seconds_of(self.older_than)
        deleted = purge(self.dir, older_than=age, subject=self.subject)
        print(f"{deleted.decisions:,} decisions and {deleted.rewards:,} rewards deleted")
        return 0
