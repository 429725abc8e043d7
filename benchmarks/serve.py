"""Decisions per CPU-second of the server, beside FastAPI with torch, and how long answers take while it learns.

    python benchmarks/serve.py --peer PYTHON      an interpreter with fastapi, uvicorn and torch

The server has one core and the load comes from the other; connections are kept alive; sides take turns. Ours writes every
decision to the disk before it answers (`process`: survives kill -9, not a power cut); the other keeps nothing.
CPU-seconds are the server process's own, user and system. Exit code 1 if a number misses its bar.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZE = 1536
ACTIONS = ["try-catch-style", "context-reduction", "expansion", "constraint-addition", "task-decomposition"]
BARS = {"json": 3.5, "base64": 6.0, "base64, process": 8.0, "p95 while learning": 2.0}
TICK = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0))


class Server:
    """A child on one core, ready once it answers."""

    def __init__(self, command: list[str], port: int, path: str) -> None:
        self.port = port
        self.child = subprocess.Popen(
            command,
            preexec_fn=lambda: os.sched_setaffinity(0, {CORES[0]}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f"{command[0]} did not answer")

    def cpu(self) -> float:
        """Seconds it used so far, its children not counted."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def close(self) -> None:
        self.child.terminate()
        self.child.wait(timeout=60)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def ours(folder: Path, durability: str) -> Server:
    port = free_port()
    command = [sys.executable, "-m", "surefoot", "serve", "--dir", str(folder / durability), "--port", str(port)]
    server = Server([*command, "--durability", durability, "--log-level", "error"], port, "/healthz")
    for name in ("p", "frozen"):
        post(port, "/v1/policies", {"name": name, "actions": ACTIONS, "embedding_size": SIZE})
    post(port, "/v1/policies/frozen", {"frozen": True}, method="PATCH")
    return server


