"""GEPA with the same small model, for prompts.py: evolve one instruction that stands before every prompt.

GEPA's reflection needs a language model too; it is the model that answers, so that no way has help from a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gepa

from prompts_rows import Row
from surefoot.lm.rewards.answer_model import AnswerModel

NAME = "instruction"
FIRST = "Read the task and give the right answer."
# Each accepted instruction is measured on all of them: more rows leave fewer instructions to try.
VALIDATION = 30
# The model takes 8,192 tokens, but a reflection on long rows costs more than the evaluations it leads to.
LONGEST = 6000


class _Adapter:
    """Measures an instruction by the log-likelihood of the right answers."""

    propose_new_texts = None

    def __init__(self, model: Any) -> None:
        self.model = model

    def evaluate(self, batch: Sequence[Row], candidate: Mapping[str, str], capture_traces: bool = False) -> Any:
        texts = [f"{candidate[NAME]}\n\n{row['prompt']}" for row in batch]
        values = [float(x) for x in self.model.log_likelihood(texts, [row["answer"] for row in batch])]
        traces = [{"row": row, "value": value} for row, value in zip(batch, values, strict=True)]
        # exp: GEPA skips rows with a perfect score, which is 1.
        scores = [math.exp(value) for value in values]
        return gepa.EvaluationBatch(outputs=values, scores=scores, trajectories=traces if capture_traces else None)

    def make_reflective_dataset(self, candidate: Any, eval_batch: Any, components_to_update: Any) -> Any:
        records = [
            {
                "Inputs": each["row"]["prompt"],
                "Generated Outputs": f"probability {math.exp(each['value']):.2f} per token of the right answer",
                "Feedback": f"The right answer is: {each['row']['answer']}",
            }
            for each in eval_batch.trajectories
        ]
        return {NAME: records}


def instruction(rows: Sequence[Row], model: Any, evaluations: int) -> str:
    """Return the best instruction that GEPA finds within that many evaluations."""
    reflecting = AnswerModel(model.name, max_new_tokens=160)

    def reflect(prompt: str | list[dict[str, Any]]) -> str:
        text = prompt if isinstance(prompt, str) else "\n\n".join(str(each["content"]) for each in prompt)
        return reflecting.reply([text[-LONGEST:]])[0]

    result = gepa.optimize(
        seed_candidate={NAME: FIRST},
        trainset=list(rows[VALIDATION:]),
        valset=list(rows[:VALIDATION]),
        adapter=_Adapter(model),  # type: ignore[arg-type]
        reflection_lm=reflect,
        max_metric_calls=evaluations,
        seed=0,
    )
    return str(result.best_candidate[NAME])
