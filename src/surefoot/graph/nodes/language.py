"""Language models at work: one tick is prompts in, responses out, scored, priced and learned from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError
from surefoot.graph.catalogue.language import PROMPTS
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.nets.description import load_weights
from surefoot.train.collect.episodes import Episode

COMPLETE = "complete"
WINDOW = 200


def _lm(name: str) -> Any:
    """A module of the room for language models, which may not be there."""
    return import_module(f"surefoot.lm.{name}")


class PromptSource:
    """Lines, shuffled anew in every pass."""

    def __init__(self, prompts: str = PROMPTS, batch: int = 32, *, seed: int = 0) -> None:
        self.prompts, self.batch = [line for line in prompts.splitlines() if line.strip()], batch
        if not self.prompts:
            raise ConfigError("prompts has no line with words; write one prompt on a line")
        generator = torch.Generator().manual_seed(seed_for("prompts", seed))
        self.cursor = _lm("training").Cursor(len(self.prompts), generator)

    def __call__(self) -> list[str]:
        return [self.prompts[k] for k in self.cursor.take(self.batch)]

    def snapshot(self) -> dict[str, Any]:
        """Where in the prompts it is."""
        return {"order": list(self.cursor.order), "generator": self.cursor.generator.get_state()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.cursor.order = [int(k) for k in saved["order"]]
        self.cursor.generator.set_state(torch.as_tensor(saved["generator"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A model as a policy, and how it speaks."""

    policy: Any
    speech: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """What was said in a tick, as tokens and as text."""

    prompts: list[str]
    texts: list[str]
    each: list[Any]


