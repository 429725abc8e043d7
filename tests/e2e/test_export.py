"""An exported policy in a real browser: the block of the how-to page, answering as the policy does."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.nets.policy import PolicyInput

HERE = Path(__file__).parent
RUNTIME = HERE / "browser" / "node_modules" / "onnxruntime-web" / "dist"
BLOCK = re.compile(r"^```typescript\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = """<!doctype html><script type="importmap">{"imports": {"onnxruntime-web/wasm": "/ort.wasm.min.mjs"}}</script>
<script type="module">
const tell = (answer) => fetch("/answer", {method: "POST", body: JSON.stringify(answer)});
try {
  const ort = await import("onnxruntime-web/wasm");
  ort.env.wasm.numThreads = 1;
  const { decide } = await import("/policy.mjs");
  const answers = [];
  for (const row of await (await fetch("/questions.json")).json()) answers.push(await decide(row));
  await tell({ answers });
} catch (error) { await tell({ error: String(error && error.stack || error) }); }
</script>"""


class Site(http.server.SimpleHTTPRequestHandler):
    """Files of one folder; what the page posts is kept."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012
    told: dict[str, object]
    done: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Site.told = json.loads(body)
        self.send_response(204)
        self.end_headers()
        Site.done.set()

    def log_message(self, *args: object) -> None:
        pass


def test_the_page_s_block_decides_in_a_browser_as_the_policy_does(tmp_path: Path) -> None:
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        pytest.skip("no Chromium: $CHROMIUM or PATH")
    if shutil.which("node") is None:
        pytest.skip("no Node here, so no onnxruntime-web")
    assert RUNTIME.is_dir(), "`make client` installs onnxruntime-web, which this test loads"
    model = PPO("MlpPolicy", "CartPole-v1", n_envs=8, n_steps=64, normalize_obs=True)
    model.learn(2_048)
    model.save(tmp_path / "model")
    site = tmp_path / "site"
    assert main(["export", str(tmp_path / "model"), "--to", "onnx", "-o", str(site)]) == 0
    (block,) = BLOCK.findall((HERE.parents[1] / "docs" / "how-to" / "export.md").read_text())
    (site / "policy.mjs").write_text(block)
    (site / "index.html").write_text(PAGE)
    questions = np.random.default_rng(0).uniform(-1, 1, (200, 4)).astype(np.float32)
    (site / "questions.json").write_text(json.dumps(questions.tolist()))
    for name in ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"):
        (site / name).symlink_to(RUNTIME / name)
    answers = asked_in(browser, site, tmp_path / "profile")
    with torch.no_grad():
        seen = PolicyInput(obs={"obs": torch.from_numpy(questions)})
        truth = model.policy.act(seen, generator=torch.Generator(), deterministic=True)
    assert [answer["action"] for answer in answers] == truth.action.tolist()
    np.testing.assert_allclose([answer["probs"] for answer in answers], truth.action_params["probs"], atol=1e-5)
    np.testing.assert_allclose([answer["value"] for answer in answers], truth.value, rtol=1e-5, atol=1e-5)


def asked_in(browser: str, site: Path, profile: Path) -> list[dict[str, object]]:
    """What the page at `site` posts once a browser has opened it."""
    Site.done, Site.told = threading.Event(), {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert Site.done.wait(120), "the page never answered"
    finally:
        child.terminate()
        child.wait(30)
        server.shutdown()
    assert "error" not in Site.told, Site.told["error"]
    answers = Site.told["answers"]
    assert isinstance(answers, list)
    return answers
