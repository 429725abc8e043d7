"""What the campaign found, as the tables of its page."""

from __future__ import annotations

from typing import Any

from campaign.frame import caught

ZEROS = ("lost", "unreadable", "silent", "server_errors")


def totals(results: dict[str, Any]) -> str:
    """What is published of a release: how often it was tried, and what must be 0."""
    found = [told["found"] for told in results["blocks"].values()]
    added = {name: sum(each[name] for each in found) for name in ("kills", "acknowledged", "bad_inputs", *ZEROS)}
    defects = [mutant for told in results["blocks"].values() for mutant in told["mutants"].values()]
    rows = [
        ("kills tried", added["kills"]),
        ("acknowledged before them", added["acknowledged"]),
        ("acknowledged and lost", added["lost"]),
        ("unreadable checkpoints, stores and records", added["unreadable"]),
        ("bad inputs tried", added["bad_inputs"]),
        ("silent corruptions", added["silent"]),
        ("responses with status 500 and above", added["server_errors"]),
        (
            "green blocks",
            f"{sum(f['green'] for f in found)} of {sum(not f['not_here'] for f in found)} that could be tried",
        ),
        ("injected defects, and caught", f"{sum(map(caught, defects))} of {len(defects)}"),
    ]
    lines = ["| | |", "|---|---|", *(f"| {what} | **{_number(n)}** |" for what, n in rows)]
    minutes = results.get("campaign_seconds")
    took = f", {minutes / 60:.1f} minutes with two blocks at a time" if minutes else ""
    return "\n".join([*lines, "", f"`{results['command']}`{took}."])


def blocks(results: dict[str, Any]) -> str:
    """A row for each block."""
    rows = [
        "| block | what | over | tried | lost, unreadable, silent, 5xx | | mutants caught |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, told in results["blocks"].items():
        found = told["found"]
        if found["not_here"]:
            rows.append(f"| {name} | {told['title']} | {told['over']} | | | {found['not_here']} | |")
            continue
        tried = f"{_number(found['tried'])} {told['unit']}{_notes(found['notes'])}"
        rows.append(f"| {name} | {told['title']} | {told['over']} | {tried} | {_outcome(told)} |")
    return "\n".join(rows)


def long(results: dict[str, Any]) -> str:
    """A short row for each block that was run with the counts of a release, and how long it took."""
    rows = [
        "| block | tried | lost, unreadable, silent, 5xx | | mutants caught | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for name, told in results["blocks"].items():
        if not told["found"]["not_here"]:
            tried = f"{_number(told['found']['tried'])} {told['unit']}"
            rows.append(f"| {name} | {tried} | {_outcome(told)} | {told['seconds'] / 60:.1f} |")
    return "\n".join(rows)


def mutants(results: dict[str, Any]) -> str:
    """A row for each defect that was put in."""
    rows = [
        "| block | the same check, but | tried | lost | unreadable | silent | 5xx | other findings | |",
        "|---" * 9 + "|",
    ]
    for name, told in results["blocks"].items():
        for defect, found in told["mutants"].items():
            counts = " | ".join(_number(found[zero]) for zero in ZEROS)
            colour = "red" if caught(found) else "**not caught**"
            rows.append(f"| {name} | {defect} | {found['tried']:,} | {counts} | {found['fault_count']:,} | {colour} |")
    return "\n".join(rows)


def _outcome(told: dict[str, Any]) -> str:
    """What must be 0, the colour, and how many of the defects were caught: three cells."""
    found, mutants = told["found"], told["mutants"].values()
    zeros = ", ".join(_number(found[zero]) for zero in ZEROS)
    colour = "green" if found["green"] else "**red**"
    return f"{zeros} | {colour} | {sum(map(caught, mutants))} of {len(mutants)}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _notes(notes: dict[str, Any]) -> str:
    short = [
        f"{what} {_number(n)}" for what, n in notes.items() if isinstance(n, int | float) and not what.startswith("N")
    ]
    return f" ({', '.join(short)})" if short else ""
