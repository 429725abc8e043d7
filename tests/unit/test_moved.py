"""Module paths that the documentation mentioned before the rooms were regrouped still import, with a notice."""

import importlib
import subprocess
import sys

import pytest

from surefoot._moved import MOVED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_module_path_gives_the_new_module_and_a_notice(old, new):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)


def test_a_name_of_a_module_that_became_a_package_is_still_found():
    with pytest.warns(DeprecationWarning, match=r"surefoot\.train\.rundir\.RunDir is now"):
        from surefoot.train.rundir import RunDir
    from surefoot.train.rundir.rundir import RunDir as New

    assert RunDir is New


def test_a_name_that_went_to_compat_is_still_found_in_its_package():
    with pytest.warns(DeprecationWarning, match=r"surefoot\.decide\.tools\.WeavingShuttle is now"):
        from surefoot.decide.tools import WeavingShuttle
    from surefoot.compat.hololoom import WeavingShuttle as New

    assert WeavingShuttle is New


def test_a_path_that_never_existed_is_an_import_error():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("surefoot.train.no_such_module")
    with pytest.raises(ImportError):
        from surefoot.train.rundir import no_such_name  # noqa: F401


def test_the_package_does_not_use_its_own_old_paths():
    code = "import surefoot.cli.main, surefoot.train.run, surefoot.telemetry.doctor.doctor, surefoot.server.main"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
