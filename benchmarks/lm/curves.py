"""Draws docs/assets/lm-curves.png out of benchmarks/results: the optimum approached over steps, the rule kept over tokens.

python benchmarks/lm/curves.py
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import common
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"ppo": "tab:blue", "rloo": "tab:orange", "grpo": "tab:green", "k1": "tab:blue", "exact": "tab:orange"}
WHERE = common.RESULTS.parents[1] / "docs" / "assets" / "lm-curves.png"


def smooth(values: list[float], width: int = 4) -> list[float]:
    """The mean of the last few: a step has a couple of dozen responses."""
    return [sum(part) / len(part) for i in range(len(values)) if (part := values[max(0, i + 1 - width) : i + 1])]


def rule(axes: Any, found: dict[str, Any]) -> None:
    told: set[str] = set()
    for key, made in sorted(found.items()):
        name = key.split()[0]
        tokens = list(accumulate(step[2] for step in made["curve"]))
        label = None if name in told else name
        axes.plot(tokens, smooth([step[0] for step in made["curve"]]), color=COLOURS[name], label=label, alpha=0.8)
        told.add(name)
    axes.axhline(0.9, color="grey", linestyle=":")
    axes.set(xlabel="tokens", ylabel="responses that keep to the rule", ylim=(0, 1))


def optimum(axes: Any, found: dict[str, Any]) -> None:
    told: set[str] = set()
    for key, made in sorted(found.items()):
        kl = key.split()[0]
        label = None if kl in told else f"KL in the reward: {kl}"
        axes.plot([step[0] for step in made["curve"]], color=COLOURS[kl], label=label, alpha=0.8)
        axes.axhline(made["optimal_share"], color="grey", linestyle=":")
        told.add(kl)
    axes.set(xlabel="steps", ylabel="share of tokens that are paid for", ylim=(0, 1))


def main() -> None:
    drawn = [
        (draw, found) for draw in (optimum, rule) if (found := common.Kept(f"lm_{draw.__name__}").found)
    ]  # what was not measured has no panel
    if not drawn:
        raise SystemExit("nothing was measured yet: make bench-lm")
    figure, panels = plt.subplots(1, len(drawn), figsize=(4.5 * len(drawn), 3.2), squeeze=False)
    for (draw, found), axes in zip(drawn, panels[0], strict=True):
        draw(axes, found)
        axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(WHERE, dpi=110)
    print(WHERE)


if __name__ == "__main__":
    main()
