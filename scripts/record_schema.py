"""The record format for readers in other languages: JSON Schema, TypeScript and a page of docs, from the structs."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from typing import Any, get_args

import msgspec

from surefoot.compat.townlet import records as old
from surefoot.telemetry import schema

SERIES = ".".join(schema.VERSION.split(".")[:2])
"""The version whose files are written; older files are unchanged."""
KINDS: tuple[type[Any], ...] = get_args(schema.Record)


def public_name(name: str) -> str:
    """Return the name of a struct in the schema and in TypeScript: without the `Record` of the Python class."""
    return name.removesuffix("Record")


def field_docs(owner: type) -> dict[str, str]:
    """{field: the string under it in the source}, its bases' included."""
    docs: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__ != schema.__name__:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for line, below in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(below, ast.Expr):
                docs[line.target.id] = " ".join(ast.literal_eval(below.value).split())
    return docs


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of one line. Unknown fields are allowed: a later minor version may bring them."""
    refs, structs = msgspec.json.schema_components([*KINDS, schema.Episodes])
    components = {public_name(name): part | {"title": public_name(name)} for name, part in structs.items()}
    for owner in (*KINDS, schema.Episodes):
        docs = field_docs(owner)
        properties = components[public_name(owner.__name__)]["properties"]
        for field in msgspec.structs.fields(owner):
            if field.name in docs:
                properties[field.encode_name]["description"] = docs[field.name]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"telemetry-{SERIES}.schema.json",
        "title": f"One line of telemetry.ndjson, version {SERIES}",
        "oneOf": [{"$ref": public_name(ref["$ref"])} for ref in refs if not ref["$ref"].endswith("/Episodes")],
        "$defs": components,
    }


def schema_file() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def old_schema(version: old.Version) -> dict[str, Any]:
    """JSON Schema of a line of telemetry 1.x, by the rules that version was published with.

    A number too large for a float passes here and not in `surefoot telemetry validate`: JSON Schema has no word for it.
    """
    number: dict[str, Any] = {"type": "number"}
    demanded, optional = old.REQUIRED[version], [*old.LATE, *old.SOCIAL]
    properties: dict[str, Any] = {"telemetry_version": {"enum": [float(version), version]}}
    properties |= dict.fromkeys([*demanded, *optional], number)
    rule: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"telemetry-{version}.schema.json",
        "title": f"One line of a log of telemetry_version {version}: an epoch",
        "type": "object",
        "required": [*demanded],
        "properties": properties,
        "patternProperties": {r"^conflict\.": number},
        # A baseline is looked at only where it is whole.
        "if": {"required": [*old.BASELINE]},
        "then": {"properties": dict.fromkeys([*old.BASELINE, "baseline_log_prob_mean"], number)},
    }
    if version == "1.0":  # the first logs did not say their version; what came with 1.1 has no place here
        properties |= dict.fromkeys(old.NEW_IN_1_1, False)
        rule["anyOf"] = [{"required": ["telemetry_version"]}, {"properties": {"v": False}}]
        return rule
    rule["required"] += ["telemetry_version", "data_mode"]
    properties["data_mode"] = {"enum": [*old.DATA_MODES]}
    if version == "1.2":
        anneal: dict[str, Any] = {"type": ["number", "boolean", "null"]}
        properties |= dict.fromkeys([*old.ANNEAL_NUMBERS, *old.ANNEAL_FLAGS], anneal)
        properties |= {key: True for key in sorted(old.KNOWN_1_2) if key not in properties}
        rule["additionalProperties"] = False
    return rule


def old_schema_file(version: old.Version) -> str:
    return json.dumps(old_schema(version), indent=2) + "\n"


def typescript_file() -> str:
    """The same as TypeScript interfaces, told apart by `kind`."""
    lines = [f"// One line of telemetry.ndjson, version {SERIES}. Written by scripts/make_reference.py.", ""]
    for name, part in json_schema()["$defs"].items():
        lines += [f"/** {part['description']} */", f"export interface {name} {{"]
        required = part.get("required", [])
        for field, kind in part["properties"].items():
            if "description" in kind:
                lines.append(f"  /** {kind['description']} */")
            lines.append(f"  {field}{'' if field in required else '?'}: {_typescript(kind)};")
        lines += ["}", ""]
    names = " | ".join(public_name(kind.__name__) for kind in KINDS)
    return "\n".join([*lines, f"export type TelemetryRecord = {names};", ""])


def _typescript(kind: dict[str, Any]) -> str:
    match kind:
        case {"$ref": ref}:
            return ref.rpartition("/")[2]
        case {"enum": words}:
            return " | ".join(json.dumps(word) for word in words)
        case {"anyOf": choices}:
            return " | ".join(_typescript(choice) for choice in choices)
        case {"type": "array", "items": items}:
            inner = _typescript(items)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case {"type": "object"}:
            values = kind.get("additionalProperties")
            return f"Record<string, {_typescript(values) if values else 'unknown'}>"
        case {"type": "integer"}:
            return "number"
        case {"type": name}:
            return name
        case _:
            return "unknown"


def _plain(kind: dict[str, Any]) -> str:
    """For the page: integers differ from numbers, and nothing needs an angle bracket."""
    match kind:
        case {"anyOf": choices}:
            return " | ".join(_plain(choice) for choice in choices)
        case {"type": "array", "items": items}:
            return f"[{_plain(items)}]"
        case {"type": "object"}:
            values = kind.get("additionalProperties")
            return f"{{string: {_plain(values) if values else 'any'}}}"
        case {"type": "integer"}:
            return "integer"
        case _:
            return _typescript(kind)


def rows(owner: type[Any]) -> list[tuple[str, str, str, str]]:
    """(field, type, since, meaning) of the fields only this kind has."""
    docs, properties = field_docs(owner), json_schema()["$defs"][public_name(owner.__name__)]["properties"]
    common = {field.name for field in msgspec.structs.fields(schema.EndRecord)} - {"reason", "message"}
    kind = owner.__struct_config__.tag or ""
    out: list[tuple[str, str, str, str]] = []
    for field in msgspec.structs.fields(owner):
        if field.name not in common or owner is schema.EndRecord:
            since = schema.SINCE.get(f"{kind}.{field.encode_name}", "2.0")
            need = "" if field.required else " (optional)"
            told = f"`{_plain(properties[field.encode_name])}`{need}"
            out.append((f"`{field.encode_name}`", told, since, docs.get(field.name, "")))
    return out


def metric_rows() -> list[tuple[str, ...]]:
    """(number, unit, meaning, since, healthy, SB3, CleanRL) of an update's numbers."""
    out: list[tuple[str, ...]] = []
    for name, metric in schema.METRICS.items():
        band = f"{metric.healthy[0]:g} to {metric.healthy[1]:g}" if metric.healthy else ""
        others = [
            f"`{alias.tag}`{f' ×{alias.scale:g}' if alias.scale != 1 else ''}" if alias else ""
            for alias in (metric.sb3, metric.cleanrl)
        ]
        since = schema.SINCE.get(f"m.{name}", "2.0")
        out.append((f"`{name}`", metric.unit, metric.meaning, since, band, *others))
    return out


