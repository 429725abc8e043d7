"""The JSON Schemas of telemetry 1.x say what the rules say: of every sample, and of samples changed a little."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from surefoot.compat.townlet import records as old

ROOT = Path(__file__).parents[4]
SAMPLES = ROOT / "tests" / "samples" / "telemetry"
TYPES = {"number": (int, float), "object": dict, "boolean": bool, "null": type(None), "string": str}
KNOWN = {
    *("$schema", "$id", "title", "type", "required", "properties", "patternProperties", "additionalProperties"),
    *("enum", "if", "then", "anyOf"),
}


def fits(x: Any, schema: Any) -> bool:
    """JSON Schema's meaning of the words that ours use; another word is a KeyError."""
    if isinstance(schema, bool):
        return schema
    if not set(schema) <= KNOWN:
        raise KeyError(set(schema) - KNOWN)
    if "type" in schema:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        if not any(isinstance(x, TYPES[n]) and (n != "number" or not isinstance(x, bool)) for n in names):
            return False
    if "enum" in schema and (isinstance(x, bool) or x not in schema["enum"]):  # 1 is true only to Python
        return False
    if "anyOf" in schema and not any(fits(x, choice) for choice in schema["anyOf"]):
        return False
    if not isinstance(x, dict):
        return True
    if not set(schema.get("required", ())) <= x.keys():
        return False
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, value in x.items():
        its = [named[key]] if key in named else []
        its += [rule for pattern, rule in patterns.items() if re.search(pattern, key)]
        if not all(fits(value, rule) for rule in its or [schema.get("additionalProperties", True)]):
            return False
    return not ("if" in schema and fits(x, schema["if"])) or fits(x, schema["then"])


def schema_of(version: str) -> dict[str, Any]:
    return json.loads((ROOT / "docs" / "reference" / f"telemetry-{version}.schema.json").read_text())


def lines(version: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted((SAMPLES / f"v{version}").glob("*.ndjson")):
        for line in file.read_text().splitlines():
            try:
                found.append(json.loads(line, parse_constant=lambda word: None))  # NaN is no number
            except ValueError:
                continue  # torn
    return found


def changed(line: dict[str, Any]) -> list[dict[str, Any]]:
    """The line with each key left out, or holding something odd; and with keys it never had."""
    out = [{k: v for k, v in line.items() if k != key} for key in line]
    out += [line | {key: odd} for key in line for odd in (None, True, "word", [1])]
    strange = ("brand_new", "conflict.new", "v", "duration_sec", "anneal_cycle", "anneal_bc_passed", *old.LATE)
    out += [line | {key: odd} for key in strange for odd in (1.5, "word", None, True)]
    whole = dict.fromkeys(old.BASELINE, 1.0)
    return [*out, line | whole, line | whole | {"baseline_reward_sum": "word"}, line | {"baseline_reward_sum": "word"}]


@pytest.mark.parametrize("version", old.VERSIONS)
def test_the_schema_and_the_rules_agree_on_every_sample_and_on_changed_ones(version: old.Version):
    schema, seen = schema_of(version), {True: 0, False: 0}
    for sample in lines(version):
        for line in (sample, *changed(sample)):
            right = old.version_of(line) == version and old.errors(line, version) == []
            assert fits(line, schema) == right, (line, old.errors(line, version))
            seen[right] += 1
    assert seen[True] > 20
    assert seen[False] > 100


@pytest.mark.parametrize("version", [*old.VERSIONS, "2.0"])
def test_a_validator_of_other_people_agrees(version: str):
    jsonschema = pytest.importorskip("jsonschema")
    schema = schema_of(version)
    jsonschema.Draft202012Validator.check_schema(schema)
    for file in (f for f in (SAMPLES / f"v{version}").glob("*.ndjson") if f.stem in ("minimal", "full", "unversioned")):
        for line in file.read_text().splitlines():
            jsonschema.Draft202012Validator(schema).validate(json.loads(line))
