"""The text of a program that stands alone with two levels: a maze of rooms, sub-goals in it, who sets them, who walks."""

from __future__ import annotations

MAZE = '''MAZE = """
{drawing}
"""  # every cell has the number of its room, a door that of the room behind it; the highest number is the way out
LANDMARKS = np.array({landmarks})
LIMIT = {limit}  # steps of an episode
SCALE = float(np.ptp(LANDMARKS, axis=0).max())


class Maze:
    """Cells and what may be done in each. A step into a wall leaves you where you are."""

    def __init__(self) -> None:
        cells = np.array([list(row) for row in MAZE.split()])
        height, width = cells.shape
        here, room = np.arange(cells.size), np.where(cells == "#", "0", cells).astype(int).ravel()
        there = (here[:, None] + [-width, 1, width, -1]).clip(0, cells.size - 1)  # up, right, down, left
        self.after = np.where(cells.ravel()[there] != "#", there, here[:, None])
        self.first, self.exit = int((cells.ravel() == "0").argmax()), int(room.argmax())
        self.place = np.stack(np.divmod(here, width), axis=1).astype(float)  # row and column
        self.look = np.hstack([self.place[:, :1] == np.arange(height), self.place[:, 1:] == np.arange(width)])
        self.look = self.look.astype(np.float32)
        self.nearby = np.abs(room[:, None] - np.arange(len(LANDMARKS))) <= 1
'''

WORLD = '''class World:
    """N walkers, each on its way to a landmark: the worker sees the way that is left and is paid for getting there."""

    def __init__(self, config: Config, manager: Manager) -> None:
        self.config, self.manager, self.maze, self.count = config, manager, Maze(), config.{num_envs}
        self.cell, self.age = np.full(self.count, self.maze.first), np.zeros(self.count, int)

    def begin(self) -> np.ndarray:
        """Set all sub-goals anew, where the walkers are; what they see then."""
        self.target = LANDMARKS[self.manager.first(self.maze.look[self.cell], self.allowed(self.cell))]
        self.spent = np.zeros(self.count, int)
        return self.seen(self.cell)

    def allowed(self, cell: np.ndarray) -> np.ndarray:
        """[n, landmarks]: those of this room and the next to it, but the one that is reached."""
        away = np.abs(self.maze.place[cell][:, None] - LANDMARKS).max(axis=2) > self.config.{near}
        may = away & self.maze.nearby[cell]
        return may | ~may.any(axis=1, keepdims=True)

    def seen(self, cell: np.ndarray) -> np.ndarray:
        way = (self.target - self.maze.place[cell]) / SCALE
        return np.hstack([way.astype(np.float32), self.maze.look[cell]])

    def step(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(what to act on next, reward, terminated, truncated, where the step really led); an episode is a sub-goal."""
        far = np.abs(self.maze.place[self.cell] - self.target).sum(axis=1) / SCALE
        cell = self.maze.after[self.cell, action]
        out, left = cell == self.maze.exit, np.abs(self.maze.place[cell] - self.target)
        self.age, self.spent = self.age + 1, self.spent + 1
        late, reached = (self.age >= LIMIT) & ~out, left.max(axis=1) <= self.config.{near}
        reward = reached + self.config.{env_share} * out + self.config.{progress} * (far - left.sum(axis=1) / SCALE)
        terminated = out | reached
        truncated = (late | (self.spent >= self.config.{steps_per_goal})) & ~terminated
        over, after = terminated | truncated, self.seen(cell)
        self.cell, self.age = np.where(out | late, self.maze.first, cell), np.where(out | late, 0, self.age)
        looks = self.maze.look[self.cell], self.maze.look[cell]
        choice = self.manager.step(*looks, out.astype(float), out, late, over, self.allowed(self.cell))
        self.target[over], self.spent[over] = LANDMARKS[choice], 0
        return self.seen(self.cell), reward, terminated, truncated, after
'''

