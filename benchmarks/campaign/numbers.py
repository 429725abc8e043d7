"""B1: bad numbers wherever one can enter (N1 to N15): refused, left out or counted, and never learned from in silence."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from campaign.frame import Block, Found, from_tests

Case = tuple[str, Callable[[], str | None]]
"""A name, and what returns a sentence if something bad went through."""

MASK = "forbidden choices get -1e8"
CLAMP = "the log-ratio is not clamped"
CUT = "a truncated episode is not bootstrapped"
THROUGH = "rollouts are not checked"
NOISE = "equal advantages are divided by their rounding noise"
NORMALISER = "the normaliser accepts non-finite numbers"
KINDS = {MASK: "N6", CLAMP: "N8", CUT: "N14", THROUGH: "N1", NOISE: "N5", NORMALISER: "N10"}
"""Which cases a defect is for."""
BAD = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "1e39": 1e39}


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.core import advantage, losses, moments
    from surefoot.learn import learner, torch_update
    from surefoot.nets import distributions, heads, normalizer

    with contextlib.ExitStack() as undo:

        def patch(thing: Any, name: str, new: Any) -> None:
            undo.callback(setattr, thing, name, getattr(thing, name))
            setattr(thing, name, new)

        if defect == MASK:

            def low(logits: Any, mask: Any) -> Any:
                return logits.masked_fill(~mask, max(-1e8, torch.finfo(logits.dtype).min))

            for module in (distributions, heads):
                patch(module, "mask_logits", low)
        elif defect == CLAMP:
            patch(losses, "LOG_RATIO_LIMIT", 1e9)
        elif defect == CUT:
            gae = advantage.gae
            patch(advantage, "gae", lambda r, v, n, t, e, valid=None, **k: gae(r, v, n, e, e, valid, **k))
        elif defect == THROUGH:
            patch(learner, "refuse_bad_numbers", lambda rollout, valid: None)
            patch(learner, "refuse_bad_masks", lambda *_: None)
        elif defect == NOISE:
            for module in (torch_update, moments):
                patch(
                    module,
                    "standardize",
                    lambda a, valid=None: ((a - a.mean()) / (a.std(correction=0) + 1e-8), a.std(correction=0)),
                )
        elif defect == NORMALISER:
            patch(normalizer, "np", Credulous())
        yield


class Credulous:
    """numpy, to which every number is finite."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def isfinite(self, rows: np.ndarray) -> np.ndarray:
        return np.ones_like(rows, bool)


class Bench:
    """The small learner of the unit tests."""

    def __init__(self) -> None:
        from surefoot.learn.config import PPOConfig
        from surefoot.learn.learner import Learner

        self.guards = from_tests("unit/learn/test_torch_update.py")
        self.PPOConfig, self.Learner = PPOConfig, Learner
        self.T, self.N = self.guards.T, self.guards.N

    def config(self, **more: Any) -> Any:
        return self.PPOConfig(**{"lr": 1e-2, "epochs": 2, "minibatch_size": 8, **more})

    def refused(self, spoil: Callable[[Any], Any], error: str, action: Any = None, **config: Any) -> str | None:
        """Whether a spoilt rollout is refused by `error` and leaves every weight as it was."""
        import surefoot.errors

        policy = self.guards.Faulty(*([] if action is None else [action]))
        learner, rollout = self.Learner(policy, self.config(**config)), self.guards.walk(policy)
        rollout = spoil(rollout) or rollout
        before = self.guards.everything(policy)
        try:
            learner.update(rollout)
        except getattr(surefoot.errors, error):
            same = self.guards.equal(before, self.guards.everything(policy))
            return None if same else "refused, but the weights moved"
        return "it was learned from"

    def learned(self, spoil: Callable[[Any], Any], **config: Any) -> str | None:
        """Whether an odd but legal rollout leaves all weights finite."""
        policy = self.guards.Faulty()
        rollout = self.guards.walk(policy)
        rollout = spoil(rollout) or rollout
        self.Learner(policy, self.config(**config)).update(rollout)
        fine = all(bool(torch.isfinite(x).all()) for x in self.guards.everything(policy).values())
        return None if fine else "weights are not finite"


