"""The update, held to a second implementation, to hand arithmetic and to torch's own optimisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from surefoot import native
from surefoot.core.batch import Batch, Evaluation
from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput

PATHS = ["torch", *(["native"] if native.kernel is not None else [])]


@pytest.fixture(params=PATHS, autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test here holds for both implementations: without the kernel, `auto` is torch."""
    if request.param == "torch":
        monkeypatch.setattr(native, "kernel", None)
    return request.param


OBS = {"obs": Box((3,))}
TWO = Box((2,), -1.0, 1.0)
HEADS: dict[str, tuple[ActionSpace, dict[str, bool]]] = {
    "discrete": (Discrete(4), {}),
    "several": (MultiDiscrete((2, 3)), {}),
    "gaussian": (TWO, {}),
    "tanh": (TWO, {"squash": True}),
    "gsde": (TWO, {"gsde": True}),
}


def a_policy(space: ActionSpace = Discrete(4), seed: int = 1, **knobs) -> ActorCritic:
    policy = ActorCritic(OBS, space, NetConfig(hidden=(8, 8), **knobs), seed=seed)
    with torch.no_grad():  # a policy with an opinion: a fresh one is almost uniform and hides mistakes
        policy.network.policy_out.weight.mul_(100.0)
    return policy


@torch.no_grad()
def walk(policy: ActorCritic, T: int = 8, N: int = 4, *, seed: int = 0, masked: bool = False, **parts) -> Rollout:
    """A rollout by the policy itself over random observations, with random rewards and ends."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    obs = parts.pop("obs", {"obs": rng.normal(size=(T, N, 3)).astype(np.float32)})
    mask = None
    if masked:
        choices = policy.head.outputs
        mask = rng.random((T, N, choices)) < 0.6
        mask[..., 0] = True
    context, steps = policy.initial_context(N), []
    for t in range(T):
        allowed = None if mask is None else torch.from_numpy(mask[t])
        seen = PolicyInput(
            obs={k: torch.from_numpy(x[t]) for k, x in obs.items()}, action_mask=allowed, context=context
        )
        out = policy.act(seen, generator=generator)
        context = out.context
        steps.append((out.action.numpy(), out.log_prob.numpy(), out.value.numpy()))
    action, log_prob, value = (np.stack(x) for x in zip(*steps, strict=True))
    ends = rng.random((T, N))
    made = {
        "obs": obs,
        "action": action,
        "log_prob": log_prob,
        "value": value,
        "next_value": rng.normal(size=(T, N)).astype(np.float32),
        "reward": rng.normal(size=(T, N)).astype(np.float32),
        "terminated": ends < 0.15,
        "truncated": (ends >= 0.15) & (ends < 0.25),
        "start": np.zeros((T, N), bool),
        "valid": np.ones((T, N), bool),
        "policy_version": np.zeros((T, N), np.int64),
        "action_mask": mask,
    }
    return Rollout(**{**made, **parts})


def a_config(**knobs) -> PPOConfig:
    return PPOConfig(**{"lr": 1e-2, "epochs": 2, "minibatch_size": 11, **knobs})


def weights(policy: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in policy.parameters()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


# --- the whole update, a second time ---


def plain_ppo(policy: ActorCritic, rollout: Rollout, c: PPOConfig) -> list[Tensor]:
    """PPO once more, by other means: float64, advantages as a double sum, Adam and clipping written out."""
    weight = [p.detach().double().requires_grad_() for p in policy.parameters()]
    names = [name for name, _ in policy.named_parameters()]
    T, N = rollout.reward.shape
    advantage = np.zeros((T, N))
    for n in range(N):
        for t in range(T):
            for k in range(t, T):
                future = 0.0 if rollout.terminated[k, n] else rollout.next_value[k, n]
                delta = rollout.reward[k, n] + c.gamma * future - rollout.value[k, n]
                advantage[t, n] += (c.gamma * c.lam) ** (k - t) * delta
                if rollout.terminated[k, n] or rollout.truncated[k, n]:
                    break
    flat = {k: torch.from_numpy(x.reshape(T * N, *x.shape[2:])) for k, x in {
        "obs": rollout.obs["obs"].astype(float), "a": rollout.action, "lp": rollout.log_prob.astype(float),
        "v": rollout.value.astype(float), "A": advantage}.items()}  # fmt: skip
    target = flat["A"] + flat["v"]
    if c.normalize_advantage == "batch":
        flat["A"] = (flat["A"] - flat["A"].mean()) / (flat["A"].std(correction=0) + 1e-8)
    generator = torch.Generator().manual_seed(seed_for("shuffle", c.seed))
    m, v, step = [torch.zeros_like(w) for w in weight], [torch.zeros_like(w) for w in weight], 0
    for _ in range(c.epochs):
        order = torch.randperm(T * N, generator=generator)
        for rows in np.array_split(order.numpy(), max(1, round(T * N / c.minibatch_size))):
            w = dict(zip(names, weight, strict=True))
            hidden = {}
            for who in ("actor", "critic"):
                x = flat["obs"][rows]
                for i in (0, 2):
                    x = torch.tanh(x @ w[f"network.{who}.{i}.weight"].T + w[f"network.{who}.{i}.bias"])
                hidden[who] = x
            raw = hidden["actor"] @ w["network.policy_out.weight"].T + w["network.policy_out.bias"]
            value = (hidden["critic"] @ w["network.value_out.weight"].T + w["network.value_out.bias"])[:, 0]
            if "head.log_std" in w:
                dist = torch.distributions.Independent(torch.distributions.Normal(raw, w["head.log_std"].exp()), 1)
            else:
                dist = torch.distributions.Categorical(logits=raw)
            ratio = (dist.log_prob(flat["a"][rows]) - flat["lp"][rows]).exp()
            A = flat["A"][rows]
            if c.normalize_advantage == "minibatch":
                A = (A - A.mean()) / (A.std(correction=0) + 1e-8)
            policy_loss = -torch.minimum(A * ratio, A * ratio.clamp(1 - c.clip, 1 + c.clip)).mean()
            error = (value - target[rows]) ** 2
            if c.value_clip is not None:
                near = flat["v"][rows] + (value - flat["v"][rows]).clamp(-c.value_clip, c.value_clip)
                error = torch.maximum(error, (near - target[rows]) ** 2)
            loss = policy_loss + c.vf_coef * 0.5 * error.mean() - c.ent_coef * dist.entropy().mean()
            gradient = torch.autograd.grad(loss, weight)
            norm = torch.sqrt(sum((g**2).sum() for g in gradient))
            shrink = min(1.0, c.max_grad_norm / (norm.item() + 1e-6))
            step += 1
            with torch.no_grad():
                for i, g in enumerate(gradient):
                    m[i] = 0.9 * m[i] + 0.1 * g * shrink
                    v[i] = 0.999 * v[i] + 0.001 * (g * shrink) ** 2
                    weight[i] -= c.lr * (m[i] / (1 - 0.9**step)) / ((v[i] / (1 - 0.999**step)).sqrt() + 1e-5)
    return [w.detach() for w in weight]


@pytest.mark.parametrize("space", [Discrete(4), TWO], ids=["discrete", "gaussian"])
@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"value_clip": 0.1, "ent_coef": 0.05},
        {"normalize_advantage": "batch", "max_grad_norm": 1e9},
        {"normalize_advantage": "off", "clip": 0.02, "vf_coef": 2.0, "lam": 0.5},
    ],
    ids=["default", "value_clip", "batch", "off"],
)
def test_an_update_moves_the_weights_as_a_second_implementation_does(space, knobs):
    policy, config = a_policy(space), a_config(lr=1e-3, **knobs)
    rollout = walk(policy)
    expected = plain_ppo(policy, rollout, config)
    before = weights(policy)
    Learner(policy, config).update(rollout)
    after = weights(policy)
    moved = max(float((a - b).abs().max()) for a, b in zip(before, after, strict=True))
    off = max(float((a - b.double()).abs().max()) for a, b in zip(expected, after, strict=True))
    assert moved > 1e-3
    assert off < 1e-6


# --- one parameter, by hand ---


class Knob(nn.Module):
    """One weight θ: actions are N(θ, 1), the value is always 0."""

    sequential = False

    def __init__(self, theta: float = 0.0) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor(theta))

    def evaluate(self, batch: Batch) -> Evaluation:
        log_prob = torch.distributions.Normal(self.theta, 1.0).log_prob(batch.action)
        return Evaluation(log_prob, torch.zeros_like(log_prob), 0.0 * log_prob)

    def absorb(self, obs) -> None: ...

    def action_std(self) -> float | None:
        return None


def pulls(action: list[float], reward: list[float], theta: float = 0.0) -> Rollout:
    """One-step episodes: the advantage is the reward."""
    a, r = np.array([action], np.float32), np.array([reward], np.float32)
    log_prob = torch.distributions.Normal(theta, 1.0).log_prob(torch.from_numpy(a)).numpy()
    yes, zero = np.ones(a.shape, bool), np.zeros(a.shape, np.float32)
    return Rollout(
        obs={}, action=a, log_prob=log_prob, value=zero, next_value=zero, reward=r, terminated=yes, truncated=~yes,
        start=yes, valid=yes, policy_version=np.zeros(a.shape, np.int64),
    )  # fmt: skip


ONE_STEP = {"epochs": 1, "minibatch_size": 1000, "normalize_advantage": "off", "max_grad_norm": 1e9}


def test_adams_epsilon_is_1e_5_as_one_step_by_hand_shows():
    # d loss/dθ = -mean(A (a - θ)) = -1e-5; Adam's first step is lr · g / (|g| + ε): with ε = 1e-5 half of lr.
    knob = Knob()
    Learner(knob, PPOConfig(lr=0.01, **ONE_STEP)).update(pulls([1.0, 1.0], [1e-5, 1e-5]))
    assert knob.theta.item() == pytest.approx(0.005, rel=1e-4)


@pytest.mark.parametrize(
    ("mode", "gradient"),
    [
        # A = 1, 3 at a = 2, -1: mean of A·a = -½, so θ goes down; standardised A = -1, 1: mean of A·a = -1½.
        ("off", -0.5),
        ("minibatch", -1.5),
        ("batch", -1.5),
    ],
)
def test_advantages_are_standardised_or_not_as_asked(mode, gradient):
    knob = Knob()
    config = PPOConfig(lr=0.1, optimizer="sgd", **{**ONE_STEP, "normalize_advantage": mode})
    Learner(knob, config).update(pulls([2.0, -1.0], [1.0, 3.0]))
    assert knob.theta.item() == pytest.approx(0.1 * gradient, rel=1e-5)


def test_per_minibatch_each_minibatch_is_judged_by_itself_and_per_batch_all_together():
    # Minibatches of one: alone an advantage does not vary and is 0; over the batch they are ±1.
    still, moving = Knob(), Knob()
    knobs = {"lr": 0.1, "optimizer": "sgd", "epochs": 1, "minibatch_size": 1}
    report = Learner(still, PPOConfig(**knobs)).update(pulls([2.0, -1.0], [1.0, 3.0]))
    Learner(moving, PPOConfig(**knobs, normalize_advantage="batch")).update(pulls([2.0, -1.0], [1.0, 3.0]))
    assert still.theta.item() == 0.0
    assert report.zero_std_minibatches == 2
    assert moving.theta.item() != 0.0


@pytest.mark.parametrize("constant", [0.1, 1e6, 1e-30, -3.0])
def test_rewards_that_do_not_vary_leave_the_weights_as_they_are(constant):
    policy = a_policy()
    rollout = walk(
        policy,
        terminated=np.ones((8, 4), bool),
        truncated=np.zeros((8, 4), bool),
        value=np.zeros((8, 4), np.float32),
        reward=np.full((8, 4), constant, np.float32),
    )
    before = weights(policy)
    report = Learner(policy, a_config(vf_coef=0.0, ent_coef=0.0)).update(rollout)
    assert same(before, weights(policy))
    assert report.zero_std_minibatches == report.minibatches == 6


def test_every_minibatch_that_was_set_to_zero_is_counted():
    # Around a million, deviations of a thirtieth are rounding too, and are treated so.
    reward = [1e6, 1e6 + 0.0625] * 4
    report = Learner(Knob(), PPOConfig(**{**ONE_STEP, "normalize_advantage": "minibatch"})).update(
        pulls([1.0] * 8, reward)
    )
    assert report.policy_loss == 0.0
    assert report.zero_std_minibatches == 1


OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-5, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, eps=1e-5, weight_decay=0.1),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.7, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, eps=1e-5, momentum=0.7, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimiser_moves_the_weight_as_torchs_own(name):
    theta = torch.tensor([0.5], requires_grad=True)
    theirs, knob = OPTIMIZERS[name]([theta]), Knob(0.5)
    momentum = 0.7 if name in ("sgd", "rmsprop") else 0.0
    config = PPOConfig(lr=0.01, optimizer=name, weight_decay=0.1, momentum=momentum, **ONE_STEP)
    learner = Learner(knob, config)
    for actions in ([2.0, -1.0], [0.3, 4.0], [-2.0, 0.0]):
        rollout = pulls(actions, [1.0, 3.0], knob.theta.item())
        # Fresh, so the ratio is 1: the gradient is -mean(A (a - θ)).
        a = np.array(actions) - theta.item()
        theta.grad = torch.tensor([-(1.0 * a[0] + 3.0 * a[1]) / 2], dtype=torch.float32)
        theirs.step()
        learner.update(rollout)
        assert knob.theta.item() == pytest.approx(theta.item(), rel=1e-5)


# --- ratios ---


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("normalize_obs", [False, True])
def test_a_fresh_rollout_begins_with_a_ratio_of_one(kind, normalize_obs):
    space, knobs = HEADS[kind]
    policy = a_policy(space, normalize_obs=normalize_obs, **knobs)
    learner = Learner(policy, a_config(minibatch_size=64, lr=1e-3))
    for seed in range(4):
        report = learner.update(walk(policy, 16, 8, seed=seed, policy_version=np.full((16, 8), seed)))
        assert report.first_ratio_error <= 1e-5
        assert report.policy_lag == 0
        assert report.effective_sample_size == 1.0


def test_a_masked_rollout_begins_with_a_ratio_of_one_and_without_its_mask_it_does_not():
    policy = a_policy()
    rollout = walk(policy, masked=True)
    assert Learner(policy, a_config()).update(rollout).first_ratio_error <= 1e-5
    policy = a_policy()
    forgotten = walk(policy, masked=True)
    object.__setattr__(forgotten, "action_mask", None)
    assert Learner(policy, a_config()).update(forgotten).first_ratio_error > 0.1


def test_clipped_actions_in_a_rollout_show_in_the_first_ratio():
    policy = a_policy(TWO)
    rollout = walk(policy)
    object.__setattr__(rollout, "action", rollout.action.clip(-0.5, 0.5))
    assert Learner(policy, a_config()).update(rollout).first_ratio_error > 0.01


def test_the_old_log_prob_is_the_stored_one_and_never_computed_again():
    # θ = 0 stored log-probs of a policy at θ = 1: the ratio is far from 1 from the start, and reported.
    report = Learner(Knob(0.0), PPOConfig(**ONE_STEP)).update(pulls([1.0, 1.0], [1.0, 2.0], theta=1.0))
    assert report.first_ratio_error == pytest.approx(1.0 - math.exp(-0.5), rel=1e-4)


def test_an_old_rollout_reports_its_lag_and_how_much_of_it_still_counts():
    # Two samples with ratios r = exp(-½(a² - (a - 1)²)) = exp(½ - a): e^-½ and e^½.
    learner = Learner(Knob(0.0), PPOConfig(**ONE_STEP))
    learner.update(pulls([0.0, 0.0], [0.0, 0.0]))
    r1, r2 = math.exp(-0.5), math.exp(0.5)
    report = learner.update(pulls([1.0, 0.0], [0.0, 0.0], theta=1.0))
    assert report.policy_lag == 1
    assert report.effective_sample_size == pytest.approx((r1 + r2) ** 2 / (2 * (r1**2 + r2**2)), rel=1e-5)


@pytest.mark.parametrize(("kind", "masked"), [*((kind, False) for kind in HEADS), ("discrete", True)])
def test_how_much_of_an_old_rollout_counts_is_the_same_by_the_kernel_as_by_torch(kind, masked):
    space, knobs = HEADS[kind]
    shares = []
    for path in ("torch", "auto"):
        policy = a_policy(space, normalize_obs=True, **knobs)
        learner, old = Learner(policy, a_config(lr=3e-2, path=path)), walk(policy, 16, 8, seed=1, masked=masked)
        learner.update(walk(policy, 16, 8, seed=0, masked=masked))
        shares.append(learner.update(old).effective_sample_size)
    assert shares[0] == pytest.approx(shares[1], rel=1e-3)
    assert 0.0 < shares[0] < 0.999


# --- minibatches ---


class Spy(ActorCritic):
    """Remembers which rows each minibatch had; the row's number is in its third observation."""

    def watch(self) -> Spy:
        self.rows: list[list[int]] = []
        return self

    def evaluate(self, batch: Batch) -> Evaluation:
        self.rows.append(batch.obs["obs"][..., 2].flatten().int().tolist())
        return super().evaluate(batch)