def page(table: Any) -> str:
    """docs/reference/telemetry.md below its first line; `table(columns, rows)` draws."""
    links = ", ".join(f"[{version}](telemetry-{version}.schema.json)" for version in old.VERSIONS)
    text = (
        "# The record\n\n"
        "A run writes `telemetry.ndjson`: one JSON object per line, of the kind in its field `kind`. Version "
        f"`{schema.VERSION}`. Within a major version a change only adds optional fields and kinds, and readers ignore "
        "fields they do not know. A number that JSON cannot hold is `null` and is named in `nonfinite`.\n\n"
        f"For other languages: [JSON Schema](telemetry-{SERIES}.schema.json), [TypeScript](telemetry-{SERIES}.d.ts). "
        "`surefoot telemetry validate FILE` checks a record line by line, `telemetry_version` 1.0, 1.1 "
        f"and 1.2 too; their rules as JSON Schema: {links}.\n\n"
        "## Every line\n\n"
    )
    columns = ("field", "type", "since", "meaning")
    only_end = {"`reason`", "`message`"}
    text += table(columns, [row for row in rows(schema.EndRecord) if row[0] not in only_end])
    for owner in KINDS:
        kind = owner.__struct_config__.tag
        text += f"\n## {kind}\n\n{inspect.cleandoc(owner.__doc__ or '')}\n\n"
        text += table(columns, [row for row in rows(owner) if owner is not schema.EndRecord or row[0] in only_end])
        if owner is schema.UpdateRecord:
            text += f"\n### episodes\n\n{schema.Episodes.__doc__}\n\n" + table(columns, rows(schema.Episodes))
    text += (
        "\n## The numbers of an update\n\n"
        "The content of `m`. Look closer at a number outside its healthy range. The last two columns are the names in "
        "`surefoot telemetry export` for SB3's and CleanRL's readers, and the factor from our value to theirs.\n\n"
    )
    return text + table(("number", "unit", "meaning", "since", "healthy", "SB3", "CleanRL"), metric_rows())
