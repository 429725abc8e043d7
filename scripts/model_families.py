"""Writes docs/lm/models.md from the matrix of model families that the tests run. A test fails on a stale page.

python scripts/model_families.py            write it
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "unit" / "lm"))

from families import FAMILIES, REFUSED, Family  # noqa: E402

from surefoot.lm.policy.adapters import targets_in  # noqa: E402
from surefoot.lm.policy.backbone import Backbone  # noqa: E402

PAGE = ROOT / "docs" / "lm" / "models.md"
TEXT = """<!-- Written by scripts/model_families.py from tests/unit/lm/families.py; edit these, not this page. -->
# Which models can be trained

`surefoot lm ppo --model DIR` takes any causal language model of transformers with an attention cache. The layers of GPT-2 and
Llama are written out and faster; all others are run by transformers' own forward pass, masks and cache, so windows, ALiBi, soft
caps, scaled logits and experts are those of the model.

`tests/unit/lm/policy/test_transformers_layers.py` runs every family below with tiny random weights and adapters on all linear
layers: prompts of 1 to 30 tokens side by side (padded on the left), prompts of one length, and one prompt; sequences of up to 50
tokens with a window of 8; temperature, top-k, top-p and a minimum length. The log-probs of sampling, those of the reference and
the exact KL differ by less than 1e-5 from a plain forward pass over one row at a time.

| family | class in transformers | adapters by default | special |
|---|---|---|---|
{rows}

A family that is not in the table is tried when it is loaded: its output layer, and one short text read with and without the
cache. If the two differ, it is refused by name before anything is sampled.

## Refused

| family | class in transformers | why |
|---|---|---|
{refused}

`packed=true` needs GPT-2 or Llama. Rows of the other families are written in batches of `rows` prompts and are not refilled, so
set `rows` to at least the number of responses per step if memory allows.
"""


def adapters(family: Family) -> str:
    """Return the layers that get adapters by default."""
    layer = Backbone(family.build(), train="none").layers[0]
    return ", ".join(
        f"`{name}`" for name in sorted({path.rsplit(".", 1)[-1] for path in targets_in(layer, "attention")})
    )


def page() -> str:
    """Return the page as it should be."""
    rows = "\n".join(f"| {f.title} | `{f.model}` | {adapters(f)} | {f.notes} |" for f in FAMILIES)
    refused = "\n".join(f"| {f.title} | `{f.model}` | {f.notes} |" for f in REFUSED)
    return TEXT.format(rows=rows, refused=refused)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
