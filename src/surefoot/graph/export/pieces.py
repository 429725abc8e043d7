"""The text of a program that stands alone, part by part. The digits are those of `path: torch`, and a test holds them so."""

from __future__ import annotations

IMPORTS = """from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from collections import deque
from dataclasses import asdict, dataclass, fields
from pathlib import Path
{more}
{gym}import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.adam import adam
"""

SEEDS = '''def seed_for(purpose: str, seed: int) -> int:
    """A seed of its own for each purpose (63 bits), so that no two generators draw in step."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
'''

GYM_WORLD = '''class World:
    """N copies of a Gymnasium env; one that ends begins its next episode in the same step."""

    def __init__(self, env_id: str, count: int, seed: int) -> None:
        self.envs = [gym.make(env_id, disable_env_checker=True) for _ in range(count)]
        self.count, self.seed, self.space = count, seed, self.envs[0].action_space

    def reset(self) -> np.ndarray:
        """[N, …]: what all copies see first."""
        return np.stack([env.reset(seed=self.seed + i)[0] for i, env in enumerate(self.envs)]){cast}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(what to act on next, reward, terminated, truncated, where the step really led), each [N, …]."""
        taken = np.array(action, self.space.dtype).reshape(self.count, *self.space.shape)
        obs: list = []
        reward, terminated, truncated = np.empty(self.count), np.zeros(self.count, bool), np.zeros(self.count, bool)
        for i, env in enumerate(self.envs):
            seen, reward[i], terminated[i], cut, _ = env.step(taken[i])
            truncated[i] = cut and not terminated[i]
            obs.append(seen)
        after = np.stack(obs){cast}
        now = after.copy()
        for i in np.flatnonzero(terminated | truncated):
            now[i] = self.envs[i].reset()[0]
        return now, reward, terminated, truncated, after
'''

OWN_WORLD = '''class World:
    """N copies of a task; one that ends begins its next episode in the same step."""

    def __init__(self, task: object, limit: int, count: int, seed: int) -> None:
        self.task, self.limit, self.count, self.seed = task, limit, count, seed

    def reset(self) -> np.ndarray:
        """[N, …]: what all copies see first."""
        self.rng = np.random.Generator(np.random.PCG64(self.seed))
        self.state = self.task.start(self.rng, self.count)
        self.age = np.zeros(self.count, np.int64)
        return self.task.observe(self.state)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(what to act on next, reward, terminated, truncated, where the step really led), each [N, …]."""
        self.state, reward, terminated = self.task.advance(self.state, action, self.rng)
        self.age += 1
        truncated = (self.age >= self.limit) & ~terminated
        after = now = self.task.observe(self.state)
        ended = (terminated | truncated).nonzero()[0]
        if len(ended):
            first = self.task.start(self.rng, len(ended))
            self.state[:, ended], self.age[ended] = first, 0
            now = after.copy()
            now[ended] = self.task.observe(first)
        return now, reward, terminated, truncated, after
'''

SEVERAL = '''class Several:
    """Worlds side by side: rows of the first, then of the second, and so on."""

    def __init__(self, *worlds: World) -> None:
        self.worlds, self.count = worlds, sum(world.count for world in worlds)
        self.cuts = np.cumsum([world.count for world in worlds])[:-1]

    def reset(self) -> np.ndarray:
        return np.concatenate([world.reset() for world in self.worlds])

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        parts = [world.step(part) for world, part in zip(self.worlds, np.split(action, self.cuts))]
        return tuple(np.concatenate(each) for each in zip(*parts))
'''

