"""The text of a program that stands alone, part by part. The digits are those of `path: torch`, and a test holds them so."""

from __future__ import annotations

IMPORTS = """from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from collections import deque
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

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
        for i, env in enumerate(self.envs):
            env.action_space.seed(self.seed + i)
        return np.stack([env.reset(seed=self.seed + i)[0] for i, env in enumerate(self.envs)]).astype(np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(what to act on next, reward, terminated, truncated, where the step really led), each [N, …]."""
        taken = np.array(action, self.space.dtype).reshape(self.count, *self.space.shape)
        obs: list = []
        reward, terminated, truncated = np.empty(self.count), np.zeros(self.count, bool), np.zeros(self.count, bool)
        for i, env in enumerate(self.envs):
            seen, reward[i], terminated[i], cut, _ = env.step(taken[i])
            truncated[i] = cut and not terminated[i]
            obs.append(seen)
        after = np.stack(obs).astype(np.float32)
        now = after
        if (terminated | truncated).any():
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

NORMALIZER = '''class Normalizer(nn.Module):
    """Running mean and deviation of observations; they move after an update, never during one."""

    def __init__(self, size: int, clip: float = 10.0) -> None:
        super().__init__()
        self.clip = clip
        for name, first in (("mean", torch.zeros(size)), ("var", torch.ones(size)), ("count", torch.zeros(()))):
            self.register_buffer(name, first.double())
        self.register_buffer("shift", torch.zeros(size))
        self.register_buffer("scale", torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.shift) * self.scale).clamp(-self.clip, self.clip)

    def update(self, rows: np.ndarray) -> None:
        rows = rows.astype(np.float64)
        mean, var, count = torch.from_numpy(rows.mean(axis=0)), torch.from_numpy(rows.var(axis=0)), float(len(rows))
        total = self.count + count
        delta = mean - self.mean
        squares = self.var * self.count + var * count + delta.square() * (self.count * count / total)
        self.mean += delta * (count / total)
        self.var.copy_(squares / total)
        self.count.copy_(total)
        self.shift.copy_(self.mean)
        self.scale.copy_(self.var.clamp(min=1e-8).rsqrt())
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

LAYER = """ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU, "leaky_relu": nn.LeakyReLU}


def layer(inputs: int, outputs: int, gain: float, ortho_init: bool) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    if ortho_init:
        nn.init.orthogonal_(linear.weight, gain)
        nn.init.zeros_(linear.bias)
    return linear


def mlp(inputs: int, hidden: tuple[int, ...], activation: str, ortho_init: bool) -> nn.Sequential:
    modules: list[nn.Module] = []
    for width in hidden:
        modules += [layer(inputs, width, math.sqrt(2.0), ortho_init), ACTIVATIONS[activation]()]
        inputs = width
    return nn.Sequential(*modules)
"""

POLICY = '''class Policy(nn.Module):
    """{about}"""

    def __init__(self, config: Config) -> None:
        super().__init__()
        torch.manual_seed(seed_for("weights", config.seed))
        inputs, hidden, ortho = config.{input_size}, config.{hidden_sizes}, config.{ortho_init}
        self.shared = config.{shared}
        self.actor = mlp(inputs, hidden, config.{activation}, ortho)
        self.critic = nn.Sequential() if self.shared else mlp(inputs, hidden, config.{activation}, ortho)
        self.value_out = layer(hidden[-1] if hidden else inputs, 1, 1.0, ortho)
        self.policy_out = layer(hidden[-1] if hidden else inputs, config.{output_size}, 0.01, ortho)
{extra}
    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """What the distribution needs, and the value."""
{normalize}        features = self.actor(obs)
        judged = features if self.shared else self.critic(obs)
        return self.policy_out(features), self.value_out(judged).squeeze(-1)

    def value(self, obs: Tensor) -> Tensor:
{normalize}        return self.value_out((self.actor if self.shared else self.critic)(obs)).squeeze(-1)
'''

DISCRETE = '''
    def act(self, obs: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """(action, log-prob, value): the race of exponentials, argmin E/p, is distributed as p."""
        raw, value = self(obs)
        log_probs = F.log_softmax(raw, dim=-1, dtype=torch.float32)
        race = torch.empty_like(log_probs).exponential_(generator=generator)
        action = (log_probs - race.log_()).argmax(dim=-1)
        return action, log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), value

    def evaluate(self, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log-prob, entropy, value) of stored steps, with gradients."""
        raw, value = self(obs)
        log_probs = F.log_softmax(raw, dim=-1, dtype=torch.float32)
        return log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1), -(log_probs.exp() * log_probs).sum(dim=-1), value
'''

GAUSSIAN = '''
    def act(self, obs: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """(action, log-prob, value); the action is stored as drawn and clipped only for the world."""
        mean, value = self(obs)
        log_std = self.log_std[0].clamp(-20.0, 2.0)
        std = log_std.exp()
        noise = torch.empty_like(mean).normal_(generator=generator)
        action = torch.addcmul(mean, std.expand_as(mean), noise)
        return action, self.log_prob(mean, log_std, std, action), value

    def evaluate(self, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log-prob, entropy, value) of stored steps, with gradients."""
        mean, value = self(obs)
        log_std = self.log_std[0].clamp(-20.0, 2.0)
        log_prob = self.log_prob(mean, log_std, log_std.exp(), action)
        entropy = (log_std + (0.5 + 0.5 * math.log(2.0 * math.pi))).sum(dim=-1).expand(mean.shape[:-1])
        return log_prob, entropy, value

    def log_prob(self, mean: Tensor, log_std: Tensor, std: Tensor, action: Tensor) -> Tensor:
        z = (action - mean) / std
        return -(0.5 * z.square() + log_std + 0.5 * math.log(2.0 * math.pi)).sum(dim=-1)
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