def post(port: int, path: str, body: Any, method: str = "POST") -> Any:
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), head, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def requests(path: str, coded: str, count: int = 64) -> list[bytes]:
    """Different embeddings, as they go over the wire."""
    rng = random.Random(0)
    made: list[bytes] = []
    for _ in range(count):
        row = [rng.gauss(0.0, 1.0) for _ in range(SIZE)]
        if coded == "json":
            body = json.dumps({"embedding": row}).encode()
        else:
            body = json.dumps({"embedding_b64": base64.b64encode(struct.pack(f"<{SIZE}f", *row)).decode()}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        made.append(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return made


async def load(port: int, sent: list[bytes], clients: int, until: Callable[[], bool]) -> list[float]:
    """Seconds of each answer; every client asks again as soon as it is answered."""
    taken: list[float] = []

    async def one(place: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not until():
            begin = time.perf_counter()
            writer.write(sent[place % len(sent)])
            head = await reader.readuntil(b"\r\n\r\n")
            match = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            assert match is not None
            await reader.readexactly(int(match[1]))
            assert head.startswith(b"HTTP/1.1 200"), head
            taken.append(time.perf_counter() - begin)
            place += 7
        writer.close()

    await asyncio.gather(*(one(k) for k in range(clients)))
    return taken


def rate(server: Server, sent: list[bytes], clients: int, seconds: float) -> dict[str, float]:
    """Requests per CPU-second of the server."""
    warm = time.monotonic() + seconds / 4
    asyncio.run(load(server.port, sent, clients, lambda: time.monotonic() > warm))
    begin, wall = server.cpu(), time.monotonic()
    end = wall + seconds
    taken = asyncio.run(load(server.port, sent, clients, lambda end=end: time.monotonic() > end))
    used = server.cpu() - begin
    return {
        "requests_per_cpu_second": len(taken) / used,
        "requests_per_second": len(taken) / (time.monotonic() - wall),
        "p50_ms": 1e3 * statistics.median(taken),
        "p95_ms": 1e3 * sorted(taken)[int(0.95 * len(taken))],
    }


def while_learning(server: Server, clients: int, seconds: float) -> dict[str, float]:
    """Answer times while rewards arrive: of a frozen policy, which does not learn, and of one that learns from each."""
    taken: dict[str, list[float]] = {}
    for name in ("frozen", "p"):
        path, end = f"/v1/policies/{name}/decisions", time.monotonic() + seconds
        rewards = threading.Thread(target=report, args=(server.port, path, end))
        rewards.start()
        taken[name] = asyncio.run(
            load(server.port, requests(path, "base64"), clients, lambda end=end: time.monotonic() > end)
        )
        rewards.join()

    def at(name: str, share: float) -> float:
        return 1e3 * sorted(taken[name])[int(share * len(taken[name]))]

    return {
        "p95_ms_calm": at("frozen", 0.95),
        "p95_ms_learning": at("p", 0.95),
        "p99_ms_calm": at("frozen", 0.99),
        "p99_ms_learning": at("p", 0.99),
        "answers_while_learning": len(taken["p"]),
    }


def report(port: int, path: str, end: float) -> None:
    """Decide and report rewards until `end`, one after the other."""
    rng = random.Random(1)
    while time.monotonic() < end:
        rows = [{"embedding": [rng.gauss(0, 1) for _ in range(SIZE)]} for _ in range(20)]
        for each in post(port, f"{path}/batch", {"decisions": rows})["decisions"]:
            # Nothing is reported after "none of these".
            if not each["abstained"]:
                post(port, f"/v1/decisions/{each['decision_id']}/reward", {"value": rng.random()})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable, help="an interpreter with fastapi, uvicorn and torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--out", type=Path, default=HERE / "results/serve.json")
    args = parser.parse_args()
    os.sched_setaffinity(0, {CORES[-1]})
    decide = "/v1/policies/p/decisions"
    rows: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        peer = Server(
            [args.peer, str(HERE / "workloads/fastapi_torch.py"), str(port), str(SIZE)], port, "/openapi.json"
        )
        disk, process = ours(Path(folder), "disk"), ours(Path(folder), "process")
        sides = {
            "fastapi + torch": (peer, requests("/select_action", "json")),
            "json": (disk, requests(decide, "json")),
            "base64": (disk, requests(decide, "base64")),
            "base64, process": (process, requests(decide, "base64")),
        }
        try:
            for number in range(args.rounds):
                for name, (server, sent) in sides.items():
                    rows.setdefault(name, []).append(rate(server, sent, args.clients, args.seconds))
                    told = rows[name][-1]
                    print(
                        f"round {number + 1} of {args.rounds}: {name}: {told['requests_per_cpu_second']:,.0f} /CPU-s",
                        flush=True,
                    )
            learning = [while_learning(disk, 8, args.seconds) for _ in range(args.rounds)]
        finally:
            for server in (peer, disk, process):
                server.close()
    base = [r["requests_per_cpu_second"] for r in rows["fastapi + torch"]]
    ratios = {
        name: statistics.median(r["requests_per_cpu_second"] / b for r, b in zip(rows[name], base, strict=True))
        for name in ("json", "base64", "base64, process")
    }
    slower = statistics.median(r["p95_ms_learning"] / r["p95_ms_calm"] for r in learning)
    print()
    missed = 0
    for name, ratio in ratios.items():
        met = ratio >= BARS[name]
        missed += not met
        print(f"{name:<20} {ratio:5.2f} × FastAPI + torch    bar {BARS[name]:g}: {'met' if met else 'NOT met'}")
    met = slower <= BARS["p95 while learning"]
    missed += not met
    print(f"p95 while learning   {slower:5.2f} × without         bar 2: {'met' if met else 'NOT met'}")
    command = "make bench-serve"
    args.out.write_text(
        json.dumps(
            {
                "command": command,
                "bars": BARS,
                "rounds": rows,
                "learning": learning,
                "ratios": ratios,
                "slower": slower,
            },
            indent=1,
        )
        + "\n"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
