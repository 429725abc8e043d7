"""One stream of decisions through the library and through `surefoot serve`: success of both, and the memory of the service.

    python benchmarks/serve_learning.py --data DIR [--encoder minilm]   ten topics of the data below DIR, 4,000 decisions
    python benchmarks/serve_learning.py --data DIR --memory             100,000 decisions with learning on, in batches

The service gets the same vectors over HTTP, those of MiniLM as embeddings of an unknown encoder: with the descriptions' vectors
of ten named actions, with the same as candidates, and without any description. Exit code 1 if a served policy with descriptions
is more than half a point behind.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from surefoot.client import Surefoot
from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.encoders.encoder import make_encoder
from workloads.tool_streams import Task, load

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "serve_learning.json"
ALLOWED = 0.005


def library(task: Task, order: np.ndarray, encoder: Any) -> list[bool]:
    """Decide, report and learn with `surefoot.decide`."""
    agent = Agent(encoder, config=AgentConfig(abstain_below=0.0))
    for k, vector in enumerate(task.tools):
        agent.options.add_vector(f"t{k}", vector)
    right = list[bool]()
    for i in order:
        record = agent.decide("", vector=task.x[i])
        right.append(record.name == f"t{task.right[i]}")
        agent.outcome(record.id, float(right[-1]))
        agent.learn()
    return right


def served(client: Surefoot, task: Task, order: np.ndarray, how: str, seed: int, encoder: str) -> list[bool]:
    """The same over HTTP."""
    policy = f"{how}-{seed}"
    names = [f"t{k}" for k in range(len(task.tools))]
    settings: dict[str, Any] = {"embedding_size": task.x.shape[1], "abstain_below": 0.0}
    if encoder == "hashing":
        settings["encoder"] = encoder  # the service's own
    if how == "actions":
        settings["description_embeddings"] = {name: row.tolist() for name, row in zip(names, task.tools, strict=True)}
    if how == "candidates":
        client.create_policy(policy, choose="candidates", **settings)
    else:
        client.create_policy(policy, names, **settings)
    candidates = [{"id": name, "embedding": row} for name, row in zip(names, task.tools, strict=True)]
    more = {"candidates": candidates} if how == "candidates" else {}
    right = list[bool]()
    for i in order:
        made = client.decide(policy, embedding=task.x[i], **more)
        right.append(made.name == f"t{task.right[i]}")
        client.reward(made.decision_id, float(right[-1]))
    return right


def streams(client: Surefoot, task: Task, count: int, encoder: Any, seed: int) -> dict[str, list[bool]]:
    """Return for each way which decisions of one order of the queries were right."""
    order = np.random.default_rng(seed).permutation(len(task.x))[:count]
    nearest = (task.x[order] @ task.tools.T).argmax(axis=1) == task.right[order]
    ways = {
        how: served(client, task, order, how, seed, encoder.name.split("-")[0])
        for how in ("actions", "candidates", "undescribed")
    }
    return {"nearest": nearest.tolist(), "library": library(task, order, encoder), **ways}


def memory(client: Surefoot, pid: int, task: Task, count: int) -> dict[str, Any]:
    """Resident memory of the service before and after so many decisions with rewards."""

    def resident() -> float:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    client.create_policy("many", [f"t{k}" for k in range(len(task.tools))], embedding_size=task.x.shape[1])
    sizes, rng = {0: resident()}, np.random.default_rng(0)
    for done in range(0, count, 500):
        rows = rng.integers(0, len(task.x), 500)
        made = client.decide_many("many", [{"embedding": task.x[i]} for i in rows])
        for each, i in zip(made, rows, strict=True):
            if not each.abstained:
                client.reward(each.decision_id, float(each.name == f"t{task.right[i]}"))
        if (done + 500) % 10_000 == 0:
            sizes[done + 500] = resident()
            print(f"{done + 500:,} decisions: {sizes[done + 500]:.0f} MiB", flush=True)
    return {"mebibytes": sizes, "outcomes": client.policy("many").outcomes, "numbers": task.x.shape[1]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="hashing")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=3, help="orders of the queries")
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    encoder = make_encoder(args.encoder)
    task = load(args.data, encoder)[0]
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "surefoot", "serve", "--port", "0", "--durability", "process"]
        server = subprocess.Popen([*command, "--data-dir", folder], stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        client = Surefoot(server.stdout.readline().split()[-1], timeout=60.0)
        try:
            if args.memory:
                results["memory"] = memory(client, server.pid, task, 100_000)
            else:
                scores = [streams(client, task, args.count, encoder, seed) for seed in range(args.seeds)]
                means = {name: float(np.mean([each[name] for each in scores])) for name in scores[0]}
                last = {name: float(np.mean([each[name][-500:] for each in scores])) for name in scores[0]}
                success = {"decisions": args.count, "seeds": args.seeds, "mean": means, "last_500": last}
                results.setdefault("success", {})[args.encoder] = success
                print(json.dumps(success, indent=1))
        finally:
            server.terminate()
            server.wait(timeout=30)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if args.memory:
        return 0
    means = results["success"][args.encoder]["mean"]
    return int(any(means[how] < means["library"] - ALLOWED for how in ("actions", "candidates")))


if __name__ == "__main__":
    raise SystemExit(main())