def put(rollout: Any, name: str, step: int, stream: int, value: float) -> Any:
    """The rollout with one number replaced, in float64 where float32 cannot hold it."""
    import dataclasses

    array = np.array(
        rollout.obs["obs"] if name == "obs" else getattr(rollout, name), np.float64 if value == 1e39 else None
    )
    array[step, stream] = value
    return dataclasses.replace(rollout, **({"obs": {"obs": array}} if name == "obs" else {name: array}))


def bad_rollouts(b: Bench) -> Iterator[Case]:
    """N1, N2, N4, N7 and N13 at the learner's door."""
    from surefoot.data.spaces import Box

    places = itertools.product(
        ("auto", "torch"), ("obs", "reward", "value", "log_prob", "next_value"), (0, 2, b.T - 1), (0, 3)
    )
    for (path, name, step, stream), (word, value) in itertools.product(places, BAD.items()):
        yield (
            f"N1 {path} {name}[{step},{stream}] = {word}",
            lambda n=name, s=step, k=stream, v=value, p=path: b.refused(
                lambda r: put(r, n, s, k, v), "NonFiniteValue", path=p
            ),
        )
    for step, word in itertools.product((0, b.T - 1), ("nan", "inf", "-inf")):
        yield (
            f"N1 action[{step}] = {word}",
            lambda s=step, v=BAD[word]: b.refused(
                lambda r: put(r, "action", s, 1, v), "NonFiniteValue", Box((2,), -1.0, 1.0)
            ),
        )
    for name, value in itertools.product(("obs", "reward", "value"), (1e-40, -1e-45, 0.0)):
        yield f"N1 {name} = {value}", lambda n=name, v=value: b.learned(lambda r: put(r, n, 1, 1, v))
    for value in (1e9, 1e12, -1e30):
        yield f"N3 reward = {value}", lambda v=value: b.learned(lambda r: put(r, "reward", 3, 2, v))
    for count, size in itertools.product(range(4), (1, 4, 1000)):
        yield f"N4 {count} valid steps", lambda n=count, m=size: few(b, n, m)
    for step, stream in itertools.product(range(b.T), range(b.N)):
        yield (
            f"N7 forbidden action at {step},{stream}",
            lambda s=step, k=stream: b.refused(lambda r: forbid(b, r, s, k, chosen=True), "IllegalAction"),
        )
        yield (
            f"N6 nothing allowed at {step},{stream}",
            lambda s=step, k=stream: b.refused(lambda r: forbid(b, r, s, k, chosen=False), "AllActionsMasked"),
        )
    for dtype, layout in itertools.product((np.float64, np.float16), ("plain", "fortran", "strided")):
        yield f"N13 {np.dtype(dtype)} {layout}", lambda d=dtype, w=layout: b.learned(lambda r: laid_out(r, d, w))


def few(b: Bench, count: int, size: int) -> str | None:
    def spoil(rollout: Any) -> None:
        rollout.valid[:] = False
        rollout.valid.reshape(-1)[:count] = True

    return b.learned(spoil, minibatch_size=size)


def forbid(b: Bench, rollout: Any, step: int, stream: int, *, chosen: bool) -> None:
    mask = np.ones((b.T, b.N, 3), bool)
    mask[step, stream, rollout.action[step, stream] if chosen else slice(None)] = False
    object.__setattr__(rollout, "action_mask", mask)


def laid_out(rollout: Any, dtype: Any, layout: str) -> Any:
    import dataclasses

    def cast(x: np.ndarray) -> np.ndarray:
        x = x.astype(dtype)
        return (
            np.asfortranarray(x) if layout == "fortran" else np.repeat(x, 2, axis=0)[::2] if layout == "strided" else x
        )

    names = ("reward", "value", "next_value", "log_prob")
    return dataclasses.replace(
        rollout, obs={"obs": cast(rollout.obs["obs"])}, **{n: cast(getattr(rollout, n)) for n in names}
    )


def bad_steps(b: Bench) -> Iterator[Case]:
    """N5 and N9: gradient steps out of nothing, and out of what is not finite."""
    for value, mode in itertools.product((0.1, 1e6, 1e-30, -7.7, 0.0), ("minibatch", "batch")):
        yield f"N5 every advantage {value}, {mode}", lambda v=value, m=mode: unmoved(b, v, m)
    for k, how in itertools.product(range(b.guards.MINIBATCHES), ("loss", "value", "nan", "inf")):
        yield f"N9 {how} at step {k}", lambda k=k, how=how: left_out(b, k, how)


