"""Whether the kernel is there, and what is said if it is not."""

from __future__ import annotations

import os
import subprocess
import sys

from surefoot import native


def test_either_there_is_a_kernel_or_a_reason():
    assert (native.kernel is None) == bool(native.why_not)


def test_it_can_be_turned_off():
    code = "from surefoot import native; print(native.kernel, native.why_not)"
    environment = os.environ | {"SUREFOOT_NATIVE": "0"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "None the kernel is not there (SUREFOOT_NATIVE=0 turns it off)"


def test_the_header_for_worlds_in_c_is_there_with_and_without_it():
    assert (native.include_dir() / "surefoot_env.h").is_file()
