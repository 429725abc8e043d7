"""What the README and the docs show is run: a page's blocks in order, in one namespace, in an empty directory.

A ```python block is executed; one with title="name.py" is also saved under that name. In a ```bash block every line that
begins with `surefoot` must end with exit code 0, as must one that begins with `cc`, the C compiler; other lines are not
run. A ```c block with a title is saved for it. A comment before a block changes what the
test runs of it, so that the page can show the number a reader would use:

    <!-- test: --steps 100_000 -> --steps 1000 -->

The README has no such comments: its replacements are in docs_shortened.toml.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.native import include_dir, kernel

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?P<notes>(?:^<!-- test: [^\n]* -->\n)*)^```(?P<kind>python|bash|c)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!-- test: (.+?) -> (.*?) -->")
SHORTENED: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("docs_shortened.toml").read_text())


@dataclass(frozen=True)
class Block:
    kind: str
    title: str | None
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    """The blocks that are run, as they are run."""
    for found in BLOCK.finditer(page):
        text = found["text"]
        for old, new in NOTE.findall(found["notes"]):
            assert old in text, f"a test note replaces {old!r}, which is not in the block below it"
            text = text.replace(old, new)
        yield Block(found["kind"], found["title"], text, page[: found.start("text")].count("\n") + 1)


def commands(text: str) -> Iterator[list[str]]:
    """The `surefoot` and `cc` lines of a bash block as words; comments go, a backslash joins lines."""
    for line in text.replace("\\\n", " ").replace("$(surefoot include)", str(include_dir())).splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] in ("surefoot", "cc"):
            yield words


def shortened(page: str, name: str) -> str:
    """The page with the replacements of docs_shortened.toml made in its code blocks."""
    for old, new in SHORTENED.get(name, {}).items():
        assert any(old in block["text"] for block in BLOCK.finditer(page)), f"{name} shows no {old!r} to shorten"
        page = BLOCK.sub(lambda block, old=old, new=new: block[0].replace(old, new), page)
    return page


def run_page(page: str, name: str) -> None:
    namespace = {"__name__": "page"}
    for block in blocks(shortened(page, name)):
        if block.kind == "bash":
            for words in commands(block.text):
                code = main(words[1:]) if words[0] == "surefoot" else compile_c(words)
                assert code == 0, f"{name}:{block.line}: {shlex.join(words)}"
            continue
        if block.title is not None:
            Path(block.title).write_text(block.text)
        if block.kind == "c":
            continue
        # The empty lines put the page's own line numbers into tracebacks.
        exec(compile("\n" * block.line + block.text, name, "exec"), namespace)


def compile_c(words: list[str]) -> int:
    if shutil.which("cc") is None or kernel is None:
        pytest.skip("no C compiler, or no kernel to run what it makes")
    return subprocess.run(words, check=False).returncode


RUN = [page for page in PAGES if any(True for _ in blocks(page.read_text()))]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    run_page(page.read_text(), str(page.relative_to(ROOT)))
    # Modules that a page wrote itself must not be there for the next one.
    for name in set(sys.modules) - before:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]


def test_a_block_that_fails_fails_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError):
        run_page("Some text.\n\n```python\nx = 1\n```\n\n```python\nx / 0\n```\n", "made up")
    with pytest.raises(AssertionError, match="train NoSuchEnv-v0"):
        run_page("```bash\nmake demo\nsurefoot train NoSuchEnv-v0  # no such thing\n```\n", "made up")


def test_notes_change_what_is_run_and_must_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("<!-- test: 100_000 -> 5 -->\n```python\nn = 100_000\n```\n")
    assert block.text == "n = 5\n"
    with pytest.raises(AssertionError, match="not in the block"):
        list(blocks("<!-- test: 7 -> 5 -->\n```python\nn = 100_000\n```\n"))


def test_no_code_block_of_a_page_is_left_out_by_its_spelling():
    kinds = {kind for page in PAGES for kind in re.findall(r"^```(\S+)", page.read_text(), re.MULTILINE)}
    assert kinds <= {"python", "bash", "c", "text", "yaml", "json", "typescript"}  # typescript: see test_client.py
    assert not [page for page in PAGES if re.search(r"^[ \t]+```", page.read_text(), re.MULTILINE)]


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert os.path.exists(page.parent / target), f"{page.relative_to(ROOT)} links to {target}"