def numbered(T: int, N: int) -> dict[str, np.ndarray]:
    obs = np.zeros((T, N, 3), np.float32)
    obs[..., 2] = np.arange(T * N).reshape(T, N)
    return {"obs": obs}


@pytest.mark.parametrize(
    ("knobs", "sizes"),
    [
        ({"minibatch_size": 16}, [16, 16]),
        ({"minibatch_size": 10}, [11, 11, 10]),  # no minibatch of 2 is left over
        ({"minibatch_size": 1000}, [32]),
        ({"minibatch_size": None, "minibatches": 4}, [8, 8, 8, 8]),
        ({"minibatch_size": 1}, [1] * 32),
    ],
)
def test_every_step_is_used_exactly_once_an_epoch_in_minibatches_of_even_size(knobs, sizes):
    policy = Spy(OBS, Discrete(4)).watch()
    rollout = walk(policy, obs=numbered(8, 4))
    policy.rows.clear()
    report = Learner(policy, a_config(epochs=3, lr=1e-6, **knobs)).update(rollout)
    assert [len(rows) for rows in policy.rows] == sizes * 3
    for epoch in range(3):
        used = sum(policy.rows[epoch * len(sizes) : (epoch + 1) * len(sizes)], [])
        assert sorted(used) == list(range(32))
    assert report.minibatches == 3 * len(sizes)
    assert [e.minibatches for e in report.epochs] == [len(sizes)] * 3


