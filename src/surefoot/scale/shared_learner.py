"""Data-parallel learning: R processes collect and learn from their shares, and all take the same gradient steps.

A minibatch is drawn from the streams of all processes; every process computes the gradient of its part, and the
gradients are summed. Moments of advantages, the KL divergence, and the statistics of observations, returns and values
are over all streams, so that R processes compute what one would on the same batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.divergence import k3
from surefoot.core.losses import LOG_RATIO_LIMIT, Losses
from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError, Diverged
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.minibatches import split_sizes
from surefoot.learn.rate_control import Knobs
from surefoot.learn.report import UpdateReport
from surefoot.learn.report_builder import GradientSteps, Table
from surefoot.learn.torch_update import TorchUpdate
from surefoot.learn.value_scaling import ValueScale
from surefoot.nets.normalizer import Normalizer
from surefoot.nets.policy import Policy
from surefoot.scale.process_group import ProcessGroup


class SharedUpdate(TorchUpdate):
    """Gradient steps on a batch of which this process has a part; all processes take the same steps."""

    group: ProcessGroup
    mode: str
    """How advantages are standardised: over the minibatch or the batch of all processes, or not."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._where = torch.zeros(0, dtype=torch.int64)
        """[local columns]: index of each in the full batch; for a recurrent policy a column is a stream."""
        self._columns = 0
        self._local = self._all = 0
        """Valid steps of the current minibatch: in this process, and in all."""
        self._spread = torch.zeros(())
        self._widths: list[tuple[int, int]] = []

    def locate(self, valid: np.ndarray) -> None:
        """Find the columns of this process in the full batch, in which the streams of all processes are side by side."""
        steps, streams = valid.shape
        files = self.group.gather_bytes(np.packbits(valid).tobytes() + streams.to_bytes(4, "little"))
        counts = [int.from_bytes(each[-4:], "little") for each in files]
        first = sum(counts[: self.group.rank])
        if self.policy.sequential:
            self._where, self._columns = torch.arange(first, first + streams), sum(counts)
            return
        mask = np.concatenate(
            [
                np.unpackbits(np.frombuffer(each[:-4], np.uint8), count=steps * n).reshape(steps, n)
                for each, n in zip(files, counts, strict=True)
            ],
            axis=1,
        ).astype(bool)
        number = np.cumsum(mask.ravel()).reshape(mask.shape) - 1  # time first, padding dropped
        self._where = torch.from_numpy(number[:, first : first + streams][valid])
        self._columns = int(mask.sum())

    def minibatches(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        mode, pieces = self.mode, batch.columns // max(1, len(self._where))
        # Streams may have been split since `locate`: the first part of every stream comes first, then the second.
        where = torch.cat([self._where + k * self._columns for k in range(pieces)])
        columns, long = self._columns * pieces, batch.advantage.shape[0]
        self._widths = []
        if mode == "batch":
            batch.advantage, *_ = self._standardized(batch)
        size, _ = self.config.minibatch_size_for(columns * long)
        place = torch.full((columns,), -1, dtype=torch.int64)
        place[where] = torch.arange(len(where))
        for epoch in range(self.config.epochs):
            order, begin = torch.randperm(columns, generator=self.generator), 0
            for width in split_sizes(columns, max(1, size // long)):
                local = place[order[begin : begin + width]]
                part = batch.take(local[local >= 0].to(self.device))
                begin += width
                standardized, self._spread, self._all = self._standardized(part)
                self._local = part.advantage.numel() if part.valid is None else int(part.valid.sum())
                if self._all == 0:
                    continue  # no valid step in any process
                if mode == "minibatch":
                    part.advantage = standardized
                # A process without a valid step takes part in the step too, so its batch must not look like one to skip.
                yield epoch, part if self._local else replace(part, valid=None)

    def _standardized(self, batch: Batch) -> tuple[Tensor, Tensor, int]:
        """Return (advantage, std, count) as `core.moments.standardize`, over the steps of all processes."""
        advantage = batch.advantage
        wide = (advantage if batch.valid is None else advantage[batch.valid]).double()
        count = torch.tensor(wide.numel(), dtype=torch.float64)
        total = self.group.sum_(torch.stack([wide.sum().cpu(), wide.square().sum().cpu(), count]))
        mean = total[0] / total[2]
        std = (total[1] / total[2] - mean.square()).clamp(min=0.0).sqrt()
        if not std >= 1e-6 * max(1.0, abs(float(mean))):
            return torch.zeros_like(advantage), torch.zeros((), device=advantage.device), int(total[2])
        mean, std = mean.to(advantage), std.to(advantage)
        return (advantage - mean) / (std + 1e-8), std, int(total[2])

    def loss(self, minibatch: Batch, knobs: Knobs) -> tuple[Losses, Tensor]:
        if self._local == 0:  # the minibatch is in other processes
            zero = torch.zeros((), device=self.device)
            return Losses(zero, zero, zero, zero, None, torch.zeros(1, 1, device=self.device)), self._spread
        return super().loss(minibatch, knobs)[0], self._spread

    def too_far(self, losses: Losses, valid: Tensor | None) -> bool:
        target = self.config.target_kl
        if target is None:
            return False
        each = k3(losses.log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)).double()
        moved = (each if valid is None else each[valid]).sum().cpu()
        return float(self.group.sum_(moved)) / self._all > self.config.kl_stop_factor * target

    def gradient(self, losses: Losses) -> Tensor:
        self.optimizer.zero_grad()
        if self._local:
            (losses.total * (self._local / self._all)).backward()
        parameters = self.optimizer.parameters
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        # The loss is summed too: if it is not finite in one process, no process takes the step.
        flat = self.group.sum_(torch.cat([losses.total.detach().reshape(1), *[g.reshape(-1) for g in grads]]))
        begin = 1
        for parameter in parameters:
            end = begin + parameter.numel()
            parameter.grad = flat[begin:end].view_as(parameter)
            begin = end
        norm = self.optimizer.clip(self.config.max_grad_norm) + flat[0] * 0.0
        if bool(torch.isfinite(norm)):
            self._widths.append((self._local, self._all))
        return norm

    def learn(self, batch: Batch, knobs: Knobs) -> GradientSteps:
        done = super().learn(batch, knobs)
        done.first_ratio_error = float(self.group.gather(np.array([done.first_ratio_error])).max())
        steps = len(done.table.epoch)
        if steps:
            local, total = np.array(self._widths[:steps], dtype=np.float64).T[:, :, None]
            rows = np.where(local > 0, done.table.rows * local / total, 0.0)
            done.table = Table(done.table.epoch, self.group.sum_(torch.from_numpy(rows)).numpy())
        return done


class SharedLearner(Learner):
    """A `Learner` whose batch is spread over several processes. Its policy is the same in all of them."""

    shared: SharedUpdate

    def __init__(
        self,
        policy: Policy,
        config: PPOConfig,
        group: ProcessGroup,
        *,
        total_updates: int | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        if config.temperature != 1.0:
            raise ConfigError("data-parallel learning does not support temperature; leave it at 1.0")
        self.full_config, self.group = config, group
        """The user's config. The base class must not standardise: it has only a part of the batch."""
        config = config.replace(path="torch", normalize_advantage="off", min_samples=1)

        def make_update(*parts: Any) -> SharedUpdate:
            self.shared = SharedUpdate(*parts)
            self.shared.group, self.shared.mode = group, self.full_config.normalize_advantage
            return self.shared

        super().__init__(policy, config, total_updates=total_updates, device=device, make_update=make_update)
        self.values = ValueScale(policy, normalize=config.normalize_value, moments=lambda x: _pooled(group, x))
        self._normalizers = [m for m in policy.modules() if isinstance(m, Normalizer)]

    def update(self, rollout: Rollout, *, progress: float | None = None) -> UpdateReport:
        valid, _ = self.fresh(rollout)
        samples = self.group.gather(np.array([np.count_nonzero(valid)]))[:, 0]
        if samples.sum() < self.full_config.min_samples or samples.min() < 1:
            why = f"{samples.sum():.0f} valid steps, {samples.min():.0f} in one of {self.group.size} processes"
            return self.skipped(rollout, int(samples.sum()), self.knobs(progress), why)
        self.shared.locate(valid)
        before = [(m.mean.clone(), m.var.clone(), m.count.clone()) for m in self._normalizers]
        report = super().update(rollout, progress=progress)
        self._share_statistics(before, {name: x[valid] for name, x in rollout.obs.items()})
        return replace(report, samples=int(samples.sum()))

    def _share_statistics(self, before: list[tuple[Tensor, Tensor, Tensor]], obs: dict[str, np.ndarray]) -> None:
        """Update the observation statistics with the rows of all processes, in the order of their ranks."""
        if not self._normalizers:
            return
        for normalizer in self._normalizers:
            _put(normalizer, torch.zeros_like(normalizer.mean), torch.ones_like(normalizer.var), normalizer.count * 0)
        self.policy.absorb(obs)
        for normalizer, previous in zip(self._normalizers, before, strict=True):
            local = torch.cat([normalizer.mean, normalizer.var, normalizer.count.reshape(1)]).cpu().numpy()
            _put(normalizer, *previous)
            for each in self.group.gather(local):
                mean, var = np.split(each[:-1], 2)
                if each[-1] > 0:
                    normalizer.merge(torch.from_numpy(mean.copy()), torch.from_numpy(var.copy()), float(each[-1]))
            normalizer.derive()

    def check_same_weights(self) -> None:
        """Raise `Diverged` if the processes do not have the same weights."""
        digest = hashlib.sha256()
        for x in self.policy.state_dict().values():
            digest.update(x.detach().cpu().numpy().tobytes())
        if len(set(self.group.gather_bytes(digest.digest()))) > 1:
            raise Diverged("the learner processes no longer have the same weights; resume the run")


def _pooled(group: ProcessGroup, numbers: np.ndarray) -> tuple[float, float, float]:
    """Return (mean, variance, count) of the numbers of all processes together."""
    parts = moments_of_all(group, numbers.ravel())
    count = sum(n for *_, n in parts)
    mean = sum(m * n for m, _, n in parts) / count
    return mean, sum((v + (m - mean) ** 2) * n for m, v, n in parts) / count, count


def moments_of_all(group: ProcessGroup, values: np.ndarray) -> list[tuple[float, float, float]]:
    """Return (mean, variance, count) of each process's numbers, of those that have any."""
    wide = values.astype(np.float64)
    local = np.array([wide.mean(), wide.var(), wide.size]) if wide.size else np.zeros(3)
    return [(float(m), float(v), float(n)) for m, v, n in group.gather(local) if n > 0]


def _put(normalizer: Normalizer, mean: Tensor, var: Tensor, count: Tensor) -> None:
    normalizer.mean.copy_(mean)
    normalizer.var.copy_(var)
    normalizer.count.copy_(count)
