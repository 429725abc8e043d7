"""Writes the pages of docs that follow from the code: cli, settings, presets, nodes, troubleshoot. A test fails on a stale one.

python scripts/make_reference.py            write them
python scripts/make_reference.py --check    exit 1 if one would change
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import typing
from pathlib import Path
from typing import Any

import tyro

sys.path.insert(0, str(Path(__file__).parent))  # tests load this file by its path

import kernel_table
import record_schema

from surefoot.cli.catalogue import GROUPS, VERBS
from surefoot.cli.helptext import parts
from surefoot.cli.verbs.settings import all_knobs, language_knobs
from surefoot.graph.nodes import REGISTRY
from surefoot.learn.presets import FAMILIES, PRESETS
from surefoot.learn.schedule import Linear
from surefoot.learn.schedule_text import schedule_to_json
from surefoot.telemetry.doctor.findings import value_text as patch_value
from surefoot.telemetry.doctor.rules import SYMPTOMS, shipped_rules

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "reference"
WRITTEN_BY = "<!-- Written by scripts/make_reference.py; edit the code it reads, not this page. -->\n"
CONFIGS = {
    "PPOConfig": "How the weights move.",
    "NetConfig": "What the policy is.",
    "CollectConfig": "Where envs are stepped, and how rewards are processed.",
    "LMConfig": "Language runs: `surefoot lm ppo` and `surefoot lm dpo`, which take PPOConfig's settings as well. "
    "`surefoot knobs --lm` prints this table.",
}


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "\n".join("| " + " | ".join(cell(part) for part in line) + " |" for line in lines) + "\n"


def field_docs(owner: type) -> dict[str, str]:
    """{field: the string that stands under it in the source}."""
    (tree,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(tree, ast.ClassDef)
    docs: dict[str, str] = {}
    for line, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(below, ast.Expr):
            docs[line.target.id] = ast.literal_eval(below.value)
    return docs


def argument(field: dataclasses.Field[Any], hint: Any) -> tuple[str, str]:
    """How a field is typed on the command line, and its default."""
    marks = getattr(hint, "__metadata__", ())
    named = next((mark for mark in marks if hasattr(mark, "metavar")), None)
    if tyro.conf.Positional[str].__metadata__[0] in marks:
        metavar = named.metavar if named and named.metavar else field.name.upper()
        required = field.default is dataclasses.MISSING
        return f"`{metavar}`", "required" if required else ""
    flag = "--" + ((named.name if named and named.name else None) or field.name).replace("_", "-")
    flags = ", ".join([flag, *((named.aliases or ()) if named else ())])
    if field.default is False:
        return f"`{flags}`", ""
    if field.default is True:
        return f"`--no-{flag.removeprefix('--')}`", ""
    value = named.metavar if named and named.metavar else choices(hint) or field.name.upper()
    if field.default_factory is not dataclasses.MISSING:
        return f"`{flags} {value}` (any number of times)", ""
    if field.default is dataclasses.MISSING:
        return f"`{flags} {value}`", "required"
    many = " (any number of times)" if field.default == () else ""
    default = "" if field.default is None or field.default == () else f"`{field.default}`"
    return f"`{flags} {value}`{many}", default


def choices(hint: Any) -> str:
    """Return "a|b" for a `Literal`, also inside Annotated or with None; an empty text for other types."""
    for part in (hint, *typing.get_args(hint)):
        if typing.get_origin(part) is typing.Literal:
            return "|".join(map(str, typing.get_args(part)))
    return ""


def verb_section(name: str) -> str:
    verb = VERBS[name]
    owner = verb.load()
    hints, docs = typing.get_type_hints(owner, include_extras=True), field_docs(owner)
    # Options that several verbs share carry their help in the annotation.
    shared = {
        name: getattr(mark, "help", None) for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ())
    }
    docs |= {name: text for name, text in shared.items() if text}
    rows = [(*argument(f, hints[f.name]), docs[f.name]) for f in dataclasses.fields(owner)]
    about = "\n\n".join(text for text, _ in parts(owner))
    arguments = table(("argument", "default", "meaning"), rows) if rows else "It has no arguments.\n"
    return f"## surefoot {name}\n\n{about}\n\n{arguments}"


def cli_page() -> str:
    intro = (
        "# The command line\n\n"
        "`surefoot VERB --help` prints the same, `surefoot help GROUP` the verbs of a group. RUN is the directory of a run, "
        "or its name in the directory of runs.\n\n"
        "Two options work with every verb: `--runs DIR` sets the directory of runs (default `$SUREFOOT_RUNS` or `./runs`), "
        "and `--json` prints the result as JSON where a verb has one.\n\n"
        "A wrong verb, option or setting is answered with the nearest right one. Renamed options accept their old name for "
        "one release, with a notice on stderr.\n\n"
        "Exit codes: 0 success · 1 a finding · 2 failed or refused · 64 wrong command line · 130 interrupted twice.\n\n"
    )
    for group in GROUPS.values():
        rows = [(f"[`{name}`](#surefoot-{name.replace(' ', '-')})", v.help) for name, v in group.verbs.items()]
        intro += f"**{group.title}**: {group.about}\n\n" + table(("verb", "what it does"), rows) + "\n"
    return WRITTEN_BY + intro + "\n".join(verb_section(name) for name in VERBS)


def plan_text(patch: Any) -> str:
    """Return the patch of a rule as text, with factors where a value depends on the run."""
    parts: list[str] = []
    for knob, wish in dict(patch).items():
        if isinstance(wish, dict):
            least = f", at least {wish['least']:g}" if "least" in wish else ""
            parts.append(f"{knob} × {wish['times']:g}{least}")
        else:
            parts.append(f"--set {knob}={patch_value(wish)}")
    return " · ".join(parts)


def value_text(value: Any) -> str:
    """As it is typed after `--set NAME=`."""
    match value:
        case None:
            return "none"
        case str():
            return value
        case tuple() | list():
            return ",".join(str(part) for part in value)
        case Linear(start, end):
            return f"lin_{start:g}" + (f"_{end:g}" if end else "")
        case _:
            return json.dumps(schedule_to_json(value))


def settings_page() -> str:
    page = (
        "# Settings\n\n"
        "What `--set NAME=VALUE`, `--config FILE` and the keyword arguments of `PPO` take. "
        "`surefoot knobs [WORD…]` prints this table. The names in the last column work too; two names for one "
        "setting in one call are an error.\n"
    )
    rows = [*all_knobs(), *language_knobs()]
    for config, about in CONFIGS.items():
        page += f"\n## {config}\n\n{about}\n\n"
        page += table(
            ("setting", "default", "legal", "meaning", "also called"),
            [
                (
                    f"`{row['name']}`",
                    f"`{value_text(row['default'])}`",
                    row["legal"],
                    row["help"],
                    ", ".join(f"`{alias}`" for alias in row["aliases"]),
                )
                for row in rows
                if row["config"] == config
            ],
        )
    return WRITTEN_BY + page


def presets_page() -> str:
    page = (
        "# Presets\n\n"
        "Settings with a name. `surefoot train ENV` and `PPO` take the first preset whose pattern fits the env's id, "
        'and say so; `--preset NAME` or `preset="NAME"` takes another. A setting that a preset does not name keeps '
        "its [default](settings.md). Patterns that fit no family get `default-discrete`, or `default-continuous` "
        "where actions are real numbers.\n\n"
    )
    rows: list[tuple[str, ...]] = []
    for name, preset in PRESETS.items():
        worlds = ", ".join(f"`{pattern}`" for pattern, chosen in FAMILIES if chosen == name and pattern != "*")
        steps = "" if preset.total_steps is None else f"{preset.total_steps:,}"
        rows.append((f"[`{name}`](#{name})", worlds, preset.summary, steps))
    page += table(("preset", "for", "what it is", "steps"), rows)
    for name, preset in PRESETS.items():
        values = {**preset.ppo, **preset.net, **preset.collect}
        page += f"\n### {name}\n\n"
        listed = ", ".join(f"`{key}={value_text(value)}`" for key, value in values.items())
        page += f"{listed}\n" if listed else "Nothing but the defaults.\n"
    return WRITTEN_BY + page


TROUBLE = """# Find out what is wrong with a run

