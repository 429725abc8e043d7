"""The reference pages say what the code says."""

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import surefoot
from surefoot import errors

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_pages_are_current():
    stale = [path.name for path, text in script().pages().items() if path.read_text() != text]
    assert stale == [], "`python scripts/make_reference.py` writes them anew"


def test_every_flag_of_train_help_is_on_the_page_of_the_command_line(capsys):
    from surefoot.cli.main import main

    assert main(["train", "--help"]) == 0
    told = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    page = (PAGES / "cli.md").read_text()
    assert "--eval-every" in told
    assert told - set(re.findall(r"--[a-z][a-z-]+", page)) <= {"--help"}


def test_every_error_is_on_its_page():
    page = (PAGES / "errors.md").read_text()
    names = [name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_public_name_is_on_its_page():
    page = (PAGES / "public-names.md").read_text()
    assert [name for name in surefoot.__all__ if f"`{name}" not in page] == []