def test_epochs_are_shuffled_differently_and_the_seed_decides_how():
    def rows(seed: int) -> list[list[int]]:
        policy = Spy(OBS, Discrete(4)).watch()
        rollout = walk(policy, obs=numbered(8, 4))
        policy.rows.clear()
        Learner(policy, a_config(minibatch_size=32, seed=seed)).update(rollout)
        return policy.rows

    first, second = rows(0)
    assert first != second
    assert first != sorted(first)
    assert rows(0) == [first, second]
    assert rows(1) != [first, second]


def test_the_learning_rate_falls_in_a_line_by_update_and_not_by_minibatch():
    policy, rates = a_policy(), []
    learner = Learner(
        policy, a_config(lr="lin_8e-3", clip="lin_0.4_0.2", ent_coef="lin_0.1", path="torch"), total_updates=4
    )
    step = learner.optimizer.step
    learner.optimizer.step = lambda lr: (rates.append(lr), step(lr))
    for update in range(5):
        rates.clear()
        rollout = walk(policy, policy_version=np.full((8, 4), update))
        report = learner.update(rollout)
        share = min(1.0, update / 4)
        assert rates == [report.lr] * 6
        assert report.lr == pytest.approx(8e-3 * (1 - share))
        assert report.clip == pytest.approx(0.4 - 0.2 * share)
        assert report.ent_coef == pytest.approx(0.1 * (1 - share))


