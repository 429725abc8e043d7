"""Whether the kernel is there, and what is said if it is not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

from surefoot import native


def test_either_there_is_a_kernel_or_a_reason():
    assert (native.kernel is None) == bool(native.why_not)


def test_it_can_be_turned_off():
    code = "from surefoot import native; print(native.kernel, native.why_not)"
    environment = os.environ | {"SUREFOOT_NATIVE": "0"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "None the kernel could not be loaded (SUREFOOT_NATIVE=0 turns it off)"


def test_a_package_without_the_compiled_module_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("SUREFOOT_NATIVE", "1")
    monkeypatch.setitem(sys.modules, "surefoot.native._kernel", None)  # what the import system does for a missing one
    again = importlib.util.module_from_spec(native.__spec__)
    native.__spec__.loader.exec_module(again)
    assert again.kernel is None
    assert again.unusable() == "the kernel was not built; install surefoot again on a machine with GCC or Clang"


def test_an_instruction_set_that_the_machine_does_not_have_is_named(monkeypatch):
    monkeypatch.setattr(native, "kernel", SimpleNamespace(instruction_sets=lambda: ["avx2", "base"]))
    monkeypatch.setenv("SUREFOOT_KERNEL", "avx512")
    assert native.unusable() == "SUREFOOT_KERNEL is 'avx512' but this machine has avx2, base"
    monkeypatch.setenv("SUREFOOT_KERNEL", "base")
    assert (native.unusable(), native.instruction_set()) == (None, "base")


def test_the_header_for_worlds_in_c_is_there_with_and_without_it():
    assert (native.include_dir() / "surefoot_env.h").is_file()