SCALER = '''class RewardScaler:
    """Rewards divided by the deviation of the discounted return; no mean is subtracted."""

    def __init__(self, count: int, gamma: float, clip: float = 10.0) -> None:
        self.gamma, self.clip, self.running = gamma, clip, np.zeros(count)
        self.mean, self.var, self.count = 0.0, 1.0, 0.0

    def scale(self, reward: np.ndarray, ended: np.ndarray) -> np.ndarray:
        returns = np.zeros_like(reward)
        for t in range(len(reward)):
            self.running = self.running * self.gamma + reward[t]
            returns[t] = self.running
            self.running = np.where(ended[t], 0.0, self.running)
        seen = returns.ravel()
        mean, var, count = float(seen.mean()), float(seen.var()), float(len(seen))
        total, delta = self.count + count, mean - self.mean
        self.var = (self.var * self.count + var * count + delta * delta * self.count * count / total) / total
        self.mean += delta * count / total
        self.count = total
        return np.clip(reward / np.sqrt(self.var + 1e-8), -self.clip, self.clip)
'''

LEARNING = '''def standardize(advantage: Tensor) -> Tensor:
    """(A - mean) / (std + 1e-8); all zeros where the advantages differ only by rounding."""
    std, mean = torch.std_mean(advantage, correction=0)
    std = torch.where(std < 1e-6 * mean.abs().clamp(min=1.0), torch.zeros_like(std), std)
    return torch.where(std > 0, (advantage - mean) / (std + 1e-8), torch.zeros_like(advantage))


class Adam:
    """torch's own fused Adam on slots held here, which are saved with the weights."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.means, self.squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        self.steps = [torch.zeros(()) for _ in parameters]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        grads = [p.grad for p in self.parameters]
        common = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-5, "maximize": False}
        adam(self.parameters, grads, self.means, self.squares, [], self.steps, fused=True, lr=lr, **common)


'''

ROWS = """    rows = {name: rollout[name].flatten(0, 1) for name in ("obs", "action", "log_prob", "value")}
    rows |= {"advantage": advantage.flatten(), "target": (advantage + rollout["value"]).flatten()}
"""

COLUMNS = """    # [T, N]: a minibatch is a choice of streams, each walked through from what it carried when the rollout began.
    rows = {name: rollout[name] for name in ("obs", "action", "log_prob", "value", "start")}
    rows |= {"advantage": advantage, "target": advantage + rollout["value"]}
"""

EVALUATE = """            log_prob, entropy, value = policy.evaluate(part["obs"], part["action"])
"""

WALK = """            carry = [x.narrow(0, begin, width) for x in carried]
            said = policy.evaluate(part["obs"].flatten(0, 1), part["action"].flatten(0, 1), carry, part["start"])
            log_prob, entropy, value = (x.view(part["value"].shape) for x in said)
"""

UPDATE = '''def update(
    config: Config, policy: Policy, optimizer: Adam, generator: torch.Generator, rollout: dict, progress: float
) -> dict:
    """All epochs of minibatch steps over one rollout; the means of what is worth knowing."""
    lr = {lr}
    clip, ent_coef = {clip}, {ent}
    parts = [rollout[name] for name in ("reward", "value", "next_value", "terminated", "ended")]
    advantage = gae(*parts, gamma=config.{gamma}, lam=config.{lam})
{rows}{batch}    count, told, ratios, stop = rows["value"].shape[{axis}], [], [], False
    for _ in range(config.{epochs}):
        order, begin = torch.randperm(count, generator=generator), 0
        shuffled = {{name: x.index_select({axis}, order) for name, x in rows.items()}}
{shuffle}        for width in split_sizes(count, {width}):
            part = {{name: x.narrow({axis}, begin, width) for name, x in shuffled.items()}}
{evaluate}            begin += width
            log_ratio = log_prob - part["log_prob"]
            advantage = {advantage}
            policy_loss = clipped_surrogate(log_ratio, advantage, clip=clip).mean()
            critic_loss = value_loss(value, part["target"], part["value"], clip=config.{value_clip}).mean()
            loss = policy_loss + config.{value_coef} * critic_loss
            mean_entropy = entropy.mean()
            if ent_coef != 0.0:
                loss = loss - ent_coef * mean_entropy
            moved = log_ratio.detach().clamp(-20.0, 20.0)
            if config.{target_kl} is not None and float((moved.expm1() - moved).mean()) > 1.5 * config.{target_kl}:
                stop = True
                break
            policy.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(optimizer.parameters, config.{max_grad_norm}, foreach=True)
            if not bool(torch.isfinite(norm + loss)):
                raise FloatingPointError("loss or gradient is not finite; lower the learning rate or look at the rewards")
            optimizer.step(lr)
            told.append(torch.stack([x.detach() for x in (loss, policy_loss, critic_loss, mean_entropy, norm)]))
            ratios.append(moved{flat})
        if stop:
            break
    if not told:
        return {{"lr": lr, "minibatches": 0}}
    means = dict(zip(("loss", "policy_loss", "value_loss", "entropy", "grad_norm"), torch.stack(told).mean(dim=0).tolist()))
    moved = torch.cat(ratios)
    kl, outside = (moved.expm1() - moved).mean(), (moved.expm1().abs() > clip).float().mean()
    return means | {{"approx_kl": float(kl), "clip_fraction": float(outside), "lr": lr, "minibatches": len(told)}}
'''