def test_without_a_length_a_line_stays_at_its_start():
    learner = Learner(Knob(), PPOConfig(lr="lin_1e-3", **ONE_STEP))
    assert [learner.update(pulls([0.0, 1.0], [0.0, 0.0])).lr for _ in range(3)] == [1e-3] * 3


# --- clipping, stopping ---


def displacement(policy: nn.Module, before: list[Tensor]) -> Tensor:
    return torch.cat([(p.detach() - b).flatten().double() for p, b in zip(policy.parameters(), before, strict=True)])


def test_actor_and_critic_are_clipped_by_one_norm():
    def moved(limit: float) -> tuple[Tensor, float]:
        policy = a_policy()
        before = weights(policy)
        config = a_config(lr=1.0, optimizer="sgd", epochs=1, minibatch_size=1000, max_grad_norm=limit)
        report = Learner(policy, config).update(walk(policy))
        return displacement(policy, before), report.grad_norm

    free, norm = moved(1e9)
    held, reported = moved(0.01)
    assert norm == pytest.approx(free.norm().item(), rel=1e-5)
    assert reported == pytest.approx(norm, rel=1e-6)  # before clipping
    assert held.norm().item() == pytest.approx(0.01, rel=1e-3)
    assert torch.allclose(held, free * (0.01 / norm), atol=1e-6)  # same direction: all parts shrink alike


