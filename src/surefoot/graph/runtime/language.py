"""Language-model nodes: in one tick prompts are sampled, responses generated and scored, and PPO updates the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode, built, checkpoint_parts, copy_weights
from surefoot.learn.learner import Learner
from surefoot.lm.config import LMConfig
from surefoot.lm.constitution.principles import Constitution
from surefoot.lm.policy.loading import Speech, load_backbone
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.policy.tiny import make_tiny
from surefoot.lm.rewards.kl_penalty import AdaptiveBeta, FixedBeta
from surefoot.lm.rewards.scoring import scorer
from surefoot.lm.sampling.rollout import consult, lay_out, to_rollout, token_rewards
from surefoot.lm.sampling.sampler import Sampling, generate
from surefoot.lm.training import Cursor
from surefoot.nets.policy import load_weights
from surefoot.train.collect.episodes import Episode


class PromptSourceNode(RuntimeNode):
    """Lines of text, shuffled again in every pass."""

    def setup(self) -> None:
        self.prompts = [line for line in self.params.prompts.splitlines() if line.strip()]
        if not self.prompts:
            raise ConfigError("prompts has no text; write one prompt per line")
        generator = torch.Generator().manual_seed(seed_for("prompts", self.seed))
        self.cursor = Cursor(len(self.prompts), generator)

    def __call__(self) -> list[str]:
        return [self.prompts[k] for k in self.cursor.take(self.params.batch)]

    def snapshot(self) -> dict[str, Any]:
        return {"order": list(self.cursor.order), "generator": self.cursor.generator.get_state()}

    def restore(self, saved: dict[str, Any]) -> None:
        self.cursor.order = [int(k) for k in saved["order"]]
        self.cursor.generator.set_state(torch.as_tensor(saved["generator"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A model as a policy, with its tokenizer."""

    policy: Any
    speech: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """The responses of a tick, as tokens and as text."""

    prompts: list[str]
    texts: list[str]
    each: list[Any]


class LMSamplerNode(RuntimeNode):
    """A language model; loaded when the graph is built."""

    def setup(self) -> None:
        it = self.params
        # A model without a download, for tests and the first try.
        model = str(make_tiny(self.into / "tiny")) if it.model == "tiny" else it.model
        config = LMConfig(train=it.train, rank=it.rank, temperature=it.temperature, dtype="float32", seed=self.seed)
        backbone, tokenizer = load_backbone(model, config)
        names = ("max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p")
        self.sampling = Sampling(**{name: getattr(it, name) for name in names})
        self.language = Language(
            policy=LMPolicy(backbone, temperature=it.temperature),
            speech=Speech(tokenizer, backbone.model),
        )
        self.generator = torch.Generator().manual_seed(seed_for("sample", self.seed))

    def __call__(self, prompts: list[str]) -> tuple[Responses, Language]:
        speech = self.language.speech
        each = generate(
            self.language.policy,
            [speech.prompt(prompt) for prompt in prompts],
            self.sampling,
            eos=speech.eos,
            generator=self.generator,
            keep_trunk=True,
        )
        texts = [speech.text(response.tokens) for response in each]
        return Responses(prompts=prompts, texts=texts, each=each), self.language

    def state_dict(self) -> dict[str, Any]:
        """Return the weights that are trained."""
        return dict(self.language.policy.state_dict())

    def snapshot(self) -> dict[str, Any]:
        return {"weights": copy_weights(self), "generator": self.generator.get_state()}

    def restore(self, saved: dict[str, Any]) -> None:
        load_weights(self.language.policy, saved["weights"])
        self.generator.set_state(torch.as_tensor(saved["generator"]))


