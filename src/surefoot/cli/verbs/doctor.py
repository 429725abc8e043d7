"""`surefoot doctor`: diagnose a run, check settings before a run, and test your own policy or environment."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from surefoot.cli.dashboard.numbers import number
from surefoot.cli.options import Settings, run_directory
from surefoot.cli.usage import Usage
from surefoot.errors import TelemetryError
from surefoot.telemetry.doctor.findings import Finding, patch_text, severity_rank

if TYPE_CHECKING:
    from surefoot.telemetry.doctor.doctor import Examination
    from surefoot.telemetry.foreign.logs import ForeignLog
    from surefoot.train.diagnose.run_probe import ProbeAnswer


@dataclass(frozen=True, kw_only=True)
class DoctorArgs:
    """Diagnose a run: list problems with their evidence, likely causes and the settings to try, causes before effects.

        surefoot doctor first
        surefoot doctor first --probe
        surefoot doctor logs/PPO_1
        surefoot doctor seed0 seed1 seed2
        surefoot doctor lint Pendulum-v1 --set gamma=1
        surefoot doctor probe --policy my_nets:policy

    `surefoot doctor RUN` reads the telemetry of a finished or running run; --probe also plays its environment, for what
    the record cannot tell, and tries the settings it suggests for a few seconds. `surefoot doctor lint ENV` checks settings
    before a run. `surefoot doctor probe` trains on tiny environments with known answers, in seconds, with your own policy
    (--policy) and also in your own environment (--env). Exit code 1 if there is a finding more serious than advice.
    """

    runs_or_word: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN…|lint|probe")] = ()
    """Directories or names of runs, or .ndjson files; several are compared as seeds. Or a log of Stable-Baselines3, CleanRL,
    RLlib or W&B (progress.csv, events of TensorBoard, result.json, run-ID.wandb), or its directory. Or: lint ENV. Or: probe."""
    rules: Path | None = None
    """YAML file of additional rules; a rule with the id of a shipped rule replaces it."""
    strict: bool = False
    """Treat advice (info) and resolved problems as findings too."""
    probe: bool = False
    """Play the run's environment for some thousand steps to test actions, observations, rewards and values."""
    set: Settings = ()
    """lint: a setting as in `surefoot train`; repeatable."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION")] = None
    """probe: function that builds your policy from an environment (default: the standard policy)."""
    env: str | None = None
    """probe: an environment to test as well, as an id or module:function. --probe: the environment of a run, if it is code."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        if not self.runs_or_word:
            raise Usage("doctor needs a RUN, or `lint ENV`, or `probe`; `surefoot runs` lists the runs")
        if self.runs_or_word[0] == "probe":
            return self._probe()
        if self.runs_or_word[0] == "lint":
            return self._lint()
        return self._runs()

    def _runs(self) -> int:
        from surefoot.telemetry.doctor.doctor import examine, examine_records, seed_spread
        from surefoot.telemetry.doctor.rules import read_rules, shipped_rules

        rules = shipped_rules() if self.rules is None else read_rules(self.rules)
        logs = {name: log for name in self.runs_or_word if (log := _foreign_log(name)) is not None}
        results = {
            name: examine_records(logs[name].records(), rules) if name in logs else examine(self._record(name), rules)
            for name in self.runs_or_word
        }
        answers: dict[str, list[ProbeAnswer]] = {name: [] for name in results}
        if self.probe:
            for name in results:
                if name in logs:
                    raise Usage(f"--probe plays the environment of a Surefoot run; {name} is a log of another library")
                answers[name], results[name] = self._play(name, results[name])
        spread = seed_spread([e.final_return for e in results.values() if e.final_return is not None], rules)
        if self.as_json:
            from surefoot.telemetry.files.json_numbers import plain_json

            runs = {
                name: {
                    "updates": e.updates,
                    "env_steps": e.env_steps,
                    "findings": [f.to_json() for f in e.findings],
                    "explains": {root: [f.rule for f in below] for root, below in e.tree.items() if below},
                    **({"probe": [asdict(answer) for answer in answers[name]]} if self.probe else {}),
                }
                for name, e in results.items()
            }
            everything = {"runs": runs, "seeds": None if spread is None else spread.to_json()}
            # Evidence can be NaN: numbers that a log of another library does not have.
            print(json.dumps(plain_json(everything, "", {}), indent=1, allow_nan=False))
        else:
            for name, examination in results.items():
                print("\n".join(lines(name, examination, strict=self.strict)))
                if name in logs:
                    log = logs[name]
                    print(
                        f"\n  read {log.kind}, {len(log.rows):,} rows. It has no numbers about {'; '.join(log.missing())}."
                    )
                if answers[name]:
                    print("\n  probe")
                    print("\n".join(f"    {each.question} {each.answer}" for each in answers[name]))
            if spread is not None:
                print("\n".join(["", f"over {len(results)} runs", *finding_lines(spread)]))
        return 1 if any(self._counts(f) for e in results.values() for f in e.findings) else 0

    def _play(self, name: str, examination: Examination) -> tuple[list[ProbeAnswer], Examination]:
        """Return the probe's answers about a run, and its examination with what they add."""
        from surefoot.train.diagnose.run_probe import probe_environment, try_remedy, with_probe
        from surefoot.train.rundir.open_run import load_run_policy

        training, _ = load_run_policy(run_directory(name), "latest", self.env)
        answers, stats = probe_environment(training)
        examination = with_probe(examination, stats, training.spec, examination.rules)
        first = next((f for f in examination.findings if f.primary), None)
        tried = None if first is None else try_remedy(training.spec, training.make, first)
        training.world.close()
        return [*answers, *([] if tried is None else [tried])], examination

    def _counts(self, finding: Finding) -> bool:
        return self.strict or (finding.status == "open" and severity_rank(finding.severity) > 0)

    def _record(self, name: str) -> Path:
        from surefoot.telemetry.foreign.logs import KNOWN

        path = Path(name)
        if path.is_file():
            if not _is_record(path):
                raise TelemetryError(f"{path} is neither a record of Surefoot nor a log that is known; {KNOWN} are")
            return path
        if path.is_dir() and not (path / "run.json").exists():
            if not any(path.glob("telemetry.ndjson*")):
                raise TelemetryError(f"{path} has no telemetry.ndjson and no log of another library; {KNOWN} are read")
            return path
        return run_directory(name).path

    def _lint(self) -> int:
        from surefoot.cli.verbs.train import TrainArgs
        from surefoot.train.diagnose.lint import lint

        if len(self.runs_or_word) != 2:
            raise Usage("lint needs one env: surefoot doctor lint CartPole-v1 --set lr=1e-3")
        make, spec = TrainArgs(env=self.runs_or_word[1], set=self.set).resolve()
        findings = lint(spec, make(spec.ppo.envs))
        if self.as_json:
            print(json.dumps([f.to_json() for f in findings], indent=1))
        else:
            text = [line for f in findings for line in finding_lines(f)]
            print("\n".join(text) if findings else f"{spec.env}: no problems found")
        return 1 if any(self._counts(f) for f in findings) else 0

    def _probe(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.diagnose.probe import probe
        from surefoot.train.worlds import env_maker, policy_maker

        pin_threads(1)
        build = None if self.policy is None else policy_maker(self.policy)
        make = None if self.env is None else env_maker(self.env)
        results = probe(build, make)
        if self.as_json:
            print(json.dumps([result.to_json() for result in results], indent=1))
        else:
            for result in results:
                print(f"{'ok  ' if result.passed else 'FAIL'} {result.id} {result.title}: {result.message}")
                if not result.passed:
                    print("\n".join(f"        possible cause: {cause}" for cause in result.causes))
        return 0 if all(result.passed for result in results) else 1


def _is_record(path: Path) -> bool:
    """Return whether a file begins like a record: with a JSON object, or not yet with anything."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(64).lstrip(b"\xef\xbb\xbf \r\n")
    except (OSError, EOFError):
        return True  # the reader reports what is wrong with it
    return head[:1] in (b"", b"{")


def _foreign_log(name: str) -> ForeignLog | None:
    """Return the log of another library at a path; None if it is a run or a record of Surefoot."""
    from surefoot.telemetry.foreign.logs import find_log, read_log

    path = Path(name)
    if not path.exists() or (path.is_dir() and ((path / "run.json").exists() or (path / "telemetry.ndjson").exists())):
        return None
    log = find_log(path)
    return None if log is None else read_log(log)


def lines(name: str, examination: Examination, *, strict: bool = False) -> list[str]:
    """Return the text about a run: each root finding with its consequences, then advice."""
    head = f"{name}: {examination.updates:,} updates, {examination.env_steps:,} env steps"
    tree, by_rule = examination.tree, {f.rule: f for f in examination.findings}
    shown: list[str] = []
    advice: list[Finding] = []
    for root in (rule for rule in by_rule if rule in tree):
        family = [by_rule[root], *tree[root]]
        open_ = [f for f in family if f.status == "open"]
        if not open_ and not strict:
            continue
        if not strict and all(f.severity == "info" for f in open_):
            advice += open_
            continue
        shown += ["", *finding_lines(by_rule[root])]
        if tree[root]:
            shown.append("    consequences:")
            shown += [f"      {_state(f)} {f.rule} {f.title} (update {f.since_update:,})" for f in tree[root]]
    if not shown:
        head += ": no problems found" if examination.updates else ": no update is recorded yet"
    if advice:
        patches = [f" ({patch_text(f.patch)})" if f.patch else "" for f in advice]
        named = [f"{f.title} [{f.rule}]{patch}" for f, patch in zip(advice, patches, strict=True)]
        shown += ["", "advice: " + "; ".join(named)]
    return [head, *shown]


def finding_lines(finding: Finding) -> list[str]:
    first = " ← start here" if finding.primary else ""
    lines = [f"  {_state(finding).upper()} {finding.rule} {finding.title}{first}"]
    if finding.since_update or finding.since_env_steps:
        lines.append(f"    since    update {finding.since_update:,}, {finding.since_env_steps:,} env steps")
    if finding.evidence:
        lines.append("    evidence " + ", ".join(f"{key} {number(x)}" for key, x in finding.evidence.items()))
    lines += [f"    {'causes  ' if i == 0 else '        '} {i + 1}. {cause}" for i, cause in enumerate(finding.causes)]
    if finding.patch:
        lines.append("    try      " + patch_text(finding.patch))
    return lines


def _state(finding: Finding) -> str:
    return finding.severity if finding.status == "open" else f"over ({finding.severity})"