MANAGER = '''class Manager:
    """Sets sub-goals and keeps what came of each: a step of its own lasts as long as the sub-goal does."""

    def __init__(self, config: Config, policy: Policy) -> None:
        self.config, self.policy, self.episodes = config, policy, Episodes(config.{num_envs})
        self.generator = torch.Generator().manual_seed(seed_for("act-manager", config.seed))

    @torch.no_grad()
    def decide(self, obs: np.ndarray, allowed: np.ndarray) -> dict[str, np.ndarray]:
        """What is seen, chosen and thought of it, [n, …]."""
        said = self.policy.act(torch.from_numpy(obs), torch.from_numpy(allowed), self.generator)
        made = {{name: x.numpy().copy() for name, x in zip(("action", "log_prob", "value"), said)}}
        return made | {{"obs": obs, "allowed": allowed}}

    @torch.no_grad()
    def worth(self, obs: np.ndarray) -> np.ndarray:
        return self.policy.value(torch.from_numpy(obs)).numpy()

    def first(self, obs: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """A choice for every walker, and an empty tape."""
        shape = self.config.{horizon_length}, len(obs)
        self.open = self.decide(obs, allowed)
        self.tape = {{name: np.zeros((*shape, *x.shape[1:]), x.dtype) for name, x in self.open.items()}}
        self.tape |= {{name: np.zeros(shape, np.float32) for name in ("reward", "next_value")}}
        self.tape |= {{name: np.zeros(shape, bool) for name in ("terminated", "ended")}}
        self.gain, self.spent, self.rows = np.zeros(len(obs)), np.zeros(len(obs), int), np.zeros(len(obs), int)
        return self.open["action"]

    def step(self, obs, after, reward, out, late, over, allowed) -> np.ndarray:
        """Count a step of the world; a choice where the sub-goal is over."""
        self.episodes.count(reward, out | late)
        self.gain += self.config.{gamma}**self.spent * reward
        self.spent += 1
        who = np.flatnonzero(over)
        if not len(who):
            return np.zeros(0, int)
        made, cut = self.decide(obs[who], allowed[who]), late[who]
        ahead = made["value"].copy()
        if cut.any():
            ahead[cut] = self.worth(after[who[cut]])
        self.close(who, ahead, out[who], cut)
        for name, x in made.items():
            self.open[name][who] = x
        self.gain[who], self.spent[who] = 0.0, 0
        return made["action"]

    def close(self, who: np.ndarray, ahead: np.ndarray, out: np.ndarray, late: np.ndarray) -> None:
        """Write down what is open for some walkers; `ahead` is what comes after is worth."""
        # Discounted by gamma ** steps_per_goal when it is learned from; after fewer steps it is worth that much more.
        stretch = self.config.{gamma} ** (self.spent[who] - self.config.{steps_per_goal})
        closed = {{"reward": self.gain[who], "next_value": ahead * stretch, "terminated": out, "ended": out | late}}
        for name, x in (closed | {{name: x[who] for name, x in self.open.items()}}).items():
            self.tape[name][self.rows[who], who] = x
        self.rows[who] += 1

    def rollout(self, obs: np.ndarray) -> dict[str, Tensor]:
        """All that was decided since `first`; what is open is closed where it is, and where there is nothing is not valid."""
        who = np.flatnonzero(self.spent > 0)
        self.close(who, self.worth(obs)[who], *np.zeros((2, len(who)), bool))
        rows = int(self.rows.max())
        kept = {{name: torch.from_numpy(x[:rows]) for name, x in self.tape.items()}}
        return kept | {{"valid": torch.arange(rows)[:, None] < torch.from_numpy(self.rows)}}
'''

POLICY = '''class Policy(nn.Module):
    """Actor and critic; one of several choices, some of which may be forbidden."""

    def __init__(
        self, seed: int, inputs: int, outputs: int, hidden: tuple[int, ...], activation: str, shared: bool, ortho: bool
    ) -> None:
        super().__init__()
        torch.manual_seed(seed_for("weights", seed))
        self.shared, features = shared, hidden[-1] if hidden else inputs
        self.actor = mlp(inputs, hidden, activation, ortho)
        self.critic = nn.Sequential() if shared else mlp(inputs, hidden, activation, ortho)
        self.value_out, self.policy_out = (layer(features, n, gain, ortho) for n, gain in ((1, 1.0), (outputs, 0.01)))

    def forward(self, obs: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the distribution needs, and the value."""
        features = self.actor(obs)
        raw, judged = self.policy_out(features), features if self.shared else self.critic(obs)
        if allowed is not None:
            raw = raw.masked_fill(~allowed, torch.finfo(raw.dtype).min / 2)
        return raw, self.value_out(judged).squeeze(-1)

    def value(self, obs: Tensor) -> Tensor:
        return self.value_out((self.actor if self.shared else self.critic)(obs)).squeeze(-1)
'''

MASKED = {
    "given": "allowed: Tensor | None, ",
    "gives": "tuple[Tensor, Tensor, Tensor]",
    "handed": ", allowed",
    "also": ", allowed: Tensor | None",
    **dict.fromkeys(("told", "carry", "rest"), ""),
}
"""What a policy of which some choices may be forbidden is given besides."""

KNOBS = '''class Knobs(NamedTuple):
    """What one of the two learns with."""

    lr: float
    clip: float
    ent_coef: float
    gamma: float
    lam: float
    epochs: int
    minibatch_size: int
    value_coef: float
    value_clip: float | None
    max_grad_norm: float
    target_kl: float | None
    normalize: str


def knobs(config: Config, progress: float) -> dict[str, Knobs]:
    """Of both, as far as the run has come."""
    return {{
        # [node {high_id}]: what it does not set is the library's default
        "high": Knobs(
            {high}
        ),
        # [node {low_id}]
        "low": Knobs(
            {low}
        ),
    }}
'''

