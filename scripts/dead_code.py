"""Report code of `src` that nothing uses: vulture over the repository, minus the names in `ALLOWED`, each with its reason.

Functions, methods, properties and classes that only tests use are reported too, unless the documentation names them or
they are in `FOR_USERS`: tests alone kept a whole class alive that nothing needed any more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from vulture import Vulture
from vulture.core import Item

ROOT = Path(__file__).resolve().parents[1]
USERS = ("src", "tests", "benchmarks", "examples", "scripts", "docs")
"""Code in any of these counts as a user; only code in `src` is reported."""
DOCUMENTED = ("*.md", "docs/**/*.md", "docs/**/*.ipynb")
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


FOR_USERS: list[tuple[str, str, str]] = [
    ("_http.py", "redirect_request", "urllib calls it"),
    ("client/calls.py", "*", "one method per operation of the service"),
    ("decide/core/agent.py", "unlearned", "whether `learn` has something to do"),
    ("decide/tools/cache.py", "hit_rate", "a statistic that users read"),
    ("envs/check.py", "assert_env", "for tests of users"),
    ("graph/run/interpreter.py", "value_summary", "what a value is, for users of the interpreter"),
    ("learn/checkpoint/retention.py", "unpin", "the counterpart of `pin`"),
    ("lm/constitution/principles.py", "enable", "the counterpart of a principle's `enabled`"),
    ("server/replicas.py", "pids", "the tests kill these processes"),
    ("train/spec_worlds.py", "__call__", "a protocol"),
    ("train/worlds.py", "spec_maker", "called by its dotted name"),
]
"""(path below src/surefoot, name, why it stays although only tests use it)"""


def matching(item: Item, entries: Sequence[tuple[str, str, str]]) -> set[int]:
    """Return the indices of the entries that allow an unused name."""
    below = Path(item.filename).resolve().relative_to(ROOT / "src/surefoot").as_posix()
    return {k for k, (file, name, _) in enumerate(entries) if fnmatch(below, file) and fnmatch(item.name, name)}


def unused_in_source(users: Sequence[str]) -> list[Item]:
    """Return what vulture finds in `src` if only code in these folders counts as a user."""
    vulture = Vulture()
    vulture.scavenge([ROOT / user for user in users])
    found = vulture.get_unused_code(min_confidence=CONFIDENCE)
    return [item for item in found if Path(item.filename).resolve().is_relative_to(ROOT / "src")]


def unused() -> tuple[list[str], list[str]]:
    """Return a line per unused name of `src` that is not allowed, and the entries that match nothing."""
    lines: list[str] = []
    needed, needed_for_users = set[int](), set[int]()
    for item in unused_in_source(USERS):
        allowed = matching(item, ALLOWED)
        needed |= allowed
        if not allowed:
            lines.append(f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}: {item.message}")
    words = {word for part in DOCUMENTED for page in ROOT.glob(part) for word in re.findall(r"\w+", page.read_text())}
    for item in unused_in_source([user for user in USERS if user != "tests"]):
        if item.typ not in ("function", "method", "property", "class") or matching(item, ALLOWED) or item.name in words:
            continue
        allowed = matching(item, FOR_USERS)
        needed_for_users |= allowed
        if not allowed:
            place = f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}"
            lines.append(f"{place}: {item.typ} {item.name!r} is used by tests only")
    stale = [" ".join(ALLOWED[k][:2]) for k in range(len(ALLOWED)) if k not in needed]
    return lines, stale + [" ".join(FOR_USERS[k][:2]) for k in range(len(FOR_USERS)) if k not in needed_for_users]


def main() -> int:
    lines, stale = unused()
    lines += [f"scripts/dead_code.py: nothing needs the allowance for {entry!r} any more" for entry in stale]
    print("\n".join(lines) or "no unused code")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