class LMSampler:
    """A model that answers; loaded when the graph is built."""

    def __init__(
        self,
        model: str = "tiny",
        train: str = "lora",
        rank: int = 8,
        max_new_tokens: int = 16,
        min_new_tokens: int = 0,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        *,
        seed: int = 0,
        into: Path | str = ".",
    ) -> None:
        if model == "tiny":
            model = str(_lm("tiny").make_tiny(Path(into) / "tiny"))
        config = _lm("config").LMConfig(train=train, rank=rank, temperature=temperature, dtype="float32", seed=seed)
        backbone, tokenizer = _lm("models").load_backbone(model, config)
        self.sampling = _lm("sample").Sampling(
            max_new_tokens=max_new_tokens,
            min_new_tokens=min_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
        )
        self.language = Language(
            policy=_lm("policy").LMPolicy(backbone, temperature=temperature),
            speech=_lm("models").Speech(tokenizer, backbone.model),
        )
        self.generator = torch.Generator().manual_seed(seed_for("sample", seed))

    def __call__(self, prompts: list[str]) -> tuple[Responses, Language]:
        speech = self.language.speech
        each = _lm("sample").generate(
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
        """What learned."""
        return dict(self.language.policy.state_dict())

    def snapshot(self) -> dict[str, Any]:
        """Weights and randomness."""
        weights = {name: x.detach().clone() for name, x in self.state_dict().items()}
        return {"weights": weights, "generator": self.generator.get_state()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        load_weights(self.language.policy, saved["weights"])
        self.generator.set_state(torch.as_tensor(saved["generator"]))


class RewardModel:
    """A score for each response."""

    def __init__(self, by: str = "characters", paid: str = "aeiou", model: str = "") -> None:
        self.score = self._scorer(by, paid, model)

    def _scorer(self, by: str, paid: str, model: str) -> Callable[[str, str], float]:
        if by == "constitution":
            return _lm("constitution").Constitution.shipped().score
        if by == "model":
            if not model:
                raise ConfigError("model is not set; name a folder that `surefoot lm reward` wrote")
            judge = _lm("scoring").scorer(model)
            return lambda prompt, response: judge(response)
        return lambda prompt, response: sum(c in paid for c in response) / max(1, len(response))

    def __call__(self, responses: Responses) -> np.ndarray:
        return np.array([self.score(p, r) for p, r in zip(responses.prompts, responses.texts, strict=True)], np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Responses as arrays, with what every token is paid."""

    laid: Any
    reward: np.ndarray
    scores: np.ndarray
    stats: dict[str, float]


class KLPenalty:
    """Asks the reference what it finds of each token."""

    def __init__(self, beta: float = 0.05, kl: str = "k1", target: float | None = None) -> None:
        self.exact, module = kl == "exact", _lm("kl")
        self.beta = module.FixedBeta(beta) if target is None else module.AdaptiveBeta(beta, target, 1000)

    def __call__(self, responses: Responses, scores: np.ndarray, language: Language) -> tuple[Tokens, float]:
        experience = _lm("experience")
        laid = experience.lay_out(responses.each)
        experience.consult(
            language.policy, laid, exact_in_reward=self.exact, exact_in_loss=False, rescore=False, values=False
        )
        beta, kl = self.beta.beta, float(laid.kl().mean())
        # γ is 1; λ of the trainer only smooths the exact KL's noise, for which 0.95 is as good as any.
        reward = experience.token_rewards(laid, scores, beta=beta, decay=0.95)
        self.beta.see(kl, len(scores))
        stats = {
            "score": float(scores.mean()),
            "kl": kl,
            "beta": beta,
            "response_length": float(laid.length.mean()),
            "ended": float(laid.ended.mean()),
        }
        return Tokens(laid=laid, reward=reward, scores=scores, stats=stats), kl

    def snapshot(self) -> dict[str, Any]:
        """What a nat costs now."""
        return {"beta": self.beta.beta}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.beta.beta = float(saved["beta"])


Said = tuple[str, dict[str, Any], list[Episode], "LMTrainer"]


class LMTrainer:
    """An update a tick, by the library's learner."""

    normalize_rewards = False

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        epochs: int = 4,
        minibatches: int = 2,
        lam: float = 0.95,
        clip_param: float = 0.2,
        value_coef: float = 0.1,
        max_grad_norm: float = 1.0,
        *,
        seed: int = 0,
        total_steps: int = 100_000,
    ) -> None:
        config = _lm("config").LMConfig(seed=seed)
        self.config = config.ppo(
            lr=learning_rate,
            epochs=epochs,
            minibatches=minibatches,
            lam=lam,
            clip=clip_param,
            value_clip=None,
            vf_coef=value_coef,
            max_grad_norm=max_grad_norm,
        )
        self.learner: Learner | None = None
        self.total_steps = total_steps
        self.updates = self.env_steps = 0
        self.recent: deque[float] = deque(maxlen=WINDOW)
        """Scores of the last responses."""

    def __call__(self, tokens: Tokens, language: Language) -> Said:
        if self.learner is None:
            updates = max(1, -(-self.total_steps // len(tokens.scores)))
            self.learner = Learner(language.policy, self.config, total_updates=updates, device=torch.device("cpu"))
        rollout = _lm("experience").to_rollout(
            tokens.laid, tokens.reward, version=self.learner.policy_version, kl_in_loss=False, stats=tokens.stats
        )
        self.env_steps += len(tokens.scores)
        self.recent.extend(tokens.scores.tolist())
        return self._said(self.learner.update(rollout), tokens)

    def _said(self, report: UpdateReport, tokens: Tokens) -> Said:
        self.updates = report.update
        lengths = tokens.laid.length
        told = {"update": report.update, "env_steps": self.env_steps, **report.metrics(), **report.stats}
        told |= {"return": float(tokens.scores.mean()), "length": float(lengths.mean())}
        fresh = [
            Episode(stream=k, return_=float(score), length=int(lengths[k]), success=None, truncated=False)
            for k, score in enumerate(tokens.scores)
        ]
        return COMPLETE, told, fresh, self

    def snapshot(self) -> dict[str, Any]:
        """The learner."""
        assert self.learner is not None
        return {**self.learner.state(), "updates": self.updates, "env_steps": self.env_steps}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        assert self.learner is not None
        self.learner.set_state({"optimizer": saved["optimizer"], "learner": saved["learner"]})
        self.updates, self.env_steps = int(saved["updates"]), int(saved["env_steps"])

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint."""
        assert self.learner is not None
        weights = {name: x.detach().clone() for name, x in self.learner.policy.state_dict().items()}
        return {"weights": weights, **self.learner.state()}