```text
surefoot doctor RUN              # a running or finished run: what is wrong, since when, why, what to set
surefoot doctor RUN --probe      # also plays its environment, for what the record cannot tell
surefoot doctor logs/PPO_1       # a log of Stable-Baselines3, CleanRL, RLlib or W&B
surefoot doctor lint ENV         # settings that conflict, before a run
surefoot doctor probe            # tiny environments with known answers; --policy module:function, --env ENV for yours
```

Start with the first finding; its consequences are listed below it. `--json` is for scripts, `--strict` also counts
findings of severity info. Exit code 0: nothing found; 1: a finding; 2: the record could not be read.

A finding opens when its sign was present in k of the last n records, after a warm-up, and is resolved after some records
without it. The limits are in `surefoot/telemetry/doctor/rules.yaml`. Pass `--rules FILE` to add rules or to replace those
with the same id:

```yaml
rules:
  JAM:
    title: The queue is jammed
    sign: above                  # or below, or any function of surefoot.telemetry.doctor.signals
    levels: {warn: {metric: queue_conflicts, limit: 5, needs: [3, 5]}}
    causes: [too many agents]
    patch: {ent_coef: 0.01}
```

`surefoot doctor RUN --rules FILE` applies it to a stored run.
"""

SAID = {
    "not improving": "The return does not improve",
    "unstable": "Training is unstable",
    "high variance": "Results vary widely",
    "slow": "Learning is slow",
    "broken": "The record itself is odd",
}


def troubleshoot_page() -> str:
    """Symptom, finding, patch, from the rule file."""
    page = TROUBLE
    rules = shipped_rules()
    for symptom in SYMPTOMS:
        rows = [
            (
                f"{rule.id}: {rule.title}",
                ", ".join(level.severity for level in reversed(rule.levels)),
                "; ".join(rule.causes),
                plan_text(rule.patch),
                ", ".join(rule.follows),
            )
            for rule in rules
            if rule.symptom == symptom
        ]
        page += f"\n## {SAID[symptom]}\n\n"
        page += table(("finding", "severity", "causes, likeliest first", "what to set", "may follow from"), rows)
    return WRITTEN_BY + page


def nodes_page() -> str:
    """Every kind of node: what it does, its ports and parameters."""
    text = (
        WRITTEN_BY
        + "# Graph nodes\n\n`surefoot graph nodes --json` has all of this for programs. An input in brackets is optional.\n"
    )
    for name in REGISTRY.names():
        kind = REGISTRY.get(name)
        text += f"\n## {name}\n\n*{kind.category}.* {kind.summary}"
        text += f" Also called {', '.join(kind.aliases)}.\n" if kind.aliases else "\n"
        ports = [
            (f"[{each.name}]" if each.optional else each.name, "in", str(each.type), each.help) for each in kind.inputs
        ]
        ports += [(each.name, "out", str(each.type), each.help) for each in kind.outputs]
        if ports:
            text += "\n" + table(("port", "", "type", ""), ports)
        rows = [
            (
                each.name,
                "required" if each.required else json.dumps(each.kind.to_json(each.default)),
                each.kind.legal,
                each.tooltip,
            )
            for each in kind.params
        ]
        if rows:
            text += "\n" + table(("parameter", "default", "legal", ""), rows)
        for preset, values in kind.presets.items():
            text += f"\nPreset *{preset}*: {', '.join(f'{key} {value}' for key, value in values.items())}.\n"
    return text


def kernel_page() -> dict[Path, str]:
    """The table of the kernel's features, where there is a kernel to ask."""
    text = kernel_table.page(table)
    return {} if text is None else {PAGES / "kernel-features.md": WRITTEN_BY + text}


def pages() -> dict[Path, str]:
    """{file: what it should hold}."""
    return {
        PAGES / "cli.md": cli_page(),
        PAGES / "settings.md": settings_page(),
        PAGES / "presets.md": presets_page(),
        PAGES / "graph-nodes.md": nodes_page(),
        **kernel_page(),
        PAGES / "telemetry.md": WRITTEN_BY + record_schema.page(table),
        PAGES / f"telemetry-{record_schema.SERIES}.schema.json": record_schema.schema_file(),
        PAGES / f"telemetry-{record_schema.SERIES}.d.ts": record_schema.typescript_file(),
        **{PAGES / f"telemetry-{v}.schema.json": record_schema.old_schema_file(v) for v in record_schema.old.VERSIONS},
        ROOT / "docs" / "how-to" / "troubleshoot.md": troubleshoot_page(),
    }


def main() -> int:
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        print("\n".join(f"{path.relative_to(ROOT)} is not current" for path in stale))
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages()[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