class RewardModelNode(RuntimeNode):
    """A score for each response."""

    def setup(self) -> None:
        self.score: Callable[[str, str], float]
        match self.params.by:
            case "constitution":
                self.score = Constitution.shipped().score
            case "model":
                if not self.params.model:
                    raise ConfigError("model is not set; set it to a folder that `surefoot lm reward` wrote")
                judge = scorer(self.params.model)
                self.score = lambda prompt, response: judge(response)
            case _:
                paid = self.params.paid
                self.score = lambda prompt, response: sum(c in paid for c in response) / max(1, len(response))

    def __call__(self, responses: Responses) -> np.ndarray:
        return np.array([self.score(p, r) for p, r in zip(responses.prompts, responses.texts, strict=True)], np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Responses as arrays, with the reward of every token."""

    arrays: Any
    reward: np.ndarray
    scores: np.ndarray
    stats: dict[str, float]


class KLPenaltyNode(RuntimeNode):
    """Rewards per token: the score, and the KL penalty against the reference model."""

    def setup(self) -> None:
        beta, target = self.params.beta, self.params.target
        self.beta = FixedBeta(beta) if target is None else AdaptiveBeta(beta, target, 1000)

    def __call__(self, responses: Responses, scores: np.ndarray, language: Language) -> tuple[Tokens, float]:
        arrays = lay_out(responses.each)
        consult(
            language.policy,
            arrays,
            exact_in_reward=self.params.kl == "exact",
            exact_in_loss=False,
            rescore=False,
            values=False,
        )
        beta, kl = self.beta.beta, float(arrays.kl().mean())
        # γ is 1. The decay only smooths the exact KL, so the default λ of LMTrainer, 0.95, is used.
        reward = token_rewards(arrays, scores, beta=beta, decay=0.95)
        # The controller reacts to the KL of this batch in the next one.
        self.beta.see(kl, len(scores))
        stats = {
            "score": float(scores.mean()),
            "kl": kl,
            "beta": beta,
            "response_length": float(arrays.length.mean()),
            "ended": float(arrays.ended.mean()),
        }
        return Tokens(arrays=arrays, reward=reward, scores=scores, stats=stats), kl

    def snapshot(self) -> dict[str, Any]:
        return {"beta": self.beta.beta}

    def restore(self, saved: dict[str, Any]) -> None:
        self.beta.beta = float(saved["beta"])


Outputs = tuple[str, dict[str, Any], list[Episode], "LMTrainerNode"]


class LMTrainerNode(RuntimeNode):
    """One update per tick with the library's learner."""

    normalize_rewards = False

    def setup(self) -> None:
        values = {each.setting: getattr(self.params, each.name) for each in self.declared.params}
        self.config = LMConfig(seed=self.seed).ppo(**values, value_clip=None)
        self.learner: Learner | None = None
        # A step is a response: it is what total_steps counts.
        self.updates = self.env_steps = 0

    def __call__(self, tokens: Tokens, language: Language) -> Outputs:
        if self.learner is None:
            updates = max(1, -(-self.total_steps // len(tokens.scores)))
            self.learner = Learner(language.policy, self.config, total_updates=updates, device=torch.device("cpu"))
        rollout = to_rollout(
            tokens.arrays, tokens.reward, version=self.learner.policy_version, kl_in_loss=False, stats=tokens.stats
        )
        self.env_steps += len(tokens.scores)
        report = self.learner.update(rollout)
        self.updates = report.update
        lengths = tokens.arrays.length
        metrics = {"update": report.update, "env_steps": self.env_steps, **report.metrics(), **report.stats}
        metrics |= {"return": float(tokens.scores.mean()), "length": float(lengths.mean())}
        fresh = [
            Episode(stream=k, return_=float(score), length=int(lengths[k]), success=None, truncated=False)
            for k, score in enumerate(tokens.scores)
        ]
        return COMPLETE, metrics, fresh, self

    def snapshot(self) -> dict[str, Any]:
        return {**built(self.learner).state(), "updates": self.updates, "env_steps": self.env_steps}

    def restore(self, saved: dict[str, Any]) -> None:
        built(self.learner).set_state({"optimizer": saved["optimizer"], "learner": saved["learner"]})
        self.updates, self.env_steps = int(saved["updates"]), int(saved["env_steps"])

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint."""
        return checkpoint_parts(self.learner)
