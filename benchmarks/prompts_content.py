"""Does a mutation lose content of a prompt? Count over the prompts of public data sets.

Content is every word, number, quoted string, code span, URL and question mark, counted by plain regular expressions that share
nothing with the mutations. Each prompt goes through every single mutation, through a random sequence of four, and gets others as
examples.

python benchmarks/prompts_content.py --data DIR [--bbh DIR] [--prompts 10000]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import sys
from collections import Counter
from pathlib import Path

from surefoot.decide.prompts.examples import Examples
from surefoot.decide.prompts.mutations import MUTATIONS, allowed, mutate
from surefoot.decide.prompts.tasks import TaskRow

RESULTS = Path(__file__).parent / "results" / "prompts_content.json"
_PARTS = r"https?://\S+|```.*?```|`[^`\n]+`|\"[^\"\n]+\"|“[^”\n]+”"


def content(text: str) -> Counter[str]:
    """Return how often each word, number, quoted string, code span, URL and question mark occurs."""
    found = Counter(re.findall(_PARTS, text, re.DOTALL))
    found.update(re.findall(r"\d+(?:[.,]\d+)*|\?", text))
    found.update(word.lower() for word in re.findall(r"[^\W\d_]+", text))
    return found


def collect(data: Path, bbh: Path | None) -> dict[str, list[str]]:
    """Return the different prompts of each data set that is there."""
    found: dict[str, list[str]] = {}
    if (path := data / "prompts" / "prompts.jsonl").exists():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found["prompts"] = [row["prompt"] + (f"\n\n{row['input']}" if row.get("input") else "") for row in rows]
    if (path := data / "hh-rlhf" / "harmless-base-train2000.jsonl.gz").exists():
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        talks = [json.loads(line)["chosen"] for line in lines]
        found["hh-rlhf"] = [
            turn.strip() for talk in talks for turn in re.findall(r"Human:(.*?)\n\nAssistant:", talk, re.DOTALL)
        ]
    if (path := data / "bfcl_multiple" / "queries.jsonl").exists():
        found["bfcl"] = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    if (path := data / "banking77" / "test.csv").exists():
        found["banking77"] = [row["text"] for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    if (path := data / "clinc150" / "data_full.json").exists():
        full = json.loads(path.read_text(encoding="utf-8"))
        found["CLINC150"] = [text for rows in full.values() for text, _ in rows]
    if (path := data / "hwu64" / "raw.txt").exists():
        found["HWU64"] = [line.rsplit(",", 1)[0] for line in path.read_text(encoding="utf-8").splitlines()]
    if bbh is not None:
        files = [json.loads(path.read_text(encoding="utf-8"))["examples"] for path in sorted(bbh.glob("*.json"))]
        found["BIG-Bench Hard"] = [example["input"] for examples in files for example in examples]
    return {
        name: list(dict.fromkeys(prompt for prompt in prompts if prompt.strip())) for name, prompts in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bbh", type=Path, help="folder with the files of BIG-Bench Hard")
    parser.add_argument("--prompts", type=int, default=10_000)
    args = parser.parse_args()
    rng, sources = random.Random(0), collect(args.data, args.bbh)
    prompts = [prompt for each in sources.values() for prompt in each]
    rng.shuffle(prompts)
    prompts = prompts[: args.prompts]
    # Prompts as examples of each other, with an answer that no prompt contains.
    examples = Examples([TaskRow(prompt=prompt, answer="§") for prompt in prompts[:500]])
    losing, texts = list[str](), 0
    for prompt in prompts:
        before = content(prompt)
        mask = allowed(prompt)
        versions = [mutate(prompt, i).text for i in range(len(MUTATIONS)) if mask[i]]
        text = prompt
        for i in (rng.randrange(len(MUTATIONS)) for _ in range(4)):
            text = mutate(text, i).text if allowed(text)[i] else text
        versions += [text] if text != prompt else []
        shown = examples.before(prompt, prompt, 200)
        versions += [shown] if shown != prompt else []
        texts += len(versions)
        if any(before - content(version) for version in versions):
            losing.append(prompt)
    for prompt in losing[:5]:
        print(f"loses content: {prompt[:200]!r}")
    result = {
        "prompts": len(prompts),
        "sources": {name: len(each) for name, each in sources.items()},
        "texts": texts,
        "losing": len(losing),
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result))
    return 1 if losing else 0


if __name__ == "__main__":
    sys.exit(main())
