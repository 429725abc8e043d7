"""What `fork_server.py` starts is, to a test, what `subprocess.Popen` starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import fork_server
import pytest

pytestmark = pytest.mark.skipif(not fork_server.available(), reason="forks on Linux only, and not with SUREFOOT_FORK=0")
PROGRAM = """\
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ.get("SUREFOOT_RUNS"), os.getppid(), __name__)
print("torch" in sys.modules, file=sys.stderr)
print(sys.stdin.read())
sys.exit(3)
"""


def both(command: list[str], **options) -> list[subprocess.CompletedProcess[str]]:
    """The command forked and started for real."""
    done = []
    for popen in (fork_server.ForkedPopen, fork_server.RealPopen):
        with popen(command, stdin=-1, stdout=-1, stderr=-1, text=True, **options) as process:
            out, err = process.communicate("typed")
            done.append(subprocess.CompletedProcess(command, process.returncode, out, err))
    return done


def test_arguments_directory_environment_streams_parent_and_exit_code_are_as_given(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "SUREFOOT_RUNS": "there"}
    for first in (["-c", PROGRAM], [str(tmp_path / "program.py")]):
        forked, real = both([sys.executable, *first, "a b", "--c"], env=env, cwd=tmp_path)
        assert forked.stdout == real.stdout == f"['a b', '--c'] {tmp_path} there {os.getpid()} __main__\ntyped\n"
        assert forked.returncode == real.returncode == 3
        assert (forked.stderr, real.stderr) == ("True\n", "False\n")


def test_a_command_says_the_same_and_ends_the_same():
    for words in (["--version"], ["train", "NoSuchEnv-v0"]):
        forked, real = both([sys.executable, "-m", "surefoot", *words])
        assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


def test_an_exception_and_a_signal_end_it_as_they_end_python():
    forked, real = both([sys.executable, "-c", "1 / 0"])
    assert forked.returncode == real.returncode == 1
    assert forked.stderr.splitlines()[-1] == real.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    # A shell starts what runs in its background with SIGINT ignored, and every child inherits that.
    ignored = {signal.SIGINT} if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else set()
    for number in {signal.SIGINT, signal.SIGTERM, signal.SIGKILL} - ignored:
        command = [sys.executable, "-c", "print('here', flush=True); import time; time.sleep(60)"]
        with fork_server.ForkedPopen(command, stdout=-1, stderr=subprocess.DEVNULL) as process:
            process.stdout.readline()
            process.send_signal(number)
            assert process.wait() == -number


@pytest.mark.parametrize("command", [["-OO", "-c", "0"], ["-X", "importtime", "-c", "0"], ["-m", "pip"], []])
def test_options_of_the_interpreter_and_other_modules_are_real(command: list[str]):
    assert not fork_server.ForkedPopen._forkable([sys.executable, *command], None)
    assert fork_server.ForkedPopen._forkable([sys.executable, "-c", "0"], None)


def test_a_variable_that_counts_at_import_is_real():
    command = [sys.executable, "-m", "surefoot", "--version"]
    for variable in ({"SUREFOOT_NATIVE": "0"}, {"OMP_NUM_THREADS": "2"}, {"PYTHONOPTIMIZE": "1"}):
        assert not fork_server.ForkedPopen._forkable(command, {**os.environ, **variable})
    assert fork_server.ForkedPopen._forkable(command, {**os.environ, "SUREFOOT_RUNS": "there"})
    assert not fork_server.ForkedPopen._forkable(command, {})  # OMP_NUM_THREADS is missing
