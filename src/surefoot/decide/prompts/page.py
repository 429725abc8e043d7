"""HTML report of a prompt policy: learning curve, comparison, chosen mutations, and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.improve import Improved
from surefoot.decide.prompts.mutations import MUTATIONS
from surefoot.telemetry.export import html
from surefoot.telemetry.export.svg import Dot, Line, PlotArea, Point, line_chart

# Prompts shown with their full text; more make the page long without showing anything new.
SHOWN = 12


def prompts_page(
    title: str, ways: Mapping[str, Sequence[Improved]], curve: Sequence[Point], *, token_cost: float
) -> str:
    """Return the page; `ways` has the results of the policy first, then those of the baselines."""
    policy = next(iter(ways.values()))
    dots = [Dot(x, y, "faint") for x, y in sorted((each.score_before, each.score) for each in policy)]
    # Log-likelihoods are below 0, other scores lie between 0 and 1.
    low, high = min(0.0, *(min(dot.x, dot.y) for dot in dots)), max(0.0, *(max(dot.x, dot.y) for dot in dots))
    diagonal = [Line([(low, low), (high, high)], "reference")]
    chart = line_chart(diagonal, dots=dots, area=PlotArea(x=(low, high), y=(low, high)))
    note = "Horizontal: score before. Vertical: score after. On the dashed line nothing changed."
    parts = [
        _curve(curve),
        _compared(ways, token_cost),
        _chosen(policy),
        html.section("Before and after", note, chart, id="spread"),
        _categories(policy),
        _examples(policy),
    ]
    return html.page(title, headline(ways), parts)


def headline(ways: Mapping[str, Sequence[Improved]]) -> str:
    (first, policy), *others = ways.items()
    text = f"{len(policy)} prompts: {first} earns {_mean(policy):.3f} per prompt"
    return text + "".join(f", {name} {_mean(improved):.3f}" for name, improved in others) + "."


def _mean(improved: Sequence[Improved]) -> float:
    return float(np.mean([each.reward for each in improved]))


def _curve(curve: Sequence[Point]) -> str:
    if len(curve) < 2:
        return html.section("Learning curve", "Too few updates for a curve.", "", id="curve")
    rewards = [y for _, y in curve]
    area = PlotArea(x=(0, max(x for x, _ in curve)), y=(min(0.0, *rewards), max(1e-6, *rewards)))
    note = "Mean gain per prompt over the number of scores used."
    return html.section("Learning curve", note, line_chart([Line(curve)], area=area), id="curve")


def _compared(ways: Mapping[str, Sequence[Improved]], token_cost: float) -> str:
    rows = [
        [
            name,
            f"{_mean(improved):.3f}",
            f"{np.mean([e.gain for e in improved]):.3f}",
            f"{np.mean([e.tokens_added for e in improved]):.1f}",
            f"{np.mean([len(e.changes) for e in improved]):.2f}",
        ]
        for name, improved in ways.items()
    ]
    note = f"Means over the prompts; the reward is the gain in score minus {token_cost:g} per token."
    table = html.table(["", "reward", "gain", "tokens", "mutations"], rows)
    return html.section("Compared", note, table, id="compared")


def _chosen(policy: Sequence[Improved]) -> str:
    times = Counter(change.mutation for each in policy for change in each.changes)
    total = max(1, sum(times.values()))
    rows = [[name, str(times[name]), html.share_bar(times[name] / total)] for name in MUTATIONS]
    unchanged = sum(not each.changes for each in policy)
    note = f"{unchanged} of {len(policy)} prompts were left unchanged."
    return html.section("Chosen mutations", note, html.table(["mutation", "chosen", ""], rows), id="chosen")


def _categories(policy: Sequence[Improved]) -> str:
    by_category: dict[str, list[Improved]] = {}
    for each in policy:
        by_category.setdefault(classify(each.original).category, []).append(each)
    rows: list[list[str]] = []
    for name, improved in sorted(by_category.items(), key=lambda item: -len(item[1])):
        times = Counter(change.mutation for each in improved for change in each.changes)
        most_chosen = times.most_common(1)[0][0] if times else "none"
        rows.append([name, str(len(improved)), f"{_mean(improved):.3f}", most_chosen])
    table = html.table(["category", "prompts", "reward", "most frequent mutation"], rows)
    return html.section("By category", "", table, id="categories", wide=True)


def _examples(policy: Sequence[Improved]) -> str:
    best = sorted(policy, key=lambda each: -each.reward)[:SHOWN]
    parts: list[str] = []
    for each in best:
        steps = ", ".join(c.mutation for c in each.changes) or "left unchanged"
        scores = f"{each.score_before:.2f} → {each.score:.2f}, {each.tokens_added:+d} tokens"
        summary = html.Markup(f"{html.escape(each.original[:110])} <small>{scores}</small>")
        parts.append(html.details(summary, f"<p>{html.escape(steps)}</p><pre>{html.escape(each.text)}</pre>"))
    note = f"The {len(best)} with the highest reward; click one to see its new text."
    return html.section("Prompts", note, "".join(parts), id="examples", wide=True)