def test_the_target_kl_ends_all_epochs_and_only_real_steps_are_counted():
    config = {"lr": 0.05, "optimizer": "sgd", "max_grad_norm": 1e9, "minibatch_size": 16, "epochs": 5}
    stopped, free = Spy(OBS, Discrete(4)).watch(), a_policy()
    rollout = walk(stopped)
    report = Learner(stopped, PPOConfig(**config, target_kl=1e-9)).update(rollout)
    assert report.stopped_early
    assert report.minibatches == 1
    assert [e.minibatches for e in report.epochs] == [1]
    assert len(stopped.rows) == 2  # one to learn from, one to see that it is enough
    unstopped = Learner(free, PPOConfig(**config, target_kl=1e9)).update(rollout)
    assert not unstopped.stopped_early
    assert unstopped.minibatches == 10


@pytest.mark.parametrize(("factor", "stops"), [(1.5, False), (1.0, True)])
def test_the_stop_factor_tells_sb3s_rule_from_cleanrls(factor, stops):
    # One weight moved from 0 to x gives k3 = expm1(log r) - log r with log r = x·a - ½x², the same for all samples.
    a, lr = 1.0, 0.1
    x = lr * a  # SGD with A = 1: θ = lr·mean(A·a)
    log_ratio = x * a - 0.5 * x * x
    kl = math.expm1(log_ratio) - log_ratio
    knobs = {**ONE_STEP, "epochs": 2, "lr": lr, "optimizer": "sgd"}
    config = PPOConfig(**knobs, target_kl=kl / 1.2, kl_stop_factor=factor)
    assert Learner(Knob(), config).update(pulls([a, a], [1.0, 1.0])).stopped_early is stops