def unmoved(b: Bench, value: float, mode: str) -> str | None:
    policy = b.guards.Faulty()
    zero, ends = np.zeros((b.T, b.N), np.float32), np.ones((b.T, b.N), bool)
    rollout = b.guards.walk(policy, reward=zero + np.float32(value), value=zero, next_value=zero, terminated=ends)
    before = b.guards.everything(policy)
    b.Learner(policy, b.config(ent_coef=0.0, vf_coef=0.0, normalize_advantage=mode, path="torch")).update(rollout)
    return None if b.guards.equal(before, b.guards.everything(policy)) else "weights moved though no action was better"


def left_out(b: Bench, k: int, how: str) -> str | None:
    policy = b.guards.Faulty(bad={k}, how=how)
    report = b.Learner(policy, b.config()).update(b.guards.walk(policy))
    if report.nonfinite_steps != 1:
        return f"{report.nonfinite_steps} steps are counted as not finite"
    fine = all(bool(torch.isfinite(x).all()) for x in b.guards.everything(policy).values())
    return None if fine else "weights are not finite"


def bad_choices() -> Iterator[Case]:
    """N6 and N13: masks under logits of any size and type."""
    sizes = itertools.product(range(2, 6), (0.0, 1e4, -1e9, 1e9), (torch.float32, torch.float16, torch.bfloat16))
    for choices, size, dtype in sizes:
        for legal in range(choices):
            yield f"N6 {choices} {size} {dtype}", lambda c=choices, s=size, d=dtype, i=legal: one_legal(c, s, d, i)


def one_legal(choices: int, size: float, dtype: torch.dtype, legal: int) -> str | None:
    from surefoot.nets import distributions

    top = torch.finfo(dtype).max / 4
    logits = torch.zeros(1, choices, dtype=dtype)
    logits[0, legal] = max(-top, min(top, size))
    logits.requires_grad_()
    mask = torch.zeros(1, choices, dtype=torch.bool)
    mask[0, legal] = True
    said = distributions.Categorical(distributions.mask_logits(logits, mask))
    chance, spread = said.log_prob(torch.tensor([legal])), said.entropy()
    (chance + spread).sum().backward()
    log_prob, entropy = chance.item(), spread.item()
    if not (abs(log_prob) <= 1e-6 and abs(entropy) <= 1e-6):
        return f"the only legal choice has log-probability {log_prob}, entropy {entropy}"
    assert logits.grad is not None
    return None if bool(torch.isfinite(logits.grad).all()) else "the gradient is not finite"


def bad_ratios() -> Iterator[Case]:
    """N8 and N12: ratios and densities out of reach of float32."""
    ratios = (21.0, 89.0, 200.0, 1e4, -21.0, -89.0, -200.0, -1e4)
    for ratio, advantage, dual in itertools.product(ratios, (-1.0, 0.0, 1.0), (None, 3.0)):
        yield f"N8 {ratio} {advantage} {dual}", lambda r=ratio, a=advantage, d=dual: surrogate(r, a, d)
    for log_std, action, squashed in itertools.product((-100.0, 0.0, 100.0), (0.0, 1e3, -1e3), (False, True)):
        yield f"N12 log_std {log_std}, {action}", lambda s=log_std, a=action, q=squashed: density(s, a, q)


def surrogate(ratio: float, advantage: float, dual: float | None) -> str | None:
    from surefoot.core.losses import clipped_surrogate

    log_ratio = torch.full((4,), ratio, requires_grad=True)
    loss = clipped_surrogate(log_ratio, torch.full((4,), advantage), clip=0.2, dual_clip=dual)
    loss.sum().backward()
    assert log_ratio.grad is not None
    fine = bool(torch.isfinite(loss).all()) and bool(torch.isfinite(log_ratio.grad).all())
    return None if fine else f"loss {loss[0].item()}, gradient {log_ratio.grad[0].item()}"


