"""A run on prompts as one page: what it learned, what it chooses for which prompts, and what became of some of them."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from surefoot.decide.evaluation.page import Point, document, plot, section, table
from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.improve import Improved
from surefoot.decide.prompts.mutations import MUTATIONS

SHOWN = 12
"""Prompts that are shown in full."""


def prompts_page(
    title: str, ways: Mapping[str, Sequence[Improved]], curve: Sequence[Point], *, token_cost: float
) -> str:
    """The page; `ways` are the policy and what it is compared with, the policy first."""
    policy = next(iter(ways.values()))
    parts = [
        _curve(curve),
        _compared(ways, token_cost),
        _chosen(policy),
        _spread(policy),
        _categories(policy),
        _examples(policy),
    ]
    return document(title, said(ways), parts)


def said(ways: Mapping[str, Sequence[Improved]]) -> str:
    """The whole in one sentence."""
    (first, policy), *others = ways.items()
    told = f"{len(policy)} prompts: {first} earns {_mean(policy):.3f} a prompt"
    return told + "".join(f", {name} {_mean(found):.3f}" for name, found in others) + "."


def _mean(found: Sequence[Improved]) -> float:
    return float(np.mean([each.reward for each in found]))


def _curve(curve: Sequence[Point]) -> str:
    if len(curve) < 2:
        return section("curve", "Learning curve", "Too few updates for a curve.", "")
    low = min(0.0, *(y for _, y in curve))
    lines = [("a", [(x, y - low) for x, y in curve])]
    note = "Reward of an episode over mutations learned from" + (f", above {low:.3f}." if low < 0 else ".")
    return section("curve", "Learning curve", note, plot(lines, top=max(1e-6, *(y - low for _, y in curve))))


def _compared(ways: Mapping[str, Sequence[Improved]], token_cost: float) -> str:
    rows = [
        [
            name,
            f"{_mean(found):.3f}",
            f"{np.mean([e.gain for e in found]):.3f}",
            f"{np.mean([e.tokens_added for e in found]):.1f}",
            f"{np.mean([len(e.changes) for e in found]):.2f}",
        ]
        for name, found in ways.items()
    ]
    note = f"Means over the prompts; a reward is the gain in score less {token_cost:g} a token."
    return section("compared", "Compared", note, table(["", "reward", "gain", "tokens", "mutations"], rows))


def _chosen(policy: Sequence[Improved]) -> str:
    times = Counter(change.mutation for each in policy for change in each.changes)
    gains = {name: [c.gain for e in policy for c in e.changes if c.mutation == name] for name in MUTATIONS}
    total = max(1, sum(times.values()))
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{times[name]}</td><td>{np.mean(gains[name]) if gains[name] else 0:.3f}</td>"
        f'<td style="width:36%"><span class="bar" style="width:{100 * times[name] / total:.0f}%"></span></td></tr>'
        for name in MUTATIONS
    )
    head = "<thead><tr><th>mutation</th><th>chosen</th><th>mean gain</th><th></th></tr></thead>"
    stopped = sum(not each.changes for each in policy)
    note = f"{stopped} of {len(policy)} prompts were left as they are."
    return section("chosen", "What it chooses", note, f"<table>{head}{rows}</table>")


def _spread(policy: Sequence[Improved]) -> str:
    """Each prompt's score before across, after up; on the dashed line nothing changed."""
    points = sorted((each.score_before, each.score) for each in policy)
    lines: list[tuple[str, Sequence[Point]]] = [("b", [(0.0, 0.0), (1.0, 1.0)])]
    drawn = plot(lines, top=1.0)
    dots = "".join(_dot(point) for point in points)
    note = "Score before across, after up. On the dashed line nothing changed."
    return section("spread", "Before and after", note, drawn.replace("</svg>", f"{dots}</svg>"))


def _dot(point: Point) -> str:
    x, y = 44 + 396 * point[0], 194 - 184 * point[1]
    return f'<circle r="2.5" opacity=".6" cx="{x:.1f}" cy="{y:.1f}"/>'


def _categories(policy: Sequence[Improved]) -> str:
    by: dict[str, list[Improved]] = {}
    for each in policy:
        by.setdefault(classify(each.original).category, []).append(each)
    rows = [
        [name, str(len(found)), f"{_mean(found):.3f}", _favourite(found)]
        for name, found in sorted(by.items(), key=lambda item: -len(item[1]))
    ]
    head = ["category", "prompts", "reward", "chosen most"]
    return section("categories", "By category", "", table(head, rows), wide=True)


def _favourite(found: Sequence[Improved]) -> str:
    times = Counter(change.mutation for each in found for change in each.changes)
    return times.most_common(1)[0][0] if times else "nothing"


def _examples(policy: Sequence[Improved]) -> str:
    best = sorted(policy, key=lambda each: -each.reward)[:SHOWN]
    made: list[str] = []
    for each in best:
        steps = ", ".join(f"{c.mutation} {c.gain:+.3f}" for c in each.changes) or "left as it is"
        made.append(
            f"<details><summary>{html.escape(each.original[:110])} <small>{each.score_before:.2f} → {each.score:.2f}, "
            f"{each.tokens_added:+d} tokens</small></summary><p>{html.escape(steps)}</p>"
            f"<pre>{html.escape(each.text)}</pre></details>"
        )
    note = f"The {len(best)} that gained most; a click shows what became of one."
    return section("examples", "Prompts", note, "".join(made), wide=True)
