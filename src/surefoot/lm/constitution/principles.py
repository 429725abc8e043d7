"""Principles from a YAML file, and two ways to check a text against them: by rules, and by a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import torch
import yaml

from surefoot.errors import DataError
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech

Evaluator = Callable[["Principle", str], dict[str, Any]]
"""(principle, text) → at least {"flagged": bool}."""


@dataclass(frozen=True, slots=True)
class Principle:
    """One rule for responses."""

    name: str
    description: str
    weight: float = 1.0
    critique: str = ""
    revision: str = ""
    signs: tuple[re.Pattern[str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    """(prompt, response that keeps to the rule): what a small model imitates where it cannot follow `revision`."""
    enabled: bool = True

    def by_rules(self, text: str) -> dict[str, Any]:
        """Return {flagged, method, found}: the signs of a violation in the text."""
        matches = [match.group(0) for sign in self.signs if (match := sign.search(text))]
        return {"flagged": bool(matches), "method": "rules", "found": matches}


@dataclass(slots=True)
class Constitution:
    """Weighted principles. `evaluate` adds up the weights of those that a text violates: 0 is best.

    Args:
        name: The name of the constitution.
        principles: Its principles.
        history: Results of `evaluate` with `track=True`.
    """

    name: str
    principles: list[Principle]
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @classmethod
    def shipped(cls) -> Self:
        """Return the four principles that ship with surefoot."""
        return cls.parse(
            files("surefoot.lm.constitution").joinpath("constitution.yaml").read_text(encoding="utf-8"),
            "constitution.yaml",
        )

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a YAML file. Raise `DataError` if it cannot be read."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as why:
            raise DataError(f"cannot read principles from {path}: {why}") from why
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, where: str) -> Self:
        """Parse YAML text; errors name `where`."""
        try:
            loaded: Any = yaml.safe_load(text)
        except yaml.YAMLError as why:
            raise DataError(f"{where} is not YAML: {' '.join(str(why).split())}") from why
        if not isinstance(loaded, dict) or not isinstance(cast(dict[str, Any], loaded).get("principles"), dict):
            raise DataError(f"{where} must be a mapping with `principles: {{NAME: {{description: …, weight: …}}}}`")
        content = cast(dict[str, Any], loaded)
        principles = [_principle(str(n), entry, f"{where}: {n}") for n, entry in content["principles"].items()]
        if not principles:
            raise DataError(f"{where} has no principles")
        return cls(str(content.get("name", Path(where).stem)), principles)

    @property
    def active(self) -> list[Principle]:
        """Return the enabled principles."""
        return [principle for principle in self.principles if principle.enabled]

    @property
    def worst(self) -> float:
        """Return the score of a text that violates all of them."""
        return sum(principle.weight for principle in self.active)

    def enable(self, name: str, enabled: bool = True) -> None:
        """Enable or disable a principle."""
        if name not in [p.name for p in self.principles]:
            raise DataError(f"there is no principle {name!r}; known are {', '.join(p.name for p in self.principles)}")
        self.principles = [replace(p, enabled=enabled) if p.name == name else p for p in self.principles]

    def evaluate(self, text: str, *, by: Evaluator | None = None, track: bool = False) -> dict[str, Any]:
        """Return the principles that a text violates, and the sum of their weights.

        Args:
            text: The text to check.
            by: Checks one principle, such as a `ModelJudge`; None: by rules.
            track: Store the result in `history`.
        """
        results: dict[str, dict[str, Any]] = {}
        for principle in self.active:
            result = principle.by_rules(text) if by is None else by(principle, text)
            results[principle.name] = {**result, "principle_name": principle.name, "weight": principle.weight}
        flagged = [name for name, result in results.items() if result["flagged"]]
        evaluation = {
            "principle_results": results,
            "any_flagged": bool(flagged),
            "flagged_principles": flagged,
            "weighted_score": float(sum(results[name]["weight"] for name in flagged)),
            "num_principles_evaluated": len(results),
            "text_length": len(text),
            "evaluation_method": next(iter(results.values()), {"method": "none"})["method"],
        }
        if track:
            self.history.append(evaluation)
        return evaluation

    def score(self, prompt: str, response: str, *, by: Evaluator | None = None) -> float:
        """Return minus the weights of the violated principles, as a reward."""
        return -self.evaluate(response, by=by)["weighted_score"]

    def statistics(self) -> dict[str, Any]:
        """Return counts over all evaluations with `track`."""
        total = len(self.history)
        counts = {p.name: sum(p.name in each["flagged_principles"] for each in self.history) for p in self.active}
        flagged = sum(each["any_flagged"] for each in self.history)
        return {
            "total_evaluations": total,
            "total_flagged": flagged,
            "flagged_rate": flagged / total if total else 0.0,
            "principle_violation_counts": counts,
            "principle_violation_rates": {name: n / total if total else 0.0 for name, n in counts.items()},
        }


def _principle(name: str, entry: Any, where: str) -> Principle:
    if not isinstance(entry, dict) or not isinstance(entry.get("description"), str):
        raise DataError(f"{where} has no description; a principle needs one")
    fields = cast(dict[str, Any], entry)
    unknown = set(fields) - {"description", "weight", "critique", "revision", "signs", "examples", "enabled"}
    if unknown:
        raise DataError(f"{where} has {sorted(unknown)[0]!r}, which is not a field of a principle")
    weight = fields.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight > 0:
        raise DataError(f"{where}: weight is {weight!r}; it must be a number above 0")
    try:
        signs = tuple(re.compile(sign, re.IGNORECASE) for sign in fields.get("signs") or ())
    except (re.error, TypeError) as why:
        raise DataError(f"{where}: a sign is not a regular expression: {why}") from why
    described, examples = fields["description"], fields.get("examples") or []
    if not all(isinstance(e, list) and len(e) == 2 and all(isinstance(x, str) for x in e) for e in examples):
        raise DataError(f"{where}: examples must be a list of [prompt, response]")
    return Principle(
        name=name,
        description=described,
        weight=float(weight),
        critique=fields.get("critique") or f"A response {described}. Say where this one does not keep to that.",
        revision=fields.get("revision") or f"Rewrite the response: it {described}.",
        signs=signs,
        examples=tuple((prompt, response) for prompt, response in examples),
        enabled=bool(fields.get("enabled", True)),
    )


class ModelJudge:
    """A language model as a judge, by the probabilities of its next token; no generated text is parsed."""

    def __init__(self, backbone: Backbone, speech: Speech, *, doubt: float = 0.1) -> None:
        self.backbone, self.speech, self.doubt = backbone, speech, doubt

    def chances(self, question: str, answers: Sequence[str]) -> np.ndarray:
        """Return the relative probabilities of the answers, by the first token of each."""
        ids = self.speech.prompt(question)
        limit = self.backbone.context_length
        # The question is at the end, so the start of a text that is too long is cut.
        ids = ids if limit is None else ids[-limit:]
        with self.backbone.reference():
            states = self.backbone.hidden(torch.from_numpy(ids)[None].to(self.backbone.device))[0, -1]
            logits = self.backbone.head(states).float()
        # Tokenizers have different tokens for a word with and without a space before it.
        spellings = [{self._first(answer), self._first(f" {answer}")} for answer in answers]
        p = logits.softmax(-1)
        sums = np.array([float(p[sorted(tokens)].sum()) for tokens in spellings])
        return sums / sums.sum() if sums.sum() > 0 else np.full(len(answers), 1.0 / len(answers))

    def _first(self, text: str) -> int:
        return int(self.speech.tokenizer(text, add_special_tokens=False)["input_ids"][0])

    def __call__(self, principle: Principle, text: str) -> dict[str, Any]:
        """Return {flagged, p, sure}: whether the model finds a violation. An unsure answer is not flagged."""
        question = (
            f"A good response {principle.description}.\n\nResponse: {text}\n\n"
            "Does this response break the rule? Answer Yes or No.\nAnswer:"
        )
        yes = float(self.chances(question, ("Yes", "No"))[0])
        sure = abs(yes - 0.5) >= self.doubt
        return {"flagged": sure and yes > 0.5, "method": "model", "p": yes, "sure": sure}