def density(log_std: float, action: float, squashed: bool) -> str | None:
    from surefoot.nets.continuous_distributions import Gaussian, TanhGaussian

    mean, spread = torch.zeros(2, 3, requires_grad=True), torch.full((3,), log_std, requires_grad=True)
    said = TanhGaussian(mean, spread, torch.zeros(3)) if squashed else Gaussian(mean, spread)
    (said.log_prob(torch.full((2, 3), action)).clamp(-1e30, 1e30) * 1e-12 + said.entropy()).sum().backward()
    grads = [x.grad for x in (mean, spread) if x.grad is not None]
    return None if all(bool(torch.isfinite(g).all()) for g in grads) else "the gradient is not finite"


def bad_statistics() -> Iterator[Case]:
    """N10 and N11."""
    for value, at, count in itertools.product((np.nan, np.inf, -np.inf), (0, 1), (10, 1000)):
        yield f"N10 {value}", lambda v=value, i=at, n=count: normalised(v, i, n)
    layers = {
        "BatchNorm1d": lambda: nn.BatchNorm1d(4),
        "BatchNorm2d": lambda: nn.BatchNorm2d(4),
        "Dropout": lambda: nn.Dropout(0.1),
        "Dropout2d": lambda: nn.Dropout2d(0.5),
        "InstanceNorm1d": lambda: nn.InstanceNorm1d(4, track_running_stats=True),
    }
    for name, make in layers.items():
        yield f"N11 {name}", lambda make=make: refused_layer(make)


def normalised(value: float, at: int, count: int) -> str | None:
    from surefoot.nets.normalizer import Normalizer

    seen, rng = Normalizer(2), np.random.default_rng(0)
    rows = rng.normal(3.0, 2.0, size=(count, 2))
    rows[0, at] = value
    for part in np.array_split(rows, 3):
        seen.update(part)
    told = (seen.mean, seen.var, seen(torch.zeros(1, 2)))
    if not all(bool(torch.isfinite(x).all()) for x in told):
        return "one bad row stays in the statistics"
    return None if int(seen.rejected) == 1 else f"{int(seen.rejected)} rows are counted as left out"


def refused_layer(make: Callable[[], nn.Module]) -> str | None:
    from surefoot.errors import SurefootError
    from surefoot.nets.networks import refuse_stateful_layers

    try:
        refuse_stateful_layers(nn.Sequential(nn.Linear(4, 4), make()))
    except SurefootError:
        return None
    return "a network that answers differently while learning was taken"


def bad_worlds() -> Iterator[Case]:
    """N1 and N2 where they come from: an env's step."""
    for what, value, at, policy, path in itertools.product(
        ("obs", "reward"), (np.nan, np.inf, -np.inf), (1, 2, 7), ("raise", "drop_episode"), ("auto", "torch")
    ):
        yield (
            f"N2 env's {what} {value} at {at}, {policy}",
            lambda w=what, v=value, a=at, p=policy, how=path: sour(w, v, a, p, how),
        )


def sour(what: str, value: float, at: int, nonfinite: str, path: str) -> str | None:
    from campaign.sour_env import Sour
    from surefoot.envs.make import make_world
    from surefoot.errors import NonFiniteValue
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.train.collect.collector import Collector
    from surefoot.train.config import CollectConfig

    world = make_world(lambda: Sour(what, value, at), 2)
    policy = ActorCritic(world.observation, world.action)
    collector = Collector(world, policy, steps=12, gamma=0.9, config=CollectConfig(nonfinite=nonfinite), path=path)
    try:
        rollout = collector.collect()
    except NonFiniteValue:
        return None if nonfinite == "raise" else "it raised though it was told to drop the episode"
    if nonfinite == "raise":
        return "it went on"
    numbers = (rollout.obs["obs"][rollout.valid], rollout.reward[rollout.valid], rollout.log_prob[rollout.valid])
    if not all(np.isfinite(x).all() for x in numbers):
        return "bad numbers are in the rollout"
    return None if rollout.stats.get("dropped_episodes", 0) >= 1 else "the episode is not counted as dropped"


