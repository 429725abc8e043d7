"""Run other people's SB3 scripts with the import changed only: `make sb3-scripts REPOSITORIES=DIR`.

DIR/OWNER/NAME are copies of the repositories (never committed). Lines that import `stable_baselines3` or `sb3_contrib` are
changed to `surefoot.sb3` and `surefoot.sb3_contrib` in all Python files of a copy. Every `learn` is cut to 2,000 steps from
outside, and the numbers below make loops after the training short. A script runs if it ends with exit code 0 and `learn`
of `surefoot.sb3` was called. `--python` is an interpreter with Surefoot and with what the scripts import. The results go to
benchmarks/results/sb3_scripts.json and to docs/reference/sb3-scripts.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from workloads.sb3_script_list import LEFT_OUT, SB3, SCRIPTS, ZOO, ZOO_NOTES, Script

IMPORTS = [
    (re.compile(r"^(\s*)import (stable_baselines3)(?=\s*$)", re.M), r"\1import surefoot.sb3 as \2"),
    (re.compile(r"^(\s*)(from|import) stable_baselines3\b", re.M), r"\1\2 surefoot.sb3"),
    (re.compile(r"^(\s*)(from|import) sb3_contrib\b", re.M), r"\1\2 surefoot.sb3_contrib"),
]
SHORTER = [
    (re.compile(r"^(\s*)while True:", re.M), r"\1for _ in range(100):"),
    (re.compile(r"range\(1_?000\)"), "range(100)"),
]
"""Applied to every script: loops of 1,000 rounds and endless ones end after 100."""
STEPS = 2_000
NOT_CALLED = "learn was not called"
# Imported by every Python process with it on its path. Workers of a process pool (`python -c …`) train nothing.
STARTER = """
import os, sys
if "-c" not in sys.orig_argv:
    from surefoot.compat.sb3.ppo import PPO
    learn = PPO.learn

    def short(self, total_timesteps, *args, **kwargs):
        result = learn(self, min(int(total_timesteps), STEPS), *args, **kwargs)
        with open(os.environ["SB3_SCRIPT_LOG"], "a") as log:
            log.write(f"{self.num_timesteps}\\n")
        return result

    PPO.learn = short
"""
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "sb3_scripts.json"
"""What is not run keeps its result."""
PAGE = ROOT / "docs" / "reference" / "sb3-scripts.md"
LOGS: Path | None = None
"""Folder for the output of the scripts."""


def changed(text: str, smaller: dict[str, str]) -> str:
    """Return a script with the imports changed and the sizes lowered."""
    for pattern, replacement in [*IMPORTS, *SHORTER]:
        text = pattern.sub(replacement, text)
    for before, after in smaller.items():
        assert before in text, f"{before!r} is not in the script"
        text = text.replace(before, after)
    return text


def notebook_code(text: str) -> str:
    """Return the code cells of a notebook without lines for the shell."""
    cells = [c for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("!", "%")))


def run(python: str, folder: Path, path: str, arguments: str, seconds: int) -> str:
    """Return "" if a script ended with exit code 0 after it called `learn`, else the last line of its output."""
    starter, log, script = folder / ".starter", folder / "steps.txt", folder / path
    starter.mkdir()
    (starter / "sitecustomize.py").write_text(STARTER.replace("STEPS", str(STEPS)))
    # Pictures are drawn to memory; only OpenCV's windows need a display, such as that of xvfb-run. W&B writes to a folder.
    screens = {"SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg", "WANDB_MODE": "offline"}
    paths = {"PYTHONPATH": f"{starter}{os.pathsep}{folder}", "SB3_SCRIPT_LOG": str(log)}
    command = [python, "-W", "ignore", script.name, *arguments.split()]
    try:
        done = subprocess.run(
            command,
            cwd=script.parent,
            env={**os.environ, "OMP_NUM_THREADS": "1", **screens, **paths},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {seconds} s"
    if LOGS is not None:
        (LOGS / f"{script.stem}.log").write_text(done.stdout + done.stderr)
    if done.returncode == 0:
        return "" if log.exists() else NOT_CALLED
    return (done.stderr.strip() or done.stdout.strip() or "?").splitlines()[-1][:300]


def run_script(script: Script, python: str, repositories: Path, seconds: int) -> tuple[str, str]:
    """Return (commit, error) of one script in a changed copy of its repository."""
    source = repositories / script.repository
    if not source.exists():
        return "", "not there"
    commit = commit_of(source)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git", "*.gif", "*.mp4"), symlinks=True)
        path = script.path
        if path.endswith(".ipynb"):
            path = str(Path(path).with_suffix(".py"))
            (folder / path).write_text(notebook_code((source / script.path).read_text()))
        for file in folder.rglob("*.py"):
            text = file.read_text(errors="replace")
            if "stable_baselines3" in text or "sb3_contrib" in text:
                for pattern, replacement in IMPORTS:
                    text = pattern.sub(replacement, text)
                file.write_text(text)
        (folder / path).write_text(changed((folder / path).read_text(), script.smaller))
        for name, text in script.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        return commit, run(python, folder, path, script.arguments, seconds)


def commit_of(source: Path) -> str:
    """Return the commit of a clone, or the first line of the file .commit of a copy."""
    if (source / ".commit").exists():
        return (source / ".commit").read_text().strip()[:10]
    done = subprocess.run(["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:10]


FENCE = re.compile(r"^```\{?(?:code-block\} )?python\n(.*?)^```", re.S | re.M)
HUB = "huggingface_sb3"
CRASHES = "NanAndInfEnv"
"""A block that shows an error: it must end with one."""


def blocks(sb3: Path) -> dict[str, str]:
    """Return {"page:line": code} of the blocks of SB3's documentation that use its PPO; those that upload need the hub."""
    found: dict[str, str] = {}
    for page in [sb3 / "README.md", *sorted((sb3 / "docs").rglob("*.md"))]:
        text = page.read_text()
        for match in FENCE.finditer(text):
            code = match.group(1)
            if (
                re.search(r"\bPPO\b", code)
                and "import stable_baselines3" in code.replace("from ", "import ")
                and HUB not in code
            ):
                found[f"{page.relative_to(sb3)}:{text[: match.start()].count(chr(10)) + 1}"] = code
    return found