ROWS = """    keep = rollout["valid"].flatten() if "valid" in rollout else slice(None)
    names = [name for name in ("obs", "action", "log_prob", "value", "allowed") if name in rollout]
    rows = {name: rollout[name].flatten(0, 1)[keep] for name in names}
    rows |= {"advantage": advantage.flatten()[keep], "target": (advantage + rollout["value"]).flatten()[keep]}
"""

EVALUATE = """            log_prob, entropy, value = policy.evaluate(part["obs"], part["action"], part.get("allowed"))
"""

BATCH = """    if knobs.normalize == "batch":
        rows["advantage"] = standardize(rows["advantage"])
"""

SAVE = '''def state(both: nn.ModuleDict, optimizers: dict[str, Adam]) -> dict[str, Tensor]:
    """All that is learned, by name."""
    slots = {
        f"adam.{who}.{i}.{name}": x
        for who, own in optimizers.items()
        for name, each in (("mean", own.means), ("square", own.squares), ("step", own.steps))
        for i, x in enumerate(each)
    }
    return dict(both.state_dict()) | slots


def save(folder: Path, config: Config, learned: dict[str, Tensor], told: dict) -> None:
    """weights.npz and state.json, each replaced whole; no pickle in either."""
    np.savez(folder / "weights.part.npz", **{name: x.detach().numpy() for name, x in learned.items()})
    (folder / "weights.part.npz").replace(folder / "weights.npz")
    (folder / "state.part.json").write_text(json.dumps({"config": asdict(config), **told}, indent=1))
    (folder / "state.part.json").replace(folder / "state.json")


def load(folder: Path, learned: dict[str, Tensor]) -> None:
    """Weights and optimisers as `save` left them; the walkers begin anew."""
    with np.load(folder / "weights.npz", allow_pickle=False) as arrays, torch.no_grad():
        for name, x in learned.items():
            x.copy_(torch.from_numpy(arrays[name]))
'''

TRAIN = '''def train(config: Config, out: Path | None = None, resume: Path | None = None) -> nn.ModuleDict:
    """The whole run; the record goes to out/telemetry.ndjson, one line an update."""
    torch.set_num_threads(1)
    cells, seeds = Maze().look.shape[1], {{"high": seed_for("manager", config.seed), "low": config.seed}}
    high = Policy(seeds["high"], cells, len(LANDMARKS), {high_net})
    low = Policy(seeds["low"], LANDMARKS.shape[1] + cells, {low_net})
    both = nn.ModuleDict({{"high": high, "low": low}})
    optimizers = {{who: Adam(list(policy.parameters())) for who, policy in both.items()}}
    if resume is not None:
        load(resume, state(both, optimizers))
    shuffling = {{who: torch.Generator().manual_seed(seed_for("shuffle", seed)) for who, seed in seeds.items()}}
    acting = torch.Generator().manual_seed(seed_for("act", config.seed))
    manager = Manager(config, high)
    world, goals = World(config, manager), Episodes(config.{num_envs})
    obs, told_above = world.begin(), {{}}
    steps, updates, begin = 0, 0, time.perf_counter()
    while steps < config.total_steps:
        now = knobs(config, min(1.0, steps / config.total_steps))
        rollout, obs = collect(config, world, low, acting, obs, goals)
        told = update(now["low"], low, optimizers["low"], shuffling["low"], rollout)
        steps, updates = steps + config.{horizon_length} * world.count, updates + 1
        last = steps >= config.total_steps
        if not last:  # the manager learns before the next rollout, for which all sub-goals are set anew
            above = manager.rollout(world.maze.look[world.cell])
            told_above = update(now["high"], high, optimizers["high"], shuffling["high"], above)
            obs = world.begin()
        told = {{"update": updates, "env_steps": steps, "seconds": time.perf_counter() - begin}} | told
        told |= {{f"high_{{name}}": x for name, x in told_above.items()}}
        if manager.episodes.recent:
            told |= dict(zip(("return", "length"), np.mean(manager.episodes.recent, axis=0).tolist()))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            with open(out / "telemetry.ndjson", "a") as file:
                file.write(json.dumps(told) + "\\n")
            if last or updates % {save_every} == 0:
                save(out, config, state(both, optimizers), told)
        if last or updates % {print_every} == 0:
            shown = (f"{{n}} {{told[n]:.6g}}" for n in ("update", "env_steps", "return", "approx_kl", "loss") if n in told)
            print(*shown, sep="  ", flush=True)
    return both
'''