COLLECT = '''@torch.no_grad()
def collect(
    config: Config, world: World, policy: Policy, generator: torch.Generator, obs: np.ndarray{more}
) -> tuple[dict, np.ndarray{gives}]:
    """A rollout, and what is seen after it. `next_value` is what each step's true successor is worth."""
    names = ("obs", "action", "log_prob", "value", "reward", "terminated", "ended"{start})
    kept, cut, {setup_names} = {{name: [] for name in names}}, [], {setup}
    for t in range(config.{horizon_length}):
        seen = torch.from_numpy(obs)
{act}        taken = {action}
        obs, reward, terminated, truncated, after = world.step(taken)
        if truncated.any():
            cut.append((t, truncated, policy.value(torch.from_numpy(after){carry})))
        ended = terminated | truncated
        flags = (torch.from_numpy(x) for x in (reward, terminated, ended{start_too}))
        for name, x in zip(names, (seen, action, log_prob, value, *flags)):
            kept[name].append(x)
{then}    rollout = {{name: torch.stack(each) for name, each in kept.items()}}{walked_in}
    ahead = policy.value(torch.from_numpy(after){carry})
    rollout["next_value"] = torch.cat([rollout["value"][1:], ahead.unsqueeze(0)])
    for t, streams, worth in cut:
        rollout["next_value"][t, streams] = worth[streams]
{scale}    return rollout, obs{back}
'''

NOT_CARRIED = {
    "act": "        action, log_prob, value = policy.act(seen, generator)\n",
    "setup_names": "after",
    "setup": "obs",
    **dict.fromkeys(("gives", "start", "start_too", "carry", "then", "walked_in", "back"), ""),
}
CARRIED = {
    "act": "        action, log_prob, value, carry = policy.act(seen, carry, torch.from_numpy(start)[None], generator)\n",
    "setup_names": "before, after",
    "setup": "carry, obs",
    "gives": ", list[Tensor], np.ndarray",
    "start": ', "start"',
    "start_too": ", start",
    "carry": ", carry",
    "then": "        start = ended\n",
    "walked_in": ' | {"carry": before}',
    "back": ", carry, start",
}
"""What collecting does besides, for a policy that remembers."""

NOTHING_CARRIED = "    carry, start = policy.nothing(world.count), np.ones(world.count, bool)\n"

EPISODES = '''class Episodes:
    """Returns and lengths of whole episodes, the last hundred of them."""

    def __init__(self, count: int) -> None:
        self.returns, self.lengths = np.zeros(count), np.zeros(count, int)
        self.recent: deque = deque(maxlen=100)

    def count(self, reward: np.ndarray, ended: np.ndarray) -> None:
        self.returns += reward
        self.lengths += 1
        for i in np.flatnonzero(ended):
            self.recent.append((float(self.returns[i]), int(self.lengths[i])))
            self.returns[i], self.lengths[i] = 0.0, 0
'''

