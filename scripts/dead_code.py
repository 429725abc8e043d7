"""Report code of `src` that nothing uses: vulture over the repository, minus the names in `ALLOWED`, each with its reason."""

from __future__ import annotations

import sys
from fnmatch import fnmatch
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[1]
USERS = ("src", "tests", "benchmarks", "examples", "scripts", "docs")
"""Code in any of these counts as a user; only code in `src` is reported."""
CONFIDENCE = 60
"""vulture's lowest level: functions, classes, methods, attributes and variables, not only imports and arguments."""

ALLOWED: list[tuple[str, str, str]] = [
    # (path below src/surefoot, name, why it is used though no code names it)
    ("cli/verbs/*", "*Args", "loaded by its name in the verb table of cli/catalogue.py"),
    ("client/calls.py", "__signature__", "inspect.signature and help() read it"),
    ("compat/hololoom/*", "*", "the API of an earlier system; its users call it"),
    ("decide/evaluation/offpolicy.py", "largest_weight", "a field that `tools replay --json` prints"),
    ("decide/tools/*", "ended_at", "a field of the run's JSON"),
    ("*", "__getattr__", "the interpreter calls it for lazily loaded names"),
    ("*", "maxother", "reprlib.Repr reads it"),
    ("*", "maxstring", "reprlib.Repr reads it"),
    ("*", "pre_tokenizer", "tokenizers reads it"),
    ("compat/*", "*", "names of other systems, which their users' code calls"),
    ("decide/evaluation/offpolicy.py", "largest_weight", "a field of the result that users receive"),
    ("decide/prompts/classify.py", "characteristics", "a field of the result that users receive"),
    ("decide/prompts/variation.py", "latency", "a field of the result that users receive"),
    ("decide/prompts/variation.py", "reliability", "a field of the result that users receive"),
    ("decide/tools/*", "ended_at", "a field of the log of tool runs, written by name"),
    ("envs/gym/snapshot.py", "episode_start_time", "Gymnasium's RecordEpisodeStatistics reads it"),
    ("graph/runtime/*", "[A-Z]*", "loaded by the name of the node's type"),
    ("learn/report.py", "*", "dataclass fields that telemetry writes by name"),
    ("lm/constitution/pipeline.py", "_*", "a stage, called by its name"),
    ("lm/policy/kv_cache.py", "get_seq_length", "transformers calls it"),
    ("lm/policy/kv_cache.py", "layer_idx", "an argument of transformers' protocol"),
    ("scale/tune_ray.py", "*", "Ray Tune calls these methods with these arguments"),
    ("server/http/endpoints.py", "*", "an endpoint, called by its route"),
    ("server/schema.py", "mean_reward", "a field of the JSON that clients read"),
    ("server/http/protocol.py", "*", "asyncio and httptools call these methods"),
    ("town/scenarios/affordances.py", "*", "fields of defaults.yaml and of scenarios, read by the need's name"),
    ("server/studio/*commands.py", "do_*", "called by the name of the command"),
    ("telemetry/doctor/*signals.py", "*", "a sign, registered by its name, which rule files use"),
    ("town/scenarios/scenario.py", "*", "fields of the scenario file, read by name"),
    ("train/progress_event.py", "recent_length", "a field of the event that users of `Training` receive"),
    ("train/interop/onnx_export.py", "*_num_threads", "onnxruntime reads it"),
    ("train/interop/onnx_export.py", "log_severity_level", "onnxruntime reads it"),
]


def unused() -> tuple[list[str], list[str]]:
    """Return a line per unused name of `src` that is not allowed, and the entries of `ALLOWED` that match nothing."""
    vulture = Vulture()
    vulture.scavenge([ROOT / user for user in USERS])
    lines: list[str] = []
    needed: set[int] = set()
    for item in vulture.get_unused_code(min_confidence=CONFIDENCE):
        path = Path(item.filename).resolve()
        if not path.is_relative_to(ROOT / "src"):
            continue
        below = path.relative_to(ROOT / "src/surefoot").as_posix()
        matching = {k for k, (file, name, _) in enumerate(ALLOWED) if fnmatch(below, file) and fnmatch(item.name, name)}
        needed |= matching
        if not matching:
            lines.append(f"{path.relative_to(ROOT)}:{item.first_lineno}: {item.message}")
    return lines, [" ".join(ALLOWED[k][:2]) for k in range(len(ALLOWED)) if k not in needed]


def main() -> int:
    lines, stale = unused()
    lines += [f"scripts/dead_code.py: nothing needs the entry {entry!r} of ALLOWED any more" for entry in stale]
    print("\n".join(lines) or "no unused code")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