# --- entropy ---


def test_the_entropy_bonus_raises_entropy_where_nothing_else_pulls():
    def entropies(ent_coef: float) -> list[float]:
        policy = a_policy()
        learner = Learner(policy, a_config(ent_coef=ent_coef, vf_coef=0.0, minibatch_size=8))
        flat = {"reward": np.ones((8, 4), np.float32), "value": np.zeros((8, 4), np.float32)}
        flat |= {"terminated": np.ones((8, 4), bool), "truncated": np.zeros((8, 4), bool)}
        return [learner.update(walk(policy, seed=0, **flat)).entropy for _ in range(6)]

    paid, unpaid = entropies(0.5), entropies(0.0)
    assert paid[-1] > paid[0] + 0.02
    assert unpaid[-1] == pytest.approx(unpaid[0], rel=1e-6)


# --- rows that do not count, batches that are too small ---


def padded(rollout: Rollout, rows: int, streams: int) -> Rollout:
    """The same steps, with rows and streams of rubbish that are not valid."""

    def grow(x: np.ndarray, rubbish: float | bool | int) -> np.ndarray:
        return np.pad(x, [(0, rows), (0, streams)] + [(0, 0)] * (x.ndim - 2), constant_values=rubbish)

    return Rollout(
        obs={k: grow(x, np.nan) for k, x in rollout.obs.items()},
        action=grow(rollout.action, 0),
        **{k: grow(getattr(rollout, k), np.nan) for k in ("log_prob", "value", "next_value", "reward")},
        **{k: grow(getattr(rollout, k), True) for k in ("terminated", "truncated", "start")},
        valid=grow(rollout.valid, False),
        policy_version=grow(rollout.policy_version, -100),
        action_mask=None if rollout.action_mask is None else grow(rollout.action_mask, False),
    )


@pytest.mark.parametrize(("rows", "streams"), [(3, 0), (0, 2), (2, 3)])
def test_rows_that_do_not_count_change_nothing(rows, streams):
    one, two = a_policy(normalize_obs=True), a_policy(normalize_obs=True)
    rollout = walk(one, masked=True)
    first = Learner(one, a_config(max_policy_lag=3)).update(rollout)
    second = Learner(two, a_config(max_policy_lag=3)).update(padded(rollout, rows, streams))
    assert all(torch.equal(x, two.state_dict()[name]) for name, x in one.state_dict().items())
    assert first.metrics() == second.metrics()


def test_a_hole_in_the_middle_lets_no_advantage_through():
    # γ = λ = 1, V = 0, rewards 1, 2, hole, 4: A = 1 + V', hole, …; nothing of the 4 reaches the first two.
    policy = Knob()
    r = np.array([[1.0], [2.0], [99.0], [4.0]], np.float32)
    zero, no = np.zeros_like(r), np.zeros(r.shape, bool)
    rollout = Rollout(
        obs={}, action=zero, log_prob=zero, value=zero, next_value=zero, reward=r, terminated=no, truncated=no, start=no,
        valid=np.array([[True], [True], [False], [True]]), policy_version=np.zeros(r.shape, np.int64),
    )  # fmt: skip
    batch = Learner(policy, PPOConfig(gamma=1.0, lam=1.0)).prepare(rollout)
    assert batch.advantage.tolist() == [[3.0, 2.0, 4.0]]