SAVE = '''def save(folder: Path, config: Config, policy: Policy, optimizer: Adam, told: dict) -> None:
    """weights.npz and state.json, each replaced whole; no pickle in either."""
    arrays = {name: x.detach().numpy() for name, x in policy.state_dict().items()}
    for i, slots in enumerate(zip(optimizer.means, optimizer.squares, optimizer.steps)):
        arrays |= {f"adam.{i}.{name}": x.numpy() for name, x in zip(("mean", "square", "step"), slots)}
    np.savez(folder / "weights.part.npz", **arrays)
    (folder / "weights.part.npz").replace(folder / "weights.npz")
    (folder / "state.part.json").write_text(json.dumps({"config": asdict(config), **told}, indent=1))
    (folder / "state.part.json").replace(folder / "state.json")


def load(folder: Path, policy: Policy, optimizer: Adam) -> None:
    """Weights and optimiser as `save` left them; the streams begin anew."""
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
        policy.load_state_dict({name: torch.from_numpy(arrays[name]) for name in policy.state_dict()})
        for i, slots in enumerate(zip(optimizer.means, optimizer.squares, optimizer.steps)):
            for name, slot in zip(("mean", "square", "step"), slots):
                slot.copy_(torch.from_numpy(arrays[f"adam.{i}.{name}"]))
'''

MAIN = '''def train(config: Config, out: Path | None = None, resume: Path | None = None) -> Policy:
    """The whole run; the record goes to out/telemetry.ndjson, one line an update."""
    torch.set_num_threads(1)
{world}
    policy = Policy(config)
    optimizer = Adam(list(policy.parameters()))
    if resume is not None:
        load(resume, policy, optimizer)
    acting, shuffling = (torch.Generator().manual_seed(seed_for(use, config.seed)) for use in ("act", "shuffle"))
    obs, episodes = world.reset(), Episodes(world.count)
{carry}{scaler}    steps, updates, begin = 0, 0, time.perf_counter()
    while steps < config.total_steps:
        progress = min(1.0, steps / config.total_steps)
        rollout, obs{carried} = collect(config, world, policy, acting, obs, episodes{carried}{scaler_arg})
        told = update(config, policy, optimizer, shuffling, rollout, progress)
{absorb}        steps, updates = steps + config.{horizon_length} * world.count, updates + 1
        told = {{"update": updates, "env_steps": steps, "seconds": time.perf_counter() - begin}} | told
        if episodes.recent:
            told |= dict(zip(("return", "length"), np.mean(episodes.recent, axis=0).tolist()))
        last = steps >= config.total_steps
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            with open(out / "telemetry.ndjson", "a") as file:
                file.write(json.dumps(told) + "\\n")
            if last or updates % {save_every} == 0:
                save(out, config, policy, optimizer, told)
        if last or updates % {print_every} == 0:
            shown = (f"{{n}} {{told[n]:.6g}}" for n in ("update", "env_steps", "return", "approx_kl", "loss") if n in told)
            print(*shown, sep="  ", flush=True)
    return policy
'''

PARSE = '''def parse() -> tuple[Config, Path | None, Path | None]:
    """Every field of Config as an option, --out DIR and --resume DIR."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=None, help="where the record and the weights go")
    parser.add_argument("--resume", type=Path, default=None, help="begin with the weights of this directory")
    for field in fields(Config):
        value = field.default
        kind = float if value is None else type(value)
        if isinstance(value, bool):
            kind = lambda text: text.lower() in ("1", "true", "yes")
        elif isinstance(value, tuple):
            kind = lambda text, of=type(value[0]): tuple(of(part) for part in text.split(",") if part)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=value, help=f"default {value}")
    said = vars(parser.parse_args())
    out, resume = said.pop("out"), said.pop("resume")
    return Config(**said), out, resume


if __name__ == "__main__":
    train(*parse())
'''
