"""`surefoot serve`: the decision service over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from surefoot.cli.options import Pairs, options_from, pairs, run_directory
from surefoot.cli.usage import Usage


@dataclass(frozen=True, kw_only=True)
class _ServeOptions:
    """Keys of --set."""

    rate: float = 0.0
    replica_port: int = 0
    digits: int | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    input_dim: int = 1536  # the size of OpenAI's text-embedding-3-small
    min_buffer_size: int = 128


@dataclass(frozen=True, kw_only=True)
class ServeArgs:
    """Serve policies over HTTP: they choose actions, receive rewards and learn from them.

        surefoot serve                                  on 127.0.0.1:8765, data in ./decisions
        surefoot serve --compat directive-023           also the eight endpoints of the earlier prompt server
        surefoot serve --host 0.0.0.0 --token-file F    for other machines, with tokens
        surefoot serve --ui                             with a page for the browser
        surefoot serve RUN                              a trained policy: observation in, action out
        surefoot serve --openapi > openapi.json         print the API description

    Then, in a second terminal:

        curl -s localhost:8765/v1/policies -H 'Content-Type: application/json' \\
             -d '{"name": "greet", "actions": ["hello", "bye"], "encoder": "hashing", "embedding_size": 64}'
        curl -s localhost:8765/v1/policies/greet/decisions -H 'Content-Type: application/json' \\
             -d '{"decision_id": "a1", "text": "good morning"}'
        curl -s localhost:8765/v1/decisions/a1/reward -H 'Content-Type: application/json' -d '{"value": 1}'

    Ctrl-C or SIGTERM stops the service: open requests are answered, and acknowledged data is on disk.
    """

    run_names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Trained policies to serve unchanged, by directory or name: observation in, action out, nothing is stored."""
    data_dir: Path = Path("decisions")
    """Directory of policies, decisions and rewards."""
    host: str = "127.0.0.1"
    """Bind address. Non-loopback addresses require --token-file."""
    port: int = 8765
    """Port; 0 takes a free one and prints it."""
    token_file: Path | None = None
    """File with one `TOKEN scope,scope` per line; the scopes are decide, read and admin."""
    allow_origin: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """Origin that browsers may call from (CORS), such as https://app.example; repeatable."""
    ui: bool = False
    """Serve a page at / with policies, counts, learning curves and versions, and a form to try a decision."""
    replicas: int = 0
    """Additional read-only processes that answer /distribution on another port. With RUN: total number of processes, on
    one port."""
    durability: Literal["disk", "process"] = "disk"
    """disk: acknowledged data survives a power failure. process: it survives kill -9 only; faster."""
    compat: Literal["none", "directive-023"] = "none"
    """Also serve the endpoints of an earlier system."""
    set: Pairs = ()
    """Change a detail; repeatable. rate=10 limits the requests per second of a client, replica_port=9000 is the port of the
    replicas (default: a free one, which is printed), digits=3 rounds probabilities in responses, log_level=debug|info|
    warning|error is the level of the log on stderr. For --compat: input_dim=1536 is the size of embeddings in its requests,
    min_buffer_size=128 the number of experiences below which its /update does nothing."""
    exit_with_parent: bool = False
    """Exit when standard input is closed, so that no orphan remains if the parent process dies."""
    openapi: bool = False
    """Print the OpenAPI document and exit."""

    def run(self) -> int:
        if self.openapi:
            from surefoot.server.http.endpoints import described_routes
            from surefoot.server.http.openapi import document

            sys.stdout.write(document(described_routes()).decode())
            return 0
        if not 0 <= self.replicas <= 256:
            raise Usage(f"--replicas is {self.replicas}; it must be 0 to 256")
        try:
            from surefoot.server.main import Settings, serve
        except ModuleNotFoundError as why:
            raise Usage(f"serving needs {why.name}: pip install 'surefoot[serve]'") from why
        details = options_from(_ServeOptions, pairs(self.set, "--set"), "--set")
        extension: Callable[[Any], Any] | None = None
        if self.compat == "directive-023":
            from surefoot.compat.directive023 import Directive023

            extension = partial(Directive023, input_dim=details.input_dim, least=details.min_buffer_size)
        return serve(
            Settings(
                directory=self.data_dir,
                runs=self._run_paths(),
                host=self.host,
                port=self.port,
                token_file=self.token_file,
                origins=self.allow_origin,
                rate=details.rate,
                durability=self.durability,
                digits=details.digits,
                ui=self.ui,
                replicas=self.replicas,
                replica_port=details.replica_port,
                extension=extension,
                exit_with_parent=self.exit_with_parent,
                log_level=details.log_level,
            )
        )

    def _run_paths(self) -> tuple[Path, ...]:
        def path(name: str) -> Path:
            saved = any(Path(name).glob("*/weights.safetensors"))  # a directory that `PPO.save` wrote
            return Path(name) if saved else run_directory(name).path

        return tuple(path(name) for name in self.run_names)