def test_the_order_of_the_streams_does_not_matter_to_what_is_reported():
    one, two = a_policy(), a_policy()
    rollout, turn = walk(one), [2, 0, 3, 1]
    parts = {f: getattr(rollout, f) for f in Rollout.__dataclass_fields__}
    turned = {k: x[:, turn] for k, x in parts.items() if isinstance(x, np.ndarray)}
    shuffled = Rollout(**{**parts, **turned, "obs": {"obs": rollout.obs["obs"][:, turn]}})
    config = a_config(minibatch_size=1000, epochs=1)
    a, b = Learner(one, config).update(rollout).metrics(), Learner(two, config).update(shuffled).metrics()
    assert a == pytest.approx(b, rel=1e-4, abs=1e-6)


def test_steps_of_a_policy_that_is_too_old_are_dropped_and_counted():
    policy = a_policy()
    learner = Learner(policy, a_config(max_policy_lag=1))
    learner.updates = 5
    version = np.full((8, 4), 5)
    version[:, 0], version[:, 1] = 4, 3
    report = learner.update(walk(policy, policy_version=version))
    assert report.samples == 24
    assert report.policy_lag == 1
    assert report.stats["stale_steps"] == 8.0


@pytest.mark.parametrize("valid", [0, 1, 2, 3])
def test_too_few_steps_are_no_update_and_the_report_says_so(valid):
    policy = a_policy()
    learner, before = Learner(policy, a_config(min_samples=3)), weights(policy)
    report = learner.update(walk(policy, valid=np.arange(32).reshape(8, 4) < valid))
    assert (report.samples, report.minibatches > 0) == (valid, valid == 3)
    if valid < 3:
        assert f"{valid} valid steps" in (report.skipped_reason or "")
        assert same(before, weights(policy))
    else:
        assert report.skipped_reason is None
        assert all(torch.isfinite(w).all() for w in weights(policy))


def test_a_single_step_can_be_learned_from():
    policy = a_policy()
    report = Learner(policy, a_config(min_samples=1)).update(walk(policy, 1, 1))
    assert (report.samples, report.policy_loss) == (1, 0.0)
    assert all(torch.isfinite(w).all() for w in weights(policy))


def test_an_update_in_which_no_step_was_taken_says_why():
    # So stale that the target KL is passed before the first step.
    learner = Learner(Knob(0.0), PPOConfig(**ONE_STEP, target_kl=0.01))
    report = learner.update(pulls([1.0, 1.0], [1.0, 2.0], theta=3.0))
    assert (report.minibatches, report.stopped_early) == (0, True)
    assert report.skipped_reason is not None


# --- sequential policies keep their streams ---


class Streams(Knob):
    """A sequential policy that remembers the batches it was shown."""

    sequential = True

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[Batch] = []

    def evaluate(self, batch: Batch) -> Evaluation:
        self.shown.append(batch)
        return super().evaluate(batch)


def stream_rollout(valid: np.ndarray) -> Rollout:
    T, N = valid.shape
    rng = np.random.default_rng(0)
    a = rng.normal(size=(T, N)).astype(np.float32)
    zero, no = np.zeros((T, N), np.float32), np.zeros((T, N), bool)
    start = no.copy()
    start[0] = True
    return Rollout(
        obs={"t": np.tile(np.arange(T, dtype=np.float32)[:, None], (1, N))}, action=a,
        log_prob=torch.distributions.Normal(0.0, 1.0).log_prob(torch.from_numpy(a)).numpy(), value=zero, next_value=zero,
        reward=rng.normal(size=(T, N)).astype(np.float32), terminated=no, truncated=no, start=start, valid=valid,
        policy_version=np.zeros((T, N), np.int64), context={"memory": np.arange(N, dtype=np.float32)[:, None]},
    )  # fmt: skip


def test_a_sequential_policy_gets_whole_streams_in_time_order_with_what_they_walked_in_with():
    policy = Streams()
    report = Learner(policy, PPOConfig(epochs=1, minibatch_size=10)).update(stream_rollout(np.ones((5, 6), bool)))
    assert [b.advantage.shape for b in policy.shown] == [(5, 2)] * 3
    assert sorted(m for b in policy.shown for m in b.context["memory"].flatten().tolist()) == [0, 1, 2, 3, 4, 5]
    for batch in policy.shown:
        assert batch.obs["t"][:, 0].tolist() == [0, 1, 2, 3, 4]
        assert batch.start is not None
        assert batch.start[0].all()
    assert report.first_ratio_error <= 1e-5


