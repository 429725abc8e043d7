"""`surefoot doctor`: what is wrong with a run, why, and which knob to turn; before a run, and for code of one's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.dashboard.numbers import number
from surefoot.cli.options import PrintJson, Runs, Settings, run_directory
from surefoot.cli.usage import Usage
from surefoot.telemetry.doctor.findings import Finding, gravity, patch_text, value_text

if TYPE_CHECKING:
    from surefoot.telemetry.doctor.doctor import Examination


@dataclass(frozen=True, kw_only=True)
class DoctorArgs:
    """Say what is wrong with a run, since when, why, and what to set; the beginning first, what follows from it below.

        surefoot doctor first
        surefoot doctor seed0 seed1 seed2
        surefoot doctor lint Pendulum-v1 --set gamma=1
        surefoot doctor probe --policy my_nets:policy

    `surefoot doctor RUN` reads the record of a run, going on or over. `surefoot doctor lint ENV` looks at settings
    before a run. `surefoot doctor probe` trains tiny worlds whose answers are known, in seconds, with a policy of your
    own (--policy) and on an env of your own (--env). Exit code 1 if there is a finding graver than advice.
    """

    runs_or_word: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN…|lint|probe")] = ()
    """Run directories, names or .ndjson files; several are compared as seeds. Or: lint ENV. Or: probe."""
    as_json: PrintJson = False
    rules: Path | None = None
    """A YAML file of rules of your own, beside the shipped ones; one with the id of a shipped rule takes its place."""
    strict: bool = False
    """Advice (info) and what is resolved count as findings too."""
    set: Settings = ()
    """lint: settings, as in `surefoot train`."""
    policy: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION")] = None
    """probe: what builds your policy, called with a world; the standard policy without."""
    env: str | None = None
    """probe: an env of yours to look at as well: an id or module:function."""
    runs: Runs = None

    def run(self) -> int:
        if not self.runs_or_word:
            raise Usage("doctor needs a RUN, or `lint ENV`, or `probe`; `surefoot runs` lists what there is")
        if self.runs_or_word[0] == "probe":
            return self._probe()
        if self.runs_or_word[0] == "lint":
            return self._lint()
        return self._runs()

    def _runs(self) -> int:
        from surefoot.telemetry.doctor.doctor import examine, seed_spread
        from surefoot.telemetry.doctor.rules import read_rules, shipped_rules

        rules = shipped_rules() if self.rules is None else read_rules(self.rules)
        looked = {name: examine(self._record(name), rules) for name in self.runs_or_word}
        spread = seed_spread([e.final_return for e in looked.values() if e.final_return is not None], rules)
        if self.as_json:
            runs = {
                name: {
                    "updates": e.updates,
                    "env_steps": e.env_steps,
                    "findings": [f.to_json() for f in e.findings],
                    "explains": {root: [f.rule for f in below] for root, below in e.tree.items() if below},
                }
                for name, e in looked.items()
            }
            print(json.dumps({"runs": runs, "seeds": None if spread is None else spread.to_json()}, indent=1))
        else:
            for name, examination in looked.items():
                print("\n".join(lines(name, examination, strict=self.strict)))
            if spread is not None:
                print("\n".join(["", f"over {len(looked)} runs", *told_of(spread)]))
        return 1 if any(self._counts(f) for e in looked.values() for f in e.findings) else 0

    def _counts(self, finding: Finding) -> bool:
        return self.strict or (finding.status == "open" and gravity(finding.severity) > 0)

    def _record(self, name: str) -> Path:
        path = Path(name)
        if path.is_file() or (path.is_dir() and not (path / "run.json").exists()):
            return path
        return run_directory(name, self.runs).path

    def _lint(self) -> int:
        from surefoot.cli.verbs.train import TrainArgs
        from surefoot.train.diagnose.lint import lint

        if len(self.runs_or_word) != 2:
            raise Usage("lint needs one env: surefoot doctor lint CartPole-v1 --set lr=1e-3")
        make, spec = TrainArgs(env=self.runs_or_word[1], set=self.set).resolve()
        return self._tell(spec.env, lint(spec, make(spec.ppo.envs)))

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
                print(f"{'ok  ' if result.passed else 'FAIL'} {result.id} {result.title}: {result.said}")
                if not result.passed:
                    print("\n".join(f"        perhaps: {cause}" for cause in result.causes))
        return 0 if all(result.passed for result in results) else 1

    def _tell(self, name: str, findings: Sequence[Finding]) -> int:
        if self.as_json:
            print(json.dumps([f.to_json() for f in findings], indent=1))
        elif findings:
            print("\n".join(line for f in findings for line in told_of(f)))
        else:
            print(f"{name}: nothing to complain about")
        return 1 if any(self._counts(f) for f in findings) else 0


def lines(name: str, examination: Examination, *, strict: bool = False) -> list[str]:
    """What is said of a run: each beginning with what follows from it, then what is over."""
    head = f"{name}: {examination.updates:,} updates, {examination.env_steps:,} env steps"
    tree, found = examination.tree, {f.rule: f for f in examination.findings}
    shown: list[str] = []
    advice: list[Finding] = []
    for root in (rule for rule in found if rule in tree):
        family = [found[root], *tree[root]]
        alive = [f for f in family if f.status == "open"]
        if not alive and not strict:
            continue
        if not strict and all(f.severity == "info" for f in alive):
            advice += alive
            continue
        shown += ["", *told_of(found[root])]
        if tree[root]:
            shown.append("    follows from it:")
            shown += [f"      {_state(f)} {f.rule} {f.title} (update {f.since_update:,})" for f in tree[root]]
    if not shown:
        head += ": nothing wrong was found" if examination.updates else ": no update is recorded yet"
    if advice:
        patches = [f" ({patch_text(f.patch)})" if f.patch else "" for f in advice]
        named = [f"{f.title} [{f.rule}]{patch}" for f, patch in zip(advice, patches, strict=True)]
        shown += ["", "advice: " + "; ".join(named)]
    return [head, *shown]


def told_of(finding: Finding) -> list[str]:
    """One finding in full."""
    first = " ← begin here" if finding.primary else ""
    told = [f"  {_state(finding).upper()} {finding.rule} {finding.title}{first}"]
    if finding.since_update or finding.since_env_steps:
        told.append(f"    since    update {finding.since_update:,}, {finding.since_env_steps:,} env steps")
    if finding.evidence:
        told.append("    evidence " + ", ".join(f"{key} {number(x)}" for key, x in finding.evidence.items()))
    told += [f"    {'causes  ' if i == 0 else '        '} {i + 1}. {cause}" for i, cause in enumerate(finding.causes)]
    if finding.patch:
        told.append("    try      " + patch_text(finding.patch))
    return told


def _state(finding: Finding) -> str:
    return finding.severity if finding.status == "open" else f"over ({finding.severity})"


def plan_text(patch: Any) -> str:
    """A rule's patch before it meets a run: factors as such."""
    parts: list[str] = []
    for knob, wish in dict(patch).items():
        if isinstance(wish, dict):
            least = f", at least {wish['least']:g}" if "least" in wish else ""
            parts.append(f"{knob} × {wish['times']:g}{least}")
        else:
            parts.append(f"--set {knob}={value_text(wish)}")
    return " · ".join(parts)