def run_block(code: str, python: str, seconds: int) -> str:
    """Return "" if a block of the documentation does what it says, else an error."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "block.py").write_text(changed(code, {}))
        error = run(python, folder, "block.py", "", seconds)
    if CRASHES in code:
        return "" if error else "it should end with an error"
    return "" if error == NOT_CALLED and ".learn(" not in code else error


def page(results: dict[str, dict[str, list[str]]]) -> str:
    """Return the page of the documentation."""
    parts = [
        "# Scripts for Stable-Baselines3",
        "",
        "`make sb3-scripts REPOSITORIES=DIR ARGS='--python …'` runs them and writes benchmarks/results/sb3_scripts.json and this",
        f"page. Only lines that import `stable_baselines3` or `sb3_contrib` are changed. Each `learn` is cut to {STEPS:,} steps",
        "from outside (a rollout is always completed), loops of 1,000 rounds and endless ones to 100, and",
        "`benchmarks/workloads/sb3_script_list.py` lists smaller numbers of envs and games. A script runs if it ends with exit",
        "code 0 and `learn` of `surefoot.sb3` was called (one block only exports a model).",
        "Entries of RL Zoo are trained for one rollout of 32 steps in one env, with their wrappers, policy and normalization.",
        "",
    ]
    for head_line, rows in results.items():
        good = sum(1 for row in rows.values() if not row[-1])
        title = ["| script | commit | result |", "|---|---|---|"]
        parts += [f"## {head_line}", "", f"**{good} of {len(rows)} run.**", "", *title]
        for name, (commit, note, error) in rows.items():
            result = "runs" if not error else error.replace("|", "\\|")
            parts.append(f"| `{name}` | {commit} | {result}{f'; {note}' if note else ''} |")
        parts.append("")
    parts += [
        "## Not in the list",
        "",
        "Tried, and not runnable with SB3 either, or not on the machine of the measurement:",
        "",
    ]
    return "\n".join([*parts, *(f"- `{name}`: {why}." for name, why in LEFT_OUT.items()), ""])


def main() -> None:
    """Run all scripts and blocks and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path, help="folder with copies of the repositories, as OWNER/NAME")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter with the packages that the scripts import"
    )
    parser.add_argument("--only", default="", help="run those whose name contains this text")
    parser.add_argument("--seconds", type=int, default=600, help="time limit per script")
    parser.add_argument("--log", type=Path, help="folder for the output of the scripts")
    args = parser.parse_args()
    global LOGS
    LOGS = args.log
    sections = ("Blocks of SB3's documentation that use PPO", "Scripts of public repositories", "PPO entries of RL Zoo")

    def note(section: str, name: str, row: list[str]) -> None:
        # Read again: another process may have written other rows meanwhile.
        results: dict[str, dict[str, list[str]]] = {name: {} for name in sections}
        results |= json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[section][name] = row
        print(f"{name}: {row[-1] or 'runs'}", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        PAGE.write_text(page(results), encoding="utf-8")

    sb3 = args.repositories / SB3
    for name, code in blocks(sb3).items() if sb3.exists() else ():
        if args.only in name:
            note(sections[0], name, [commit_of(sb3), "", run_block(code, args.python, args.seconds)])
    for script in SCRIPTS:
        name = f"{script.repository} {script.path} {script.arguments}".strip()
        if args.only in name:
            commit, error = run_script(script, args.python, args.repositories, args.seconds)
            note(sections[1], name, [commit, script.note, error])
    zoo = args.repositories / ZOO / "hyperparams/ppo.yml"
    if zoo.exists() and args.only in str(zoo):
        commit = commit_of(args.repositories / ZOO)
        script = Path(__file__).parent / "workloads" / "zoo_entries.py"
        done = subprocess.run([args.python, "-W", "ignore", script, zoo], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            if line.startswith('{"entry"'):
                row = json.loads(line)
                why = next((text for name, text in ZOO_NOTES.items() if row["error"] and name in row["entry"]), "")
                note(sections[2], row["entry"], [commit, why, row["error"]])


if __name__ == "__main__":
    main()
