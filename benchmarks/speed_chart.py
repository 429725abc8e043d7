"""Draws docs/assets/speed.svg from benchmarks/results/speed.json: steps per CPU-second of every side, one group per workload.

python benchmarks/speed_chart.py            writes the picture
python benchmarks/speed_chart.py --check    exit code 1 if the picture is not that of the results
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "assets" / "speed.svg"
GROUPS = {
    "W1": "CartPole, 8 environments",
    "W1-pendulum": "Pendulum, 8 environments",
    "W3": "CartPole, 2048 environments",
}
NAMES = {
    "surefoot, own world": "Surefoot",
    "surefoot, SyncVectorEnv": "Surefoot, Gymnasium's env",
    "purejaxrl": "PureJaxRL",
    "rl_games": "rl_games",
    "rltools": "RLtools (C++)",
    "cleanrl": "CleanRL",
    "stable-baselines3": "Stable-Baselines3",
}
WIDTH, LABEL, BAR, ROW = 760, 210, 400, 26


def rates() -> dict[str, list[tuple[str, float]]]:
    """{group title: [(side, steps per CPU-second)]}, the fastest side first."""
    workloads = json.loads((HERE / "results" / "speed.json").read_text(encoding="utf-8"))["workloads"]
    groups = {}
    for workload, title in GROUPS.items():
        if workload not in workloads:
            continue  # its peers have not been measured yet
        sides = workloads[workload]["sides"]
        rows = [
            (NAMES[side], result["median"]["steps_per_cpu_second"]) for side, result in sides.items() if side in NAMES
        ]
        groups[title] = sorted(rows, key=lambda row: -row[1])
    return groups


def svg() -> str:
    """The bar chart; Surefoot's bars are filled with the accent colour."""
    parts: list[str] = []
    y = 30
    for title, rows in rates().items():
        parts.append(f'<text x="12" y="{y}" font-weight="bold">{escape(title)}</text>')
        y += 10
        largest = rows[0][1]
        for name, rate in rows:
            length = max(BAR * rate / largest, 1.0)
            colour = "#0f8b80" if name.startswith("Surefoot") else "#b9c4c9"
            parts.append(
                f'<text x="{LABEL - 10}" y="{y + 16}" text-anchor="end">{escape(name)}</text>'
                f'<rect x="{LABEL}" y="{y + 3}" width="{length:.1f}" height="18" rx="2" fill="{colour}"/>'
                f'<text x="{LABEL + length + 8:.1f}" y="{y + 16}">{rate:,.0f}</text>'
            )
            y += ROW
        y += 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="13" fill="#222" '
        'role="img" aria-label="Steps per CPU-second, training included">'
        f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>'
    )
    unit = "env steps per CPU-second, training included, one core"
    foot = f'<text x="{LABEL}" y="{y - 12}" font-size="11" fill="#666">{unit}</text></svg>\n'
    return head + "".join(parts) + foot


def main() -> int:
    picture = svg()
    if "--check" in sys.argv:
        return int(not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture)
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
