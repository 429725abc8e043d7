"""Run Stable-Baselines3's own tests of PPO against `surefoot.sb3`: `make sb3-suite SB3=DIR`.

With CONTRIB=DIR, sb3-contrib's tests of `MaskablePPO` and `RecurrentPPO` run against `surefoot.sb3_contrib` too.
The test files are copied to a temporary folder with the imports changed. A test that needs another algorithm is not
applicable: its id has the name of one, or it raised `OtherAlgorithmError`. `--page` writes the results and the reasons of all
exceptions to a page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

FILES = """
callbacks cnn custom_policy deterministic dict_env distributions env_checker envs gae identity logger monitor predict
preprocessing run save_load sde spaces tensorboard train_eval_mode utils vec_check_nan vec_envs vec_extract_dict_obs
vec_monitor vec_normalize vec_stacked_obs
"""
CONTRIB_FILES = """
cnn deterministic distributions invalid_actions lstm run train_eval_mode action_masker time_feature
"""
"""Test files of sb3-contrib in which one of the two algorithms, masks or wrappers are tested."""
REASONS: dict[str, str] = {
    "*::test_load_invalid_object": "changes a pickle inside of the saved file; ours has JSON and safetensors instead",
    "*::test_report_video_to_tensorboard": "torch's `add_video`, which the logger calls, writes nothing with moviepy 2.2",
    "test_invalid_actions.py::test_identity": "needs a lucky seed: of the seeds 30 to 37, two of ours and one of theirs reach it",
    "*::test_discrete[[]env2-PPO]": "needs a lucky seed: of the seeds 0 to 9, five of ours and two of SB3's reach its threshold",
}
"""Pattern of test ids → why they fail."""

CONFTEST = """
import json, signal
from pathlib import Path
import pytest

OTHERS = ("A2C", "DQN", "SAC", "TD3", "DDPG", "HER", "ARS", "TQC", "TRPO", "CrossQ")
results = {}

def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    def late(number, frame):
        raise TimeoutError("the test took longer than %d seconds" % SECONDS)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    name = item.nodeid.rpartition("/")[2]
    if report.when != "call" and report.passed:
        return
    kind, text = report.outcome, ""
    if call.excinfo:
        text = f"{call.excinfo.typename}: {call.excinfo.value}"[:300]
        if any(type(e).__name__ == "OtherAlgorithmError" for e in _chain(call.excinfo.value)):
            kind = "other"
    if any(other in name.partition("[")[2] for other in OTHERS):
        kind = "other"
    results[name] = [kind, text]

def pytest_sessionfinish(session):
    Path("results.json").write_text(json.dumps(results))
"""


def run(name: str, folder: Path, options: list[str]) -> dict[str, list[str]]:
    """Return {test id: [outcome, error]} of one test file; a file that cannot be collected is one failure."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"test_{name}.py",
        "--tb=short",
        *options,
    ]
    (folder / "results.json").unlink(missing_ok=True)
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
    )
    (folder / f"{name}.log").write_text(done.stdout + done.stderr)
    results = json.loads((folder / "results.json").read_text()) if (folder / "results.json").exists() else {}
    return results or {f"test_{name}.py": ["failed", done.stdout.strip()[-300:]]}


def reason_of(test: str, reasons: dict[str, str]) -> str:
    """Return why a test fails, "" if there is no reason."""
    return next((why for pattern, why in reasons.items() if fnmatchcase(test, pattern)), "")


def table(results: dict[str, dict[str, list[str]]], reasons: dict[str, str]) -> str:
    """Return the sum, one row per file, and all exceptions with their reasons."""
    rows, exceptions, sums = list[str](), list[str](), [0, 0, 0, 0]
    for name, tests in results.items():
        kinds = [kind for kind, _ in tests.values()]
        counts = [kinds.count(kind) for kind in ("passed", "failed", "other", "skipped")]
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
        rows.append(f"| {name} | {' | '.join(map(str, counts))} |")
        for test, (kind, text) in tests.items():
            if kind == "failed":
                escaped = (reason_of(test, reasons) or text.splitlines()[0]).replace("|", "\\|")
                exceptions.append(f"| `{test.replace('|', '')}` | {escaped} |")
    applicable = sums[0] + sums[1]
    head = "| file | passed | failed | other algorithm | skipped |\n|---|---|---|---|---|"
    reasons_table = "\n".join(["", "| exception | reason |", "|---|---|", *exceptions, ""]) if exceptions else ""
    return f"""**{sums[0]} of {applicable} applicable tests pass ({100 * sums[0] / max(applicable, 1):.1f} %).**

{head}
{chr(10).join(rows)}
| **all** | {" | ".join(map(str, sums))} |
{reasons_table}"""


def page(results: dict[str, dict[str, list[str]]]) -> str:
    """Return the page of the documentation."""
    own = {name: results[name] for name in FILES.split() if name in results}
    contrib = {name: results[f"contrib/{name}"] for name in CONTRIB_FILES.split() if f"contrib/{name}" in results}
    return (
        f"""# Stable-Baselines3's tests

Written by `make sb3-suite SB3=DIR CONTRIB=DIR ARGS='--page docs/reference/sb3-tests.md'`. The tests are those of
Stable-Baselines3 and sb3-contrib, with the imports changed only. A test is not applicable if it needs another algorithm: the
parameters in its id name one, or it raised `OtherAlgorithmError`. Skipped tests skip themselves because a GPU or a package is
missing.

## Stable-Baselines3

{table(own, REASONS)}
## sb3-contrib

{table(contrib, REASONS)}""".rstrip()
        + "\n"
    )


def main() -> None:
    """Run the files and print one line per file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sb3", type=Path, help="a copy of Stable-Baselines3's repository")
    parser.add_argument("--contrib", type=Path, help="a copy of sb3-contrib's repository")
    parser.add_argument(
        "--only", nargs="*", help="names of test files, without test_; those of sb3-contrib as contrib/NAME"
    )
    parser.add_argument("--seconds", type=int, default=120, help="time limit per test")
    parser.add_argument("--results", type=Path, help="JSON file of results; files that are not run keep theirs")
    parser.add_argument("--page", type=Path, help="page of the documentation to write")
    parser.add_argument("--log", type=Path, help="folder for the output of pytest")
    args, options = parser.parse_known_args()
    results: dict[str, dict[str, list[str]]] = {}
    if args.results and args.results.exists():
        results = json.loads(args.results.read_text())
    names = FILES.split() if args.sb3 else []
    names += [f"contrib/{name}" for name in CONTRIB_FILES.split()] if args.contrib else []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.log or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "conftest.py").write_text(f"SECONDS = {args.seconds}\n{CONFTEST}")
        for name in args.only or names:
            short = name.removeprefix("contrib/")
            root = args.sb3 if short == name else args.contrib
            text = next((root / "tests").rglob(f"test_{short}.py")).read_text()
            text = text.replace("stable_baselines3", "surefoot.sb3").replace("sb3_contrib", "surefoot.sb3_contrib")
            (folder / f"test_{short}.py").write_text(text)
            results[name] = tests = run(short, folder, options)
            kinds = [kind for kind, _ in tests.values()]
            print(f"{name}: " + ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds))), flush=True)
            for test, (kind, error) in tests.items():
                if kind == "failed":
                    print(f"    {test}: {reason_of(test, REASONS) or error}", flush=True)
            if args.results:
                args.results.write_text(json.dumps(results, indent=1, sort_keys=True))
    if args.page:
        args.page.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
