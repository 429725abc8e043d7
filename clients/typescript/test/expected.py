"""What Python makes of prompts, as one JSON document for the TypeScript tests: python test/expected.py < prompts.json"""

from __future__ import annotations

import json
import sys
from typing import Any

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.prompts.classify import classify
from surefoot.decide.prompts.lint import lint
from surefoot.decide.prompts.text import tokens

DIMS = (8, 13, 96, 384, 1536)


def told(prompt: str) -> dict[str, Any]:
    found = classify(prompt)
    return {
        "category": found.category,
        "confidence": found.confidence,
        "characteristics": found.characteristics,
        "tokens": tokens(prompt),
        "breakdown": lint(prompt).breakdown,
        "score": lint(prompt).score,
        "embeddings": [HashingEncoder(dim).encode([prompt])[0].tolist() for dim in DIMS],
    }


if __name__ == "__main__":
    prompts = json.load(sys.stdin)
    json.dump({"dims": DIMS, "prompts": [told(prompt) for prompt in prompts]}, sys.stdout)
