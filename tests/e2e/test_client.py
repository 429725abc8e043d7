"""The TypeScript and the Python client against the real service."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from surefoot.client import AsyncSurefoot, Conflict, Invalid, NotFound, Surefoot

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "typescript"
NEAREST = 5


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surefoot]:
    where = tmp_path_factory.mktemp("service")
    serve = [sys.executable, "-m", "surefoot", "serve", "--port", "0", "--exit-with-parent", "--dir", str(where)]
    child = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    with Surefoot(child.stdout.readline().split()[-1]) as client:
        yield client
    child.stdin.close()
    assert child.wait(timeout=30) in (0, -signal.SIGTERM)  # uvicorn ends by the signal it was told with


def test_a_policy_learns_through_the_python_client(service: Surefoot) -> None:
    made = service.create_policy("p", ["a", "b"], embedding_size=8, training={"automatic": False, "least": 16})
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 8)).astype(np.float32)
    first = service.decide("p", embedding=rows[0], distribution=True)
    again = service.decide("p", embedding=rows[0], distribution=True, decision_id=first.decision_id)
    assert again == first
    assert service.reward(first.decision_id, 1.0).status == "stored"
    many = service.decide_many("p", [{"embedding": row} for row in rows])
    for decision in many:
        service.reward(decision.decision_id, parts={"right": 0.9 * decision.action, "polite": 0.1})
    assert service.finished(service.update("p"), every=0.05).result["version"] == 1
    assert [v.version for v in service.versions("p")] == [1, 0]
    assert service.rollback("p").version == 0
    assert service.promote("p", 1, share=0.5).canary == (1, 0.5)
    assert service.evaluate("p", 1).decisions == 41
    assert service.activate_checkpoint(service.checkpoint("p").checkpoint_id).version == 0
    assert len(service.explain(first.decision_id).nearest) == NEAREST
    assert service.policy("p").decisions == 41 + made.decisions
    assert [p.name for p in service.policies()] == ["p"]
    assert service.health() == service.ready()
    assert "surefoot" in service.metrics()
    with pytest.raises(NotFound):
        service.policy("nobody")
    with pytest.raises(Invalid, match="this policy expects 8"):
        service.decide("p", embedding=[1.0])
    deferred = service.decide("p", embedding=rows[0], defer=True)
    with pytest.raises(Conflict):
        service.reward(deferred.decision_id, 1.0)
    assert service.activate(deferred.decision_id).expires_at >= deferred.expires_at


def test_the_python_client_brings_candidates_and_looks_without_deciding(service: Surefoot) -> None:
    service.create_policy("pick", choose="candidates", encoder="hashing", embedding_size=64)
    candidates = [
        {"id": "cup", "description": "send a new cup"},
        {"id": "other", "embedding": np.full(64, 0.1, np.float32)},
    ]
    made = service.decide("pick", text="a new cup", candidates=candidates)
    assert made.name == candidates[made.action]["id"]
    assert service.reward(made.decision_id, 1.0).status == "stored"
    told = service.distribution("pick", text="a new cup", candidates=candidates)
    assert told.names == ["cup", "other"]
    assert told.distribution[0] > 0.5
    assert service.policy("pick").decisions == 1
    assert service.runs() == []

    async def at_once() -> list[str]:
        async with AsyncSurefoot(service.base_url) as client:
            asked = [{"text": f"cup {i}", "candidates": candidates} for i in range(20)]
            made = await asyncio.gather(*(client.decide("pick", **each) for each in asked))
            await asyncio.gather(*(client.reward(each.decision_id, 0.5) for each in made))
            return [each.decision_id for each in made]

    assert len(set(asyncio.run(at_once()))) == 20
    assert service.policy("pick").rewards == 21


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run called cart is."""
    where = tmp_path_factory.mktemp("runs")
    train = [sys.executable, "-m", "surefoot", "train", "CartPole-v1", "--steps", "64", "--name", "cart"]
    subprocess.run([*train, "--runs", str(where)], check=True, capture_output=True)
    return where


def test_a_run_is_served_as_it_is(runs: Path, tmp_path: Path) -> None:
    before = sorted(runs.rglob("*"))
    serve = [sys.executable, "-m", "surefoot", "serve", "cart", "--runs", str(runs), "--port", "0"]
    child = subprocess.Popen(
        [*serve, "--exit-with-parent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with Surefoot(child.stdout.readline().split()[-1]) as client:
        row = np.array([0.1, -0.5, 0.05, 0.3], np.float32)
        assert client.run("cart").action == {"kind": "discrete", "n": 2, "start": 0}
        first = client.act("cart", row).action
        assert first == client.act("cart", row.tolist()).action
        assert [act.action for act in client.act_many("cart", [row, row], mask=[False, True])] == [1, 1]
        with pytest.raises(NotFound):
            client.decide("cart", text="hello")
    child.stdin.close()
    assert child.wait(timeout=30) == 0
    assert (sorted(runs.rglob("*")), list(tmp_path.iterdir())) == (before, [])


def test_the_earlier_systems_command_line_serves(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "compat" / "directive023_prompts.py"), "--server", "0"]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout is not None
    try:
        url = child.stdout.readline().split()[-1]
        assert Surefoot(url).send("GET", "/health") == b'{"status":"ok"}'
    finally:
        child.terminate()
        child.wait(timeout=30)


def test_the_typescript_package_is_built_checked_and_works(runs: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node here; the TypeScript client is tested where there is one")
    assert (PACKAGE / "node_modules").is_dir(), "`make client` installs what the TypeScript client is tested with"
    env = {**os.environ, "SUREFOOT_PYTHON": sys.executable, "TMPDIR": str(tmp_path), "SUREFOOT_RUNS": str(runs)}
    done = subprocess.run([node, "scripts/test.mjs"], cwd=PACKAGE, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
