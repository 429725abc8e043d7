"""Batches of policies with memory for the kernel: samples stay in columns of consecutive steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.data.rollout import Rollout
from surefoot.learn.config import PPOConfig
from surefoot.learn.prepare import pieces, to_batch
from surefoot.learn.report_builder import describe
from surefoot.nets.kernel_layout import KernelNet


def columns_of(
    net: KernelNet, config: PPOConfig, rollout: Rollout, valid: np.ndarray
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (the fields of a `NativeBatch`, the moments of the rollout for the report) for a policy with memory."""
    net.set_temperature()
    whole = to_batch(rollout, valid, gamma=config.gamma, lam=config.lam, sequential=True, device=torch.device("cpu"))
    columns = pieces(whole, net.policy, config)

    def rows(x: torch.Tensor) -> np.ndarray:
        return x.flatten(0, 1).contiguous().numpy()

    optional = {
        name: None if x is None else rows(x)
        for name, x in (
            ("ref_log_prob", columns.ref_log_prob),
            ("mask", columns.action_mask),
            ("start", columns.start),
        )
    }
    batch = dict(
        features=net.features({name: rows(x) for name, x in columns.obs.items()}),
        action=rows(columns.action),
        log_prob=rows(columns.log_prob),
        value=rows(columns.value),
        advantage=rows(columns.advantage),
        target=rows(columns.target),
        **optional,
        length=len(columns.advantage),
        valid=None if columns.valid is None else rows(columns.valid),
        context={name: x.contiguous().numpy() for name, x in columns.context.items()},
        by_torch=whole,
    )
    return batch, describe(whole, rollout, valid)


def memories(
    length: int, start: np.ndarray, valid: np.ndarray | None, context: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the arguments of the kernel's update that only a network with memory takes."""
    named = {"carry": context.get("memory"), "critic_carry": context.get("critic_memory")}
    return {"length": length, "start": start, "valid": valid, **named}
