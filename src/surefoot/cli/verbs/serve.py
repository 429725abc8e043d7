"""`surefoot serve`: the decision service on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from surefoot.cli.options import Runs
from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class ServeArgs:
    """Answer over HTTP: policies that decide, are told what came of it, and learn.

        surefoot serve                                  on 127.0.0.1:8765, everything kept in ./decisions
        surefoot serve --compat directive-023           the eight endpoints of the earlier prompt server, too
        surefoot serve --host 0.0.0.0 --token-file F    for others: then a token is asked for
        surefoot serve --ui                             and a page to look at, in a browser
        surefoot serve RUN                              a policy of `surefoot train`: observation in, action out
        surefoot serve --openapi > openapi.json         what can be asked, without starting anything

    Then, in a second terminal:

        curl -s localhost:8765/v1/policies -H 'Content-Type: application/json' \\
             -d '{"name": "greet", "actions": ["hello", "bye"], "encoder": "hashing", "embedding_size": 64}'
        curl -s localhost:8765/v1/policies/greet/decisions -H 'Content-Type: application/json' \\
             -d '{"decision_id": "a1", "text": "good morning"}'
        curl -s localhost:8765/v1/decisions/a1/reward -H 'Content-Type: application/json' -d '{"value": 1}'

    Ctrl-C or SIGTERM ends it: requests under way are answered, what was acknowledged is on the disk.
    """

    run_names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Trained policies to serve as they are, by directory or name: an observation in, an action out, nothing kept."""
    runs: Runs = None
    data_dir: Annotated[Path, tyro.conf.arg(aliases=["--dir"])] = Path("decisions")
    """Where policies, decisions and rewards are kept."""
    host: str = "127.0.0.1"
    """Who can reach it: only this machine, unless you give --token-file too."""
    port: int = 8765
    """0 takes a free one and prints it."""
    token_file: Path | None = None
    """Lines of `TOKEN scope,scope`; scopes are decide, read and admin."""
    allow_origin: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A site whose pages may ask, such as https://app.example; may be given several times."""
    rate: float = 0.0
    """Requests of one client a second; 0 sets no limit."""
    ui: bool = False
    """A page at / that shows policies, counts, learning curves and versions, and lets you try a decision."""
    replicas: int = 0
    """Read-only processes beside the one that decides; they answer /distribution on --replica-port. With RUN: processes in
    all, on one port."""
    replica_port: int = 0
    """Where the replicas listen; 0 takes a free one and prints it."""
    durability: Literal["disk", "process"] = "disk"
    """disk: what was acknowledged survives a power cut. process: it survives kill -9 only, and is faster."""
    digits: int | None = None
    """Round every choice's probability to so many digits where it is told; what is logged and learned from is exact."""
    compat: Literal["none", "directive-023"] = "none"
    """Answer an earlier system's endpoints as well."""
    input_dim: int = 1536
    """Numbers of an embedding in its requests."""
    min_buffer_size: int = 128
    """Experiences without which its /update does nothing."""
    exit_with_parent: bool = False
    """End when standard input does: a program that starts the service and dies leaves no orphan."""
    openapi: bool = False
    """Print the OpenAPI document and end."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """One JSON line an event, on stderr."""

    def run(self) -> int:
        """Serve until told to stop."""
        if self.openapi:
            from surefoot.server.http.endpoints import described_routes
            from surefoot.server.http.openapi import document

            sys.stdout.write(document(described_routes()).decode())
            return 0
        if not 0 <= self.replicas <= 256:
            raise Usage(f"--replicas is {self.replicas}; it is 0 to 256")
        try:
            from surefoot.server.main import Settings, serve
        except ModuleNotFoundError as why:
            raise Usage(f"serving needs {why.name}: pip install 'surefoot[serve]'") from why
        extension: Callable[[Any, Any], Any] | None = None
        if self.compat == "directive-023":
            from surefoot.compat.directive023 import Directive023

            extension = partial(Directive023, input_dim=self.input_dim, least=self.min_buffer_size)
        return serve(
            Settings(
                directory=self.data_dir,
                runs=self._found(),
                host=self.host,
                port=self.port,
                token_file=self.token_file,
                origins=self.allow_origin,
                rate=self.rate,
                durability=self.durability,
                digits=self.digits,
                ui=self.ui,
                replicas=self.replicas,
                replica_port=self.replica_port,
                extension=extension,
                exit_with_parent=self.exit_with_parent,
                log_level=self.log_level,
            )
        )

    def _found(self) -> tuple[Path, ...]:
        if not self.run_names:
            return ()
        from surefoot.train.rundir.rundir import find_run, runs_root

        def found(name: str) -> Path:
            saved = any(Path(name).glob("*/weights.safetensors"))  # by `PPO.save`
            return Path(name) if saved else find_run(name, runs_root(self.runs)).path

        return tuple(found(name) for name in self.run_names)