def test_a_stream_in_which_nothing_counts_does_not_disturb_the_report():
    valid = np.ones((5, 4), bool)
    valid[:, 1] = False  # an agent that left: a minibatch of its own would be empty
    report = Learner(Streams(), PPOConfig(epochs=2, minibatch_size=5)).update(stream_rollout(valid))
    assert report.samples == 15
    assert all(math.isfinite(x) for x in report.metrics().values())


# --- going on ---


def test_a_learner_goes_on_from_its_state_to_the_last_bit():
    def rollout(policy: ActorCritic, update: int) -> Rollout:
        return walk(policy, seed=update, policy_version=np.full((8, 4), update))

    config = a_config(lr="lin_1e-2")
    one = a_policy(normalize_obs=True)
    learner = Learner(one, config, total_updates=6)
    for s in range(3):
        learner.update(rollout(one, s))
    two = a_policy(seed=9, normalize_obs=True)
    two.load_state_dict({k: x.clone() for k, x in one.state_dict().items()})
    again = Learner(two, config, total_updates=1)
    saved = learner.state()
    again.set_state({**saved, "optimizer": {k: x.clone().numpy() for k, x in saved["optimizer"].items()}})
    for s in range(3, 6):
        a, b = learner.update(rollout(one, s)), again.update(rollout(two, s))
        assert a.metrics() == b.metrics()
    assert all(torch.equal(x, two.state_dict()[name]) for name, x in one.state_dict().items())


def test_a_state_that_was_taken_does_not_move_with_the_learner():
    policy = a_policy()
    learner = Learner(policy, a_config())
    learner.update(walk(policy))
    saved = learner.state()
    kept = {name: x.clone() for name, x in saved["optimizer"].items()}
    learner.update(walk(policy, seed=1))
    assert all(torch.equal(x, kept[name]) for name, x in saved["optimizer"].items())


def test_two_learners_set_to_one_state_do_not_share_it():
    policy = a_policy()
    learner = Learner(policy, a_config())
    learner.update(walk(policy))
    saved = learner.state()
    saved["optimizer"] = {name: x.clone() for name, x in saved["optimizer"].items()}
    ends = []
    for _ in range(2):
        twin = a_policy()
        twin.load_state_dict({k: x.clone() for k, x in policy.state_dict().items()})
        other = Learner(twin, a_config())
        other.set_state(saved)
        other.update(walk(twin, seed=1))
        ends.append(weights(twin))
    assert same(*ends)


def test_the_report_is_numbered_from_one_and_says_what_it_was_made_of(path):
    policy = a_policy()
    learner = Learner(policy, a_config())
    rollout = walk(policy, stats={"queue": 3.0})
    report = learner.update(rollout)
    assert (report.update, report.policy_version, report.samples, report.path) == (1, 1, 32, path)
    assert report.stats["queue"] == 3.0
    assert report.reward_mean == pytest.approx(rollout.reward.mean(), rel=1e-5)
    assert report.reward_std == pytest.approx(rollout.reward.std(), rel=1e-5)
    assert report.value_mean == pytest.approx(rollout.value.mean(), rel=1e-4)
    assert report.loss == pytest.approx(report.policy_loss + 0.5 * report.value_loss, rel=1e-5)
    assert set(report.seconds) == {"prepare", "learn"}


def test_explained_variance_is_that_of_values_and_targets():
    policy = a_policy()
    rollout = walk(policy)
    batch = Learner(policy, a_config()).prepare(rollout)
    target, value = batch.target.numpy(), batch.value.numpy()
    report = Learner(policy, a_config()).update(rollout)
    assert report.explained_variance == pytest.approx(1 - np.var(target - value) / np.var(target), rel=1e-4)
    assert report.target_mean == pytest.approx(target.mean(), rel=1e-4)
    expected = np.corrcoef(rollout.reward.flatten(), (target - value).flatten())[0, 1]
    assert report.reward_advantage_corr == pytest.approx(expected, rel=1e-4)


def test_statistics_of_observations_move_only_after_the_update():
    policy = a_policy(normalize_obs=True)
    seen: list[Tensor] = []
    judge = policy.evaluate
    policy.evaluate = lambda batch: (seen.append(policy.flatten.normalizer.mean.clone()), judge(batch))[1]
    rollout = walk(policy)
    Learner(policy, a_config()).update(rollout)
    assert all(torch.equal(mean, torch.zeros(3, dtype=torch.float64)) for mean in seen)
    assert np.allclose(policy.flatten.normalizer.mean, rollout.obs["obs"].reshape(-1, 3).mean(0), atol=1e-6)
    assert policy.flatten.normalizer.count.item() == 32