def advantages(seed: int) -> Case:
    """N14: one random rollout against the definition in float64."""
    exact = from_tests("property/test_gae.py").oracle

    def run() -> str | None:
        from surefoot.core import advantage

        rng = np.random.default_rng(seed)
        T, N = int(rng.integers(1, 12)), int(rng.integers(1, 4))
        reward, value, ahead = (rng.normal(size=(T, N)) for _ in range(3))
        ends, valid = rng.random((T, N)), rng.random((T, N)) >= 0.1
        terminated, truncated = ends < 0.15, (ends >= 0.15) & (ends < 0.3)
        gamma, lam = float(rng.random()), float(rng.random())
        given = [torch.from_numpy(x) for x in (reward, value, np.where(terminated, np.nan, ahead))]
        flags = [torch.from_numpy(x) for x in (terminated, terminated | truncated, valid)]
        ours = advantage.gae(*given, *flags, gamma=gamma, lam=lam).numpy()
        wanted = exact(reward, value, ahead, terminated, truncated, valid, gamma, lam)
        return None if np.allclose(ours, wanted, rtol=1e-12, atol=1e-12) else "advantages differ from their definition"

    return f"N14 seed {seed}", run


def other_threads() -> Iterator[Case]:
    """N15: as many threads give the same bits, another number of them the same within rounding.

    Policy and rollout are made by one thread, so that it is learning that is compared.
    """

    def learned(path: str, seed: int, threads: int) -> np.ndarray:
        from surefoot.envs.make import make_world
        from surefoot.learn.config import PPOConfig
        from surefoot.learn.learner import Learner
        from surefoot.nets.actor_critic import ActorCritic
        from surefoot.nets.config import NetConfig
        from surefoot.train.collect.collector import Collector

        torch.set_num_threads(1)
        world = make_world("CartPole-v1", 16)
        policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(256, 256)), seed=seed)
        config = PPOConfig(envs=16, rollout_steps=64, minibatch_size=512, epochs=1, path=path, seed=seed)
        rollout = Collector(world, policy, steps=64, gamma=0.99, seed=seed, path=path).collect()
        torch.set_num_threads(threads)
        try:
            Learner(policy, config).update(rollout)
        finally:
            torch.set_num_threads(1)
        return np.concatenate([p.detach().numpy().ravel() for p in policy.parameters()])

    def run(path: str, seed: int) -> str | None:
        one, again, two = (learned(path, seed, threads) for threads in (1, 1, 2))
        if not np.array_equal(one, again):
            return "one thread gives other bits the second time"
        apart = float(np.abs(one - two).max())
        return None if apart <= 1e-6 else f"two threads learn something else than one, by {apart:.1e}"

    for path, seed in itertools.product(("torch", "native"), range(4)):
        yield f"N15 {path} {seed}", lambda path=path, seed=seed: run(path, seed)


def cases(count: int, only: str = "") -> list[Case]:
    b = Bench()
    if only:
        every = itertools.chain(bad_rollouts(b), bad_steps(b), bad_choices(), bad_ratios(), bad_statistics())
        found = [case for case in every if case[0].split()[0] == only] or [advantages(seed) for seed in range(count)]
        return found[:: max(1, len(found) // count)]
    grid = [c for make in (lambda: bad_rollouts(b), lambda: bad_steps(b), bad_choices) for c in make()]
    grid += [c for make in (bad_ratios, bad_statistics, bad_worlds, other_threads) for c in make()]
    if count < len(grid):
        return [*random.Random(count).sample(grid, max(1, count - 5)), *(advantages(s) for s in range(5))]
    return grid + [advantages(seed) for seed in range(max(100, count - len(grid)))]


def check(count: int, defect: str = "") -> Found:
    found = Found()
    torch.set_num_threads(1)
    kinds: dict[str, int] = {}
    with with_defect(defect), np.errstate(all="ignore"):
        for name, run in cases(count, KINDS.get(defect, "")):
            found.tried += 1
            found.bad_inputs += 1
            kinds[name.split()[0]] = kinds.get(name.split()[0], 0) + 1
            try:
                wrong = run()
            except Exception as error:
                found.fault(f"{name}: {type(error).__name__}: {str(error)[:120]}")
                continue
            if wrong:
                found.silent += 1
                if len(found.faults) < 6:
                    found.faults.append(f"{name}: {wrong}")
    found.notes = dict(sorted(kinds.items(), key=lambda kind: int(kind[0][1:])))
    return found


BLOCK = Block(
    name="B1",
    title="bad numbers, N1 to N15",
    over="engine",
    unit="bad inputs",
    smoke=90,
    count=900,
    long=100_000,
    check=check,
    mutants=dict.fromkeys(KINDS, 50),
)
