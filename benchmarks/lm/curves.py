"""Draws docs/assets/lm-curves.png out of benchmarks/results: the rule kept over tokens, the optimum approached over steps.

python benchmarks/lm/curves.py
"""

from __future__ import annotations

from itertools import accumulate

import common
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = {"ppo": "tab:blue", "rloo": "tab:orange", "grpo": "tab:green", "k1": "tab:blue", "exact": "tab:orange"}
WHERE = common.RESULTS.parents[1] / "docs" / "assets" / "lm-curves.png"


def smooth(values: list[float], width: int = 4) -> list[float]:
    """The mean of the last few: a step has a couple of dozen responses."""
    return [sum(part) / len(part) for i in range(len(values)) if (part := values[max(0, i + 1 - width) : i + 1])]


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    told: set[str] = set()
    for key, made in sorted(common.Kept("lm_rule").found.items()):
        name = key.split()[0]
        tokens = list(accumulate(step[2] for step in made["curve"]))
        label = None if name in told else name
        left.plot(tokens, smooth([step[0] for step in made["curve"]]), color=COLOURS[name], label=label, alpha=0.8)
        told.add(name)
    left.axhline(0.9, color="grey", linestyle=":")
    left.set(xlabel="tokens", ylabel="responses that keep to the rule", ylim=(0, 1))
    told = set()
    for key, made in sorted(common.Kept("lm_optimum").found.items()):
        kl = key.split()[0]
        label = None if kl in told else f"KL in the reward: {kl}"
        right.plot([step[0] for step in made["curve"]], color=COLOURS[kl], label=label, alpha=0.8)
        right.axhline(made["optimal_share"], color="grey", linestyle=":")
        told.add(kl)
    right.set(xlabel="steps", ylabel="share of the tokens that are paid for", ylim=(0, 1))
    for axes in (left, right):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(WHERE, dpi=110)
    print(WHERE)


if __name__ == "__main__":
    main()
