"""Answers to held-out prompts, by the policy or by the reference, for judges and for the limits of fluency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch

from surefoot.data.seeds import seed_for
from surefoot.lm.config import LMConfig
from surefoot.lm.data import as_text, messages_of
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Prompt, PromptRow, Speech
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.rewards.fluency import Fluency, fluency
from surefoot.lm.rewards.rewards import RewardInputs
from surefoot.lm.sampling.rollout import consult, lay_out
from surefoot.lm.sampling.sampler import Response, generate


class HeldOut:
    """Prompts that are never trained on. Calling it returns the answers and their fluency.

    Args:
        policy: The policy, with its reference.
        speech: The tokenizer.
        config: Decides how answers are sampled.
        prompts: The prompts; those that do not fit into the model are left out.
    """

    def __init__(self, policy: LMPolicy, speech: Speech, config: LMConfig, prompts: Sequence[Prompt]) -> None:
        self.policy, self.speech, self.config = policy, speech, config
        room = room_for_prompts(policy.backbone, config)
        self.prompts = speech.usable(prompts, room)[0] if prompts else []

    def __call__(self, by_reference: bool) -> tuple[RewardInputs, Fluency]:
        """Return (prompts and answers as judges take them, the answers' fluency)."""
        # The same random numbers each time, so that two evaluations differ by the policy alone.
        generator = torch.Generator().manual_seed(seed_for("judge", self.config.seed))
        ids, sampling = [prompt.ids for prompt in self.prompts], self.config.sampling
        with self.policy.reference() if by_reference else nullcontext():
            responses = generate(self.policy, ids, sampling, eos=self.speech.eos, generator=generator)
        batch = lay_out(responses)
        consult(self.policy, batch, exact_in_reward=False, exact_in_loss=False, rescore=False, values=False)
        inputs = reward_inputs(self.speech, self.prompts, responses)
        nll = float(-batch.ref_log_prob[batch.valid].mean())
        return inputs, fluency([r.tokens for r in responses], inputs.responses, nll)


def room_for_prompts(backbone: Backbone, config: LMConfig) -> int | None:
    """Return how many tokens of prompt fit beside the response; None without a limit."""
    return None if backbone.context_length is None else backbone.context_length - config.max_new_tokens


def reward_inputs(speech: Speech, prompts: Sequence[PromptRow], responses: Sequence[Response]) -> RewardInputs:
    """Return prompts and responses as rewards and judges take them."""
    texts = [speech.text(response.tokens) for response in responses]
    answers = [{"role": "assistant", "content": text} for text in texts]
    return RewardInputs(
        prompts=[as_text(prompt.talk) for prompt in prompts],
        responses=texts,
        prompt_ids=[prompt.ids for prompt in prompts],
        response_ids=[speech.without_end(response.tokens) for response in responses],
        conversations=[[*messages_of(p.talk), answer] for p, answer in zip(prompts, answers, strict=True)],
        rows=[prompt.row for prompt in prompts],
    )
