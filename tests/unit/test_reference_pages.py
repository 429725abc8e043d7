"""The reference pages say what the code says."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import surefoot
from surefoot import errors

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"


def test_the_generated_pages_are_current():
    # In a process of its own: `surefoot.compat.dnne` adds aliases to the node types once another test has imported it.
    command = [sys.executable, "scripts/make_reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), "`python scripts/make_reference.py` writes them anew"


def test_every_flag_of_train_help_is_on_the_page_of_the_command_line(capsys):
    from surefoot.cli.main import main

    assert main(["train", "--help"]) == 0
    told = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    page = (PAGES / "cli.md").read_text()
    assert "--rollout-workers" in told
    assert told - set(re.findall(r"--[a-z][a-z-]+", page)) <= {"--help"}


def test_every_error_is_on_its_page():
    page = (PAGES / "errors.md").read_text()
    names = [name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_public_name_is_on_its_page():
    page = (PAGES / "public-names.md").read_text()
    assert [name for name in surefoot.__all__ if f"`{name}" not in page] == []
