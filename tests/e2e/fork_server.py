"""Starts the Python processes of the e2e tests by forking one that has already imported torch and surefoot.

A process that trains needs 1.3 s of the processor for its imports before it does anything, and these tests start
hundreds. `conftest.py` puts `ForkedPopen` in the place of `subprocess.Popen`. It forks for `python -m …`, `python -c …` and
`python file.py` with arguments, environment, directory and streams as given; the child is a child of the test process,
so waiting, signals, exit codes and pipes are the real thing. What differs is that modules are there already. So a
command is started for real if it has options of the interpreter (`-OO`, `-X importtime`), another value of a variable
that counts then (`READ_AT_START`), or a terminal; and in the tests marked `real_process`. SUREFOOT_FORK=0 starts all
of them for real.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Mapping
from typing import Any

READ_AT_START = re.compile(
    r"(PYTHON|LD_|LC_|LANG|MALLOC_|OMP_|KMP_|MKL_|OPENBLAS_|TORCH_|PYTORCH_|CUDA_|GLOO_|SUREFOOT_(NATIVE|KERNEL)$)"
)
"""Variables that the interpreter, torch or surefoot read when they start or are imported."""
PRELOADED = (
    *("numpy.ma", "typeguard", "rich.live", "surefoot.cli.main", "surefoot.cli.verbs.train", "surefoot.train.facade"),
    *("surefoot.cli.dashboard.screen", "surefoot.train.run", "surefoot.train.diagnose.auto_recover"),
    *("surefoot.compat.townlet.record_writer", "surefoot.telemetry.export.trackers", "surefoot.envs.builtin.classic"),
)
PR_SET_CHILD_SUBREAPER = 36
RealPopen = subprocess.Popen
# As the test session begins, before any test sets a variable.
ENVIRONMENT = dict(os.environ)


class ForkServer:
    """The test process's side: asks the server for a child, and adopts it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno())]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.process = RealPopen(command, pass_fds=[theirs.fileno()], env=ENVIRONMENT, **quiet)
        theirs.close()
        atexit.register(self.close)

    def start(self, request: dict[str, Any], streams: list[int]) -> int:
        """Return the id of a new process, which is a child of this one."""
        with self.lock:
            # A process whose parent ends meanwhile becomes a child of this one: the grandchild that the server made.
            _subreaper(True)
            try:
                socket.send_fds(self.socket, [json.dumps(request).encode()], streams)
                return int(self.socket.recv(64))
            finally:
                _subreaper(False)

    def close(self) -> None:
        self.socket.close()
        self.process.wait()


class ForkedPopen(RealPopen):  # pyright: ignore[reportMissingTypeArgument]
    """`subprocess.Popen` whose Python processes come from the fork server wherever that makes no difference."""

    server: ForkServer | None = None

    # The arguments are those of CPython's Popen, which calls this with all of them in order.
    def _execute_child(self, args: Any, executable: Any, preexec: Any, *rest: Any) -> None:
        close_fds, pass_fds, cwd, env, _, _, shell, *streams_and_more = rest
        ours, more = streams_and_more[:6], streams_and_more[6:]
        _, gid, gids, uid, umask, new_session, process_group = more
        special = (executable, preexec, shell, *pass_fds, gid, gids, uid)
        plain = close_fds and umask == -1 and process_group == -1 and not any(special)
        streams = [theirs if theirs != -1 else fd for fd, theirs in enumerate((ours[0], ours[3], ours[5]))]
        if not (plain and self._forkable(args, env) and not any(map(os.isatty, streams))):
            return super()._execute_child(args, executable, preexec, *rest)
        request = {
            "words": [os.fspath(word) for word in args[1:]],
            "env": dict(os.environ if env is None else env),
            "cwd": os.fspath(cwd or os.getcwd()),
            "new_session": bool(new_session),
        }
        if ForkedPopen.server is None:
            ForkedPopen.server = ForkServer()
        self.pid = ForkedPopen.server.start(request, streams)
        self._child_created = True
        self._close_pipe_fds(*ours)
        return None

    @staticmethod
    def _forkable(args: Any, env: Mapping[str, str] | None) -> bool:
        if isinstance(args, str | bytes) or len(args) < 2 or args[0] != sys.executable:
            return False
        first = os.fspath(args[1])
        if first not in ("-m", "-c") and (first.startswith("-") or not first.endswith(".py")):
            return False
        if first == "-m" and args[2].split(".")[0] != "surefoot":
            return False
        theirs = os.environ if env is None else env
        counting = filter(READ_AT_START.match, {*theirs, *ENVIRONMENT})
        return all(theirs.get(name) == ENVIRONMENT.get(name) for name in counting)


def available() -> bool:
    return sys.platform == "linux" and os.environ.get("SUREFOOT_FORK", "1") != "0"


def _subreaper(on: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Answer requests until the test process ends. Returns in a new process only, with its request."""
    while True:
        message, streams, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            os._exit(0)
        sender, receiver = socket.socketpair()
        between = os.fork()
        if between == 0:
            middle, child = os.getpid(), os.fork()
            if child:
                sender.send(str(child).encode())
                os._exit(0)
            for there in (requests, sender, receiver):
                there.close()
            # Who looks for its parent must find the test process.
            while os.getppid() == middle:
                time.sleep(0.0005)
            for fd, (name, stream) in enumerate(zip(("stdin", "stdout", "stderr"), streams, strict=True)):
                os.dup2(stream, fd)
                os.close(stream)
                # Opened anew, because an open file has decided what it can do: seek, wait for a full buffer.
                before, mode, buffering = getattr(sys, name), "w" if fd else "r", 1 if name == "stderr" else -1
                file = open(fd, mode, buffering, before.encoding, before.errors, closefd=False)  # noqa: SIM115
                vars(sys).update({name: file, f"__{name}__": file})
            return json.loads(message)
        os.waitpid(between, 0)
        requests.send(receiver.recv(64))
        for there in (sender, receiver):
            there.close()
        for stream in streams:
            os.close(stream)


def _become(request: dict[str, Any]) -> list[str]:
    """Take over what the request says; return the words of the command line after `python`."""
    if request["new_session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    import numpy
    import torch

    # Without it, every process would draw the same numbers where nobody asked for a seed.
    torch.seed()
    numpy.random.seed()
    return request["words"]


def _run(words: list[str]) -> None:
    """Do what `python` does with these words."""
    first, *rest = words
    if first == "-m":
        sys.argv, sys.path[0] = ["-m", *rest[1:]], os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(first))
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        main.__dict__.update(__file__=first)
        with open(first, "rb") as file:
            exec(compile(file.read(), first, "exec"), main.__dict__)


if __name__ == "__main__":
    import importlib

    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _run(_become(_serve(socket.socket(fileno=int(sys.argv[1])))))
