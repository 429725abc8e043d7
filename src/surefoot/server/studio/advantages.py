"""Why an action was reinforced: the rewards and values behind the advantages of the last rollout."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from surefoot.core.advantage import gae
from surefoot.data.rollout import Rollout
from surefoot.server.studio.curves import rounded

# Steps and streams that a page shows.
MOST_STEPS, MOST_STREAMS = 512, 64


def advantages_of(rollout: Rollout, stream: int, *, gamma: float, lam: float) -> dict[str, Any]:
    """Return one row per step of a stream: reward, values, TD error and advantage; `stream` is moved into range.

    A_t = Σ_k (γλ)^k δ_{t+k}, to the end of the episode or of the rollout, with δ_t = r_t + γ V(s_{t+1}) - V(s_t).
    """
    streams = rollout.reward.shape[1]
    n = min(max(int(stream), 0), streams - 1)
    ended = rollout.terminated | rollout.truncated
    columns = [x[:, n : n + 1] for x in (rollout.reward, rollout.value, rollout.next_value)]
    flags = [x[:, n : n + 1] for x in (rollout.terminated, ended, rollout.valid)]
    tensors = [torch.from_numpy(np.ascontiguousarray(x, np.float32)) for x in columns]
    advantage = gae(*tensors, *(torch.from_numpy(x.copy()) for x in flags), gamma=gamma, lam=lam)[:, 0].tolist()
    reward, value, after = (x[:, 0].astype(float).tolist() for x in columns)
    terminated, over, valid = (x[:, 0].tolist() for x in flags)
    rows = [
        {
            "reward": rounded(reward[t]),
            "value": rounded(value[t]),
            "next": 0.0 if terminated[t] else rounded(after[t]),
            "delta": rounded(reward[t] + gamma * (0.0 if terminated[t] else after[t]) - value[t]) if valid[t] else 0.0,
            "advantage": rounded(advantage[t]),
            "ended": over[t] or not valid[t],
        }
        for t in range(min(len(reward), MOST_STEPS))
    ]
    return {"gamma": gamma, "lam": lam, "stream": n, "streams": min(streams, MOST_STREAMS), "rows": rows}
