"""What a type checker reports about a user's script."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from surefoot import PPO, PPOConfig

model = PPO("MlpPolicy", "CartPole-v1")
for report in model.training:
    print(report.approx_kl)
config = PPOConfig(rollout_steps=64)
print(model.no_such_thing)
"""

# Beside the interpreter first: the tests may run in an environment that is not activated.
PYRIGHT = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")


pytestmark = pytest.mark.skipif(PYRIGHT is None, reason="pyright is not installed")


def test_pyright_accepts_the_loop_and_flags_an_unknown_attribute(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [(each["range"]["start"]["line"], each["rule"]) for each in found] == [(7, "reportAttributeAccessIssue")]