UPDATE = '''def update(
    config: Config, policy: Policy, optimizer: Adam, generator: torch.Generator, rollout: dict, progress: float
) -> dict:
    """All epochs of minibatch steps over one rollout; the means of what is worth knowing."""
    lr = {lr}
    clip, ent_coef = {clip}, {ent}
    parts = [rollout[name] for name in ("reward", "value", "next_value", "terminated", "ended")]
    advantage = gae(*parts, gamma=config.{gamma}, lam=config.{lam})
    rows = {{name: rollout[name].flatten(0, 1) for name in ("obs", "action", "log_prob", "value")}}
    rows |= {{"advantage": advantage.flatten(), "target": (advantage + rollout["value"]).flatten()}}
{batch}    count, told, ratios, stop = len(rows["advantage"]), [], [], False
    for _ in range(config.{epochs}):
        order, begin = torch.randperm(count, generator=generator), 0
        shuffled = {{name: x.index_select(0, order) for name, x in rows.items()}}
        for width in split_sizes(count, config.{minibatch_size}):
            part = {{name: x.narrow(0, begin, width) for name, x in shuffled.items()}}
            begin += width
            log_prob, entropy, value = policy.evaluate(part["obs"], part["action"])
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
            for parameter in optimizer.parameters:
                parameter.grad = None
            loss.backward()
            norm = nn.utils.clip_grad_norm_(optimizer.parameters, config.{max_grad_norm}, foreach=True)
            if not bool(torch.isfinite(norm + loss)):
                raise FloatingPointError("loss or gradient is not finite; lower the learning rate or look at the rewards")
            optimizer.step(lr)
            told.append(torch.stack([x.detach() for x in (loss, policy_loss, critic_loss, mean_entropy, norm)]))
            ratios.append(moved)
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
    config: Config, world: World, policy: Policy, generator: torch.Generator, obs: np.ndarray, episodes: Episodes{more}
) -> tuple[dict, np.ndarray]:
    """A rollout, and what is seen after it. `next_value` is what each step's true successor is worth."""
    names = ("obs", "action", "log_prob", "value", "reward", "terminated", "ended")
    kept: dict[str, list] = {{name: [] for name in names}}
    cut: list[tuple[int, np.ndarray, Tensor]] = []
    after = obs
    for t in range(config.{horizon_length}):
        seen = torch.from_numpy(obs)
        action, log_prob, value = policy.act(seen, generator)
        taken = {action}
        obs, reward, terminated, truncated, after = world.step(taken)
        if truncated.any():
            cut.append((t, truncated, policy.value(torch.from_numpy(after))))
        ended = terminated | truncated
        flags = (torch.from_numpy(x) for x in (reward, terminated, ended))
        for name, x in zip(names, (seen, action, log_prob, value, *flags)):
            kept[name].append(x)
        episodes.count(reward, ended)
    rollout = {{name: torch.stack(each) for name, each in kept.items()}}
    ahead = policy.value(torch.from_numpy(after))
    rollout["next_value"] = torch.cat([rollout["value"][1:], ahead.unsqueeze(0)])
    for t, streams, worth in cut:
        rollout["next_value"][t, streams] = worth[streams]
{scale}    return rollout, obs
'''

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
    with open(folder / "weights.part.npz", "wb") as file:
        np.savez(file, **arrays)
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
    acting = torch.Generator().manual_seed(seed_for("act", config.seed))
    shuffling = torch.Generator().manual_seed(seed_for("shuffle", config.seed))
    obs, episodes = world.reset(), Episodes(world.count)
{scaler}    steps, updates, begin = 0, 0, time.perf_counter()
    while steps < config.total_steps:
        progress = min(1.0, steps / config.total_steps)
        rollout, obs = collect(config, world, policy, acting, obs, episodes{scaler_arg})
        told = update(config, policy, optimizer, shuffling, rollout, progress)
{absorb}        steps, updates = steps + config.{horizon_length} * world.count, updates + 1
        told = {{"update": updates, "env_steps": steps, "seconds": time.perf_counter() - begin}} | told
        if episodes.recent:
            told |= dict(zip(("return", "length"), np.mean(episodes.recent, axis=0).tolist()))
        last = steps >= config.total_steps
        if out is not None:
            with open(out / "telemetry.ndjson", "a") as file:
                file.write(json.dumps(told) + "\\n")
            if last or updates % {save_every} == 0:
                save(out, config, policy, optimizer, told)
        if last or updates % {print_every} == 0:
            shown = [name for name in ("update", "env_steps", "return", "approx_kl", "loss") if name in told]
            print("  ".join(f"{{name}} {{told[name]:.6g}}" for name in shown), flush=True)
    return policy


def parse() -> tuple[Config, Path | None, Path | None]:
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
        parser.add_argument(f"--{{field.name.replace('_', '-')}}", type=kind, default=value, help=f"default {{value}}")
    said = vars(parser.parse_args())
    out, resume = said.pop("out"), said.pop("resume")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    return replace(Config(), **said), out, resume


if __name__ == "__main__":
    train(*parse())
'''
