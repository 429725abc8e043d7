"""The service's page in a real browser, over the real service; and the TypeScript client in the same browser."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from surefoot.client import Surefoot

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
PATIENCE = 90_000  # milliseconds: the machine may be busy with other tests
expect.set_options(timeout=PATIENCE)
ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "typescript"
TOKEN = "t" * 32


def chromium() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("no Chromium: $CHROMIUM or PATH")
    return found


class Served:
    """`surefoot serve --ui` on a free port."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "surefoot", "serve", "--ui", "--dir", str(folder), "--port", "0"]
        self.child = subprocess.Popen(
            [*command, "--exit-with-parent", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().split()[-1]

    def end(self) -> int:
        assert self.child.stdin is not None
        self.child.stdin.close()
        return self.child.wait(timeout=90)


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("d"))
    yield made
    assert made.end() == 0


@pytest.fixture
def page(browser, served: Served) -> Iterator:
    """The page, open; whatever its scripts throw is a failure."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark", reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    made, thrown = context.new_page(), list[str]()
    made.on("pageerror", lambda error: thrown.append(str(error)))
    made.goto(served.url)
    yield made
    context.close()
    assert thrown == []


def test_a_policy_is_made_tried_taught_promoted_and_rolled_back_in_the_page(page, served: Served):
    page.get_by_role("button", name="Create this policy").click()
    expect(page.get_by_role("heading", name="support")).to_be_visible()
    page.locator(".try textarea").fill("the cup arrived broken")
    page.get_by_role("button", name="refund").click()  # forbidden
    page.get_by_label("record it").check()
    page.get_by_role("button", name="Decide").click()
    answer = page.locator(".answer")
    expect(answer).to_contain_text(re.compile("replace|ask a person"))
    expect(answer.locator("li", has_text="refund")).to_contain_text("0 %")
    page.get_by_role("button", name="good 1").click()
    expect(answer).to_contain_text("Reward 1 recorded")
    tile = page.locator(".tile", has=page.get_by_text("Decisions", exact=True))
    expect(tile.locator("dd")).to_have_text("1")
    expect(page.locator(".tile", has=page.get_by_text("Rewards", exact=True)).locator("dd")).to_have_text("1")

    page.get_by_role("button", name="Learn now").click()
    version = page.locator(".tile", has_text="Version").locator("dd")
    expect(version).to_have_text("1")
    with Surefoot(served.url) as client:
        for decision in client.decide_many("support", [{"text": f"visit {i}"} for i in range(70)]):
            client.reward(decision.decision_id, float(decision.name == "replace"))
    expect(tile.locator("dd")).to_have_text("71")  # it looks by itself
    page.get_by_role("button", name="Learn now").click()
    expect(version).to_have_text("2")
    expect(page.locator(".log tbody tr")).to_have_count(20)
    expect(page.locator(".shares")).to_contain_text("replace")
    expect(page.locator(".curve")).to_be_visible()
    page.get_by_role("button", name="try version 0 on a tenth").click()
    expect(page.locator(".tag.canary")).to_have_text("canary 10 %")
    page.get_by_role("button", name="promote version 0").click()
    expect(version).to_have_text("0")
    page.get_by_role("button", name="promote version 2").click()
    expect(version).to_have_text("2")
    page.get_by_role("button", name="Roll back").click()
    expect(version).to_have_text("0")
    with Surefoot(served.url) as client:
        assert client.policy("support").version == 0


def test_candidates_are_brought_in_the_page_and_both_looks_can_be_read(page, served: Served):
    with Surefoot(served.url) as client:
        client.create_policy("offers", choose="candidates", encoder="hashing", embedding_size=64)
    page.get_by_role("button", name=re.compile("offers")).click()
    page.get_by_label("description of candidate 1").fill("my cup arrived broken")
    page.get_by_role("button", name="Decide").click()
    expect(page.locator(".bars li").first).to_contain_text("refund")  # its description is the question
    for wanted in ("dark", "light"):
        assert page.evaluate("document.documentElement.dataset.theme") == wanted
        ratio = page.evaluate(CONTRAST)
        assert ratio >= 4.5, f"{wanted}: {ratio}"
        page.get_by_role("button", name="light" if wanted == "dark" else "dark", exact=True).click()


CONTRAST = """() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => { const c = getComputedStyle(node).backgroundColor; return c.startsWith("rgba(0, 0, 0, 0") ? behind(node.parentElement) : c; };
  return Math.min(...[...document.querySelectorAll("h2, p, small, th, dt, dd, label, .bars li")].map((node) => {
    const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  }));
}"""


def test_a_service_with_tokens_asks_for_one_in_the_page(browser, tmp_path: Path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    served = Served(tmp_path / "d", "--token-file", str(tokens))
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        page.goto(served.url)
        page.get_by_label("token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="No policies yet")).to_be_visible()
    finally:
        page.close()
        assert served.end() == 0


def test_the_typescript_client_works_in_a_browser(browser, served: Served, tmp_path: Path):
    """From a page of another site, which the service was told of."""
    if not (CLIENT / "dist" / "esm" / "index.js").is_file():
        node = shutil.which("node")
        if node is None:
            pytest.skip("no Node here to build the client with")
        subprocess.run([node, "scripts/build.mjs"], cwd=CLIENT, check=True, capture_output=True)
    handler = functools.partial(Quiet, directory=str(CLIENT / "dist" / "esm"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        threading.Thread(target=files.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        ask_from(browser, f"http://127.0.0.1:{files.server_port}", served, tmp_path)
        files.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Gives the client's files."""

    def log_message(self, *_: object) -> None:
        pass


def ask_from(browser, site: str, served: Served, tmp_path: Path) -> None:
    other = Served(tmp_path / "d", "--allow-origin", site)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        page.goto(f"{site}/package.json")
        told = page.evaluate(STORY, other.url)
        assert told == {"named": True, "same": True, "status": "stored", "missing": "NotFound"}
        refused = page.evaluate("url => fetch(`${url}/v1/policies`).then(() => 'read', () => 'refused')", served.url)
        assert refused == "refused"  # the first service was told of no site
    finally:
        page.close()
        assert other.end() == 0


STORY = """async (url) => {
  const { Surefoot, NotFound } = await import("/index.js");
  const surefoot = new Surefoot({ baseURL: url });
  await surefoot.createPolicy({ name: "p", actions: ["a", "b"], embedding_size: 4 });
  const embedding = Float32Array.from([1, 0, 0.5, -1]);
  const first = await surefoot.decide("p", { embedding });
  const again = await surefoot.decide("p", { embedding, decision_id: first.decision_id });
  const { status } = await surefoot.reward(first.decision_id, 1);
  const missing = await surefoot.policy("none").catch((why) => (why instanceof NotFound ? "NotFound" : String(why)));
  return { named: ["a", "b"][first.action] === first.name, same: again.action === first.action, status, missing };
}"""


def test_the_page_is_made_from_todays_sources():
    told = subprocess.run(
        [sys.executable, "scripts/serve_page.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout
