"""Does a mutation lose content of a prompt? Count over every prompt of a data set and over mixtures of them.

Content is every word, number, quoted string, code span, URL and question mark, counted. Each prompt goes through every
single mutation and through random sequences of four.

python benchmarks/prompts_content.py --data DIR [--prompts 10000]     DIR has prompts.jsonl, an object with "prompt" per line
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

from surefoot.decide.prompts.mutations import MUTATIONS, allowed, mutate

_PARTS = r"https?://\S+|```.*?```|`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”"


def content(text: str) -> Counter[str]:
    """Return how often each word, number, quoted string, code span, URL and question mark occurs."""
    found = Counter(re.findall(_PARTS, text, re.DOTALL))
    found.update(re.findall(r"\d+(?:[.,]\d+)*|\?", text))
    found.update(word.lower() for word in re.findall(r"[^\W\d_]+", text))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=10_000)
    args = parser.parse_args()
    rng = random.Random(0)
    rows = [json.loads(line) for line in (args.data / "prompts.jsonl").open(encoding="utf-8")]
    prompts = [row["prompt"] + (f"\n\n{row['input']}" if row.get("input") else "") for row in rows]
    real = len(prompts)
    while len(prompts) < args.prompts:
        prompts.append(rng.choice(["\n", "\n\n", " "]).join(rng.sample(prompts[:real], 2)))
    losing = mutated = 0
    for prompt in prompts[: args.prompts]:
        texts = [mutate(prompt, i).text for i in range(len(MUTATIONS)) if allowed(prompt)[i]]
        text = prompt
        for i in (rng.randrange(len(MUTATIONS)) for _ in range(4)):
            text = mutate(text, i).text if allowed(text)[i] else text
        before = content(prompt)
        mutated += len(texts) + (text != prompt)
        losing += any(before - content(each) for each in (*texts, text))
    print(
        f"{losing} of {args.prompts} prompts ({real} as they are, others joined from two) lose content; {mutated} texts"
    )
    return 1 if losing else 0


if __name__ == "__main__":
    sys.exit(main())
