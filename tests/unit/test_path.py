"""The files that `make distance` counts are those that an update of `surefoot train CartPole-v1` really passes."""

import importlib.util
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import surefoot
from surefoot.data.spaces import Discrete
from surefoot.train.spec import make_spec
from surefoot.train.training import Training

ROOT = Path(__file__).parents[2]
SOURCE = Path(surefoot.__file__).parent
WORLD = "envs/builtin/"
DATACLASSES = {"envs/api.py", "nets/policy.py", "learn/report.py"}
"""Only dataclasses and protocols: Python shows no file for the methods that it writes itself."""


def distance() -> Any:
    spec = importlib.util.spec_from_file_location("distance", ROOT / "scripts" / "distance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SECTIONS = distance().read_path()


def passed_files(path: str) -> set[str]:
    """The files of the package whose functions run during two updates with the default settings."""
    training = Training(make_spec("CartPole-v1", Discrete(2), settings={"path": path, "device": "cpu"}))
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            files.add(Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for _ in range(2):
            training.update()
    finally:
        sys.setprofile(before)
        training.close()
    return {name for name in files if not name.startswith(WORLD)}


@pytest.mark.parametrize(("section", "path"), [("torch", "torch"), ("kernel", "auto")])
def test_every_file_that_an_update_passes_is_listed(section: str, path: str):
    listed = {name for name in SECTIONS[section] if name.endswith(".py")}
    passed = passed_files(path)
    assert passed - listed - set(SECTIONS["observers"]) == set()
    assert listed - passed - DATACLASSES == set()


def test_every_listed_file_of_the_kernel_is_included_or_bound_by_another():
    files = [name for name in SECTIONS["kernel"] if not name.endswith(".py")]
    sources = {Path(name).name: (ROOT / "src/surefoot" / name).read_text() for name in files}
    included = {Path(name).name for text in sources.values() for name in re.findall(r'#include "([^"]+)"', text)}
    roots = {name for name in sources if name.endswith(".c")}
    assert set(sources) - roots <= included


def test_what_only_observes_is_imported_by_a_file_of_the_path():
    files = [name for name in {*SECTIONS["torch"], *SECTIONS["observers"]} if name.endswith(".py")]
    texts = "\n".join((ROOT / "src/surefoot" / name).read_text() for name in files)
    for name in {name for name in SECTIONS["observers"] if name.endswith(".py")} - set(SECTIONS["torch"]):
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert f"from surefoot.{module} import" in texts or f"from surefoot import {module}\n" in texts


@pytest.mark.parametrize(("section", "most"), [("torch", 2200), ("kernel", 3500)])
def test_the_path_is_not_longer_than_its_bar(section: str, most: int):
    assert sum(map(distance().count_lines, SECTIONS[section])) <= most
