"""The console script: one line per error, the right exit code, no traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from surefoot import native
from surefoot.cli.catalogue import GROUPS, VERBS
from surefoot.cli.main import REFUSED, USAGE, main


@pytest.fixture(autouse=True)
def _runs(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)


def said(capsys, *argv):
    code = main(list(argv))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_help_of_every_verb_names_its_common_options(capsys):
    for verb in ("runs", "store backup"):
        code, out, _ = said(capsys, *verb.split(), "--help")
        assert code == 0
        assert "--runs DIR" in out
        assert ("--json prints" in out) == (verb == "runs")


def test_json_is_refused_by_a_verb_without_a_result(capsys):
    code, _, err = said(capsys, "include", "--json")
    assert code == 64
    assert "no JSON output" in err


def test_runs_is_accepted_by_every_verb_and_restored_afterwards(capsys, tmp_path, monkeypatch):
    for words in (["--runs", "elsewhere"], ["--runs=elsewhere"]):
        code, out, _ = said(capsys, "runs", *words)
        assert code == 0
        assert "no runs under elsewhere" in out
        assert os.environ["SUREFOOT_RUNS"] == str(tmp_path / "runs")
    monkeypatch.delenv("SUREFOOT_RUNS")
    said(capsys, "runs", "--runs", "elsewhere")
    assert "SUREFOOT_RUNS" not in os.environ


def test_every_group_and_every_first_word_is_listed(capsys):
    for group in GROUPS.values():
        words = [verb.split()[0] for verb in group.verbs]
        for word in (word for word in words if word not in VERBS):
            code, out, _ = said(capsys, word)
            assert code == 0
            assert all(verb in out for verb in group.verbs if verb.startswith(f"{word} "))
    for word, group in GROUPS.items():
        code, out, _ = said(capsys, "help", word)
        assert code == 0
        assert all(f"surefoot {verb} " in out for verb in group.verbs)


def test_help_of_a_verb_is_its_own(capsys):
    assert said(capsys, "help", "graph", "run")[1].startswith("usage: surefoot graph run")


def test_without_arguments_the_help_is_shown_and_the_command_line_is_wrong(capsys):
    code, out, _ = said(capsys)
    assert code == 64
    assert "first steps" in out


def test_the_version_is_said(capsys):
    code, out, _ = said(capsys, "--version")
    assert code == 0
    assert out.startswith("surefoot ")


def test_the_version_says_which_instruction_set_the_kernel_uses(capsys, monkeypatch):
    monkeypatch.setattr(native, "kernel", SimpleNamespace(instruction_sets=lambda: ["avx512", "avx2", "base"]))
    monkeypatch.delenv("SUREFOOT_KERNEL", raising=False)
    assert said(capsys, "--version")[1].endswith("native path: the C kernel is available (avx512)\n")
    monkeypatch.setenv("SUREFOOT_KERNEL", "base")
    assert said(capsys, "--version")[1].endswith("native path: the C kernel is available (base)\n")
    monkeypatch.setenv("SUREFOOT_KERNEL", "sse9")
    assert (
        "torch path: SUREFOOT_KERNEL is 'sse9' but this machine has avx512, avx2, base" in said(capsys, "--version")[1]
    )


def test_the_version_says_why_there_is_no_kernel(capsys, monkeypatch):
    monkeypatch.setattr(native, "kernel", None)
    monkeypatch.setattr(native, "why_not", "the kernel was eaten")
    assert said(capsys, "--version")[1].endswith("torch path: the kernel was eaten\n")


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["tarin"], 64, "did you mean `surefoot train`"),
        (["validate"], 64, "did you mean `surefoot telemetry validate`"),
        (["lm", "cht"], 64, "did you mean `surefoot lm chat`"),
        (["lm", "zzz"], 64, "`surefoot lm --help` lists the verbs"),
        (["train", "CartPole-v1", "--stepz", "5"], 64, "--steps"),
        (["train", "CartPole-v1", "--set", "lr"], 64, "is not KEY=VALUE"),
        (["train", "CartPole-v1", "--set", "lr=1", "--set", "lr=2"], 64, "given twice"),
        (["train", "CartPole-v1", "--seeds", "0"], 64, "at least 1"),
        (["train", "CartPole-v1", "--steps", "0"], 2, "total_steps is 0"),
        (["train", "CartPole-v1", "--threads", "0"], 2, "threads is 0"),
        (["train", "CartPol-v1"], 2, "did you mean"),
        (["train", "CartPole-v1", "--set", "foo=1"], 2, "surefoot knobs"),
        (["train", "no_such_module:make"], 2, "cannot import"),
        (["train", "json:nope"], 2, "'json' has no 'nope'"),
        (["train", "./nothing.so"], 2, "there is no library './nothing.so'" if native.kernel else "run by the kernel"),
        (["train", "nothing.so"], 2, "needs its path: ./nothing.so"),
        (["eval", "nothing"], 2, "no run called 'nothing'"),
        (["resume", "nothing"], 2, "no run called"),
        (["report", "nothing"], 2, "no run called"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else None,
)
def test_what_is_wrong_is_one_sentence_and_an_exit_code(capsys, argv, code, sentence):
    got, _, err = said(capsys, *argv)
    assert got == code
    assert sentence in err
    assert "Traceback" not in err


def test_an_env_that_cannot_be_built_is_told_in_a_sentence(capsys, tmp_path):
    (tmp_path / "broken_env_module.py").write_text("def make():\n    raise RuntimeError('no such robot')\n")
    code, _, err = said(capsys, "train", "broken_env_module:make", "--steps", "10")
    assert code == 2
    assert "no such robot" in err
    assert len(err.strip().splitlines()) == 1


def test_no_runs_is_an_answer(capsys):
    code, out, _ = said(capsys, "runs")
    assert code == 0
    assert "surefoot train CartPole-v1" in out


def test_settings_and_presets_are_listed(capsys):
    assert "clip" in said(capsys, "knobs", "clip")[1]
    assert "mujoco" in said(capsys, "presets")[1]


def test_a_dry_run_prints_what_config_reads_back(capsys, tmp_path):
    code, out, _ = said(capsys, "train", "Pendulum-v1", "--dry-run", "--set", "lr=0.25")
    assert code == 0
    (tmp_path / "again.yaml").write_text(out)
    again = said(capsys, "train", "Pendulum-v1", "--dry-run", "--config", "again.yaml", "--preset", "sb3")[1]
    assert again.splitlines()[1:] == out.splitlines()[1:]


def test_a_renamed_setting_is_one_line_on_stderr(capsys):
    argv = ["train", "CartPole-v1", "--set", "steps=16", "--dry-run"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert err == "surefoot train: the setting steps is now rollout_steps; the old name goes in the next release\n"
    assert "rollout_steps: 16" in out


def test_include_says_where_the_header_for_worlds_in_c_is(capsys):
    code, out, _ = said(capsys, "include")
    assert code == 0
    assert "surefoot_env_main" in (Path(out.strip()) / "surefoot_env.h").read_text()


@pytest.mark.parametrize("command", [["runs"], ["runs", "--help"], ["--help"]])
def test_a_full_disk_behind_the_output_is_one_sentence(command):
    with open("/dev/full", "w") as full:
        argv = [sys.executable, "-m", "surefoot", *command]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (REFUSED, "surefoot: No space left on device\n")


def test_a_path_that_cannot_be_used_is_named(capsys, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "/proc/x")

    monkeypatch.setattr("surefoot.cli.main._run", refuse)
    assert said(capsys, "runs") == (REFUSED, "", "surefoot: /proc/x: Permission denied\n")


def test_an_error_of_the_system_without_a_number_keeps_its_traceback(monkeypatch):
    def refuse(*_):
        raise OSError("a bug")

    monkeypatch.setattr("surefoot.cli.main._run", refuse)
    with pytest.raises(OSError, match="a bug"):
        main(["runs"])


def test_a_closed_pipe_is_silent():
    script = f"{sys.executable} -m surefoot runs | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_options_before_the_verb_are_told_to_come_after_it(capsys):
    assert main(["--steps", "100", "train", "CartPole-v1"]) == USAGE
    assert "options come after the verb: surefoot train --steps" in capsys.readouterr().err
